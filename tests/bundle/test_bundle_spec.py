"""Bundles as they are written, held against docs/reference/bundle.md sentence by sentence.

The checks are written from the page, with the standard library and numpy. Each is also run on a bundle that breaks its
sentence, which it must notice.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, ROOT, collected, digest_of
from numpy.typing import NDArray
from safetensors import safe_open

import vec2emb
from vec2emb.errors import Vec2embError

PAGE = (ROOT / "docs" / "reference" / "bundle.md").read_text(encoding="utf-8")
SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
TYPES = {"float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2)}


@dataclass
class Files:
    """The three files of a bundle, taken apart without the package."""

    model: Path
    vocab: Path
    config: Path

    @classmethod
    def of(cls, path: Path) -> Files:
        if path.is_dir():
            return cls(path / "model.safetensors", path / "vocab.txt", path / "vec2emb.json")
        stem = str(path).removesuffix(".safetensors")
        return cls(path, Path(f"{stem}.vocab.txt"), Path(f"{stem}.vec2emb.json"))

    @property
    def start(self) -> int:
        return 8 + int(struct.unpack("<Q", self.model.read_bytes()[:8])[0])

    @property
    def header(self) -> dict[str, Any]:
        text = self.model.read_bytes()[8 : self.start]

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            assert len(dict(pairs)) == len(pairs), "a key stands twice"
            return dict(pairs)

        header: dict[str, Any] = json.loads(text, object_pairs_hook=once)
        return header

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self.header["__metadata__"]["vec2emb"])
        return facts

    @property
    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads(self.config.read_bytes().decode())
        return settings

    @property
    def tokens(self) -> list[str]:
        return self.vocab.read_bytes().decode().split("\n")[:-1]

    def rows(self, key: str) -> NDArray[Any]:
        """The stored bits of a tensor, [rows, dim]."""
        entry = self.header[key]
        first, last = (self.start + offset for offset in entry["data_offsets"])
        kind = np.uint32 if entry["dtype"] == "F32" else np.uint16
        return np.frombuffer(self.model.read_bytes()[first:last], kind).reshape(entry["shape"])


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rows_of(text: str, rows: int) -> set[int]:
    """The rows in the text of a set."""
    assert text == "" or re.fullmatch(r"\d+:\d+( \d+:\d+)*", text)
    ends = [int(end) for end in re.split("[: ]", text)] if text else []
    assert all(a < b for a, b in itertools.pairwise(ends)), "rising, not empty, not touching"
    assert not ends or ends[-1] <= rows
    return {row for start, stop in zip(ends[::2], ends[1::2], strict=True) for row in range(start, stop)}


# One check a sentence, by its number.

CHECKS: dict[str, Callable[[Files], None]] = {}


def sentence(number: str) -> Callable[[Callable[[Files], None]], Callable[[Files], None]]:
    def remember(check: Callable[[Files], None]) -> Callable[[Files], None]:
        CHECKS[number] = check
        return check

    return remember


@sentence("F1")
def three_files(files: Files) -> None:
    assert [path.is_file() for path in (files.model, files.vocab, files.config)] == [True, True, True]


@sentence("T1")
def valid(files: Files) -> None:
    end = 0
    entries = sorted(entry["data_offsets"] for name, entry in files.header.items() if name != "__metadata__")
    for first, last in entries:
        assert first == end
        end = last
    assert files.start + end == files.model.stat().st_size
    with safe_open(files.model, "np") as opened:
        assert len(opened.keys()) == len(entries)


@sentence("T2")
def padded(files: Files) -> None:
    assert files.start == 4096
    assert files.model.read_bytes()[8:4096].rstrip(b" ").endswith(b"}")


@sentence("T3")
def metadata(files: Files) -> None:
    assert files.header["__metadata__"].keys() == {"format", "vec2emb"}
    assert files.header["__metadata__"]["format"] == "pt"


@sentence("T4")
def canonical_facts(files: Files) -> None:
    names = "dim dtype format_version padding_idx positions rows scale train unk_idx vocab_sha256"
    assert files.header["__metadata__"]["vec2emb"] == canonical(files.facts)
    assert " ".join(files.facts) == names


@sentence("T5")
def word_table(files: Files) -> None:
    facts, settings = files.facts, files.settings
    entry = files.header[settings["key"]]
    assert entry["shape"] == [facts["rows"], facts["dim"]]
    assert entry["dtype"] == TYPES[facts["dtype"]][0]
    if facts["positions"] is None and settings.get("key_style") in (None, "plain"):
        assert settings["key"] == "weight"


@sentence("T6")
def zero_padding(files: Files) -> None:
    facts = files.facts
    for id in (facts["padding_idx"], facts["unk_idx"]):
        assert id is None or 0 <= id < facts["rows"]
    own = [one["init"] for one in files.settings["specials"] if one["role"] == "padding"]
    if facts["padding_idx"] is not None and own != ["file"]:
        assert not files.rows(files.settings["key"])[facts["padding_idx"]].any()


@sentence("T7")
def position_table(files: Files) -> None:
    facts, positions = files.facts, files.settings["positions"]
    for key in positions["keys"] if positions else ():
        entry = files.header[key]
        assert entry["shape"] == [positions["offset"] + positions["num"], facts["dim"]]
        assert entry["dtype"] == TYPES[facts["dtype"]][0]
        if positions["padding_idx"] is not None:
            assert positions["padding_idx"] < positions["offset"]
            assert not files.rows(key)[positions["padding_idx"]].any()


@sentence("T8")
def no_other_tensor(files: Files) -> None:
    settings = files.settings
    keys = {settings["key"], *(settings["positions"] or {"keys": []})["keys"]}
    assert files.header.keys() - {"__metadata__"} == keys


@sentence("V1")
def lines(files: Files) -> None:
    assert files.vocab.read_bytes().endswith(b"\n")
    assert len(files.tokens) == files.facts["rows"]
    for special in files.settings["specials"]:  # a mark, a CR or an escape would show in a token that we know
        assert files.tokens[special["id"]] == special["token"]


@sentence("V2")
def unique(files: Files) -> None:
    assert len(set(files.tokens)) == len(files.tokens)


@sentence("V3")
def vocabulary_hash(files: Files) -> None:
    assert sha256(files.vocab) == files.facts["vocab_sha256"]


@sentence("J1")
def json_object(files: Files) -> None:
    assert files.settings["schema"] == 2


@sentence("J2")
def same_facts(files: Files) -> None:
    facts, settings = files.facts, files.settings
    for name, value in facts.items():
        if name == "positions" and value is not None:
            assert value.items() <= settings[name].items()
        elif name != "vocab_sha256":
            assert settings[name] == value, name


@sentence("J3")
def checksums(files: Files) -> None:
    expected = {
        path.name: {"bytes": path.stat().st_size, "digest": digest_of(path)} for path in (files.model, files.vocab)
    }
    assert files.settings["files"] == expected


@sentence("J4")
def own_checksum(files: Files) -> None:
    others = {name: value for name, value in files.settings.items() if name != "self_sha256"}
    assert files.settings["self_sha256"] == hashlib.sha256(canonical(others).encode()).hexdigest()


@sentence("J5")
def specials(files: Files) -> None:
    settings, roles = files.settings, {}
    for special in settings["specials"]:
        assert special["role"] in ("padding", "unknown", "special")
        assert re.fullmatch("zeros|mean|normal|uniform|file|given|token:.*", special["init"])
        assert type(special["seed"]) is (int if special["init"] in ("normal", "uniform") else type(None))
        assert files.tokens[special["id"]] == special["token"]
        roles[special["role"]] = special["id"]
    assert roles.get("padding") == settings["padding_idx"]
    assert roles.get("unknown") == settings["unk_idx"]


@sentence("J6")
def sets_of_rows(files: Files) -> None:
    settings, provenance = files.settings, files.settings["provenance"]
    rows_of(settings["train_rows"] or "", settings["rows"])
    for one in (*provenance["generated"], *provenance["added"], provenance["spellings"]):
        rows_of(one["rows"], settings["rows"])
    for name in ("given", "inherited", "trained"):
        rows_of(provenance[name], settings["rows"])


@sentence("J7")
def training(files: Files) -> None:
    settings = files.settings
    assert settings["train"] in ("all", "none", "new", "rows")
    if settings["train"] in ("all", "none"):
        assert settings["train_rows"] is None
    else:
        assert settings["padding_idx"] not in rows_of(settings["train_rows"], settings["rows"])


@sentence("J8")
def where_rows_come_from(files: Files) -> None:
    settings, provenance = files.settings, files.settings["provenance"]
    names = "generated spellings given added inherited trained"
    assert " ".join(provenance) == names
    made: list[int] = []
    for one in provenance["generated"]:
        assert re.fullmatch("zeros|mean|normal|uniform|subword", one["init"])
        assert type(one["seed"]) is (int if one["init"] in ("normal", "uniform") else type(None))
        made += rows_of(one["rows"], settings["rows"])
    assert len(set(made)) == len(made)
    rows = sorted(rows_of(provenance["spellings"]["rows"], settings["rows"]))
    spellings = provenance["spellings"]["tokens"].split("\n") if rows else []
    for row, spelling in zip(rows, spellings, strict=True):
        assert spelling != files.tokens[row]
    assert not {*rows, *made} & rows_of(provenance["given"], settings["rows"])


@sentence("J9")
def what_was_done_since(files: Files) -> None:
    settings, added = files.settings, files.settings["provenance"]["added"]
    steps = settings["earlier_steps"] + settings["steps"]
    for step in steps:
        assert step.keys() == {"kind", "source", "replay"}
        assert step["replay"] is not None
    seen: list[int] = []
    for one in added:
        assert steps[one["step"]]["kind"] == "extend"
        seen += rows_of(one["rows"], settings["rows"])
    assert len(set(seen)) == len(seen)


@sentence("J10")
def what_repeats_it(files: Files) -> None:
    for replay in (files.settings["replay"], *(step["replay"] for step in files.settings["steps"])):
        assert replay is None or (replay["version"] == 1 and isinstance(replay["options"], dict))


@sentence("J11")
def nothing_of_the_machine(files: Files) -> None:
    text = files.config.read_text(encoding="utf-8")
    assert str(files.config.parent.parent) not in text
    replay = files.settings["replay"] or {"options": {}}
    assert not {"threads", "progress", "output", "time", "date"} & replay["options"].keys()
    source = files.settings["source"]
    assert source is None or os.path.basename(source["name"]) == source["name"]


# Bundles, as many kinds as there are.


def saved(out: Path) -> None:
    words = ["", " ", "\u3000", "\ufeff", "\r", "<pad>", "é"]  # no CR at every end, no order that anybody expects
    vectors = np.arange(len(words) * 3, dtype=np.float64).reshape(-1, 3)
    vectors[5] = 0
    vec2emb.save(out, words, vectors, pad_token="<pad>", unk_token="é")


def attached(out: Path) -> None:
    vec2emb.convert(SAMPLE, out.parent / "source", limit=5)
    vec2emb.attach_positions(out.parent / "source", "sinusoidal", 6, output=out)


def trained(out: Path) -> None:
    torch_room = pytest.importorskip("vec2emb.torch")
    vec2emb.convert(SAMPLE, out.parent / "source", limit=5, train_rows="new")
    torch_room.save_embedding(torch_room.load_embedding(out.parent / "source"), out)


def extended(out: Path) -> None:
    source, step = out.parent / "source", out.parent / "step"
    vec2emb.convert(SAMPLE, source, limit=5, dtype="float16", positions="learned", max_positions=2, scale=0.05)
    collected(lambda: vec2emb.extend(source, step, tokens=["time", "zyzzyva"], source=SAMPLE, specials=["[MASK]"]))
    vec2emb.extend(step, out, tokens=["qqq"], missing="zeros")


def derived(out: Path) -> None:
    """A bundle of a bundle that was extended, whose generated word another word falls back to."""
    extended(out.parent / "old")
    words = ["the", "ZYZZYVA", "qqq", "time"]
    collected(lambda: vec2emb.convert(out.parent / "old", out, only=words, case_fallback=True, specials_at="end"))


def converted(**options: Any) -> Callable[[Path], object]:
    return lambda out: collected(lambda: vec2emb.convert(SAMPLE, out, **{"limit": 20, **options}))


WORDS = ["the", "The", "zyzzyva", "of", "qqq", "qqqq"]
BUNDLES: dict[str, Callable[[Path], object]] = {
    "plain": converted(),
    "float16": converted(dtype="float16"),
    "bfloat16": converted(dtype="bfloat16", limit=None),
    "no specials": converted(pad=None, unk=None),
    "specials at the end": converted(specials=["<s>=normal", "</s>=token:the"], specials_at="end", unk_init="uniform"),
    "words": converted(vocab=WORDS, missing="mean", case_fallback=True, train_rows="new", limit=None),
    "frozen": converted(freeze=True, license="PDDL-1.0", source_url="https://example.org/glove.zip"),
    "positions": converted(positions="learned", max_positions=4, key_style="roberta", scale=2.0, train_rows=["the"]),
    "two position tables": converted(positions="sinusoidal", max_positions=4, key_style="bart", dtype="float16"),
    "attached": attached,
    "saved": saved,
    "extended": extended,
    "trained": trained,
    "derived": derived,
}


def write(name: str, folder: bool, tmp_path: Path) -> Path:
    out = tmp_path / ("made here" if folder else "made here.safetensors")
    BUNDLES[name](out)
    return out


def test_every_sentence_has_its_check() -> None:
    numbers = re.findall(r"^\*\*([A-Z][0-9]+)\.\*\*", PAGE, re.MULTILINE)
    assert len(numbers) == len(set(numbers))
    elsewhere = {"F2": "test_publishing", "R1": "below", "R2": "below", "R3": "below", "R4": "below"}
    assert set(numbers) == CHECKS.keys() | elsewhere.keys()


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "stem"])
@pytest.mark.parametrize("name", BUNDLES)
def test_what_is_written_keeps_every_sentence(name: str, folder: bool, tmp_path: Path) -> None:
    files = Files.of(write(name, folder, tmp_path))
    for number, check in CHECKS.items():
        try:
            check(files)
        except (AssertionError, KeyError) as error:
            raise AssertionError(f"{number}: {error!r}") from error


# Each sentence broken once.


def settings(change: Callable[[dict[str, Any]], object]) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        content = files.settings
        change(content)
        files.config.write_text(json.dumps(content), encoding="utf-8")

    return edit


def header(change: Callable[[str], str]) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        data, start = files.model.read_bytes(), files.start
        text = change(data[8:start].decode().rstrip()).encode().ljust(start - 8)
        files.model.write_bytes(struct.pack("<Q", len(text)) + text + data[start:])

    return edit


def tokens(change: Callable[[bytes], bytes]) -> Callable[[Files], object]:
    return lambda files: files.vocab.write_bytes(change(files.vocab.read_bytes()))


def spoil(files: Files, key: str, row: int) -> None:
    entry = files.header[key]
    width = (entry["data_offsets"][1] - entry["data_offsets"][0]) // entry["shape"][0]
    data = bytearray(files.model.read_bytes())
    data[files.start + entry["data_offsets"][0] + row * width] = 1
    files.model.write_bytes(data)


BROKEN: dict[str, Callable[[Files], object]] = {
    "F1": lambda files: files.vocab.unlink(),
    "T1": lambda files: files.model.write_bytes(files.model.read_bytes() + b"\0"),
    "T2": lambda files: files.model.write_bytes(
        struct.pack("<Q", files.start) + files.model.read_bytes()[8 : files.start] + b" " * 8
        + files.model.read_bytes()[files.start :]
    ),
    "T3": header(lambda text: text.replace('"format":"pt"', '"format":"np"')),
    "T4": header(lambda text: text.replace('{\\"dim\\"', '{ \\"dim\\"')),
    "T5": settings(lambda content: content.update(key="embeddings.position_embeddings.weight")),
    "T6": lambda files: spoil(files, files.settings["key"], files.facts["padding_idx"]),
    "T7": lambda files: spoil(files, files.settings["positions"]["keys"][0], 0),
    "T8": settings(lambda content: content["positions"].update(keys=[])),
    "V1": tokens(lambda data: b"\xef\xbb\xbf" + data),
    "V2": tokens(lambda data: data.replace(b"\nof\n", b"\nthe\n")),
    "V3": tokens(lambda data: data.replace(b"\nof\n", b"\nfo\n")),
    "J1": settings(lambda content: content.update(schema="2")),
    "J2": settings(lambda content: content.update(scale=None)),
    "J3": settings(lambda content: content["files"].popitem()),
    "J4": settings(lambda content: content.update(lookup="lower")),
    "J5": settings(lambda content: content["specials"][0].update(id=1)),
    "J6": settings(lambda content: content["provenance"].update(trained="3:4 4:5")),
    "J7": settings(lambda content: content.update(train_rows="0:3")),
    "J8": settings(lambda content: content["provenance"].update(given="4:5", spellings={"rows": "4:5", "tokens": "x"})),
    "J9": settings(lambda content: content["provenance"].update(added=[{"step": 0, "rows": "3:5"}])),
    "J10": settings(lambda content: content["replay"].pop("version")),
    "J11": settings(lambda content: content["source"].update(name="/data/v.txt")),
}  # fmt: skip


@pytest.mark.parametrize("number", CHECKS)
def test_a_check_notices(number: str, tmp_path: Path) -> None:
    files = Files.of(write("positions", True, tmp_path))
    CHECKS[number](files)
    BROKEN[number](files)
    with pytest.raises((AssertionError, LookupError)):
        CHECKS[number](files)


# Readers.


def refusal(path: Path) -> str:
    with pytest.raises(Vec2embError) as caught:
        len(vec2emb.load(path).vocab)
    return caught.value.code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (settings(lambda content: content.update(schema=3)), "bundle-version"),  # R1
        (settings(lambda content: content.pop("schema")), "bundle-version"),
        (tokens(lambda data: data.replace(b"\nof\n", b"\nfo\n")), "vocabulary-changed"),  # R2
        (tokens(lambda data: data + b"more\n"), "bundle-damaged"),
        (lambda files: files.model.write_bytes(files.model.read_bytes()[:-4]), "file-cut"),
    ],
)
def test_readers_refuse(change: Callable[[Files], object], code: str, tmp_path: Path) -> None:
    out = write("plain", True, tmp_path)
    change(Files.of(out))
    assert refusal(out) == code


def test_readers_ignore_what_they_do_not_know(tmp_path: Path) -> None:
    """R3."""
    out = write("plain", True, tmp_path)
    settings(lambda content: content.update(future={"a": [1]}))(Files.of(out))
    (out / "tokenizer.json").write_text("{}")
    assert len(vec2emb.load(out)) == 22


def test_readers_accept_other_names(tmp_path: Path) -> None:
    """R4."""
    files = Files.of(write("plain", False, tmp_path))
    moved = Files.of(tmp_path / "other.safetensors")
    for old, new in zip(vars(files).values(), vars(moved).values(), strict=True):
        old.rename(new)
    assert vec2emb.load(moved.model).vocab.tokens[:3] == ["<pad>", "<unk>", "the"]
