"""`Rows`: what scanning found in one block of bytes, and what selection made of it."""

from __future__ import annotations

from collections.abc import Sequence

from ..codes import Fault, Note, State


class Rows:
    """The rows of one block, one entry a row in every column; cleared and reused block after block.

    All offsets count bytes from the start of the block, lines count from 0 within it. The block itself
    is not held: whoever asks for bytes passes it again.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything; scanning does this first."""
        self.start: list[int] = []  # first byte of the row
        self.end: list[int] = []  # one past its last byte that belongs to a field
        self.token_start: list[int] = []
        self.token_end: list[int] = []
        self.values: list[int] = []  # first byte of the first value
        self.line: list[int] = []
        self.fault: list[int] = []
        self.detail: list[tuple[int, int]] = []  # the bytes that are at fault
        self.note: list[int] = []
        self.id: list[int] = []
        self.state: list[int] = []
        self.kept: list[int] = []  # rows whose vectors are wanted, in file order
        self.lines = 0  # lines in the block, blank ones included
        self.blank_inside = 0  # blank lines with a row after them in this block
        self.blank_after = 0  # blank lines after the last row
        self.first_blank = -1  # line of the first blank one
        self._replaced: list[bytes] | None = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.start)

    def truncate(self, count: int) -> None:
        """Forget the rows from `count` on, and the blank lines after them."""
        if count >= self.count:
            return
        self.lines = self.line[count]
        blank = self.lines - count
        last = self.line[count - 1] + 1 if count else 0
        self.blank_after = self.lines - last
        self.blank_inside = blank - self.blank_after
        if blank == 0:
            self.first_blank = -1
        for column in (
            self.start, self.end, self.token_start, self.token_end, self.values, self.line,
            self.fault, self.detail, self.note, self.id, self.state,
        ):  # fmt: skip
            del column[count:]
        if self._replaced is not None:
            del self._replaced[count:]
        self.kept = [row for row in self.kept if row < count]

    def place(self, row: int) -> tuple[int, int, int]:
        """(line, first byte, one past the last byte) of a row."""
        return self.line[row], self.start[row], self.end[row]

    def fault_of(self, row: int) -> tuple[int, int, int]:
        """(Fault, first byte, one past the last byte) of what is wrong with a row."""
        return self.fault[row], *self.detail[row]

    def id_of(self, row: int) -> int:
        """The id that a row's token has, or -1."""
        return self.id[row]

    def kept_row(self, position: int) -> int:
        """The row that stands at a position of the kept ones."""
        return self.kept[position]

    def first_fault(self) -> int:
        """The first row with a fault, or -1."""
        return next((i for i, fault in enumerate(self.fault) if fault), -1)

    def token(self, data: bytes | bytearray | memoryview, row: int) -> bytes:
        """The token of one row."""
        if self._replaced is not None:
            return self._replaced[row]
        return bytes(data[self.token_start[row] : self.token_end[row]])

    def tokens(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """The tokens of all rows."""
        return [self.token(data, row) for row in range(self.count)]

    def set_tokens(self, tokens: Sequence[bytes]) -> None:
        """Put other tokens (recoded, lower-cased) in the place of the file's, one a row."""
        if len(tokens) != self.count:
            raise ValueError(f"{len(tokens)} tokens for {self.count} rows")
        self._replaced = list(tokens)

    def tally(self, note: int, kept_only: bool = False) -> tuple[int, int]:
        """(how many rows carry a note, the first of them or -1)."""
        among = self.kept if kept_only else range(self.count)
        noted = [row for row in among if self.note[row] & note]
        return len(noted), noted[0] if noted else -1

    def tally_state(self, state: int) -> tuple[int, int]:
        """(how many rows are in a state, the first of them or -1)."""
        found = [row for row, its in enumerate(self.state) if its == state]
        return len(found), found[0] if found else -1

    def rows_in_state(self, state: int) -> list[int]:
        """All rows in a state."""
        return [row for row, its in enumerate(self.state) if its == state]

    def below(self, limit: int) -> list[tuple[int, int]]:
        """(row, id) of the rows in state NEW or SEEN whose id is smaller than `limit`."""
        return [
            (row, id)
            for row, id in enumerate(self.id)
            if 0 <= id < limit and self.state[row] in (State.NEW, State.SEEN)
        ]

    def keep(self, seen_too: bool) -> int:
        """List the rows whose vectors are wanted: NEW, and with `seen_too` also SEEN; how many there are."""
        wanted = (State.NEW, State.SEEN) if seen_too else (State.NEW,)
        self.kept = [row for row in range(self.count) if self.state[row] in wanted]
        return len(self.kept)

    def keep_these(self, rows: Sequence[int]) -> int:
        """List the rows whose vectors are wanted, by hand, in rising order; how many there are.

        Raises:
            ValueError: there is no such row, or the order does not rise.
        """
        wanted = list(rows)
        if any(a >= b for a, b in zip([-1, *wanted], [*wanted, self.count], strict=False)):
            raise ValueError("rows to keep must be there, each after the one before")
        self.kept = wanted
        return len(wanted)

    def blame(self, row: int, fault: int) -> None:
        """Give a row without a fault one that was found outside the kernel; the token is the bytes at fault."""
        if not self.fault[row]:
            self._blame(row, Fault(fault), self.token_start[row], self.token_end[row])

    def remark(self, row: int, note: int) -> None:
        """Add a note to a row."""
        self._remark(row, Note(note))

    def drop(self, row: int) -> None:
        """Take one row out of the kept ones."""
        self.kept.remove(row)

    def runs(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Cut kept[start:stop] into runs of consecutive ids: (position in kept, first id, length)."""
        runs: list[tuple[int, int, int]] = []
        for position in range(start, stop):
            id = self.id[self.kept[position]]
            if runs and runs[-1][1] + runs[-1][2] == id:
                first, first_id, length = runs[-1]
                runs[-1] = (first, first_id, length + 1)
            else:
                runs.append((position, id, 1))
        return runs

    def scatter(
        self, start: int, stop: int, vectors: bytes | bytearray | memoryview, table: bytearray | memoryview, dim: int
    ) -> None:
        """Copy the vectors of kept[start:stop], which lie one after the other, each to the place of its id in a table.

        Args:
            vectors: float32[stop - start, dim].
            table: float32[n, dim].

        Raises:
            ValueError: `dim` is below 1, or the vectors are not there.
            IndexError: the table has no row of such an id.
        """
        width = 4 * dim
        if dim < 1:
            raise ValueError(f"dim must be at least 1, not {dim}")
        if not 0 <= start <= stop <= len(self.kept) or memoryview(vectors).nbytes < (stop - start) * width:
            raise ValueError("the rows asked for do not fit")
        source, target = memoryview(vectors).cast("B"), memoryview(table).cast("B")
        for position in range(start, stop):
            id = self.id[self.kept[position]]
            if not 0 <= id < len(target) // width:
                raise IndexError(f"the table has no row {id}")
            at = (position - start) * width
            target[id * width : (id + 1) * width] = source[at : at + width]

    # What the scanners use.

    def _add(self, line: int, start: int, end: int, token: tuple[int, int], values: int) -> int:
        self.line.append(line)
        self.start.append(start)
        self.end.append(end)
        self.token_start.append(token[0])
        self.token_end.append(token[1])
        self.values.append(values)
        self.fault.append(Fault.NONE)
        self.detail.append((0, 0))
        self.note.append(0)
        self.id.append(-1)
        self.state.append(State.UNDECIDED)
        return self.count - 1

    def _blame(self, row: int, fault: Fault, start: int, end: int) -> None:
        self.fault[row] = fault
        self.detail[row] = (start, end)

    def _remark(self, row: int, note: Note) -> None:
        self.note[row] |= note
