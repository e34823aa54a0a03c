"""Reading rows of text: GloVe, Word2Vec text and fastText `.vec`.

Grammar, in bytes (`_kernel/reference/text.py` is the full specification):

    file    = [BOM] [header] row*
    header  = count SEP+ dim SEP* [CR] LF             Word2Vec and fastText; GloVe has none
    row     = token SEP+ value (SEP+ value)* SEP* [CR] LF
    SEP     = space | tab
    value   = a C decimal numeral | nan | inf

What rows of text cannot carry: a token that is empty, ends in a space or tab without being white space
throughout, or holds LF. A token of nothing but spaces and tabs can be carried.
"""

from __future__ import annotations

from .._kernel import Rows, check_text, fill_text, scan_text
from ..errors import RowError
from ..io.sources import Source
from .blocks import LineBlocks
from .described import Detected, ReadAs
from .faults import row_error
from .recoding import Recoder

ROW_LIMIT = 8 << 20  # bytes; a row of text longer than this is no row
PAD = 64  # bytes kept free behind a block, so that the kernel may load past a number


class TextRows:
    """Cuts a source into blocks of rows and reads them; one object serves all workers of a conversion.

    `read` is called under a lock, in order; everything else takes the block's own data.
    """

    def __init__(self, source: Source, detected: Detected, read_as: ReadAs, block_bytes: int, dtype: str) -> None:
        self.dim = detected.dim
        self._label = source.label
        self._dtype = dtype
        self._dim_from = detected.dim_from
        self._encoding = read_as.encoding
        self._recoder = Recoder(read_as.encoding, read_as.encoding_errors)
        self._blocks = LineBlocks(source, min(block_bytes, ROW_LIMIT), ROW_LIMIT, detected.skip)

    @property
    def missing_lf(self) -> bool:
        """Whether the last row lacked its LF."""
        return self._blocks.missing_lf

    def read(self, buffer: bytearray, rows: Rows) -> tuple[int, int]:
        """(size of the next block, byte of the source at which it starts); size 0 is the end."""
        offset = self._blocks.offset
        return self._blocks.fill(buffer, PAD), offset

    def cancel(self) -> None:
        """End a `read` that waits for a slow source; there is nothing to read after this."""
        self._blocks.source.cancel()

    def scan(self, buffer: bytearray, size: int, rows: Rows) -> None:
        """Find the rows of a block."""
        recoder = self._recoder
        scan_text(buffer, size, self.dim, rows, not recoder.needed)
        if recoder.needed:
            recoder.recode(buffer, rows)

    def hard_fault(self, rows: Rows) -> int:
        """The first row whose fault cannot be skipped: in text there is none, -1."""
        return -1

    def check(self, buffer: bytearray, rows: Rows, nonfinite: int, unit_norm: bool, limit: float) -> None:
        """Find the faults in the numbers of all rows."""
        check_text(buffer, rows, self.dim, nonfinite, unit_norm, limit)

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
        """Parse kept rows start .. stop-1 into `out`; the first with a hard fault, or -1."""
        return fill_text(buffer, rows, start, stop, out, self.dim, nonfinite, unit_norm, limit)

    def error(self, buffer: bytearray, rows: Rows, row: int, base: int, offset: int) -> RowError:
        """What is wrong with a row; `base` is the number of the block's first line, `offset` its first byte."""
        line, start, end = rows.place(row)
        fault, first, last = rows.fault_of(row)
        return row_error(
            fault,
            bytes(buffer[start:end]),
            bytes(buffer[first:last]),
            dim=self.dim,
            path=self._label,
            line=base + line,
            offset=offset + first,
            dtype=self._dtype,
            dim_from=self._dim_from,
            encoding=self._encoding,
        )
