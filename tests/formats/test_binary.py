"""Word2Vec binary: records with and without LF, odd widths and orders, and all that is refused by its name."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bits, collected
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import vec2emb
from vec2emb.conversion.reading import ReadTable
from vec2emb.errors import InputError

WORDS = ["</s>", "the", "of"]
VECTORS = np.array([[0.5, -1.25, 2.0], [1.0, 0.25, -0.75], [-0.5, 0.125, 0.0625]], np.float32)


def records(
    words: list[str], vectors: Any, end: bytes = b"\n", kind: str = "<f4", header: bytes | None = None
) -> bytes:
    """A file as word2vec.c (LF behind each vector) or gensim (none) writes it."""
    head = b"%d %d\n" % (len(words), len(vectors[0])) if header is None else header
    return head + b"".join(
        word.encode() + b" " + np.asarray(vector, kind).tobytes() + end
        for word, vector in zip(words, vectors, strict=True)
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "vectors.bin"


def read(path: Path, **options: Any) -> ReadTable:
    return collected(lambda: vec2emb.read_vectors(path, **options))[0]


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("format", ["auto", "word2vec-binary"])
def test_both_writers(kernel: str, block: str, threads: int, source: Path, end: bytes, format: str) -> None:
    source.write_bytes(records(WORDS, VECTORS, end))
    table = read(source, format=format, threads=threads)
    assert table.vocab.to_list() == WORDS
    assert bits(table.vectors) == bits(VECTORS)
    assert table.report.format == "word2vec-binary"
    vec2emb.convert(source, source.parent / "out", format=format, threads=threads, if_exists="replace")
    assert bits(vec2emb.load(source.parent / "out").vectors[2:]) == bits(VECTORS)


def test_an_lf_is_decided_for_each_record(kernel: str, block: str, source: Path) -> None:
    data = records(WORDS[:2], VECTORS[:2], b"\n", header=b"3 3\n") + records(WORDS[2:], VECTORS[2:], b"", header=b"")
    source.write_bytes(data)
    assert read(source).vocab.to_list() == WORDS


def test_values_that_look_like_separators(kernel: str, block: str, source: Path) -> None:
    """Bytes 0x0A and 0x20 inside a float are not looked at."""
    odd = struct.unpack("<3f", b"\n  \x3e \n\n\x3f  \n\x3e")
    source.write_bytes(records(["a", "b", "c"], [odd] * 3, b""))
    assert bits(read(source, format="word2vec-binary").vectors) == bits([odd] * 3)


def test_limit_and_only(kernel: str, block: str, source: Path) -> None:
    source.write_bytes(records(WORDS, VECTORS))
    assert read(source, limit=2).vocab.to_list() == WORDS[:2]
    vec2emb.convert(source, source.parent / "out", only=["of"])
    table = vec2emb.load(source.parent / "out")
    assert bits([table["of"]]) == bits(VECTORS[2:])
    assert len(table) == 3


@pytest.mark.parametrize("kind", ["<f2", "<f8", ">f4", ">f8", ">f2"])
def test_odd_values_are_named_and_can_be_read(kernel: str, block: str, source: Path, kind: str) -> None:
    source.write_bytes(records(WORDS, VECTORS, kind=kind))
    dtype = {"2": "float16", "4": "float32", "8": "float64"}[kind[2]]
    order = "big" if kind[0] == ">" else "little"
    with pytest.raises(InputError, match=f"--binary-dtype {dtype} --byte-order {order} reads them"):
        read(source)
    table = read(source, binary_dtype=dtype, byte_order=order)
    assert bits(table.vectors) == bits(VECTORS)  # all of them are exact in two bytes


def damaged(kind: str) -> bytes:
    good = records(WORDS, VECTORS)
    files: dict[str, bytes] = {
        "cut-in-value": good[:-6],
        "cut-in-token": good[: good.index(b"of") + 1],
        "cut-before-record": good[: good.index(b"of")],
        "one-record-more": good + b"in " + VECTORS[0].tobytes() + b"\n",
        "trailing-bytes": good + b"xyz",
        "two-lf-behind": good + b"\n",
        "space-in-token": records(["new york", "b", "c"], VECTORS),
        "crlf": good.replace(b"\n", b"\r\n"),
        "text": b"2 3\nalpha 1.000000 2.000000 3.0\nbeta 4.000000 5.000000 6.0\n",
        "no-header": good[4:],
        "header-alone": b"3 3\n",
        "zero-rows": records(WORDS, VECTORS, header=b"0 3\n"),
        "zero-dim": records(WORDS, VECTORS, header=b"3 0\n"),
        "huge-dim": records(WORDS, VECTORS, header=b"3 99999999999\n"),
        "huge-count": records(WORDS, VECTORS, header=b"999999999999999999 3\n"),
        "bad-utf8": good.replace(b"the", b"caf\xe9"),
        "empty-token": good.replace(b"the ", b" "),
        "nan": good.replace(VECTORS[1].tobytes(), np.array([1, np.nan, 2], "<f4").tobytes()),
        "glove-doubles": np.arange(1, 31, dtype="<f8").tobytes(),
    }
    return files[kind]


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        ("cut-in-value", "binary-cut", "record 3.*ends inside a record.*expected 1 more record"),
        ("cut-in-token", "binary-cut", "record 3"),
        ("cut-before-record", "binary-cut", "record 3.*ends before its last record|record 3"),
        ("one-record-more", "binary-trailing-bytes", "goes on after the last record.*expected 3 records"),
        ("trailing-bytes", "binary-trailing-bytes", "goes on after"),
        ("two-lf-behind", "binary-trailing-bytes", "goes on after"),
        ("space-in-token", "binary-misaligned", "record 2.*do not line up.*token before it holds a space"),
        ("crlf", "binary-as-text", "binary mode"),
        ("text", "is-text", "this is text.*--format word2vec"),
        ("no-header", "header-missing", "no Word2Vec header"),
        ("header-alone", "header-alone", "ends after its header"),
        ("zero-rows", "header-zero-rows", "promises no rows"),
        ("zero-dim", "header-dim-range", "dimension cannot be true"),
        ("huge-dim", "header-dim-range", "dimension cannot be true"),
        ("huge-count", "binary-cut", "999999999999999996 more records"),
        ("bad-utf8", "invalid-utf8", "record 2.*63 61 66 e9"),
        ("empty-token", "empty-token", "record 2"),
        ("nan", "non-finite", r"record 2.*1 row with such values.*found '?nan"),
        ("glove-doubles", "is-glove-binary", "bare 8-byte floats"),
    ],
)
def test_what_is_refused(kernel: str, block: str, threads: int, source: Path, kind: str, code: str, words: str) -> None:
    source.write_bytes(damaged(kind))
    with pytest.raises(InputError, match=words) as error:
        read(source, format="word2vec-binary", threads=threads)
    assert error.value.code == code
    assert error.value.path == str(source)


@pytest.mark.parametrize("format", ["word2vec", "glove"])
def test_binary_named_text(source: Path, format: str) -> None:
    source.write_bytes(records(WORDS, VECTORS))
    with pytest.raises(InputError, match=r"Word2Vec binary|binary file"):
        read(source, format=format)


def test_faulty_records_can_be_skipped_but_not_misaligned_ones(kernel: str, source: Path) -> None:
    source.write_bytes(damaged("bad-utf8"))
    assert read(source, bad_rows="skip").vocab.to_list() == ["</s>", "of"]
    assert read(source, encoding_errors="replace").vocab.to_list() == ["</s>", "caf\ufffd", "of"]
    assert read(source, encoding="latin-1").vocab.to_list() == ["</s>", "café", "of"]
    source.write_bytes(damaged("nan"))
    assert read(source, bad_rows="skip").vocab.to_list() == ["</s>", "of"]
    assert read(source, nonfinite="zero")["the"].tolist() == [1.0, 0.0, 2.0]
    source.write_bytes(damaged("space-in-token"))
    with pytest.raises(InputError, match="do not line up"):
        read(source, bad_rows="skip")


def test_doubles_beyond_float32(kernel: str, source: Path) -> None:
    source.write_bytes(records(["a", "b"], [[1.0, 2.0], [1e39, 1.0]], kind="<f8"))
    with pytest.raises(InputError, match=r"record 2.*does not fit float32.*1e\+39"):
        read(source, binary_dtype="float64")


def test_compressed_and_from_a_stream(source: Path) -> None:
    source.write_bytes(gzip.compress(records(WORDS, VECTORS)))
    assert read(source).vocab.to_list() == WORDS


def test_a_float_that_reads_as_text(kernel: str, tmp_path: Path) -> None:
    """The first row of `1 1`, `0 0`, `\\[` is one of text; the file is none."""
    path = tmp_path / "v.bin"
    path.write_bytes(b"1 1\n0 0\n\\[")
    table = read(path, format="word2vec-binary", binary_dtype="float32")
    assert (table.vocab.to_list(), bits(table.vectors)) == (["0"], bits(np.frombuffer(b"0\n\\[", "<f4").reshape(1, 1)))


tokens = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters=" \n\0"), min_size=1, max_size=12)


@pytest.mark.parametrize("end", [b"\n", b""])
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_written_is_read(kernel: str, tmp_path: Path, end: bytes, data: st.DataObject) -> None:
    words = data.draw(st.lists(tokens, min_size=1, max_size=8, unique=True))
    width = data.draw(st.integers(1, 9))
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    vectors = data.draw(arrays.arrays(np.float32, (len(words), width), elements=finite))
    path = tmp_path / "v.bin"
    path.write_bytes(records(words, vectors, end))
    lines = [line for line in path.read_bytes().split(b"\n")[1:] if line.strip()]
    # A few floats are digits and line feeds; then it may be a file of text as well, and is refused.
    assume(not lines or sum(line[-1:].isdigit() for line in lines) * 2 <= len(lines))
    table = read(path, format="word2vec-binary", binary_dtype="float32", threads=data.draw(st.sampled_from([1, 3])))
    assert table.vocab.to_list() == words
    assert bits(table.vectors) == bits(vectors)
