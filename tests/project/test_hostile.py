"""Input that somebody made to do harm: it is refused by name, soon, and within little memory."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import ROOT, peak_of

import vec2emb
from vec2emb import _kernel, positions
from vec2emb._kernel import reference
from vec2emb.cli import main
from vec2emb.errors import BundleError, InputError, OutputError, UsageError, VocabularyError
from vec2emb.io.progress import progress_of
from vec2emb.words.word_list import read_words

MB = 1_000_000


class Endless:
    """A file that gives the same byte again and again."""

    def __init__(self, byte: bytes, size: int) -> None:
        self.byte, self.left, self.given = byte, size, 0

    def read(self, size: int = -1) -> bytes:
        count = min(size, self.left)
        self.left -= count
        self.given += count
        return self.byte * count


# Sizes that nobody has.


@pytest.mark.parametrize(
    "rows", [b"the 1 2 3\n", b"the " + np.arange(3, dtype="<f4").tobytes()], ids=["text", "binary"]
)
@pytest.mark.parametrize("head", [b"1000000000000000000 3\n", b"18446744073709551615 3\n", b"1 1000000000000000000\n"])
def test_what_a_header_promises_allocates_nothing(head: bytes, rows: bytes, tmp_path: Path) -> None:
    source = tmp_path / "vectors"
    source.write_bytes(head + rows)
    code = (
        "import re, sys\nimport vec2emb\ntry:\n    vec2emb.convert(sys.argv[1], sys.argv[2])\n"
        "except vec2emb.Vec2embError as error:\n    print(error.code)\n"
        r"print(re.search(r'VmHWM:\s+(\d+) kB', open('/proc/self/status').read())[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, source, tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, peak = done.stdout.split()
    assert said.startswith(("header-", "binary-", "row-width", "token-too-long"))
    assert int(peak) * 1024 < 80 * MB
    assert os.listdir(tmp_path) == ["vectors"]


@pytest.mark.parametrize("byte", [b"x", b"1", b"\0", b"\xff"])
@pytest.mark.parametrize("head", [b"", b"2 3\n", b"the 1 2 3\n"])
def test_a_gigabyte_without_a_line_feed_ends_soon(head: bytes, byte: bytes) -> None:
    source = Endless(byte, 1 << 30)
    first = [head]

    class Source:
        def read(self, size: int = -1) -> bytes:
            return first.pop() if first and size > 0 else source.read(size)

    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(Source(), format="glove" if head != b"2 3\n" else "word2vec", dim=3)  # type: ignore[arg-type]
    assert caught.value.code in ("row-too-long", "nul-bytes", "is-word2vec-binary")
    assert source.given <= 40 << 20  # the row limit is 8 MiB


@pytest.mark.parametrize("option", ["vocab", "only", "train_rows"])
def test_a_list_of_words_that_never_ends(option: str, tmp_path: Path) -> None:
    source = tmp_path / "vectors.txt"
    source.write_bytes(b"the 1 2 3\n")
    with pytest.raises(InputError, match="no line feed comes in 8 MiB: expected one token a line") as caught:
        vec2emb.convert(source, tmp_path / "out", **{option: "/dev/zero"})  # type: ignore[arg-type]
    assert caught.value.code == "line-too-long"


def test_a_list_of_words_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.txt").write_bytes(b"a\n" * 2_000_000)
    monkeypatch.setattr("vec2emb.words.vocabulary_file.MAX_BYTES", 3 << 20)
    with pytest.raises(InputError) as caught:
        read_words(tmp_path / "words.txt")
    assert caught.value.code == "list-too-long"


def test_positions_that_no_memory_holds(tmp_path: Path) -> None:
    makers: list[Callable[[], object]] = [
        lambda: positions.learned(1 << 24, 300),
        lambda: positions.sinusoidal(1 << 24, 300),
        lambda: positions.resize(np.ones((4, 300), np.float32), 1 << 24, method="tile"),
    ]
    for make in makers:
        with pytest.raises(UsageError, match="expected at most 268,435,456 numbers") as caught:
            make()
        assert caught.value.code == "positions-too-large"
    source = tmp_path / "vectors.txt"
    source.write_bytes(b"the" + b" 1" * 300 + b"\n")
    for dry_run in (True, False):
        with pytest.raises(UsageError) as caught:
            vec2emb.convert(
                source, tmp_path / "out", positions="learned", max_positions=1 << 24, dim=300, dry_run=dry_run
            )
        assert caught.value.code == "positions-too-large"
    assert os.listdir(tmp_path) == ["vectors.txt"]


# JSON.


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000, "1" * 5000])
def test_json_of_any_depth(text: str, tmp_path: Path) -> None:
    vec2emb.save(tmp_path / "bundle", ["a", "b"], np.ones((2, 3)))
    (tmp_path / "bundle" / "vec2emb.json").write_text('{"format_version": ' + text)
    with pytest.raises(BundleError) as caught:
        vec2emb.load(tmp_path / "bundle")
    assert caught.value.code == "bundle-config"
    (tmp_path / "vocab.json").write_text(text)
    with pytest.raises(VocabularyError) as refused:
        read_words(tmp_path / "vocab.json")
    assert refused.value.code in ("words-not-json", "words-form")


def test_settings_of_a_bundle_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vec2emb.save(tmp_path / "bundle", ["a", "b"], np.ones((2, 3)))
    with (tmp_path / "bundle" / "vec2emb.json").open("ab") as file:
        file.truncate(1 << 40)  # a hole, which takes no disk
    monkeypatch.setattr("vec2emb.bundle.publication.MAX_CONFIG", 1 << 20)
    with pytest.raises(BundleError) as caught:
        vec2emb.load(tmp_path / "bundle")
    assert caught.value.code == "bundle-config"


def test_a_key_that_stands_twice_is_found_in_one_go(tmp_path: Path) -> None:
    keys = ", ".join(f'"w{i}": {i}' for i in range(200_000))
    (tmp_path / "vocab.json").write_text(f'{{{keys}, "w199999": 0}}')
    begun = time.process_time()
    with pytest.raises(VocabularyError, match="the token 'w199999' stands twice"):
        read_words(tmp_path / "vocab.json")
    assert time.process_time() - begun < 20  # a comparison of each with each would take minutes


@pytest.mark.parametrize(
    "change",
    [
        {"unk_id": 99},
        {"unk_id": -1},
        {"unk_id": True},
        {"added_tokens": 5},
        {"added_tokens": [5, None]},
        {"padding": 5},
    ],
    ids=str,
)
def test_a_tokenizer_whose_settings_lie(change: dict[str, object], tmp_path: Path) -> None:
    content = {
        "model": {"vocab": [["a", 0.0], ["b", -1.0]], **{k: v for k, v in change.items() if k == "unk_id"}},
        **change,
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    words = read_words(tmp_path / "tokenizer.json")
    assert list(words.vocab) == ["a", "b"]
    assert words.unk is None


# Hashes.


def tokens_that_collide(kind: str) -> list[bytes]:
    """Tokens that are the same to hashes that skip, add up or exchange bytes."""
    count = 60_000
    if kind == "zeros":
        return [b"\0" * i for i in range(1, 2000)]
    if kind == "same ends":
        return [b"a" * 8 + b"%08d" % i + b"a" * 8 for i in range(count)]
    if kind == "high bits":
        return [bytes(128 + (i >> shift & 63) for shift in (0, 6, 12)) * 4 for i in range(count)]
    if kind == "sums":  # anagrams: the same bytes in another order
        return [b"%s%s" % (b"%06d" % i, b"%06d" % (999_999 - i)) for i in range(count)]
    return [b"%x" % (i * 0x9E3779B97F4A7C15 % (1 << 64)) for i in range(count)]


@pytest.mark.parametrize("kind", ["zeros", "same ends", "high bits", "sums", "multiples"])
@pytest.mark.parametrize("index", [_kernel.TokenIndex, reference.TokenIndex], ids=["kernel", "reference"])
def test_tokens_made_to_collide_do_not_stall_an_index(index: Callable[[], _kernel.TokenIndex], kind: str) -> None:
    tokens = tokens_that_collide(kind)
    found = index()
    begun = time.process_time()
    for token in tokens:
        found.add(token)
    assert all(found.get(token) == i for i, token in enumerate(tokens))
    assert len(found) == len(set(tokens)) == len(tokens)
    assert time.process_time() - begun < 5  # one look at all others each time would be 1.8 billion looks


def test_the_key_of_the_hash_is_drawn_anew_in_each_process() -> None:
    """So no file can be made whose tokens collide. The source says so; a random device cannot be asked twice."""
    text = (ROOT / "vec2emb" / "_kernel" / "token_index.hpp").read_text()
    assert "std::random_device" in text


# Terminals.

ESCAPES = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b5m", "\u202egnp.exe", "\rover", "a\x08b", "\u2066x\u2069"]
NEVER = ["\x1b", "\x07", "\x08", "\r", "\x9b", "\u202e", "\u2066", "\u2069"]


def test_tokens_and_file_names_never_reach_a_terminal_raw(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vec2emb.io.interrupts.install", lambda: None)  # signal handlers stay as they are
    tokens = [*ESCAPES, "plain", "<pad>x"]
    rng = np.random.default_rng(0)
    name = "a\x1b[2Jb\u202e.txt"
    source, bundle = tmp_path / name, tmp_path / "bundle\x1b[31m"
    source.write_text("".join(f"{t} {' '.join(map(str, rng.normal(size=4)))}\n" for t in tokens), newline="")
    corpus = tmp_path / "corpus\x1b[1m.txt"
    corpus.write_text(" ".join(t for t in tokens if not any(c.isspace() for c in t)) + "\n", newline="")
    commands: list[tuple[object, ...]] = [
        ("convert", source, "-o", bundle, "--positions", "learned", "--max-positions", 4, "--special", "!\x1b"),
        ("convert", source, "-o", bundle),
        ("convert", source, source, "-o", bundle),
        ("convert", tmp_path / "none\x1b[31m", "-o", bundle),
        ("inspect", source), ("inspect", bundle), ("inspect", source, "--count"),
        ("vocab", corpus, "-o", tmp_path / "words\x1b[31m.txt"),
        ("audit", source, "--corpus", corpus), ("audit", bundle),
        ("explain", bundle, *ESCAPES, "no\x1b[31m"),
        ("similar", bundle, ESCAPES[0], ESCAPES[3]), ("similar", bundle, "no\x1b[31m"),
        ("verify", bundle, source), ("positions", "show", bundle),
        ("positions", "resize", bundle, "--to", 8, "--method", "tile", "-o", tmp_path / "longer\x1b[31m"),
        ("export", bundle, "--to", "glove", "-o", tmp_path / "out\x1b[31m.txt"),
        ("no\x1b[31m",), ("convert", "--no\x1b[31m"),
    ]  # fmt: skip
    for words in commands:
        with pytest.raises(SystemExit):
            main(list(map(str, words)))
        said = "".join(capfd.readouterr())
        assert said.strip()
        assert [bad for bad in NEVER if bad in said] == [], (words, said)
    assert bundle.is_dir()


def test_the_name_beside_a_progress_bar_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert vars(progress_of(True, "a\x1b[31m\nb"))["_label"] == "a\\x1b[31m\\nb"


def test_a_line_feed_in_a_name_makes_no_line_of_its_own() -> None:
    error = InputError("not-found", "there is no such file", path="a\nerror[x]: all is lost")
    assert str(error) == "a\\nerror[x]: all is lost: there is no such file"


# What a bundle takes the place of.


def test_the_current_folder_is_not_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vectors.txt").write_bytes(b"the 1 2 3\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for output in (".", tmp_path / "here"):
        with pytest.raises(OutputError, match="name a folder in it: -o NAME") as caught:
            vec2emb.convert("../vectors.txt", output)
        assert caught.value.code == "target-is-here"
    vec2emb.convert("../vectors.txt", "bundle")
    assert os.listdir(".") == ["bundle"]


@pytest.mark.parametrize("ending", ["", ".safetensors"])
def test_what_is_replaced_hands_on_its_mode(tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"bundle{ending}"
    vec2emb.save(target, ["a", "b"], np.ones((2, 3)))
    model = target if ending else target / "model.safetensors"
    model.chmod(0o640)
    if not ending:
        target.chmod(0o2750)
    vec2emb.save(target, ["a", "b"], np.zeros((2, 3)), if_exists="replace")
    assert not vec2emb.load(target).vectors.any()
    assert stat.S_IMODE(model.stat().st_mode) == 0o640
    if not ending:
        assert stat.S_IMODE(target.stat().st_mode) == 0o2750


@pytest.mark.parametrize("after", [None, 4096 + 400, 4096 + 800])
@pytest.mark.parametrize("before", [None, 4096 + 400, 4096 + 800])
def test_shards_hand_on_their_mode(tmp_path: Path, before: int | None, after: int | None) -> None:
    """To the shard of the same name, else the first of the old files of the table to whatever is new."""
    source, target = (np.ones((40, 10)), [f"w{i}" for i in range(40)]), tmp_path / "bundle"
    options: dict[str, Any] = {"pad": None, "unk": None, "if_exists": "replace"}
    vec2emb.convert(source, target, shard_size=before, **options)
    old = {path.name: 0o600 if number else 0o640 for number, path in enumerate(sorted(target.glob("*.safetensors")))}
    modes = {**old, "vocab.txt": 0o604, "vec2emb.json": 0o444}
    for name, mode in modes.items():
        (target / name).chmod(mode)
    vec2emb.convert(source, target, shard_size=after, **options)
    now = {path.name: stat.S_IMODE(path.stat().st_mode) for path in target.iterdir()}
    assert len(now) == 2 + {None: 1, 4096 + 400: 4, 4096 + 800: 2}[after]
    assert now == {name: modes.get(name, 0o640) for name in now}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_is_replaced_hands_on_its_owner(tmp_path: Path) -> None:
    target = tmp_path / "bundle"
    vec2emb.save(target, ["a", "b"], np.ones((2, 3)))
    for path in (target, *target.iterdir()):
        os.chown(path, 1234, 2345)
    vec2emb.save(target, ["a", "b"], np.zeros((2, 3)), if_exists="replace")
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (target, *target.iterdir())} == {(1234, 2345)}


def test_memory_is_measured(tmp_path: Path) -> None:
    """What the tests above lean on sees an allocation."""
    (tmp_path / "vectors.txt").write_bytes(b"the 1 2 3\n")
    small = peak_of("convert", str(tmp_path / "vectors.txt"), "-o", str(tmp_path / "out"), "--quiet")
    assert 5 * MB < small < 80 * MB
