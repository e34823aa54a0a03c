"""Vectors into memory: `read_vectors` and `iter_vectors`."""

from __future__ import annotations

import inspect as signatures
import io
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bits, collected

import vec2emb
from vec2emb.errors import RowError, SourceError, UsageError, Vec2embError

ROWS = b"the 0.5 -1.25 2\nof 1 0.25 -0.75\nand -0.5 0.125 0.0625\n"
MANY = b"".join(b"w%d %d 0.5 -1\n" % (i, i) for i in range(5000))


def test_the_table(kernel: str) -> None:
    """As the file is: no special token, no row zeroed."""
    table = vec2emb.read_vectors(io.BytesIO(ROWS + b"<pad> 1 2 3\n"))
    assert table.vocab.to_list() == ["the", "of", "and", "<pad>"]
    assert (len(table), table.dim, table.vectors.shape) == (4, 3, (4, 3))
    assert table.vectors.dtype == np.dtype("float32")
    assert (table.vocab.padding_idx, table.vocab.unk_idx, table.manifest) == (None, None, None)
    assert table["<pad>"].tolist() == [1, 2, 3]
    assert "of" in table
    assert "zebra" not in table
    with pytest.raises(KeyError):
        table["zebra"]
    assert [(token, vector.tolist()) for token, vector in table][1] == ("of", [1, 0.25, -0.75])
    with pytest.raises(ValueError, match="read-only"):
        table.vectors[0, 0] = 1
    report = table.report
    assert report is not None
    assert (report.path, report.format, report.compression, report.file_rows, report.rows) == (
        None, "glove", "none", 4, 4,
    )  # fmt: skip


def test_saving_what_was_read(tmp_path: Path) -> None:
    table = vec2emb.read_vectors(io.BytesIO(ROWS))
    table.save(tmp_path / "out")
    loaded = vec2emb.load(tmp_path / "out")
    assert loaded.vocab.to_list() == table.vocab.to_list()
    assert bits(loaded.vectors) == bits(table.vectors)


@pytest.mark.parametrize("kind", [str, Path, io.BytesIO, "open"])
def test_kinds_of_sources(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(ROWS)
    if kind == "open":
        with open(path, "rb") as file:
            assert len(vec2emb.read_vectors(file)) == 3
        with open(path, "rb") as file:
            assert len(list(vec2emb.iter_vectors(file))) == 3
            assert not file.closed
    else:
        for read in (vec2emb.read_vectors, vec2emb.iter_vectors):
            source = kind(ROWS) if kind is io.BytesIO else kind(path)
            assert len(list(read(source))) == 3


def test_growing(kernel: str, block: str, threads: int) -> None:
    """More rows than were foreseen from the head, and later rows in the place of earlier ones."""
    data = (
        b"".join(b"%s 1 2 3\n" % (b"long" * 100 + b"%d" % i) for i in range(1200)) + MANY + MANY.replace(b" 0.5", b" 7")
    )
    table, found = collected(lambda: vec2emb.read_vectors(io.BytesIO(data), duplicates="last", threads=threads))
    assert (len(table), [w.count for w in found]) == (6200, [5000])
    assert bits(table.vectors[1200:]) == bits([[i, 7, -1] for i in range(5000)])


def test_signatures_agree() -> None:
    """What `read_vectors` and `iter_vectors` can be told is what `convert` can, with the same defaults.

    But for the source, which `convert` does without for a table from scratch.
    """
    convert = signatures.signature(vec2emb.convert).parameters
    for function in (vec2emb.read_vectors, vec2emb.iter_vectors):
        for name, parameter in signatures.signature(function).parameters.items():
            if name == "source":
                continue
            assert (parameter.default, parameter.kind) == (convert[name].default, convert[name].kind)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"limit": 0}, "limit-range"),
        ({"limit": 2.0}, "limit-range"),
        ({"limit": True}, "limit-range"),
        ({"bad_rows": "stop"}, "bad-rows-policy"),
        ({"nonfinite": "drop"}, "nonfinite-policy"),
        ({"duplicates": "middle"}, "duplicates"),
        ({"format": "csv"}, "unknown-format"),
        ({"dim": -1}, "dim-range"),
    ],
)
def test_arguments_are_checked_at_once(options: dict[str, Any], code: str) -> None:
    for read in (vec2emb.read_vectors, vec2emb.iter_vectors):
        source = io.BytesIO(ROWS)
        with pytest.raises(UsageError) as caught:
            read(source, **options)
        assert caught.value.code == code


# One row after the other.


def test_iterating(kernel: str, block: str) -> None:
    pairs = list(vec2emb.iter_vectors(io.BytesIO(MANY), limit=700))
    assert [token for token, _ in pairs] == [f"w{i}" for i in range(700)]
    assert bits([vector for _, vector in pairs]) == bits([[i, 0.5, -1] for i in range(700)])


def test_iterated_vectors_are_the_callers_own() -> None:
    kept = []
    for _, vector in vec2emb.iter_vectors(io.BytesIO(ROWS)):
        vector += 1
        kept.append(vector)
    assert [vector.tolist() for vector in kept] == [[1.5, -0.25, 3], [2, 1.25, 0.25], [0.5, 1.125, 1.0625]]


@pytest.mark.parametrize(
    ("rows", "code", "before"),
    [
        (MANY + b"x 1 2\n" + ROWS, "row-width", 5000),
        (MANY + b"x y 1 2\n" + ROWS, "not-a-numeral", 5000),
        (ROWS + b"x nan 1 2\n" + b"x y 1 2\n" + MANY, "non-finite", 3),
        (ROWS + b"x 1 2 3\n" + b"\xff 1 1 2\n" + MANY, "invalid-utf8", 4),
        (b"9 3\n" + ROWS, "header-too-few-rows", 3),
        (b"2 3\n" + ROWS, "header-too-many-rows", 3),
    ],
)
def test_rows_in_front_of_a_fault_are_yielded(rows: bytes, code: str, before: int, kernel: str, block: str) -> None:
    seen: list[str] = []
    with pytest.raises(Vec2embError) as caught:
        seen.extend(token for token, _ in vec2emb.iter_vectors(io.BytesIO(rows)))
    assert (caught.value.code, len(seen)) == (code, before)


def test_duplicates_while_iterating(kernel: str, block: str) -> None:
    rows = ROWS + b"the 1 2 3\nx 1 2 3\nof 1 2 3\n"
    pairs, found = collected(lambda: list(vec2emb.iter_vectors(io.BytesIO(rows))))
    assert [token for token, _ in pairs] == ["the", "of", "and", "x"]
    assert [(w.code, w.count, w.line) for w in found] == [("duplicate-tokens", 2, 4)]
    with pytest.raises(RowError, match="lines 1 and 4"):
        list(vec2emb.iter_vectors(io.BytesIO(rows), duplicates="error"))
    with pytest.raises(UsageError, match="not known in one pass"):
        vec2emb.iter_vectors(io.BytesIO(rows), duplicates="last")


def test_warnings_come_at_the_end() -> None:
    rows = vec2emb.iter_vectors(io.BytesIO(ROWS + b"\nx 1 2 3"))
    assert [next(rows)[0] for _ in range(4)] == ["the", "of", "and", "x"]
    with pytest.warns(vec2emb.Vec2embWarning) as caught:
        assert next(rows, None) is None
    assert [getattr(w.message, "code", None) for w in caught] == ["blank-line", "missing-last-lf"]
    strict = vec2emb.iter_vectors(io.BytesIO(ROWS + b"x 1 2 3"), strict=True)
    assert [next(strict)[0] for _ in range(4)] == ["the", "of", "and", "x"]
    with pytest.raises(Vec2embError, match="no line feed"):
        next(strict)


def test_leaving_early_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(MANY)
    before = len(os.listdir("/proc/self/fd"))
    rows = vec2emb.iter_vectors(path)
    assert next(rows)[0] == "w0"
    assert len(os.listdir("/proc/self/fd")) == before + 1
    rows.close()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) == before


def test_iterating_holds_no_more_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens are remembered, for the duplicates; the vectors are not."""
    monkeypatch.setenv("VEC2EMB_BLOCK_BYTES", "65536")
    data = b"".join(b"w%d%s\n" % (i, b" 0.5" * 300) for i in range(5000))  # 6 MB
    source = io.BytesIO(data)
    rows = vec2emb.iter_vectors(source)
    next(rows)
    tracemalloc.start()
    try:
        assert sum(1 for _ in rows) == 4999
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


# Progress, interrupts, files that change.


def test_progress(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(MANY)
    calls: list[tuple[int, int | None]] = []
    vec2emb.read_vectors(path, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (len(MANY), len(MANY))
    assert calls == sorted(calls)
    calls.clear()
    vec2emb.read_vectors(io.BytesIO(MANY), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == len(MANY)
    assert {total for _, total in calls} == {None}


class _StopError(Exception):
    pass


def _raising(error: BaseException) -> Callable[[int, int | None], None]:
    def progress(done: int, total: int | None) -> None:
        raise error

    return progress


@pytest.mark.parametrize("error", [_StopError(), KeyboardInterrupt()])
def test_an_error_in_progress_ends_the_call(error: BaseException, threads: int, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(MANY)
    before = threading.active_count()
    with pytest.raises(type(error)):
        vec2emb.read_vectors(path, progress=_raising(error), threads=threads)
    with pytest.raises(type(error)):
        vec2emb.convert(path, tmp_path / "out", progress=_raising(error), threads=threads)
    assert threading.active_count() == before
    assert os.listdir(tmp_path) == ["v.txt"]


class _Broken(io.BytesIO):
    """A disk that fails after a while."""

    def readinto(self, buffer: Any) -> int:
        if self.tell() >= 30_000:
            raise OSError(5, "Input/output error")
        return super().readinto(memoryview(buffer)[:10_000])


def test_a_read_that_fails(kernel: str, block: str, threads: int) -> None:
    with pytest.raises(SourceError, match=r"reading failed \(Input/output error\)") as caught:
        vec2emb.read_vectors(_Broken(MANY), threads=threads)
    assert (caught.value.code, caught.value.path) == ("read-failed", "<stream>")
    assert len(vec2emb.read_vectors(_Broken(MANY), limit=500, threads=threads)) == 500
    with pytest.raises(RowError, match="line 101"):
        vec2emb.read_vectors(_Broken(MANY[: MANY.index(b"w100 ")] + b"x y z w\n" + MANY), threads=threads)


class _Bug(io.BytesIO):
    def readinto(self, buffer: Any) -> int:
        if self.tell():
            raise RuntimeError("a mistake in the caller's file")
        return super().readinto(buffer)


def test_a_mistake_in_the_callers_file_is_not_hidden(threads: int) -> None:
    with pytest.raises(RuntimeError, match="a mistake"):
        vec2emb.read_vectors(_Bug(MANY * 20), threads=threads)


@pytest.mark.parametrize("change", ["append", "truncate", "rewritten-with-its-old-time"])
def test_a_file_that_changes_while_it_is_read(change: str, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(MANY)
    rows = vec2emb.iter_vectors(path)
    next(rows)
    status = path.stat()
    with open(path, "r+b") as file:
        if change == "append":
            file.seek(0, os.SEEK_END)
            file.write(b"x 1 2 3\n")
        elif change == "truncate":
            file.truncate(len(MANY) - len(b"w4999 4999 0.5 -1\n"))
        else:
            file.seek(-2, os.SEEK_END)
            file.write(b"2")
    if change == "rewritten-with-its-old-time":
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(SourceError, match="changed while it was read") as caught:
        list(rows)
    assert caught.value.code == "source-changed"
