"""The bundle on disk: what stands in it, who can open it, and what loading refuses."""

from __future__ import annotations

import contextlib
import copy
import errno
import gzip
import hashlib
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from helpers import digest_of
from hypothesis import given, settings
from hypothesis import strategies as st

import vec2emb
from vec2emb.bundle.publication import CONFIG, MODEL, SCRATCH, VOCAB, Publication, Target
from vec2emb.bundle.reader import largest
from vec2emb.bundle.writer import BundleWriter
from vec2emb.errors import BundleError, InputError, OutputError, UsageError, VocabularyError

TEXT = "the 0.5 -1.25 2\nof 1 0.25 -0.75\n\N{NO-BREAK SPACE} -0.5 0.125 0.0625\n"
ROWS = [[0.5, -1.25, 2], [1, 0.25, -0.75], [-0.5, 0.125, 0.0625]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def bundle(source: Path, tmp_path: Path) -> Path:
    vec2emb.convert(source, tmp_path / "glove", format="glove")
    return tmp_path / "glove"


def header_of(path: Path) -> tuple[int, str]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return 8 + length, data[8 : 8 + length].decode()


# What is written.


@pytest.mark.parametrize(
    ("dtype", "name", "width"), [("float32", "F32", 4), ("float16", "F16", 2), ("bfloat16", "BF16", 2)]
)
def test_the_header_is_of_one_size_in_one_spelling_and_silent_about_the_source(
    source: Path, tmp_path: Path, dtype: str, name: str, width: int
) -> None:
    vec2emb.convert(source, tmp_path / "glove", dtype=dtype)
    model = tmp_path / "glove" / MODEL
    data_start, text = header_of(model)
    assert data_start == 4096
    assert model.stat().st_size == 4096 + 5 * 3 * width
    entries = json.loads(text)
    digest = hashlib.sha256((tmp_path / "glove" / VOCAB).read_bytes()).hexdigest()
    facts = {
        "dim": 3, "dtype": dtype, "format_version": 1, "padding_idx": 0, "positions": None, "rows": 5,
        "scale": None, "train": "all", "unk_idx": 1, "vocab_sha256": digest,
    }  # fmt: skip
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    assert entries == {
        "__metadata__": {"format": "pt", "vec2emb": canonical},
        "weight": {"dtype": name, "shape": [5, 3], "data_offsets": [0, 15 * width]},
    }
    assert text == json.dumps(entries, separators=(",", ":")).ljust(4088)  # spaces fill it up, no key stands twice
    assert b"vectors" not in model.read_bytes()


def test_every_reader_opens_it(bundle: Path) -> None:
    expected = np.array([[0, 0, 0], np.mean(ROWS, axis=0), *ROWS], np.float32)
    path = bundle / MODEL
    np.testing.assert_array_equal(safetensors.numpy.load_file(path)["weight"], expected)
    state = safetensors.torch.load_file(path)
    assert list(state) == ["weight"]
    embedding = torch.nn.Embedding(5, 3, padding_idx=0)
    assert str(embedding.load_state_dict(state)) == "<All keys matched successfully>"
    np.testing.assert_array_equal(embedding.weight.detach().numpy(), expected)
    with safetensors.safe_open(path, "pt") as opened:
        assert opened.metadata().keys() == {"format", "vec2emb"}
        assert opened.metadata()["format"] == "pt"
        assert opened.get_slice("weight")[2:3].tolist() == [ROWS[0]]
    table = vec2emb.load(bundle)
    np.testing.assert_array_equal(table.vectors, expected)
    np.testing.assert_array_equal(table["the"], ROWS[0])
    np.testing.assert_array_equal(table["absent"], expected[1])
    assert table.vocab.tokens == ["<pad>", "<unk>", "the", "of", "\N{NO-BREAK SPACE}"]
    assert (table.vocab.padding_idx, table.vocab.unk_idx) == (0, 1)
    assert table.manifest is not None
    assert table.manifest.to_dict() == json.loads((bundle / CONFIG).read_bytes())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_two_byte_types_open_with_torch(source: Path, tmp_path: Path, dtype: str) -> None:
    vec2emb.convert(source, tmp_path / "glove", dtype=dtype)
    path = tmp_path / "glove" / MODEL
    expected = torch.tensor(np.array([[0, 0, 0], np.mean(ROWS, axis=0), *ROWS], np.float32)).to(getattr(torch, dtype))
    loaded = safetensors.torch.load_file(path)["weight"]
    assert loaded.dtype == expected.dtype
    assert torch.equal(loaded, expected)
    torch.nn.Embedding(5, 3, dtype=loaded.dtype).load_state_dict({"weight": loaded})
    with safetensors.safe_open(path, "pt") as opened:
        assert torch.equal(opened.get_tensor("weight"), expected)
    np.testing.assert_array_equal(vec2emb.load(tmp_path / "glove").vectors, expected.float().numpy())


ODD = [
    "\N{NO-BREAK SPACE}", "\N{IDEOGRAPHIC SPACE}", "\x85", "\N{LINE SEPARATOR}", "\N{PARAGRAPH SEPARATOR}", "\x0b",
    "\x0c", "\x1c", "\x1d", "\x1e", "\r", "a\rb", "\N{ZERO WIDTH NO-BREAK SPACE}", "e\u0301", "\u00e9", "\x01", "\x7f",
    "\U0010ffff", "nan", "inf", "-0", "</s>", '"', "'", "\\", "#",
]  # fmt: skip


def test_the_vocabulary_is_read_without_us_by_one_line_that_survives_every_token(tmp_path: Path) -> None:
    vec2emb.save(tmp_path / "odd", ODD, np.zeros((len(ODD), 2)))
    p = tmp_path / "odd" / VOCAB
    with open(p, "rb") as file:
        assert file.read().decode().split("\n")[:-1] == ODD
    assert vec2emb.load(tmp_path / "odd").vocab.tokens == ODD


def test_the_settings_record_what_was_done_and_nothing_that_changes_by_itself(source: Path, tmp_path: Path) -> None:
    options = {"format": "glove", "seed": 3, "specials": ["<s>=normal"], "freeze": True}
    vec2emb.convert(source, tmp_path / "a.safetensors", threads=1, **options)  # type: ignore[arg-type]
    (tmp_path / "deeper").mkdir()
    vec2emb.convert(source, tmp_path / "deeper" / "a.safetensors", threads=3, progress=lambda a, b: None, **options)  # type: ignore[arg-type]
    for name in ("a.safetensors", "a.vocab.txt", "a.vec2emb.json"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "deeper" / name).read_bytes()
    config = json.loads((tmp_path / "a.vec2emb.json").read_bytes())
    assert config["files"] == {
        name: {"bytes": path.stat().st_size, "digest": digest_of(path)}
        for name in ("a.safetensors", "a.vocab.txt")
        for path in [tmp_path / name]
    }
    assert config["source"]["name"] == "vectors.txt"
    assert config["source"]["bytes"] == len(TEXT.encode())
    assert config["source"]["rows"] == 3
    assert config["specials"] == [
        {"token": "<pad>", "id": 0, "role": "padding", "init": "zeros", "seed": None},
        {"token": "<unk>", "id": 1, "role": "unknown", "init": "mean", "seed": None},
        {"token": "<s>", "id": 2, "role": "special", "init": "normal", "seed": 3},
    ]
    assert config["replay"]["options"]["seed"] == 3
    assert config["train"] == "none"
    assert not {"threads", "progress", "if_exists", "strict"} & config["replay"]["options"].keys()
    assert str(tmp_path) not in (tmp_path / "a.vec2emb.json").read_text()


def test_the_same_table_from_other_sources_is_the_same_but_for_its_settings(source: Path, tmp_path: Path) -> None:
    def made(name: str, data: bytes) -> tuple[bytes, bytes]:
        (tmp_path / name).write_bytes(data)
        vec2emb.convert(tmp_path / name, tmp_path / f"{name}-bundle", dim=3)
        return tuple((tmp_path / f"{name}-bundle" / file).read_bytes() for file in (MODEL, VOCAB))  # type: ignore[return-value]

    plain = TEXT.encode()
    variants = {
        "plain.txt": plain,
        "plain.txt.gz": gzip.compress(plain),
        "header.vec": b"3 3\n" + plain,
        "spaced.vec": b"3 3\r\n" + plain.replace(b"\n", b" \r\n"),
        "digits.txt": plain.replace(b"0.5", b"5e-1"),
    }
    results = {name: made(name, data) for name, data in variants.items()}
    assert set(results.values()) == {results["plain.txt"]}


# Loading.


def test_load_maps_the_vectors(tmp_path: Path) -> None:
    vec2emb.save(tmp_path / "big", map(str, range(200_000)), np.ones((200_000, 100), np.float32))
    script = f"""
        import vec2emb
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096
        import numpy, vec2emb.bundle.table, vec2emb.words.vocabulary
        before = resident()
        table = vec2emb.load({str(tmp_path / "big")!r})
        assert table["123"].sum() == 100
        assert not table.vectors.flags.owndata and not table.vectors.flags.writeable
        print(resident() - before)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, check=True)
    assert int(done.stdout) < 40_000_000  # of 80 MB of vectors, not one more page than was asked for


def test_a_loaded_table_is_of_one_piece_though_the_bundle_is_replaced_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "glove"
    vec2emb.save(path, ["a", "b"], [[1, 1], [2, 2]])
    table = vec2emb.load(path)
    vec2emb.save(path, ["b", "a"], [[3, 3], [4, 4]], if_exists="replace")
    assert table["a"].tolist() == [1, 1]
    assert table.vocab["a"] == 0


def test_vectors_cannot_be_written_to_but_a_row_is_ones_own(bundle: Path) -> None:
    table = vec2emb.load(bundle)
    with pytest.raises(ValueError, match="read-only"):
        table.vectors[0, 0] = 1
    row = table["the"]
    row[:] = 9
    assert table["the"].tolist() == ROWS[0]


def test_files_renamed_together_still_load(source: Path, tmp_path: Path) -> None:
    vec2emb.convert(source, tmp_path / "a.safetensors")
    for end in ("safetensors", "vocab.txt", "vec2emb.json"):
        (tmp_path / f"a.{end}").rename(tmp_path / f"b.{end}")
    assert vec2emb.load(tmp_path / "b.safetensors")["the"].tolist() == ROWS[0]
    assert vec2emb.inspect(tmp_path / "b.safetensors").ok


Harm = Callable[[Path], object]


def each(*steps: Harm) -> Harm:
    return lambda bundle: [step(bundle) for step in steps]


def edit_config(change: Callable[[dict[str, Any]], object]) -> Harm:
    def edit(bundle: Path) -> None:
        config = json.loads((bundle / CONFIG).read_bytes())
        change(config)
        (bundle / CONFIG).write_text(json.dumps(config))

    return edit


def edit_facts(change: Callable[[dict[str, Any]], object], *, config: bool = False) -> Harm:
    """Change the metadata of the tensors, and with `config` the settings likewise."""

    def edit(bundle: Path) -> None:
        data = (bundle / MODEL).read_bytes()
        start, text = header_of(bundle / MODEL)
        entries = json.loads(text)
        facts = json.loads(entries["__metadata__"]["vec2emb"])
        change(facts)
        entries["__metadata__"]["vec2emb"] = json.dumps(facts)
        (bundle / MODEL).write_bytes(data[:8] + json.dumps(entries).encode().ljust(start - 8) + data[start:])
        if config:
            edit_config(change)(bundle)

    return edit


def put(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda facts: facts.update(values)


def write(name: str, data: bytes) -> Harm:
    return lambda bundle: (bundle / name).write_bytes(data)


def swap_lines(bundle: Path) -> None:
    lines = (bundle / VOCAB).read_bytes().split(b"\n")
    lines[2], lines[3] = lines[3], lines[2]
    (bundle / VOCAB).write_bytes(b"\n".join(lines))


def cut(name: str, size: int) -> Harm:
    return lambda bundle: os.truncate(bundle / name, size)


def no_columns(bundle: Path) -> None:
    facts = json.loads(json.loads(header_of(bundle / MODEL)[1])["__metadata__"]["vec2emb"])
    metadata = {"vec2emb": json.dumps({**facts, "dim": 0})}
    safetensors.numpy.save_file({"weight": np.ones((5, 0), np.float32)}, bundle / MODEL, metadata)
    edit_config(put(dim=0))(bundle)


def train(ranges: Any) -> Harm:
    return each(edit_facts(put(train="rows"), config=True), edit_config(put(train_rows=ranges)))


def special(row: Any) -> dict[str, Any]:
    return {"token": "the", "id": row, "role": "special", "init": "zeros", "seed": None}


def generated(rows: Any) -> dict[str, Any]:
    return {"init": "zeros", "seed": None, "rows": rows}


def provenance(**fields: Any) -> Harm:
    return edit_config(lambda config: config["provenance"].update(fields))


def added(config: dict[str, Any], rows: str) -> None:
    """Record a step that added rows."""
    step = {"kind": "extend", "source": None, "replay": {**config["replay"], "options": {}}}
    config["steps"] = [step]
    config["provenance"]["added"] = [{"step": 0, "rows": rows}]


NONE = "has a row that is out of range: expected 0 <= row < 5, found "
DAMAGE: dict[str, tuple[Harm, str]] = {
    "vocabulary-swapped": (swap_lines, "not the one that belongs here"),
    "vocabulary-missing": (lambda b: (b / VOCAB).unlink(), "vocab.txt is missing"),
    "vocabulary-cut": (cut(VOCAB, 10), "another size"),
    "vocabulary-empty": (write(VOCAB, b""), "another size"),
    "tensors-missing": (lambda b: (b / MODEL).unlink(), "no such file"),
    "tensors-cut": (cut(MODEL, 4100), "ends early"),
    "tensors-cut-in-header": (cut(MODEL, 100), "ends inside its header"),
    "tensors-empty": (cut(MODEL, 0), "too short"),
    "tensors-longer": (lambda b: os.truncate(b / MODEL, 5000), "bytes follow"),
    "tensors-foreign": (
        lambda b: safetensors.numpy.save_file({"weight": np.ones((5, 3), np.float32)}, b / MODEL),
        "not written by vec2emb",
    ),
    "tensors-folder": (each(lambda b: (b / MODEL).unlink(), lambda b: (b / MODEL).mkdir()), "opened|mapped|read"),
    "settings-missing": (lambda b: (b / CONFIG).unlink(), "no vec2emb.json"),
    "settings-newer": (edit_config(put(schema=3)), "another schema .*expected schema 2, found '3'"),
    "settings-list": (write(CONFIG, b"[]"), r"\$ must be an object"),
    "settings-null": (write(CONFIG, b"null"), r"\$ must be an object"),
    "settings-cut": (write(CONFIG, b'{"schema": 2'), "is not JSON"),
    "settings-deep": (write(CONFIG, b"[" * 200_000), "is not JSON"),
    "settings-deep-object": (write(CONFIG, b'{"a":' * 100_000), "is not JSON"),
    "settings-digits": (write(CONFIG, b"9" * 5000), "is not JSON"),
    "settings-not-text": (write(CONFIG, b"\xff\xfe\xfd"), "is not JSON"),
    "settings-folder": (each(lambda b: (b / CONFIG).unlink(), lambda b: (b / CONFIG).mkdir()), "cannot be read"),
    "version-text": (edit_config(put(format_version="1")), "format_version"),
    "version-true": (edit_config(put(format_version=True)), "format_version"),
    "key-list": (edit_config(put(key=["weight"])), r"\$\.key must be a string.* found '\[\"weight\"\]'"),
    "key-number": (edit_config(put(key=1)), r"\$\.key must be a string"),
    "key-other": (edit_config(put(key="bias")), "not as its metadata say"),
    "files-list": (edit_config(put(files=[])), r"\$\.files must be an object"),
    "files-null": (edit_config(put(files=None)), r"\$\.files must be an object"),
    "files-empty": (edit_config(put(files={})), "does not say what"),
    "file-a-number": (edit_config(put(files={MODEL: 1, VOCAB: 2})), r"\$\.files\.model.safetensors must be an object"),
    "file-size-text": (
        edit_config(lambda c: c["files"][VOCAB].update(bytes="22")),
        r"\$\.files\.vocab.txt\.bytes must be a whole number",
    ),
    "file-size-wrong": (edit_config(lambda c: c["files"][VOCAB].update(bytes=5)), "another size"),
    "rows-text": (edit_facts(put(rows="5"), config=True), r"\$\.rows must be a whole number"),
    "rows-other": (edit_facts(put(rows=4), config=True), "not as its metadata say"),
    "rows-disagree": (edit_config(put(rows=4)), "disagree about rows"),
    "dim-null": (edit_facts(put(dim=None), config=True), r"\$\.dim must be a whole number from 1"),
    "dtype-other": (edit_facts(put(dtype="float16"), config=True), "another type"),
    "dtype-unknown": (edit_facts(put(dtype="int8"), config=True), r"\$\.dtype must be one of"),
    "dtype-list": (edit_facts(put(dtype=["float32"]), config=True), r"\$\.dtype must be one of"),
    "padding-text": (edit_facts(put(padding_idx="0"), config=True), r"\$\.padding_idx must be a whole number"),
    "padding-true": (edit_facts(put(padding_idx=False), config=True), r"\$\.padding_idx must be a whole number"),
    "padding-negative": (
        edit_facts(put(padding_idx=-1), config=True),
        r"\$\.padding_idx must be a whole number from 0",
    ),
    "padding-beyond": (
        edit_facts(put(padding_idx=5), config=True),
        r"\$\.padding_idx must be 0, as \$\.specials has it",
    ),
    "unknown-float": (edit_facts(put(unk_idx=1.0), config=True), r"\$\.unk_idx must be a whole number"),
    "unknown-disagree": (edit_facts(put(unk_idx=None)), "disagree about unk_idx"),
    "no-vocabulary-hash": (edit_facts(lambda f: f.pop("vocab_sha256")), "which vocabulary"),
    "vocabulary-hash-null": (edit_facts(put(vocab_sha256=None)), "which vocabulary"),
    "vocabulary-hash-other": (edit_facts(put(vocab_sha256="0" * 64)), "not the one that belongs here"),
    "facts-list": (
        lambda b: safetensors.numpy.save_file({"weight": np.ones((5, 3), np.float32)}, b / MODEL, {"vec2emb": "[]"}),
        "not written by vec2emb",
    ),
    "facts-deep": (
        lambda b: safetensors.numpy.save_file(
            {"weight": np.ones((5, 3), np.float32)}, b / MODEL, {"vec2emb": "[" * 100_000}
        ),
        "not written by vec2emb",
    ),
    "lookup-unknown": (edit_config(put(lookup="upper")), r"\$\.lookup must be one of exact"),
    "lookup-list": (edit_config(put(lookup=["exact"])), r"\$\.lookup must be one of"),
    "specials-null": (edit_config(put(specials=None)), r"\$\.specials must be a list"),
    "specials-names": (edit_config(put(specials=["<pad>"])), r"\$\.specials\[0\] must be an object"),
    "source-text": (edit_config(put(source="x")), r"\$\.source must be an object"),
    "no-columns": (no_columns, r"\$\.dim must be a whole number from 1"),
    "source-part": (
        edit_config(lambda c: c["source"].pop("rows")),
        r"\$\.source\.rows must be a whole number.*found nothing",
    ),
    "special-beyond": (edit_config(lambda c: c["specials"].append(special(5))), r"\.id must be a row below 5"),
    "special-endless": (edit_config(lambda c: c["specials"].append(special(1 << 63))), r"\.id must be a row below 5"),
    "special-surrogate": (
        edit_config(lambda c: c["specials"][0].update(token="\ud800")),
        r"\$\.specials\[0\]\.token must be a string without surrogates",
    ),
    "special-init-surrogate": (
        edit_config(lambda c: c["specials"][0].update(init="token:\udfff")),
        r"\$\.specials\[0\]\.init must be a string without surrogates",
    ),
    "spellings-surrogate": (
        provenance(spellings={"rows": "3:4", "tokens": "\ud800"}),
        r"\$\.provenance\.spellings\.tokens must be a string without surrogates",
    ),
    "special-negative": (edit_config(lambda c: c["specials"].append(special(-1))), r"\$\.specials\[2\]\.id must be"),
    "special-true": (edit_config(lambda c: c["specials"].append(special(True))), r"\$\.specials\[2\]\.id must be"),
    "special-role": (edit_config(lambda c: c["specials"][0].update(role="unknown")), "the role unknown"),
    "generated-endless": (provenance(generated=[generated("0:1000000000000")]), f"generated.*{NONE}999999999999"),
    "generated-init": (
        provenance(generated=[{**generated("3:4"), "init": 1}]),
        r"generated\[0\]\.init must be a string",
    ),
    "generated-list": (provenance(generated=[generated([[3, 4]])]), r"generated\[0\]\.rows must be a string"),
    "given-text": (provenance(given="all"), r"\$\.provenance\.given must be rising ranges"),
    "spellings-beyond": (provenance(spellings={"rows": "3:4 5:6", "tokens": "a\nb"}), f"spellings.rows .*{NONE}5"),
    "spellings-list": (provenance(spellings=[[3, "a"]]), r"\$\.provenance\.spellings must be an object"),
    "spellings-none": (provenance(spellings=None), r"\$\.provenance\.spellings must be an object"),
    "added-beyond": (edit_config(lambda c: added(c, "4:6")), rf"added\[0\].rows .*{NONE}5"),
    "added-by-nothing": (
        provenance(added=[{"step": 0, "rows": "4:5"}]),
        r"added\[0\]\.step must be the number of a step",
    ),
    "step-replay": (
        edit_config(put(steps=[{"kind": "extend", "source": None, "replay": None}])),
        r"steps\[0\]\.replay",
    ),
    "replay-option": (
        edit_config(lambda c: c["replay"]["options"].update(seed=[1])),
        r"\$\.replay\.options\.seed must be",
    ),
    "scale-text": (
        edit_config(put(scale={"kind": "factor", "factor": "2"})),
        r"\$\.scale\.factor must be a finite number",
    ),
    "train-beyond": (train("0:6"), f"train_rows .*{NONE}5"),
    "train-no-rows": (train(None), r"\$\.train_rows must be ranges if train is new or rows"),
    "train-needless-rows": (
        edit_config(put(train_rows="0:2")),
        r"\$\.train_rows must be ranges if train is new or rows",
    ),
}  # fmt: skip


def test_a_writer_that_cannot_be_made_holds_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def scarce(path: Any, *how: Any) -> int:
        if str(path).endswith(SCRATCH):
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, *how)

    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    with Publication(Target(tmp_path / "out")) as publication:
        monkeypatch.setattr(os, "open", scarce)
        held = len(os.listdir("/proc/self/fd"))
        for shard_size in (None, 5000):
            with pytest.raises(OutputError, match="Too many open files"):
                BundleWriter(publication, 3, "float16", shard_size=shard_size)
            assert len(os.listdir("/proc/self/fd")) == held
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_loading_refuses_what_is_damaged_or_does_not_belong_together(bundle: Path, damage: str) -> None:
    harm, message = DAMAGE[damage]
    harm(bundle)
    with pytest.raises(InputError, match=message) as caught:
        vec2emb.load(bundle)
    assert str(bundle) in str(caught.value)
    # `inspect` reports a failed check or the same error, and nothing else comes out of it either.
    with contextlib.suppress(InputError):
        assert not vec2emb.inspect(bundle).ok


@pytest.mark.parametrize(
    ("field", "rows"), [("given", "3:4 2:3"), ("trained", "2:3 3:4"), ("given", "x 3:4"), ("inherited", "4:3 4:5")]
)
def test_rows_are_parsed_when_they_are_used(bundle: Path, field: str, rows: str) -> None:
    provenance(**{field: rows})(bundle)
    table = vec2emb.load(bundle)
    assert table.manifest is not None
    with pytest.raises(BundleError, match=rf"\$\.provenance\.{field} must be rising ranges") as caught:
        table.manifest.provenance.parse()
    assert str(bundle) in str(caught.value)
    assert not vec2emb.inspect(bundle).ok


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_settings_whatever_end_in_another_exception(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = tmp_path_factory.getbasetemp() / "hostile"
    if not base.exists():
        vec2emb.save(base, ["<pad>", "a"], [[0, 0], [1, 2]], pad_token="<pad>")
    original = (base / CONFIG).read_bytes()
    config = json.loads(original)
    for _ in range(data.draw(st.integers(1, 2))):
        at: Any = config
        while True:
            key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
            if isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans()):
                at = at[key]
                continue
            at[key] = data.draw(JSON)
            break
    try:
        (base / CONFIG).write_text(json.dumps(config))
        try:
            table = vec2emb.load(base)
        except InputError:
            return
        assert table["a"].tolist() == [1, 2]
        vec2emb.inspect(base)
    finally:
        (base / CONFIG).write_bytes(original)


def test_what_is_no_bundle_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "vectors.txt").write_text(TEXT)
    for name, code in {"absent": "not-found", "empty": "not-a-bundle", "vectors.txt": "not-a-bundle"}.items():
        with pytest.raises(InputError) as caught:
            vec2emb.load(tmp_path / name)
        assert caught.value.code == code
        assert not isinstance(caught.value, BundleError)


# Tables in memory.

BASE = np.arange(24, dtype=np.float64).reshape(4, 6) / 8
VARIANTS: dict[str, Callable[[], Any]] = {
    "list": lambda: BASE[:, :3].tolist(),
    "float64": lambda: BASE[:, :3].copy(),
    "fortran": lambda: np.asfortranarray(BASE[:, :3]),
    "transposed": lambda: np.ascontiguousarray(BASE[:, :3].T).T,
    "columns": lambda: BASE.astype(np.float32)[:, :3],
    "every-second": lambda: np.repeat(BASE[:, :3], 2, axis=1)[:, ::2],
    "backwards": lambda: BASE[::-1, 2::-1].copy()[::-1, ::-1],
    "rows-of-more": lambda: np.repeat(BASE[:, :3], 3, axis=0)[::3],
    "float16": lambda: BASE[:, :3].astype(np.float16),
    "big-endian": lambda: BASE[:, :3].astype(">f4"),
    "longdouble": lambda: BASE[:, :3].astype(np.longdouble),
    "broadcast": lambda: np.broadcast_to(BASE[:, :3], (2, 4, 3))[1],
    "torch": lambda: torch.tensor(BASE[:, :3]),
    "torch-transposed": lambda: torch.tensor(BASE[:, :3].T.copy()).T,
    "torch-slice": lambda: torch.tensor(BASE)[:, :3],
    "torch-bfloat16": lambda: torch.tensor(BASE[:, :3]).bfloat16(),
    "torch-float16": lambda: torch.tensor(BASE[:, :3]).half(),
    "parameter": lambda: torch.nn.Parameter(torch.tensor(BASE[:, :3])),
    "embedding-weight": lambda: torch.nn.Embedding(4, 3, _weight=torch.tensor(BASE[:, :3])).weight,
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_arrays_of_any_layout_and_type_come_back_by_value(tmp_path: Path, variant: str) -> None:
    vec2emb.save(tmp_path / "g", list("abcd"), VARIANTS[variant]())
    np.testing.assert_array_equal(vec2emb.load(tmp_path / "g").vectors, BASE[:, :3].astype(np.float32))
    np.testing.assert_array_equal(safetensors.numpy.load_file(tmp_path / "g" / MODEL)["weight"], BASE[:, :3])


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64])
def test_whole_numbers_are_taken_too(tmp_path: Path, kind: type) -> None:
    numbers: Any = np.array([[0, 1], [2, np.iinfo(kind).max]], kind)
    vec2emb.save(tmp_path / "g", ["a", "b"], numbers)
    np.testing.assert_array_equal(vec2emb.load(tmp_path / "g").vectors, numbers.astype(np.float32))


REFUSED: dict[str, tuple[Any, str, str]] = {
    "nan": ([[0, 1], [2, float("nan")]], "non-finite", r"row 1, 'b', .* not finite: found nan in column 1"),
    "inf": ([[float("-inf"), 1], [2, 3]], "non-finite", r"row 0, 'a', .* found -inf in column 0"),
    "beyond-float32": ([[0, 1], [2, 1e39]], "out-of-range", r"row 1, 'b', .* float32"),
    "complex": (np.ones((2, 2), complex), "vector-type", "complex128"),
    "booleans": (np.ones((2, 2), bool), "vector-type", "bool"),
    "texts": ([["1", "2"], ["3", "4"]], "vector-type", "<U1"),
    "objects": (np.ones((2, 2), object), "vector-type", "object"),
    "ragged": ([[1, 2], [3]], "shape-mismatch", r"\[V, D\]"),
    "too-few": ([[1, 2]], "shape-mismatch", r"expected \[2, D\], found \[1, 2\]"),
    "too-many": (np.ones((3, 2)), "shape-mismatch", r"found \[3, 2\]"),
    "one-dimension": ([1, 2], "shape-mismatch", r"found \[2\]"),
    "three-dimensions": (np.ones((2, 2, 2)), "shape-mismatch", r"found \[2, 2, 2\]"),
    "no-dimension": (np.ones((2, 0)), "shape-mismatch", r"found \[2, 0\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arrays_that_are_no_table_are_refused(tmp_path: Path, case: str) -> None:
    vectors, code, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as caught:
        vec2emb.save(tmp_path / "g", ["a", "b"], vectors)
    assert caught.value.code == code
    assert not os.listdir(tmp_path)


def test_a_padding_row_that_is_not_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="padding row 1 is not zero: expected zeros") as caught:
        vec2emb.save(tmp_path / "g", ["a", "<p>"], [[1, 1], [0, 2]], pad_token="<p>")
    assert caught.value.code == "padding-not-zero"
    vec2emb.save(tmp_path / "g", ["a", "<p>"], [[1.0, 1.0], [0.0, -0.0]], pad_token="<p>", unk_token="a")
    vocab = vec2emb.load(tmp_path / "g").vocab
    assert (vocab.pad_token, vocab.unk_token) == ("<p>", "a")


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (["a", "a"], VocabularyError, "stands twice"),
        (["a", "b\nc"], VocabularyError, "LF"),
        (["a", "\ud800"], VocabularyError, "surrogate"),
        ("ab", UsageError, "not a string"),
        ({"a", "b"}, UsageError, "no order"),
        (["a", 1], UsageError, "a token is a string"),
    ],
)
def test_tokens_that_are_no_vocabulary_are_refused(
    tmp_path: Path, tokens: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        vec2emb.save(tmp_path / "g", tokens, np.ones((2, 2)))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("freeze", [False, True])
def test_saving_what_was_loaded_is_the_identity(tmp_path: Path, dtype: str, freeze: bool) -> None:
    vectors = np.vstack([np.zeros(7), np.random.default_rng(0).normal(size=(40, 7))])
    vocab = vec2emb.Vocabulary(["<pad>", *map(str, range(40))], pad_token="<pad>", unk_token="7", lookup="lower")
    vec2emb.save(tmp_path / "a", vocab, vectors, dtype=dtype, freeze=freeze)
    table = vec2emb.load(tmp_path / "a")
    table.save(tmp_path / "b")
    for name in (MODEL, VOCAB, CONFIG):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert vec2emb.load(tmp_path / "b").vocab == vocab
    table.save(tmp_path / "a", if_exists="replace")  # over the very file that it is mapped from
    np.testing.assert_array_equal(vec2emb.load(tmp_path / "a").vectors, table.vectors)


def test_tables_and_reports_go_to_other_processes(bundle: Path, source: Path, tmp_path: Path) -> None:
    table = vec2emb.load(bundle)
    read = vec2emb.read_vectors(source, format="glove")
    for one in (table, read):
        for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
            assert (other.vocab, other.manifest) == (one.vocab, one.manifest)
            np.testing.assert_array_equal(other.vectors, one.vectors)
    report = vec2emb.convert(source, tmp_path / "b", format="glove")
    assert read.report is not None
    for each in (report, read.report):
        assert pickle.loads(pickle.dumps(each)).to_dict() == each.to_dict()
    old = pickle.dumps(vec2emb.load(tmp_path / "b"))
    vec2emb.convert(source, tmp_path / "b", format="glove", limit=1, if_exists="replace")
    with pytest.raises(BundleError) as caught:
        pickle.loads(old)
    assert caught.value.code == "bundle-changed"


def test_a_converted_bundle_is_saved_again_as_it_is(bundle: Path, tmp_path: Path) -> None:
    vec2emb.load(bundle).save(tmp_path / "again")
    for name in (MODEL, VOCAB):
        assert (bundle / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


# Types of two bytes.


def all_kinds_of_float32() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Every sign and exponent, with mantissas around each place where two bytes round."""
    mantissas = [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0x7FFF, 0x8000, 0x8001, 0x18000, 0x7FE000]
    bits = [sign << 31 | e << 23 | m for sign in (0, 1) for e in range(255) for m in [*mantissas, 0x7FF000, 0x7FFFFF]]
    bits += np.random.default_rng(1).integers(0, 1 << 32, 20_000, np.uint32).tolist()
    values = np.array(bits, np.uint32).view(np.float32)
    return values[np.isfinite(values)]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_casts_round_as_torch_and_numpy_do(tmp_path: Path, dtype: str) -> None:
    values = all_kinds_of_float32()
    wanted = torch.tensor(values).to(getattr(torch, dtype))
    fits = torch.isfinite(wanted)
    assert (np.abs(values) <= largest(dtype)).tolist() == fits.tolist()  # where overflow begins
    values, wanted = values[fits.numpy()], wanted[fits]
    vec2emb.save(tmp_path / "g", map(str, range(len(values))), values[:, None], dtype=dtype)
    got = safetensors.torch.load_file(tmp_path / "g" / MODEL)["weight"][:, 0]
    assert got.view(torch.int16).equal(wanted.view(torch.int16))
    if dtype == "float16":
        assert (got.numpy().view(np.uint16) == values.astype(np.float16).view(np.uint16)).all()


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("dtype", "fits", "too_large"),
    [
        ("float16", "65519.9", "65520"),
        ("bfloat16", "3.3961774e38", "3.3961776e38"),
        ("float32", "3.4028235e38", "3.4028236e38"),
    ],
)
def test_values_beyond_the_type_are_refused_by_place(tmp_path: Path, dtype: str, fits: str, too_large: str) -> None:
    for number, ok in ((fits, True), (too_large, False), (f"-{fits}", True), (f"-{too_large}", False)):
        source, target = tmp_path / "v.txt", tmp_path / f"{number}{dtype}x"
        source.write_text(f"the 1 2\nof 3 {number}\n")
        if ok:
            vec2emb.convert(source, target, dtype=dtype, format="glove", unk_init="zeros")
            assert np.isfinite(vec2emb.load(target)["of"]).all()
        else:
            with pytest.raises(InputError, match=f"line 2.*{dtype}|line 2.*float32") as caught:
                vec2emb.convert(source, target, dtype=dtype, format="glove", unk_init="zeros")
            assert caught.value.code == "out-of-range"
    if dtype != "float32":
        with pytest.raises(InputError, match=f"row 1, 'of', has a value that does not fit {dtype}"):
            vec2emb.save(tmp_path / "g", ["the", "of"], [[1.0, 2.0], [3.0, -float(too_large)]], dtype=dtype)


def test_there_are_three_types(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="float32 or float16 or bfloat16"):
        vec2emb.save(tmp_path / "g", ["a"], [[1]], dtype="float64")
