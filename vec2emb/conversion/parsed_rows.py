"""`ParsedRows`: how rows leave the engine, and the simplest of those that take them."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .._kernel import Rows


class ParsedRows(NamedTuple):
    """Rows of a block whose vectors were parsed; valid only during the call that passes them.

    Attributes:
        rows: the rows of the block, of which kept[start:stop] are meant.
        dim: D.
        vectors: float32[stop - start, D], perhaps with more behind.
    """

    rows: Rows
    start: int
    stop: int
    dim: int
    vectors: memoryview

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Runs of consecutive ids, in the order of the file: (position in `vectors`, first id, length)."""
        return ((position - self.start, id, count) for position, id, count in self.rows.runs(self.start, self.stop))

    def runs(self) -> Iterator[tuple[int, memoryview]]:
        """Runs of consecutive ids, in the order of the file: (first id, float32[length, D])."""
        return ((id, self.slice(at, count)) for at, id, count in self.places())

    def slice(self, at: int, count: int) -> memoryview:
        """float32[count, D]: vectors from a position on."""
        width = 4 * self.dim
        return self.vectors[at * width : (at + count) * width]

    def scatter(self, table: bytearray) -> None:
        """Copy each vector to the row of its id in a table, float32[n, D]."""
        self.rows.scatter(self.start, self.stop, self.vectors, table, self.dim)


Sink = Callable[[ParsedRows], None]  # called by several threads at once, in any order of the blocks


class Collector:
    """Keeps copies of all rows.

    Attributes:
        runs: (first id, float32 rows of consecutive ids).
    """

    def __init__(self) -> None:
        self.runs: list[tuple[int, bytes]] = []  # appending is safe between threads

    def take(self, parsed: ParsedRows) -> None:
        """Copy rows."""
        for id, rows in parsed.runs():
            self.runs.append((id, bytes(rows)))


def discard(parsed: ParsedRows) -> None:
    """Take rows and do nothing with them."""
