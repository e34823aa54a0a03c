"""Sources of words and a matrix that are not what they say: refused in our words, with little memory, at once."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import struct
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, bits, collected
from safetensors.numpy import save_file

import vec2emb
from vec2emb.errors import InputError, RowError, Vec2embError
from vec2emb.formats.matrix.arrays import Lines
from vec2emb.formats.matrix.subwords import Subwords, groups
from vec2emb.io.filesystem import sha256_of

SMALL = 20 << 20  # bytes; none of the files here holds as much


def refused(call: Callable[[], object]) -> Vec2embError:
    """The error of a call that takes little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(Vec2embError) as caught:
            call()
        assert tracemalloc.get_traced_memory()[1] < SMALL
    finally:
        tracemalloc.stop()
    return caught.value


# Words and rows in memory.


def test_a_mapping_says_which_row_a_word_has() -> None:
    """Whatever order it is written in: the row is the number that stands beside the word."""
    table = vec2emb.read_vectors((np.eye(3), {"b": 1, "c": 2, "a": 0}))
    assert {word: table[word].tolist() for word in "abc"} == {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1]}


@pytest.mark.parametrize(
    ("words", "code"),
    [({"b", "a"}, "no-order"), (frozenset("ab"), "no-order"), ({"a": 0, "b": 2}, "ids-with-gaps"),
     ({"a": 0, "b": 0}, "ids-with-gaps"), ({"a": "x", "b": 1}, "token-type")],
)  # fmt: skip
def test_words_without_an_order(words: Any, code: str) -> None:
    assert refused(lambda: vec2emb.read_vectors((np.eye(2), words))).code == code


# Bundles.


@pytest.mark.parametrize("shard_size", [None, "5KB"])
def test_damage_gets_no_new_checksum(shard_size: str | None, tmp_path: Path, threads: int) -> None:
    rows = {f"w{i}": [i / 7] * 8 for i in range(64)}
    source = (np.array(list(rows.values()), np.float32), list(rows))
    vec2emb.convert(source, tmp_path / "old", shard_size=shard_size)
    vec2emb.convert(tmp_path / "old", tmp_path / "good", threads=threads)
    path = max(tmp_path.glob("old/*.safetensors"))
    data = bytearray(path.read_bytes())
    data[-7] ^= 1  # of a mantissa: as good a number as any
    path.write_bytes(data)
    error = refused(lambda: vec2emb.convert(tmp_path / "old", tmp_path / "new", threads=threads))
    assert error.code == "bundle-damaged"
    assert "the tensors are not those that were written" in str(error)
    assert not (tmp_path / "new").exists()


# NumPy archives.


def npy(head: bytes, values: bytes, version: bytes = b"\1\0") -> bytes:
    return b"\x93NUMPY" + version + len(head).to_bytes(2 if version[0] == 1 else 4, "little") + head + values


def array(values: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def packed(path: Path, method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return path


ONE = array(np.ones((1, 2), np.float32))


def head_of(dtype: str, count: int) -> bytes:
    return f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({count},), }}".encode().ljust(117) + b"\n"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (npy(head_of("|u1", 24 << 20), bytes(24 << 20)), "line-too-long", "no line feed comes in 8 MiB"),
        (npy(head_of("<U6291456", 1), bytes(24 << 20)), "npz-words", "have a length that no word has"),
        (npy(b"{" + b" " * (24 << 20), b"", b"\2\0"), "npz-damaged", "has a head of 25165825 bytes"),
    ],
)  # fmt: skip
def test_a_small_archive_stays_small(words: bytes, code: str, text: str, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.npz", v=ONE, w=words)
    assert path.stat().st_size < 1 << 20
    error = refused(lambda: vec2emb.read_vectors(path))
    assert error.code == code
    assert text in str(error)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_as_a_whole(method: int, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.npz", method, v=ONE, w=npy(head_of("|u1", 2), b"a\n"))
    error = refused(lambda: vec2emb.read_vectors(path))
    assert error.code == "npz-compression"
    assert "expected stored or deflated, found " + {12: "bzip2", 14: "LZMA"}[method] in str(error)


def test_members_of_one_name(tmp_path: Path) -> None:
    packed(tmp_path / "a.npz", v=ONE, w=array(np.array(["a"])))
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(tmp_path / "a.npz", "a") as file:
        file.writestr("v.npy", array(np.zeros((1, 2))))
    error = refused(lambda: vec2emb.read_vectors(tmp_path / "a.npz"))
    assert (error.code, error.message) == ("member-twice", "the archive has 2 members named 'v.npy'")


@pytest.mark.parametrize("text", [b"a\nb\nc", b"a\nb"])
def test_a_last_word_that_may_be_cut(text: bytes, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.npz", v=array(np.eye(2)), w=array(np.frombuffer(text, np.uint8)))
    error = refused(lambda: vec2emb.read_vectors(path))
    assert (error.code, error.message) == ("missing-last-lf", "the last token is not followed by LF")


@pytest.mark.parametrize(
    "head",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)", "{1: 2, 'a': 3}", "{'descr': '<f4', ",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -2)}", "-" * 9000 + "1", "[" * 300, "b'\\xz'",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1" + 30 * "0" + ")}", "{'descr': '|S0', " * 9,
        "{'descr': ['', ('a',)], 'fortran_order': False, 'shape': (1, 2)}", "\t x\n  y\n z", "(((((",
        "{'descr': {'a': 1}, 'fortran_order': False, 'shape': (1, 2)}", "{[]: 1}", "0x",
    ],
)  # fmt: skip
def test_heads_that_are_none(head: str, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.npz", v=npy(head.encode() + b"\n", bytes(8)), w=array(np.array(["a"])))
    assert isinstance(refused(lambda: vec2emb.read_vectors(path)), InputError)


def test_heads_with_a_byte_changed(tmp_path: Path) -> None:
    """At random: in the end it is our error, or an archive all the same."""
    rng, whole = random.Random(7), array(np.array(["ab"]))
    for _ in range(60):
        noisy = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            noisy[rng.randrange(6, 128)] = rng.choice(b"(){}[]'\",:-0123456789<>|OUSf \n\\\0\xff")
        path = packed(tmp_path / "a.npz", v=ONE, w=bytes(noisy))
        try:
            collected(lambda: vec2emb.read_vectors(path))  # noqa: B023
        except Vec2embError:
            continue


@pytest.mark.parametrize(
    ("dtype", "data"), [("<U1", b"\0\0\x11\0"), ("<U2", b"a\0\0\0\xff\xff\xff\xff"), ("|S0", b""), ("<U0", b"")]
)
def test_strings_that_are_none(dtype: str, data: bytes, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.npz", v=ONE, w=npy(head_of(dtype, 1), data))
    assert refused(lambda: vec2emb.read_vectors(path)).code in ("npz-damaged", "npz-words")


def test_lines_of_any_pieces() -> None:
    rng = random.Random(3)
    for _ in range(200):
        lines = [bytes(rng.choices(b"ab", k=rng.randrange(5))) for _ in range(rng.randrange(9))]
        text, pieces = b"".join(line + b"\n" for line in lines), list[bytes]()
        while text:
            size = rng.randrange(6)
            pieces, text = [*pieces, text[:size]], text[size:]
        found, skipped, count = Lines(pieces, "x"), rng.randrange(4), rng.randrange(1, 4)
        found.skip(skipped)
        taken = list[bytes]()
        while some := found.take(count):
            taken += some
        assert taken == lines[skipped:]


# fastText models.


def model(path: Path, word: bytes, shortest: int, longest: int, buckets: int) -> Path:
    """A model of one word, all of whose rows are (1, 2)."""
    settings = struct.pack("<12id", 2, 5, 5, 1, 5, 1, 2, 2, buckets, shortest, longest, 100, 1e-4)
    matrix = struct.pack("<2q", 1 + buckets, 2) + struct.pack("<2f", 1, 2) * (1 + buckets)
    path.write_bytes(
        b"\xba\x16\x4f\x2f" + struct.pack("<i", 12) + settings + struct.pack("<3iqq", 1, 1, 0, 1, -1)
        + word + b"\0" + struct.pack("<qb", 1, 0) + b"\0" + matrix + b"\0" + struct.pack("<2q", 0, 2)
    )  # fmt: skip
    return path


def test_a_word_that_is_none(tmp_path: Path) -> None:
    for size in (4097, 70_000, 1_000_000):
        path = model(tmp_path / "m.bin", b"x" * size, 1, 255, 1)
        error = refused(lambda: vec2emb.read_vectors(path))  # noqa: B023
        assert error.code == "fasttext-damaged"
        assert (error.record, error.expected) == (1, "at most 4096 bytes")
    path = model(tmp_path / "m.bin", b"x" * 4096, 3, 3, 1)
    assert vec2emb.read_vectors(path).vectors.tolist() == [[1, 2]]  # the mean of rows that are all the same


def test_long_words_are_cut_in_groups(tmp_path: Path) -> None:
    rng = random.Random(2)
    words = [b"x" * rng.choice([0, 3, 9_000, 40_000]) for _ in range(300)]
    ranges = list(groups(words, Subwords(1, 50, 1, 1)))
    assert [place for start, stop in ranges for place in range(start, stop)] == list(range(300))
    sizes = [sum((len(word) + 2) * 50 for word in words[start:stop]) for start, stop in ranges]
    assert len(ranges) > 1
    assert max(sizes) <= 4 << 20
    assert list(groups([b"x" * 9_000_000] * 2, Subwords(1, 1, 1, 1))) == [(0, 1), (1, 2)]
    assert list(groups([], Subwords(1, 1, 1, 1))) == []


def test_the_size_of_groups_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = FIXTURES / "fasttext" / "cbow.bin"
    asked: Any = {"vocab": ["unseen", "the", "", "ünseen"], "missing": "subword"}
    collected(lambda: vec2emb.convert(path, tmp_path / "a", **asked))
    whole = vec2emb.read_vectors(path)
    monkeypatch.setattr("vec2emb.formats.matrix.subwords._AT_ONCE", 1)
    assert bits(vec2emb.read_vectors(path).vectors) == bits(whole.vectors)
    collected(lambda: vec2emb.convert(path, tmp_path / "b", **asked))
    assert bits(vec2emb.load(tmp_path / "b").vectors) == bits(vec2emb.load(tmp_path / "a").vectors)


# Folders of other libraries.


def model2vec(folder: Path, words: list[str], **tensors: Any) -> Path:
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    vocab = {word: id for id, word in enumerate(words)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordLevel", "vocab": vocab}}))
    return folder


@pytest.mark.parametrize(
    ("table", "weight"), [(np.float32(1e38), 10), (np.float32(-3e38), 2), (np.float64(1e308), 1e30)]
)
def test_a_weight_makes_no_infinity(table: Any, weight: float, tmp_path: Path, kernel: str) -> None:
    """A product that float32 does not hold is an overflow, and no infinite value for which there is a policy."""
    vectors = np.array([[1, 2], [3, table]], table.dtype)
    folder = model2vec(tmp_path / "m", ["a", "b"], embeddings=vectors, weights=np.array([0.5, weight], np.float32))
    for policy in ("error", "keep", "zero"):
        with pytest.raises(RowError) as caught:
            vec2emb.read_vectors(folder, nonfinite=policy)
        assert caught.value.code == "out-of-range"
        assert "record 2: a value does not fit float32" in str(caught.value)
    table, _ = collected(lambda: vec2emb.read_vectors(folder, bad_rows="skip"))
    assert (table.vocab.to_list(), table.vectors.tolist()) == (["a"], [[0.5, 1]])


def test_infinite_rows_stay_infinite(tmp_path: Path) -> None:
    vectors = np.array([[np.inf, 2], [0, np.nan]], np.float32)
    folder = model2vec(tmp_path / "m", ["a", "b"], embeddings=vectors, weights=np.array([-1, 2], np.float32))
    kept = vec2emb.read_vectors(folder, nonfinite="keep").vectors
    assert bits(kept[:1]) == bits([[-np.inf, -2]])
    assert np.isnan(kept[1, 1])
    assert kept[1, 0] == 0


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="long double is double")
def test_long_doubles(tmp_path: Path) -> None:
    with pytest.raises(RowError, match=r"record 1: a value does not fit float32: found 1e\+300 in column 1"):
        vec2emb.read_vectors((np.array([[1, 1e300]], np.longdouble), ["a"]), nonfinite="zero")
    third = np.longdouble(1) / 3
    table = vec2emb.read_vectors((np.array([[third, 1]]), ["a"]))
    assert bits(table.vectors) == bits([[np.float32(1 / 3), np.float32(1)]])


@pytest.mark.parametrize("name", ["mapping", "weights"])
def test_a_scalar_for_a_column(name: str, tmp_path: Path) -> None:
    tensors = {"embeddings": np.eye(2, dtype=np.float32), name: np.array(1.0 if name == "weights" else 1)}
    folder = model2vec(tmp_path / "m", ["a", "b"], **tensors)
    error = refused(lambda: vec2emb.read_vectors(folder))
    assert error.code == "folder-table"
    assert f"{name} is not one number a word" in str(error)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o300)
    try:
        assert refused(lambda: vec2emb.read_vectors(tmp_path)).code == "cannot-open"
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listdir(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("vec2emb.formats.matrix.folders.os.listdir", listdir)
    error = refused(lambda: vec2emb.read_vectors(tmp_path))
    assert str(error) == f"{tmp_path}: the folder cannot be opened (Permission denied)"


# Pinned sources, and file URLs.


@pytest.mark.parametrize("in_place", [False, True], ids=["replaced", "in-place"])
@pytest.mark.parametrize("kind", ["npz", "fasttext"])
def test_what_was_hashed_is_what_is_read(
    kind: str, in_place: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is replaced or rewritten after its checksum was found is not read under it."""
    path = tmp_path / "source"
    if kind == "npz":
        packed(path, v=ONE, w=array(np.array(["a"])))
    else:
        model(path, b"a", 0, 0, 0)
    data = path.read_bytes()

    def then_replaced(descriptor: int) -> str:
        digest = sha256_of(descriptor)
        if in_place:
            status = path.stat()
            time.sleep(0.02)  # the system's clock for files is coarse
            path.write_bytes(data)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            return digest
        (tmp_path / "other").write_bytes(data)
        os.replace(tmp_path / "other", path)
        return digest

    monkeypatch.setattr("vec2emb.formats.matrix.opening.sha256_of", then_replaced)
    error = refused(lambda: vec2emb.read_vectors(path, sha256=hashlib.sha256(data).hexdigest()))
    assert error.code == "source-changed"


def test_file_urls_of_everything(tmp_path: Path) -> None:
    """A file:// URL stands for its path, whatever is there."""
    packed(tmp_path / "a.npz", v=ONE, w=array(np.array(["a"])))
    model(tmp_path / "m.bin", b"a", 0, 0, 0)
    model2vec(tmp_path / "f d", ["a"], embeddings=np.array([[1, 2]], np.float32))
    vec2emb.save(tmp_path / "bundle", ["a"], np.array([[1, 2]], np.float32))
    for name, second in (("a.npz", 1), ("m.bin", 2), ("f d", 2), ("bundle", 2), ("bundle/model.safetensors", 2)):
        table = vec2emb.read_vectors((tmp_path / name).as_uri())
        assert (table.vocab.to_list(), table.vectors.tolist()) == (["a"], [[1, second]])
