"""Rows of a matrix on their way through the engine, in the manner of `formats.TextRows`."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._kernel import Rows, check_binary, fill_binary, scan_tokens
from ..._kernel.codes import Fault
from ...bundle.reader import largest
from ...errors import InputError, RowError, shown
from .. import ReadAs
from ..blocks import grow
from ..faults import CODES
from ..recoding import Recoder
from .source import MatrixSource, width_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_END = struct.Struct("<qq")  # the last bytes of a buffer: the block's first row, and where its vectors stand in it
_SKIP = "--bad-rows skip leaves such rows out"


class MatrixRows:
    """Cuts a source into blocks of words and gives the vectors of those that are kept.

    A block holds its words, each ended by LF; only where vectors come in order together with the words, these as well.
    """

    missing_lf = False

    def __init__(self, source: MatrixSource, read_as: ReadAs, block_bytes: int, dtype: str) -> None:
        self.dim = source.dim
        self._source = source
        self._dtype = dtype
        self._encoding = read_as.encoding
        self._recoder = Recoder(read_as.encoding, read_as.encoding_errors)
        self._step = max(1, block_bytes // max(4 * source.dim, source.word_bytes))
        self._next = 0  # row of the matrix
        self._broken: set[int] = set()  # rows whose word holds LF

    def read(self, buffer: bytearray, rows: Rows) -> tuple[int, int]:
        """(size of the next block of words, its first row); size 0 is the end."""
        source, first = self._source, self._next
        count = min(self._step, source.rows - first)
        if count < 1:
            return 0, first
        block = self._lines(source.words(count), first)
        size = vectors_at = len(block)
        if source.in_order:
            vectors, _, _ = _plain(source.block(first, count, range(count), ()))
            block += vectors.astype(vectors.dtype.newbyteorder("="), copy=False).tobytes()
        needed = len(block) + _END.size
        grow(buffer, needed)
        buffer[: len(block)] = block
        _END.pack_into(buffer, len(buffer) - _END.size, first, vectors_at)
        self._next += count
        source.consumed = source.size * self._next // source.rows
        return size, first

    def _lines(self, words: list[bytes], first: int) -> bytes:
        """The words, each ended by LF; one that holds LF becomes an empty line, which is a fault."""
        block = b"\n".join(words) + b"\n"
        if block.count(b"\n") != len(words):
            broken = {row for row, word in enumerate(words) if b"\n" in word}
            self._broken.update(first + row for row in broken)
            block = b"\n".join(b"" if row in broken else word for row, word in enumerate(words)) + b"\n"
        return block

    def cancel(self) -> None:
        """Nothing here waits for anybody."""

    def scan(self, buffer: bytearray, size: int, rows: Rows) -> None:
        """Find the words of a block."""
        scan_tokens(buffer, size, self.dim, self._source.value_bytes, rows, not self._recoder.needed)
        if self._recoder.needed:
            self._recoder.recode(buffer, rows)

    def hard_fault(self, rows: Rows) -> int:
        """The first row whose fault cannot be skipped: there is none, -1."""
        return -1

    def check(self, buffer: bytearray, rows: Rows, nonfinite: int, unit_norm: bool, limit: float) -> None:
        """Find the faults in the numbers of all rows."""
        if not rows.count:
            return
        vectors, width, big_endian = self._vectors(buffer, rows, range(rows.count))
        check_binary(vectors, rows, self.dim, width, big_endian, nonfinite, unit_norm, limit)

    def fill(
        self,
        buffer: bytearray,
        rows: Rows,
        start: int,
        stop: int,
        out: bytearray,
        nonfinite: int,
        unit_norm: bool,
        limit: float,
    ) -> int:
        """Copy the vectors of kept rows start .. stop-1 into `out`; the first with a hard fault, or -1."""
        vectors, width, big_endian = self._vectors(buffer, rows, _kept(rows, start, stop))
        return fill_binary(
            vectors, rows, start, stop, out, self.dim, width, big_endian, nonfinite, unit_norm, limit
        )  # fmt: skip

    def _vectors(self, buffer: bytearray, rows: Rows, wanted: Sequence[int]) -> tuple[Any, int, bool]:
        """Rows of a block as the kernel takes them, up to the last that is wanted; bytes a value, byte order."""
        source = self._source
        first, at = _END.unpack_from(buffer, len(buffer) - _END.size)
        count = wanted[-1] + 1
        if source.in_order:
            size = count * self.dim * source.value_bytes
            return memoryview(buffer)[at : at + size], source.value_bytes, sys.byteorder == "big"
        words = [bytes(buffer[start:stop]) for _, start, stop in map(rows.place, wanted)] if source.has_subwords else ()
        return _plain(source.block(first, count, wanted, words))

    def compose(self, words: list[str], nonfinite: int, unit_norm: bool, limit: float) -> tuple[bytearray, int]:
        """float32 rows of words that the source does not have, and how many of these have no subwords.

        The policies of the source's own rows go for them, too.

        Raises:
            InputError: a word cannot be written in the encoding of the source, or its row has odd values.
        """
        made, lacking = self._source.compose([self._in_encoding(word) for word in words])
        lines = b"".join(b"%d\n" % row for row in range(len(words)))  # as good as any words
        rows, out = Rows(), bytearray(4 * self.dim * len(words))
        scan_tokens(lines, len(lines), self.dim, 4, rows)
        rows.keep_these(range(len(words)))
        vectors, width, big_endian = _plain(made)
        fill_binary(vectors.data, rows, 0, len(words), out, self.dim, width, big_endian, nonfinite, unit_norm, limit)
        faulty = rows.first_fault()
        if faulty >= 0:
            fault = rows.fault_of(faulty)[0]
            raise RowError(
                CODES[Fault(fault)],
                f"the row of {shown(words[faulty])}, composed of its subwords, does not fit {self._dtype} or is not "
                "finite",
                path=self._source.label,
                hint="--missing with another policy makes another row",
            )
        return out, len(lacking)

    def _in_encoding(self, word: str) -> bytes:
        try:
            return word.encode(self._encoding)
        except UnicodeEncodeError:
            raise InputError(
                "word-not-in-encoding", f"{shown(word)} cannot be written in {self._encoding}, so it has no subwords",
                path=self._source.label, hint="take the word out of the list",
            ) from None  # fmt: skip

    def error(self, buffer: bytearray, rows: Rows, row: int, base: int, offset: int) -> InputError:
        """What is wrong with a row; `base` is the number of the block's first, counted from 1."""
        fault, start, stop = rows.fault_of(row)
        found, hint = None, _SKIP
        if fault == Fault.EMPTY_TOKEN and offset + row in self._broken:
            return RowError(
                "line-feed-in-word", "the word holds a line feed, and vocab.txt has a line a word",
                path=self._source.label, record=base + row, hint=_SKIP,
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
            what, found = (
                f"a value does not fit {self._dtype}",
                self._odd_value(buffer, rows, row, largest(self._dtype)),
            )
        else:
            what, found = "a value is not finite", self._odd_value(buffer, rows, row, None)
            hint = f"--nonfinite keep takes them as they are, --nonfinite zero writes 0; {_SKIP}"
        return RowError(
            CODES[Fault(fault)], what, path=self._source.label, record=base + row, found=found, hint=hint,
            expected="finite numbers" if fault == Fault.NONFINITE_VALUE else None,
        )  # fmt: skip

    def _odd_value(self, buffer: bytearray, rows: Rows, row: int, limit: float | None) -> str | None:
        """The first value of a row that is beyond a limit or, without one, not finite; None if scaling made it so."""
        import numpy as np

        vectors, width, big_endian = self._vectors(buffer, rows, [row])
        kind = np.dtype(f"{'>' if big_endian else '<'}f{width}")
        values = np.frombuffer(vectors, kind).reshape(-1, self.dim)[row].astype(np.float64)
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


def _plain(array: NDArray[Any]) -> tuple[NDArray[Any], int, bool]:
    """An array as the kernel takes it: contiguous floats; bytes a value, and whether the higher bytes come first."""
    import numpy as np

    width = width_of(array.dtype)
    if array.dtype.kind != "f" or array.dtype.itemsize != width:
        array = array.astype(f"f{width}")
    big_endian = array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big")
    return np.ascontiguousarray(array), width, big_endian
