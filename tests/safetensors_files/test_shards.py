"""Tables cut into shards: what stands in them, that all of vec2emb reads them, and that damage is found."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from helpers import FIXTURES, bits, collected, digest_of, run, ways
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

import vec2emb
from vec2emb.bundle.publication import CONFIG, MODEL, VOCAB
from vec2emb.bundle.reader import Bundle
from vec2emb.errors import BundleError, InputError, OutputError, UsageError
from vec2emb.safetensors_files import shard_writer
from vec2emb.safetensors_files.rows import RowFile

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"  # 250 rows x 50, and two special ones
SIZE = 24_000  # of a shard: a header of 4,096 bytes and 99 rows of 200
ROWS = [[0, 99], [99, 198], [198, 252]]


def shard(number: int) -> str:
    return f"shard-{number:05}-model-00001-of-00001.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample in one file and in three."""
    folder = tmp_path_factory.mktemp("made")
    vec2emb.convert(SAMPLE, folder / "one")
    vec2emb.convert(SAMPLE, folder / "many", shard_size=SIZE)
    return folder


@pytest.fixture
def many(made: Path, tmp_path: Path) -> Path:
    """A copy of the three shards."""
    return Path(shutil.copytree(made / "many", tmp_path / "many"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# What is written.


def test_each_shard_says_which_rows_it_holds(made: Path) -> None:
    whole = load_file(made / "one" / MODEL)["weight"]
    config = json.loads((made / "many" / CONFIG).read_text())
    assert set(files_of(made / "many")) == {shard(1), shard(2), shard(3), VOCAB, CONFIG}
    assert (made / "many" / VOCAB).read_bytes() == (made / "one" / VOCAB).read_bytes()
    for number, (start, stop) in enumerate(ROWS, 1):
        path = made / "many" / shard(number)
        data = path.read_bytes()
        assert config["files"][path.name] == {
            "bytes": len(data), "rows": [start, stop], "digest": digest_of(data)
        }  # fmt: skip
        assert len(data) == 4096 + (stop - start) * 200 <= SIZE
        with safetensors.safe_open(path, "numpy") as opened:
            assert list(opened.keys()) == ["weight"]
            assert bits(opened.get_tensor("weight")) == bits(whole[start:stop])
            metadata = opened.metadata()
        assert metadata.keys() == {"format", "vec2emb", "DCP_VERSION", "DCP_SHARDING_INFO"}
        assert (metadata["format"], metadata["DCP_VERSION"]) == ("pt", "1.0")
        assert json.loads(metadata["DCP_SHARDING_INFO"]) == {"weight": {"saved_offsets": [start, 0]}}
        assert json.loads(metadata["vec2emb"])["rows"] == 252
    assert config["shard_size"] == SIZE


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_export_conversion_blocks_and_threads_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    monkeypatch.setattr(shard_writer, "_OPEN", 1)
    options: dict[str, Any] = {"dtype": dtype, "positions": "sinusoidal", "max_positions": 8, "unk_init": "normal"}
    vec2emb.convert(SAMPLE, tmp_path / "one", **options)
    done = vec2emb.export(tmp_path / "one", "shards", tmp_path / "exported", shard_size=9_000)
    expected = files_of(tmp_path / "exported")
    each = (9_000 - 4096) // (50 * (4 if dtype == "float32" else 2))
    shards = -(-252 // each) + 1
    assert len(expected) == shards + 2
    assert done.files.keys() == expected.keys()
    for name, facts in done.files.items():
        assert (facts["bytes"], facts["digest"]) == (len(expected[name]), digest_of(expected[name]))
    assert done.notes == [f"{shards} shards of at most 9,000 bytes"]
    for threads in ways(monkeypatch, blocks=("64", ""), threads=(1, 3)):
        report = vec2emb.convert(
            SAMPLE, tmp_path / "many", shard_size="9KB", if_exists="replace", threads=threads, **options
        )
        assert files_of(tmp_path / "many") == expected
    assert report.bytes == sum(len(data) for name, data in expected.items() if name.startswith("shard"))
    assert done.bytes == sum(map(len, expected.values()))
    assert (report.shards, report.model_path) == (shards, None)
    rehearsed = vec2emb.convert(SAMPLE, None, dry_run=True, shard_size=9_000, **options)
    assert (rehearsed.shards, rehearsed.bytes) == (report.shards, report.bytes)


def test_rows_that_wait_and_a_stream_of_unknown_length(made: Path, tmp_path: Path) -> None:
    """Rows whose place is known only at the end, from a stream whose length nobody knows."""
    stream = io.BytesIO(SAMPLE.read_bytes())
    vec2emb.convert(stream, tmp_path / "piped", shard_size=SIZE)
    for number in (1, 2, 3):
        assert (tmp_path / "piped" / shard(number)).read_bytes() == (made / "many" / shard(number)).read_bytes()
    words = ["time", "<unk>", "of", "nobody", "the", "<pad>"]
    options: dict[str, Any] = {"vocab": words, "missing": "zeros"}
    for name, size in (("one", None), ("many", 4096 + 400)):
        collected(lambda: vec2emb.convert(SAMPLE, tmp_path / name, shard_size=size, **options))  # noqa: B023
    one, many = vec2emb.load(tmp_path / "one"), vec2emb.load(tmp_path / "many")
    assert len(list((tmp_path / "many").glob("shard-*"))) == 3
    assert many.vocab.tokens == one.vocab.tokens == words
    assert bits(many.vectors) == bits(one.vectors)


def test_positions_have_a_shard_of_their_own(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "many", tmp_path / "many")
    rows = files_of(tmp_path / "many")
    attached = vec2emb.attach_positions(tmp_path / "many", "sinusoidal", 10, key_style="bart")
    assert len(attached.keys) == 3
    now = files_of(tmp_path / "many")
    assert set(now) == {*rows, shard(4)}
    with safetensors.safe_open(tmp_path / "many" / shard(4), "numpy") as opened:
        assert set(opened.keys()) == set(attached.keys[1:])
        info = json.loads(opened.metadata()["DCP_SHARDING_INFO"])
        assert info == {key: {"saved_offsets": [0, 0]} for key in attached.keys[1:]}
    assert "rows" not in json.loads(now[CONFIG])["files"][shard(4)]
    vec2emb.attach_positions(made / "one", "sinusoidal", 10, key_style="bart", output=tmp_path / "one")
    one, many = vec2emb.load(tmp_path / "one"), vec2emb.load(tmp_path / "many")
    assert one.positions is not None
    assert many.positions is not None
    assert bits(many.positions) == bits(one.positions)
    assert bits(many.vectors) == bits(one.vectors)
    vec2emb.resize_positions(tmp_path / "many", tmp_path / "longer", to=20)
    longer = vec2emb.load(tmp_path / "longer")
    assert longer.positions is not None
    assert len(longer.positions) == 2 + 20  # two rows in front, as BART has them
    assert len(list((tmp_path / "longer").glob("shard-*"))) == 4
    found = vec2emb.verify(tmp_path / "longer", rebuild=SAMPLE)
    assert found.ok, str(found)


def test_a_shard_of_positions_may_be_larger(made: Path, tmp_path: Path) -> None:
    vec2emb.attach_positions(made / "one", "sinusoidal", 120, output=tmp_path / "one")
    done = vec2emb.export(tmp_path / "one", "shards", tmp_path / "many", shard_size=SIZE)
    assert done.notes == ["4 shards of at most 24,000 bytes, but for that of positions"]
    sizes = [done.files[shard(number)]["bytes"] for number in (1, 2, 3, 4)]
    assert sizes == [4096 + rows * 200 for rows in (99, 99, 54, 120)]


@pytest.mark.parametrize("positions", [False, True], ids=["words", "positions"])
def test_no_row_is_one_shard(tmp_path: Path, positions: bool) -> None:
    options: dict[str, Any] = {"positions": "sinusoidal", "max_positions": 4} if positions else {}
    _, warned = collected(
        lambda: vec2emb.convert(
            SAMPLE, tmp_path / "b", only=["zyzzyva"], pad=None, unk=None, shard_size="1MB", **options
        )
    )
    assert warned == []
    vec2emb.save(tmp_path / "one", [], np.zeros((0, 50)))
    if positions:
        vec2emb.attach_positions(tmp_path / "one", "sinusoidal", 4)
    vec2emb.export(tmp_path / "one", "shards", tmp_path / "exported", shard_size="1MB")
    for name in ("b", "exported"):
        files = files_of(tmp_path / name)
        assert set(files) == {shard(1), *([shard(2)] if positions else []), VOCAB, CONFIG}
        assert json.loads(files[CONFIG])["files"][shard(1)]["rows"] == [0, 0]
        [weight] = load_file(tmp_path / name / shard(1)).values()
        assert weight.shape == (0, 50)
        table = vec2emb.load(tmp_path / name)
        assert (len(table), table.vectors.shape, table.rows(0, 0).shape) == (0, (0, 50), (0, 50))
        assert (table.positions is not None) == positions
        assert vec2emb.verify(tmp_path / name).ok
        vec2emb.convert(SAMPLE, tmp_path / name, shard_size=SIZE, if_exists="replace")
        assert len(vec2emb.load(tmp_path / name)) == 252
    told = collected(
        lambda: vec2emb.convert(
            SAMPLE, None, dry_run=True, only=["zyzzyva"], pad=None, unk=None, shard_size="1MB", **options
        )
    )[0]
    assert (told.shards, told.bytes) == ((2, 2 * 4096 + 4 * 200) if positions else (1, 4096))


# Memory.


def resident(folder: Path) -> int:
    """Bytes of a folder's files that are mapped and in memory, as the system counts them."""
    ours = re.escape(os.fsencode(folder)) + rb"[^\n]*\n(?:(?!Rss:)[^\n]*\n)*Rss: *(\d+) kB"
    return 1024 * sum(map(int, re.findall(ours, Path("/proc/self/smaps").read_bytes())))


counted = pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="the system does not count it")


def large(output: Path, **options: Any) -> Path:
    """3 MiB of rows."""
    vectors = np.ones((768, 1024), np.float32)
    vec2emb.convert((vectors, [f"w{i}" for i in range(768)]), output, pad=None, unk=None, **options)
    return output


@counted
@pytest.mark.parametrize("size", [None, 4096 + (5 << 18)], ids=["one", "shards"])
def test_what_is_read_in_pieces_does_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int | None
) -> None:
    """1 MiB is in memory when it is handed out or hashed, and what the system maps around it."""
    opened, seen, sha256 = Bundle(large(tmp_path, shard_size=size)), [], hashlib.sha256
    for _ in opened.pieces():
        seen.append(resident(tmp_path))

    class Watched:
        def __init__(self, data: bytes = b"") -> None:
            self._sum = sha256(data)

        def update(self, data: bytes) -> None:
            seen.append(resident(tmp_path))
            self._sum.update(data)

        def digest(self) -> bytes:
            return self._sum.digest()

        def hexdigest(self) -> str:
            return self._sum.hexdigest()

    monkeypatch.setattr(hashlib, "sha256", Watched)
    opened.check_sum()
    assert len(seen) >= 3 + 4
    assert 1 << 19 < max(seen) < 3 << 19


@counted
def test_a_table_that_is_copied_does_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, seen = large(tmp_path / "old"), list[int]()
    for kind in (RowFile, shard_writer.ShardedRows):

        def watched(rows: RowFile, *what: Any, real: Any = kind._write) -> None:
            seen.append(resident(old))
            real(rows, *what)

        monkeypatch.setattr(kind, "_write", watched)
    for copy in (
        lambda: vec2emb.extend(old, tmp_path / "a", tokens=["x"], missing="mean"),
        lambda: vec2emb.attach_positions(old, "learned", 4, scale="match-positions", output=tmp_path / "b"),
        lambda: vec2emb.export(old, "shards", tmp_path / "c"),
        lambda: vec2emb.load(old).save(tmp_path / "d"),
    ):
        seen.clear()
        collected(copy)
        assert len(seen) >= 3
        assert 1 << 19 < max(seen) < 3 << 19


def test_joined_again(made: Path, tmp_path: Path) -> None:
    vec2emb.load(made / "many").save(tmp_path / "joined")
    joined = files_of(tmp_path / "joined")
    assert set(joined) == {MODEL, VOCAB, CONFIG}
    assert joined[MODEL] == (made / "one" / MODEL).read_bytes()
    assert json.loads(joined[CONFIG])["source"] == json.loads((made / "one" / CONFIG).read_text())["source"]
    vec2emb.export(made / "many", "shards", tmp_path / "large", shard_size="1GB")
    assert set(files_of(tmp_path / "large")) == {shard(1), VOCAB, CONFIG}
    vec2emb.export(tmp_path / "large", "shards", tmp_path / "large", shard_size=SIZE, if_exists="replace")  # itself
    assert files_of(tmp_path / "large") == files_of(made / "many")


# Rows by number.


@settings(max_examples=60, deadline=None)
@given(rows=st.tuples(st.integers(0, 252), st.integers(0, 252)).map(sorted), lazy=st.booleans())
def test_rows_are_those_of_the_table(made: Path, rows: list[int], lazy: bool) -> None:
    expected = load_file(made / "one" / MODEL)["weight"][rows[0] : rows[1]]
    for name in ("one", "many"):
        found = vec2emb.load(made / name, lazy=lazy).rows(*rows)
        assert bits(found) == bits(expected)
        assert found.shape == (rows[1] - rows[0], 50)
        assert not found.flags.writeable


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rows_of_narrow_types(tmp_path: Path, dtype: str) -> None:
    vec2emb.convert(SAMPLE, tmp_path / "b", dtype=dtype, shard_size=4096 + 10_000)
    table = vec2emb.load(tmp_path / "b")
    rows = table.rows(95, 205)
    assert bits(rows) == bits(table.vectors[95:205])
    assert bits(table.rows(99, 100)) == bits(rows[4:5])  # once they are in memory, too


def test_rows_that_are_none(made: Path) -> None:
    memory = vec2emb.read_vectors(SAMPLE)
    assert bits(memory.rows(3, 5)) == bits(memory.vectors[3:5])
    for table in (vec2emb.load(made / "many"), memory):
        count = len(table)
        arguments: Any
        for arguments in ((-1, 2), (2, 1), (0, count + 1), (0.0, 1), ("0", "1"), (True, 2)):
            with pytest.raises(UsageError, match=f"there are no such rows: expected 0 <= first <= end <= {count}"):
                table.rows(*arguments)


def test_a_lazy_table_reads_its_vocabulary_when_it_is_asked(many: Path) -> None:
    text = (many / VOCAB).read_bytes()
    table = vec2emb.load(many, lazy=True)
    assert (len(table), table.dim, table.padding_idx) == (252, 50, 0)
    assert repr(table) == "<Table 252 tokens x 50>"
    (many / VOCAB).write_bytes(text.replace(b"\nthe\n", b"\nteh\n"))
    assert table.rows(0, 2).shape == (2, 50)
    with pytest.raises(BundleError, match="sha256"):
        table.vocab  # noqa: B018
    with pytest.raises(BundleError, match="sha256"):
        vec2emb.load(many)
    (many / VOCAB).write_bytes(text)
    assert bits([table["the"]]) == bits(table.rows(2, 3))
    copied = pickle.loads(pickle.dumps(vec2emb.load(many, lazy=True)))
    assert copied._vocab is None
    assert bits(copied.vectors) == bits(table.vectors)
    assert [token for token, _ in table] == list(table.vocab.tokens)
    assert bits([vector for _, vector in table]) == bits(table.vectors)


RSS = """
import sys, time
import numpy, vec2emb, vec2emb.bundle.table, vec2emb.bundle.reader

def memory():
    return {line.split(":")[0]: int(line.split()[1]) for line in open("/proc/self/status") if "kB" in line}["VmRSS"]

vec2emb.load(sys.argv[2], lazy=True).rows(0, 1)
before = memory()
begun = time.perf_counter()
rows = vec2emb.load(sys.argv[1], lazy=True).rows(int(sys.argv[3]), int(sys.argv[4]))
opened = time.perf_counter() - begun
total = float(rows.sum(dtype=numpy.float64))
print(opened, memory() - before, total)
"""


def test_a_slice_opens_at_once_and_touches_only_itself(made: Path, tmp_path: Path) -> None:
    """500 rows of 512 values, 1 MB, of a table of 25 MB; 10,000 rows of a table of 2 GB are a slow test."""
    check_slice(made / "many", tmp_path, 12_000, "20MB", (9_500, 10_000))  # 9,763 rows fit a shard


@pytest.mark.slow
def test_a_slice_of_a_large_table(made: Path, tmp_path: Path) -> None:
    check_slice(made / "many", tmp_path, 1_000_000, "500MB", (240_000, 250_000))  # 244,138 rows fit a shard


def check_slice(warm: Path, folder: Path, count: int, size: str, rows: tuple[int, int]) -> None:
    """Read some rows x 512 of two shards, and of one file, each in a process of its own."""
    writer = np.lib.format.open_memmap(folder / "table.npy", mode="w+", dtype=np.float32, shape=(count, 512))
    for at in range(0, count, 1000):
        writer[at : at + 1000] = np.arange(at, at + 1000, dtype=np.float32)[:, None]
    vec2emb.save(folder / "one", [f"w{i}" for i in range(count)], writer)
    vec2emb.export(folder / "one", "shards", folder / "many", shard_size=size)
    for bundle in (folder / "one", folder / "many"):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(RSS), bundle, warm, *map(str, rows)],
            capture_output=True, check=True, text=True,
        )  # fmt: skip
        opened, grown, total = map(float, done.stdout.split())
        print(f"{bundle.name}: opened in {1000 * opened:.1f} ms, memory grew by {grown / 1024:.1f} MiB")
        assert total == float(sum(range(*rows)) * 512)
        assert opened < 0.25  # mostly 1 ms to map rows, 10 more to copy those of two shards
        assert grown < 2.5 * (rows[1] - rows[0]) * 2 + 1024  # kB: mapped, and copied if they are of two shards


# All that reads a bundle.


def test_what_reads_bundles_reads_shards(made: Path, tmp_path: Path) -> None:
    assert vec2emb.similar(made / "many", "time", "of", top=5) == vec2emb.similar(made / "one", "time", "of", top=5)
    one, many = vec2emb.inspect(made / "one"), vec2emb.inspect(made / "many")
    assert many.ok
    assert {k: v for k, v in many.facts.items() if k not in ("shards", "shard_size")} == one.facts
    assert (many.facts["shards"], many.facts["shard_size"]) == (3, SIZE)
    for format in ("word2vec", "word2vec-binary"):
        for name in ("one", "many"):
            vec2emb.export(made / name, format, tmp_path / f"{name}.{format}")
        assert (tmp_path / f"one.{format}").read_bytes() == (tmp_path / f"many.{format}").read_bytes()
    audits = [vec2emb.audit(made / name).to_dict()["sources"][0] for name in ("one", "many")]
    checks = [audit["health"].pop("checks") for audit in audits]  # one for each file
    assert audits[0]["health"] == audits[1]["health"]
    assert [set(found.values()) for found in checks] == [{None}, {None}]
    assert vec2emb.load(made / "many").explain("the").origin == "file"
    assert vec2emb.load(made / "many" / shard(2)).vocab.tokens == vec2emb.load(made / "one").vocab.tokens
    found = vec2emb.verify(made / "many", source=SAMPLE, rebuild=SAMPLE)
    assert found.ok, str(found)
    assert found.identical_digest == digest_of(*(made / "many" / shard(n) for n in (1, 2, 3)))
    vec2emb.convert(SAMPLE, tmp_path / "b", shard_size=SIZE, expect={"digest": found.identical_digest, "rows": 252})
    listing = "".join(
        f"{hashlib.sha256((made / 'many' / shard(n)).read_bytes()).hexdigest()}  {shard(n)}\n" for n in (1, 2, 3)
    )
    expect = {"sha256": hashlib.sha256(listing.encode()).hexdigest()}
    vec2emb.convert(SAMPLE, tmp_path / "b", shard_size=SIZE, expect=expect, if_exists="replace")
    with pytest.raises(vec2emb.errors.CheckError, match="sha256"):
        vec2emb.convert(SAMPLE, tmp_path / "c", shard_size=SIZE, expect={"sha256": "0" * 64})
    assert not (tmp_path / "c").exists()


def test_a_bundle_that_is_the_same_is_kept(many: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in many.iterdir()}
    assert vec2emb.convert(SAMPLE, many, shard_size=SIZE, if_exists="keep").kept_existing
    assert {path: path.stat().st_mtime_ns for path in many.iterdir()} == before
    with pytest.raises(
        OutputError, match=r"is not the one this conversion gives.*found differences in files"
    ) as caught:
        vec2emb.convert(SAMPLE, many, shard_size=SIZE - 200, if_exists="keep")
    assert caught.value.code == "target-differs"
    with pytest.raises(OutputError, match="found differences in files, shard_size"):
        vec2emb.convert(SAMPLE, many, if_exists="keep")


# Damage.


def rename(one: int, other: int) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        os.rename(folder / shard(one), folder / "aside")
        os.rename(folder / shard(other), folder / shard(one))
        os.rename(folder / "aside", folder / shard(other))

    return harm


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        config = json.loads((folder / CONFIG).read_text())
        change(config)
        (folder / CONFIG).write_text(json.dumps(config))

    return harm


def replace(number: int, old: bytes, new: bytes) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        data = (folder / shard(number)).read_bytes()
        assert data.count(old) == 1
        (folder / shard(number)).write_bytes(data.replace(old, new))

    return harm


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (lambda folder: os.unlink(folder / shard(2)), f"{shard(2)} is missing"),
    "renamed": (rename(1, 2), f"{shard(1)} holds other rows"),
    "another-table": (
        replace(2, b'\\"padding_idx\\":0', b'\\"padding_idx\\":1'), f"{shard(2)} is a shard of another table"
    ),
    "cut": (lambda folder: os.truncate(folder / shard(3), 14_000), "the file ends early"),
    "first-row": (replace(3, b"[198,0]", b"[197,0]"), f"{shard(3)} holds other rows"),
    "no-offsets": (replace(2, b"DCP_SHARDING_INFO", b"dcp_sharding_info"), f"{shard(2)} holds other rows"),
    "column": (replace(2, b"[99,0]", b"[99,9]"), f"{shard(2)} holds other rows"),
    "rows": (edit(lambda config: config["files"][shard(2)].update(rows=[99, 197])), f"{shard(2)} holds other rows"),
    "no-rows": (edit(lambda config: config["files"][shard(2)].pop("rows")), f"{shard(2)} holds other rows"),
    "bytes": (edit(lambda config: config["files"][shard(2)].update(bytes=1)), f"{shard(2)} has another size"),
    "no-digest": (edit(lambda config: config["files"][shard(2)].pop("digest")), f"{shard(2)}.digest must be a string"),
    "not-listed": (edit(lambda config: config["files"].pop(shard(3))), "the table is not as its metadata say"),
    "key": (edit(lambda config: config.update(key="other")), "the shards are not those of one table"),
    "key-list": (edit(lambda config: config.update(key=["weight"])), "$.key must be a string"),
    "size": (edit(lambda config: config.update(shard_size=-1)), "$.shard_size must be a whole number from 1"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_refused(many: Path, damage: str) -> None:
    harm, message = DAMAGE[damage]
    harm(many)
    with pytest.raises(InputError) as caught:
        vec2emb.load(many, lazy=True)
    assert message in str(caught.value)
    assert not vec2emb.verify(many).ok


def test_one_bit_is_found(many: Path, tmp_path: Path) -> None:
    data = bytearray((many / shard(2)).read_bytes())
    data[5_000] ^= 1
    (many / shard(2)).write_bytes(data)
    failed = [check["check"] for check in vec2emb.verify(many, source=SAMPLE).checks if not check["ok"]]
    assert failed == [f"digest of {shard(2)}", f"250 rows are what their words have in {SAMPLE}"]
    for write in (
        lambda: vec2emb.export(many, "shards", tmp_path / "out"),
        lambda: vec2emb.attach_positions(many, "learned", 5),
    ):
        with pytest.raises(BundleError, match="the tensors are not those that were written"):
            write()
    assert not (tmp_path / "out").exists()


def test_a_bundle_that_is_replaced_while_it_is_open(many: Path) -> None:
    table = vec2emb.load(many)
    before = table.rows(0, 10).copy()
    vec2emb.convert(SAMPLE, many, shard_size=SIZE, unit_norm=True, if_exists="replace")
    assert bits(table.rows(0, 10)) == bits(before)  # its shard was mapped
    with pytest.raises(BundleError, match="was replaced while the bundle was open; open the bundle again") as caught:
        table.rows(100, 110)
    assert caught.value.code == "bundle-changed"


# In the place of other bundles, and beside other files.


def test_shards_and_one_file_replace_each_other(made: Path, many: Path) -> None:
    (many / "tokenizer.json").write_text("{}")
    (many / shard(99)).write_text("somebody's own")
    expected = files_of(made / "many")
    for size in (None, 5_000, SIZE):
        vec2emb.convert(SAMPLE, many, shard_size=size, if_exists="replace")
        now = files_of(many)
        assert (now.pop("tokenizer.json"), now.pop(shard(99))) == (b"{}", b"somebody's own")
        assert len(now) == (3 if size is None else 2 + -(-252 // ((size - 4096) // 200)))
        assert vec2emb.verify(many).ok
    assert now == expected
    assert sorted(os.listdir(many.parent)) == ["many"]


def test_a_killed_run_leaves_nothing_that_the_next_does_not_remove(tmp_path: Path) -> None:
    """Rows for ever, so that it is in the middle of its shards when it is killed."""
    script = "import itertools, sys\nfor i in itertools.count(): sys.stdout.write(f'w{i} ' + '0.5 ' * 99 + '1\\n')"
    rows = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    command = [sys.executable, "-m", "vec2emb", "convert", "-", "-o", "b", "--format", "glove", "--shard-size", "1MB"]
    running = subprocess.Popen(command, stdin=rows.stdout, cwd=tmp_path)
    try:
        while sum(path.name.startswith("shard") for path in tmp_path.rglob("*")) < 3:
            assert running.poll() is None
        running.kill()
        running.wait()
    finally:
        for process in (rows, running):
            process.kill()
            process.wait()
        if rows.stdout:
            rows.stdout.close()
    assert not (tmp_path / "b").exists()
    vec2emb.convert(SAMPLE, tmp_path / "b", shard_size=SIZE)
    assert sorted(os.listdir(tmp_path)) == ["b"]
    assert set(files_of(tmp_path / "b")) == {shard(1), shard(2), shard(3), VOCAB, CONFIG}


def test_what_cannot_be_cut(made: Path, tmp_path: Path) -> None:
    call: Callable[[], object]
    for code, call in (
        ("shards-in-a-folder", lambda: vec2emb.convert(SAMPLE, tmp_path / "b.safetensors", shard_size=SIZE)),
        ("shards-in-a-folder", lambda: vec2emb.export(made / "one", "shards", tmp_path / "b.safetensors")),
        ("shard-size-small", lambda: vec2emb.convert(SAMPLE, tmp_path / "b", shard_size=4096 + 199)),
        ("shard-size-small", lambda: vec2emb.export(made / "one", "shards", tmp_path / "b", shard_size=100)),
        ("shard-size-range", lambda: vec2emb.convert(SAMPLE, tmp_path / "b", shard_size="5 PB")),
        ("shard-size-range", lambda: vec2emb.export(made / "one", "shards", tmp_path / "b", shard_size=0)),
        ("shard-size-alone", lambda: vec2emb.export(made / "one", "glove", tmp_path / "b", shard_size=SIZE)),
        ("specials-needed", lambda: vec2emb.export(made / "one", "shards", tmp_path / "b", specials="drop")),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.code == code
    assert os.listdir(tmp_path) == []
    with pytest.raises(UsageError, match="a shard holds no row: expected 4296 bytes at least, found 4295"):
        vec2emb.convert(SAMPLE, tmp_path / "b", shard_size=4295)
    with pytest.raises(InputError, match="there is no such bundle"):
        vec2emb.export(tmp_path / "none", "shards", tmp_path / "b")
    with pytest.raises(OutputError, match="a bundle is there already"):
        vec2emb.export(made / "one", "shards", made / "many")


def test_too_many_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "MOST", 2)
    with pytest.raises(OutputError, match="the table has too many shards: expected at most 2; a larger --shard-size"):
        vec2emb.convert(SAMPLE, tmp_path / "b", shard_size=SIZE)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    written = 0
    real = os.pwrite

    def pwrite(descriptor: int, data: memoryview, offset: int) -> int:
        nonlocal written
        written += len(data)
        if written > 30_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OutputError) as caught:
        vec2emb.convert(SAMPLE, tmp_path / "b", shard_size=SIZE)
    assert caught.value.code == "disk-full"
    assert os.listdir(tmp_path) == []
    with contextlib.suppress(FileNotFoundError):
        assert not any("safetensors" in os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))


# On the command line.


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("convert", SAMPLE, "-o", "one", "--quiet")
    assert done.returncode == 0, done.stderr
    done = run("export", "one", "--to", "shards", "-o", "shards", "--shard-size", "24KB")
    assert done.stdout.decode() == (
        "shards: shards, 252 rows x 50; read back, the same to the bit\n  3 shards of at most 24,000 bytes\n"
    )
    done = run("convert", SAMPLE, "-o", "many", "--shard-size", "24KB")
    assert done.stdout.decode().startswith("many: 252 rows x 50, float32, 3 shards, written in ")
    assert done.stdout.decode().endswith("embedding = load_embedding('many')\nvocab = vec2emb.load('many').vocab\n")
    assert files_of(tmp_path / "many") == files_of(tmp_path / "shards")
    done = run("export", "one", "--to", "shards", "-o", "shards", "--if-exists", "replace", "--json")
    facts = json.loads(done.stdout)
    assert (facts["format"], len(facts["files"]), facts["files"][shard(1)]["bytes"]) == ("shards", 3, 4096 + 252 * 200)
    assert run("convert", SAMPLE, "-o", "x.safetensors", "--shard-size", "24KB").returncode == 2
    done = run("convert", "-", "-o", "piped", "--shard-size", "24KB", "--quiet", stdin=SAMPLE.read_bytes())
    assert json.loads((tmp_path / "piped" / CONFIG).read_text())["source"]["bytes"] == SAMPLE.stat().st_size
    assert (tmp_path / "piped" / shard(3)).read_bytes() == (tmp_path / "many" / shard(3)).read_bytes()
