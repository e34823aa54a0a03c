"""Promises that hold for whatever comes: read after write is the identity, and nothing depends on how it is read."""

from __future__ import annotations

import gzip
import io
import os
import re
import struct
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import vec2emb
from vec2emb.conversion.reading import ReadTable
from vec2emb.errors import Vec2embError

SAMPLE = Path(__file__).parents[2] / "fixtures" / "glove.6B.50d.sample.txt"

pytestmark = pytest.mark.filterwarnings("ignore::vec2emb.Vec2embWarning")
# The kernel is the same for all examples of a test.
TIMES = int(os.environ.get("VEC2EMB_TEST_TIMES", "1"))  # more examples than every day
ordinary = settings(max_examples=60 * TIMES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

NUMERAL_AT_END = re.compile(r"[ \t][ \t]*[+-]?(\d|\.\d|nan|inf)[^ \t]*$", re.IGNORECASE)


def can_be_carried(token: str) -> bool:
    """What `formats/text.py` says that rows of text can carry, less what only loads with a doubt about D."""
    if not token.strip(" \t"):
        return bool(token)
    return not token.endswith((" ", "\t")) and not NUMERAL_AT_END.search(token)


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")
odd = st.sampled_from(
    [" ", "\t", "\r", "\xa0", "\u3000", "\x85", "\u2028", "\ufeff", "nan", "-0", "1e5", "0x1p3", "</s>", "é", "e\u0301"]
)
tokens = st.text(characters, min_size=1, max_size=8) | st.lists(odd, min_size=1, max_size=4).map("".join)
carried = tokens.filter(can_be_carried)
float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], Any]:
    """Unique tokens and float32[V, D]."""
    names = draw(st.lists(carried, min_size=1, max_size=12, unique=True))
    dim = draw(st.integers(2, 5))
    values = draw(st.lists(float32, min_size=len(names) * dim, max_size=len(names) * dim))
    return names, np.array(values, np.float32).reshape(-1, dim)


def written(names: list[str], vectors: Any, header: bool, style: str) -> bytes:
    """The obvious writer."""
    numeral = {"%.9g": "{:.9g}".format, "repr": repr, "%.17e": "{:.17e}".format}[style]
    rows = [f"{name} {' '.join(numeral(float(v)) for v in row)}\n" for name, row in zip(names, vectors, strict=True)]
    return (f"{len(names)} {len(vectors[0])}\n" * header + "".join(rows)).encode()


def read(data: bytes, block: int | None = None, **options: Any) -> ReadTable:
    with mock.patch.dict(os.environ, {"VEC2EMB_BLOCK_BYTES": str(block)} if block else {}):
        return vec2emb.read_vectors(io.BytesIO(data), **options)


blocks = st.sampled_from([16, 17, 31, 64, 1000, None])
workers = st.sampled_from([1, 2, 3, 16])


@ordinary
@given(tables(), st.booleans(), st.sampled_from(["%.9g", "repr", "%.17e"]), blocks, workers)
def test_read_after_write_is_the_identity(
    kernel: str, table: tuple[list[str], Any], header: bool, style: str, block: int | None, threads: int
) -> None:
    names, vectors = table
    # A byte order mark in front of a file belongs to the file.
    assume(header or not names[0].startswith("\ufeff"))
    data = written(names, vectors, header, style)
    got = read(data, block, threads=threads, format="word2vec" if header else "glove", dim=vectors.shape[1])
    assert got.vocab.tokens == names
    assert got.vectors.tobytes() == vectors.tobytes()


numerals = st.one_of(
    st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-3.4e38, 3.4e38).map(repr),
    # Half way between two float32, and a little beside it: rounding twice shows.
    st.tuples(st.integers(0, 0x7F7FFFFE), st.sampled_from(["", "0000000001"])).map(
        lambda t: f"{np.array([t[0], t[0] + 1], np.uint32).view(np.float32).astype(float).mean():.60f}{t[1]}"
    ),
)


@ordinary
@given(st.lists(st.tuples(numerals, numerals), min_size=1, max_size=30))
def test_numbers_are_the_float32_that_python_and_numpy_give(kernel: str, rows: list[tuple[str, str]]) -> None:
    with np.errstate(over="ignore"):
        expected = np.array([[float(a), float(b)] for a, b in rows]).astype(np.float32)
    assume(np.isfinite(expected).all())
    data = "".join(f"w{i} {a} {b}\n" for i, (a, b) in enumerate(rows)).encode()
    assert read(data, format="glove", dim=2).vectors.tobytes() == expected.tobytes()


@ordinary
@given(st.lists(st.tuples(numerals, numerals), min_size=1, max_size=30))
def test_numbers_are_gensims(rows: list[tuple[str, str]]) -> None:
    assume(all(abs(float(x)) < 3e38 for row in rows for x in row))
    data = (f"{len(rows)} 2\n" + "".join(f"w{i} {a} {b}\n" for i, (a, b) in enumerate(rows))).encode()
    with tempfile.NamedTemporaryFile(suffix=".vec") as file:
        file.write(data)
        file.flush()
        theirs = KeyedVectors.load_word2vec_format(file.name)
    ours = read(data)
    assert ours.vocab.tokens == theirs.index_to_key
    assert ours.vectors.tobytes() == theirs.vectors.tobytes()


# Nothing depends on blocks, threads or kernel.

PIECES = [
    b"", b" ", b"\t", b"\n", b"\n\n", b"\r\n", b"nan", b"inf", b"1e999", b"x", b"1,5", b"\xff", b"\xc3", b"\0", b" 1",
    b" 1 2", b"the", b"0x10", b"1_0", b"\xef\xbb\xbf", b"\r", b"3 3\n", b"--1", b"9" * 400,
]  # fmt: skip


@st.composite
def damaged_files(draw: st.DrawFn) -> bytes:
    """A good table with several bad places, some of which do no harm."""
    count, dim = draw(st.integers(3, 40)), 3
    names = [draw(st.sampled_from(["a", "the", "é", "of course"])) + (str(i) + "x") * (i % 5 > 0) for i in range(count)]
    values = [[round(0.25 * i - k, 2) for k in range(dim)] for i in range(count)]
    data = written(names, values, draw(st.booleans()), "repr")
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 3))
        data = data[:at] + draw(st.sampled_from(PIECES)) + data[at + cut :]
    return data


options = st.fixed_dictionaries(
    {},
    optional={
        "format": st.sampled_from(["glove", "word2vec"]),
        "dim": st.just(3),
        "bad_rows": st.just("skip"),
        "nonfinite": st.sampled_from(["keep", "zero"]),
        "duplicates": st.sampled_from(["last", "error"]),
        "limit": st.integers(1, 45),
        "unit_norm": st.just(True),
    },
)


def outcome(data: bytes, block: int | None, threads: int, given_options: dict[str, Any]) -> Any:
    """All that a caller can see: the table and its warnings, or the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = read(data, block, threads=threads, **given_options)
        except Vec2embError as error:
            return type(error).__name__, error.to_dict()
    report = {key: value for key, value in table.report.to_dict().items() if key != "seconds"}
    return table.vectors.tobytes(), bytes(table.vocab.blob), report, [str(entry.message) for entry in caught]


SEEN: dict[tuple[bytes, str], Any] = {}


@settings(
    ordinary, max_examples=150 * TIMES, derandomize=True
)  # the same examples for both kernels, which are compared
@given(damaged_files(), options, st.lists(st.tuples(blocks, workers), min_size=2, max_size=4))
def test_blocks_threads_and_kernels_change_neither_the_table_nor_the_fault(
    kernel: str, data: bytes, given_options: dict[str, Any], ways: list[tuple[int | None, int]]
) -> None:
    first = outcome(data, None, 1, given_options)
    for block, threads in ways:
        assert outcome(data, block, threads, given_options) == first
    before = SEEN.setdefault((data, repr(given_options)), first)
    assert before == first


@settings(ordinary, max_examples=40 * TIMES)
@given(damaged_files(), options)
def test_rows_one_by_one_are_those_of_the_table(data: bytes, given_options: dict[str, Any]) -> None:
    assume(given_options.get("duplicates") != "last")
    whole = outcome(data, None, 1, given_options)
    rows: list[tuple[str, bytes]] = []
    fault = None
    try:
        rows += ((token, vector.tobytes()) for token, vector in vec2emb.iter_vectors(io.BytesIO(data), **given_options))
    except Vec2embError as error:
        fault = type(error).__name__, error.code, error.line
    if isinstance(whole[1], dict):
        assert fault == (whole[0], whole[1]["code"], whole[1]["line"])
    else:
        assert fault is None
        assert b"".join(vector for _, vector in rows) == whole[0]
        assert "".join(f"{token}\n" for token, _ in rows).encode() == whole[1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nothing_changes_a_byte_of_the_bundle(tmp_path: Path, dtype: str) -> None:
    """Blocks, threads, the seed of Python's hashes, the kernel; all files, the settings included."""

    def made(name: str, **environment: str) -> dict[str, bytes]:
        command: list[Any] = [sys.executable, "-m", "vec2emb", "convert", SAMPLE, "-o", tmp_path / name, "--quiet"]
        command += [
            "--dtype",
            dtype,
            "--special",
            "<s>",
            "--special",
            "</s>=uniform",
            "--threads",
            environment.pop("THREADS", "1"),
        ]
        subprocess.run(command, check=True, env={**os.environ, **environment})
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    first = made("first", PYTHONHASHSEED="0")
    assert set(first) == {"model.safetensors", "vocab.txt", "vec2emb.json"}
    assert made("hash", PYTHONHASHSEED="1", THREADS="3", VEC2EMB_BLOCK_BYTES="16") == first
    slow = {"VEC2EMB_KERNEL": "reference", "VEC2EMB_BLOCK_BYTES": "999"}
    assert made("kernel", PYTHONHASHSEED="random", THREADS="16", **slow) == first


def test_text_gzip_pipe_and_header_give_the_same_table(tmp_path: Path) -> None:
    plain = SAMPLE.read_bytes()
    headed = b"%d 50\n" % plain.count(b"\n") + plain
    two_members = gzip.compress(headed[:999]) + gzip.compress(headed[999:])
    files = {"a.txt": plain, "b.gz": gzip.compress(plain), "c.vec": headed, "d": two_members}
    results = set()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        vec2emb.convert(tmp_path / name, tmp_path / f"{name}-out")
        words = ("convert", "-", "-o", str(tmp_path / f"{name}-pipe"), "--quiet")
        subprocess.run([sys.executable, "-m", "vec2emb", *words], input=data, check=True)
        for end in ("out", "pipe"):
            place = tmp_path / f"{name}-{end}"
            results.add((place.joinpath("model.safetensors").read_bytes(), place.joinpath("vocab.txt").read_bytes()))
    assert len(results) == 1
    ((model, vocab),) = results
    assert vocab.decode().split("\n")[2:-1] == [line.split(" ")[0] for line in plain.decode().split("\n")[:-1]]
    third = struct.unpack("<50f", model[4096 + 400 :][:200])
    assert list(third) == np.array(plain.split(b"\n")[0].split(b" ")[1:], float).astype(np.float32).tolist()
