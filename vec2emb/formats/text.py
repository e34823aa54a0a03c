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

from .._kernel import Block, Policy, scan_text
from ..errors import RowError
from ..io.sources import Source
from .blocks import LineBlocks
from .described import Detected, ReadAs
from .faults import row_error
from .reader import RowReader

ROW_LIMIT = 8 << 20  # bytes; a row of text longer than this is no row
PAD = 64  # bytes kept free behind a block, so that the kernel may load past a number


class TextRows(RowReader):
    """Rows of text."""

    def __init__(
        self, source: Source, detected: Detected, read_as: ReadAs, policy: Policy, block_bytes: int, dtype: str
    ) -> None:
        super().__init__(source.label, detected.dim, read_as, policy, dtype)
        self._dim_from = detected.dim_from
        self._blocks = LineBlocks(source, min(block_bytes, ROW_LIMIT), ROW_LIMIT, detected.skip)

    def read(self, block: Block) -> bool:
        block.offset = self._blocks.offset
        block.size = self._blocks.fill(block.buffer, PAD)
        self.missing_lf = self._blocks.missing_lf
        return block.size > 0

    def cancel(self) -> None:
        self._blocks.source.cancel()

    def scan(self, block: Block) -> None:
        scan_text(block, self.policy)
        super().scan(block)

    def error(self, block: Block, row: int) -> RowError:
        _, start, end = block.rows.place(row)
        fault, first, last = block.rows.fault_of(row)
        return row_error(
            fault,
            bytes(block.buffer[start:end]),
            bytes(block.buffer[first:last]),
            dim=self.dim,
            path=self._label,
            line=block.line(row),
            offset=block.offset + first,
            dtype=self._dtype,
            dim_from=self._dim_from,
            encoding=self._encoding,
        )
