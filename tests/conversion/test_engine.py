"""Blocks beside each other, as if one after the other: order, faults, limits, and no thread left behind."""

from __future__ import annotations

import io
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import vec2emb
from vec2emb.conversion.engine import Counts, Engine
from vec2emb.conversion.parsed_rows import ParsedRows, Sink
from vec2emb.conversion.reading_pass import ReadOptions, open_pass
from vec2emb.conversion.selection import Rules, Selection
from vec2emb.errors import InputError, RowError
from vec2emb.options.threads import MAX_WORKERS

pytestmark = pytest.mark.filterwarnings("ignore::vec2emb.Vec2embWarning")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows a block, so that there are many."""
    monkeypatch.setenv("VEC2EMB_BLOCK_BYTES", "64")


def text(count: int, bad: dict[int, str] | None = None) -> bytes:
    """Rows `w0 0 0`, `w1 1 -1` ..; those of some lines (from 1) are replaced."""
    rows = [f"w{i} {i} {-i}" for i in range(count)]
    for line, row in (bad or {}).items():
        rows[line - 1] = row
    return ("\n".join(rows) + "\n").encode("utf-8", "surrogateescape")


def run(
    data: bytes | Any, sink: Sink, workers: int = 3, progress: Any = None, duplicates: str = "first", **options: Any
) -> tuple[Counts, Selection, Engine]:
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    with open_pass(source, ReadOptions(**{"format": "glove", "dim": 2, **options})) as opened:
        selection = Selection([], rules=Rules(duplicates))
        engine = opened.engine(selection, sink, workers)
        return engine.run(lambda: (opened.source.consumed, opened.source.size), progress), selection, engine


class Table:
    """A sink that takes its time, differently for each block."""

    def __init__(self, delay: Callable[[], float] = lambda: 0) -> None:
        self.rows: dict[int, tuple[float, ...]] = {}
        self._delay = delay

    def __call__(self, parsed: ParsedRows) -> None:
        for id, rows in parsed.runs():
            values = np.frombuffer(bytes(rows), np.float32).reshape(-1, 2)
            time.sleep(self._delay())
            for i, row in enumerate(values.tolist()):
                self.rows[id + i] = tuple(row)


def jitter(seed: int) -> Callable[[], float]:
    rng = random.Random(seed)
    return lambda: rng.random() * 0.003


@pytest.mark.parametrize("workers", [1, 2, 3, 16])
def test_every_row_reaches_its_place(workers: int) -> None:
    table = Table(jitter(workers))
    counts, selection, _ = run(text(200), table, workers)
    assert table.rows == {i: (i, -i) for i in range(200)}
    assert [selection.index.token(i) for i in range(200)] == [b"w%d" % i for i in range(200)]
    assert (counts.rows, counts.lines, counts.last_token, counts.limited) == (200, 200, b"w199", False)


@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_the_row_that_wins_does_not_depend_on_who_is_faster(duplicates: str, workers: int) -> None:
    rng = random.Random(1)
    words = [rng.choice("abcdefgh") for _ in range(150)]
    data = "".join(f"{word} {i} {-i}\n" for i, word in enumerate(words)).encode()
    order = list(dict.fromkeys(words))
    expected = {}
    for i, word in enumerate(words):
        if duplicates == "last" or order.index(word) not in expected:
            expected[order.index(word)] = (i, -i)
    for seed in range(5):
        table = Table(jitter(seed))
        _, selection, _ = run(data, table, workers, duplicates=duplicates)
        assert table.rows == expected
        assert selection.duplicates == 150 - len(order)
        first_again = next(i for i, word in enumerate(words) if word in words[:i])
        assert selection.first_duplicate == (first_again + 1, words[first_again].encode())


FAULTS = {"width": "w 1", "numeral": "w 1 x", "range": "w 1 1e39", "utf8": "\udcff 1 2", "token": " 1 2"}


@pytest.mark.parametrize("first", FAULTS)
@pytest.mark.parametrize("second", FAULTS)
def test_the_first_fault_of_the_file_is_the_one_that_is_raised(first: str, second: str) -> None:
    """Whatever kind it is, and though the later one is found sooner."""
    data = text(100, {40: FAULTS[first], 80: FAULTS[second]})
    for seed, workers in enumerate((1, 3, 16)):
        with pytest.raises(RowError) as caught:
            run(data, Table(jitter(seed)), workers)
        assert caught.value.line == 40


@pytest.mark.parametrize("workers", [1, 3, 16])
def test_values_that_are_not_finite_are_counted_up_to_the_next_fault(workers: int) -> None:
    odd = {20: "a nan 1", 21: "b 1 inf", 70: "c -inf nan"}
    with pytest.raises(RowError, match=r"\(3 rows with such values in all\)") as caught:
        run(text(100, odd), Table(), workers)
    assert (caught.value.code, caught.value.line) == ("non-finite", 20)
    with pytest.raises(RowError, match=r"\(2 rows with such values before another fault\)") as caught:
        run(text(100, {**odd, 50: "w 1"}), Table(), workers)
    assert caught.value.line == 20
    with pytest.raises(RowError) as caught:
        run(text(100, {**odd, 10: "w 1"}), Table(), workers)
    assert (caught.value.code, caught.value.line) == ("row-width", 10)
    table = Table()
    counts, _, _ = run(text(100, odd), table, workers, nonfinite="zero")
    assert (counts.nonfinite.count, counts.nonfinite.line) == (3, 20)
    assert [table.rows[i] for i in (19, 20, 69)] == [(0, 1), (1, 0), (0, 0)]


@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize("fault", FAULTS)
def test_rows_beyond_the_limit_are_not_looked_at(fault: str, workers: int) -> None:
    data = text(50) + text(1, {1: FAULTS[fault]}) + text(50)
    table = Table(jitter(0))
    counts, _, _ = run(data, table, workers, limit=50)
    assert counts.limited
    assert table.rows == {i: (i, -i) for i in range(50)}
    with pytest.raises(RowError) as caught:
        run(data, Table(), workers, limit=51)
    assert caught.value.line == 51


def test_a_limit_ends_reading_soon() -> None:
    class Endless(io.RawIOBase):
        """Rows without end."""

        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            rows = b"".join(b"w%d 1 2\n" % (self.given + i) for i in range(4))[: len(buffer)]
            buffer[: len(rows)] = rows
            self.given += 4
            assert self.given < 200_000
            return len(rows)

    counts, _, _ = run(Endless(), Table(), limit=100)
    assert counts.rows == 100


@pytest.mark.parametrize("workers", [1, 3, 16])
def test_faulty_rows_are_skipped_and_counted(workers: int) -> None:
    bad = {10: "w 1", 11: "w 1 x", 90: "\udcff 1 2"}
    table = Table(jitter(2))
    counts, selection, _ = run(text(100, bad), table, workers, bad_rows="skip")
    assert (counts.rows, counts.skipped.count, counts.skipped.line) == (100, 3, 10)
    assert counts.first_skipped is not None
    assert counts.first_skipped.code == "row-width"
    kept = [i for i in range(100) if i + 1 not in bad]
    assert table.rows == {place: (i, -i) for place, i in enumerate(kept)}
    assert len(selection) == 97


def test_an_error_in_the_sink_is_raised_as_it_is() -> None:
    class BrokenError(Exception):
        pass

    def sink(parsed: ParsedRows) -> None:
        if any(id > 30 for id, _ in parsed.runs()):
            raise BrokenError

    with pytest.raises(BrokenError):
        run(text(200), sink, 16)
    with pytest.raises(BrokenError):  # though a fault of the file stands in front of it: our own come first
        run(text(200, {100: "w 1"}), sink, 3)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_progress_raises_ends_the_run(error: type[BaseException]) -> None:
    calls = []

    def progress(done: int, total: int | None) -> None:
        calls.append((done, total))
        raise error

    with pytest.raises(error):
        run(text(2000), Table(lambda: 0.001), 3, progress)
    assert len(calls) == 1


def test_progress_rises_to_the_size_of_the_file(tmp_path: Any) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(text(500))
    seen: list[tuple[int, int | None]] = []
    run(path, Table(), 2, lambda *both: seen.append(both))
    assert seen == sorted(seen)
    assert seen[-1] == (path.stat().st_size,) * 2


def test_no_more_threads_than_are_allowed_and_none_left_if_the_system_has_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = set()
    run(text(300), lambda *_: seen.add(threading.current_thread().name), 1000)
    assert seen <= {f"vec2emb-{i}" for i in range(MAX_WORKERS)}
    start = threading.Thread.start

    def refuse(self: threading.Thread) -> None:
        if self.name == "vec2emb-2":
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start"):
        run(text(300), Table(lambda: 0.001), 4)


def test_a_source_that_fails_in_the_middle_after_the_faults_in_front_of_it() -> None:
    class Failing(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            count = super().readinto(buffer)
            if not count:
                raise OSError(5, "Input/output error")
            return count

    with pytest.raises(InputError, match="Input/output error") as caught:
        run(Failing(text(100)), Table(), 3)
    assert caught.value.code == "read-failed"
    with pytest.raises(RowError) as row_error:
        run(Failing(text(100, {99: "w 1"})), Table(), 3)
    assert row_error.value.line == 99


def test_one_by_one_the_rows_in_front_of_a_fault_come_first() -> None:
    for fault, bad in FAULTS.items():
        rows = vec2emb.iter_vectors(io.BytesIO(text(60, {33: bad})), format="glove", dim=2)
        got = [(token, vector.tolist()) for token, vector in itertools.islice(rows, 32)]
        assert got == [(f"w{i}", [i, -i]) for i in range(32)]
        with pytest.raises(InputError) as caught:
            next(rows)
        assert caught.value.line == 33, fault


def test_one_by_one_may_be_left_in_the_middle() -> None:
    rows = vec2emb.iter_vectors(io.BytesIO(text(100)), format="glove", dim=2)
    first, second = next(rows), next(rows)
    assert (first[0], second[0]) == ("w0", "w1")
    first[1][:] = 7  # one's own
    assert next(rows)[1].tolist() == [2, -2]
    rows.close()  # type: ignore[attr-defined]
    assert list(rows) == []
