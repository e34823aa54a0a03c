"""Rows of a matrix on their way through the engine."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..._kernel import Block, Policy, Rows, fill, scan_tokens
from ..._kernel.codes import Fault
from ...errors import InputError, RowError, shown
from .. import ReadAs
from ..blocks import grow
from ..faults import CODES
from ..reader import RowReader
from .source import MatrixSource, width_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SKIP = "--bad-rows skip leaves such rows out"


class MatrixRows(RowReader):
    """Cuts a source into blocks of words, each ended by LF, and gives the vectors of those that are kept.

    The offset of a block is its first row. Vectors that come in order, together with the words, are read with them.
    """

    def __init__(self, source: MatrixSource, read_as: ReadAs, policy: Policy, block_bytes: int, dtype: str) -> None:
        super().__init__(source.label, source.dim, read_as, policy, dtype, width=source.value_bytes)
        self._source = source
        self._step = max(1, block_bytes // max(4 * source.dim, source.word_bytes))
        self._next = 0  # row of the matrix
        self._broken: set[int] = set()  # rows whose word holds LF

    def read(self, block: Block) -> bool:
        source, first = self._source, self._next
        count = min(self._step, source.rows - first)
        if count < 1:
            return False
        lines = self._lines(source.words(count), first)
        grow(block.buffer, len(lines))
        block.buffer[: len(lines)] = lines
        block.size, block.offset = len(lines), first
        if source.in_order:
            block.set_vectors(None)  # before there are others
            block.set_vectors(*_plain(source.block(first, count, range(count), ())))
        self._next += count
        source.consumed = source.size * self._next // source.rows
        return True

    def _lines(self, words: list[bytes], first: int) -> bytes:
        """The words, each ended by LF; one that holds LF becomes an empty line, which is a fault."""
        block = b"\n".join(words) + b"\n"
        if block.count(b"\n") != len(words):
            broken = {row for row, word in enumerate(words) if b"\n" in word}
            self._broken.update(first + row for row in broken)
            block = b"\n".join(b"" if row in broken else word for row, word in enumerate(words)) + b"\n"
        return block

    def scan(self, block: Block) -> None:
        scan_tokens(block, self.policy)
        super().scan(block)

    def check(self, block: Block) -> None:
        if block.rows.count:
            with self._vectors(block, range(block.rows.count)):
                super().check(block)

    def fill(self, block: Block, start: int, stop: int, out: bytearray) -> int:
        with self._vectors(block, _kept(block.rows, start, stop)):
            return super().fill(block, start, stop, out)

    @contextlib.contextmanager
    def _vectors(self, block: Block, wanted: Sequence[int]) -> Iterator[None]:
        """Give a block the vectors of rows for a while, up to the last that is wanted."""
        source, rows = self._source, block.rows
        if source.in_order:
            yield
            return
        places = map(rows.place, wanted) if source.has_subwords else ()
        words = [bytes(block.buffer[start:stop]) for _, start, stop in places]
        block.set_vectors(*_plain(source.block(block.offset, wanted[-1] + 1, wanted, words)))
        try:
            yield
        finally:
            block.set_vectors(None)

    def compose(self, words: list[str]) -> tuple[bytearray, int]:
        """float32 rows of words that the source does not have, and how many of these have no subwords.

        The policies of the source's own rows go for them, too.

        Raises:
            InputError: a word cannot be written in the encoding of the source, or its row has odd values.
        """
        made, lacking = self._source.compose([self._in_encoding(word) for word in words])
        lines = b"".join(b"%d\n" % row for row in range(len(words)))  # as good as any words
        block, out = Block(self.dim, 4, buffer=lines), bytearray(4 * self.dim * len(words))
        scan_tokens(block, self.policy)
        block.set_vectors(*_plain(made))
        rows = block.rows
        rows.keep_these(range(len(words)))
        fill(block, 0, len(words), out, self.policy)
        faulty = rows.first_fault()
        if faulty >= 0:
            fault = rows.fault_of(faulty)[0]
            raise RowError(
                CODES[Fault(fault)],
                f"the row of {shown(words[faulty])}, composed of its subwords, does not fit {self._dtype} or is not "
                "finite",
                path=self._label,
                hint="--missing with another policy makes another row",
            )
        return out, len(lacking)

    def _in_encoding(self, word: str) -> bytes:
        try:
            return word.encode(self._encoding)
        except UnicodeEncodeError:
            raise InputError(
                "word-not-in-encoding", f"{shown(word)} cannot be written in {self._encoding}, so it has no subwords",
                path=self._label, hint="take the word out of the list",
            ) from None  # fmt: skip

    def error(self, block: Block, row: int) -> InputError:
        buffer, record = block.buffer, block.line(row)
        fault, start, stop = block.rows.fault_of(row)
        found, hint = None, _SKIP
        if fault == Fault.EMPTY_TOKEN and block.offset + row in self._broken:
            return RowError(
                "line-feed-in-word", "the word holds a line feed, and vocab.txt has a line a word",
                path=self._label, record=record, hint=_SKIP,
            )  # fmt: skip
        if fault == Fault.EMPTY_TOKEN:
            what = "the word is empty"
        elif fault == Fault.NUL_IN_TOKEN:
            what, found = "the word holds a NUL byte", shown(bytes(buffer[start:stop]))
        elif fault == Fault.INVALID_UTF8:
            word = bytes(buffer[start:stop][:40])
            what, found = f"the word is not {self._encoding.upper()}", f"the bytes {word.hex(' ')} ({shown(word)})"
            if not self._source.is_text:
                hint = f"--encoding NAME reads another encoding, --encoding-errors replace or escape takes it; {_SKIP}"
        elif fault == Fault.OUT_OF_RANGE:
            what, found = f"a value does not fit {self._dtype}", self._odd_value(block, row, self.policy.limit)
        else:
            what, found = "a value is not finite", self._odd_value(block, row, None)
            hint = f"--nonfinite keep takes them as they are, --nonfinite zero writes 0; {_SKIP}"
        return RowError(
            CODES[Fault(fault)], what, path=self._label, record=record, found=found, hint=hint,
            expected="finite numbers" if fault == Fault.NONFINITE_VALUE else None,
        )  # fmt: skip

    def _odd_value(self, block: Block, row: int, limit: float | None) -> str | None:
        """The first value of a row that is beyond a limit or, without one, not finite; None if scaling made it so."""
        import numpy as np

        with self._vectors(block, [row]):
            assert block.vectors is not None
            kind = np.dtype(f"{'>' if block.big_endian else '<'}f{block.width}")
            values = np.frombuffer(memoryview(block.vectors), kind).reshape(-1, self.dim)[row].astype(np.float64)
        finite = np.isfinite(values)
        odd = np.flatnonzero(~finite if limit is None else finite & (np.abs(values) > min(limit, _FLOAT32)))
        return f"{values[odd[0]]!s} in column {odd[0]}" if len(odd) else None


_FLOAT32 = 3.4028235677973366e38  # the smallest magnitude that rounds to infinity


def _kept(rows: Rows, start: int, stop: int) -> Sequence[int]:
    """The rows that stand at kept[start:stop]."""
    first, last = rows.kept_row(start), rows.kept_row(stop - 1)
    if last - first == stop - 1 - start:
        return range(first, last + 1)
    return [rows.kept_row(position) for position in range(start, stop)]


def _plain(array: NDArray[np.generic]) -> tuple[memoryview, bool]:
    """An array as the kernel takes it: contiguous floats, and whether the higher bytes come first."""
    import numpy as np

    width = width_of(array.dtype)
    if array.dtype.kind != "f" or array.dtype.itemsize != width:
        array = array.astype(f"f{width}")
    big_endian = array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big")
    return np.ascontiguousarray(array).data, big_endian
