"""Cutting a source into blocks, which end where a row does."""

from __future__ import annotations

from ..errors import SourceError
from ..io.sources import Source


class LineBlocks:
    """Cuts a source into blocks that end with LF.

    Attributes:
        offset: byte of the decompressed source at which the next block starts.
        missing_lf: whether the last line lacked its LF; one is put there.
    """

    def __init__(self, source: Source, block_size: int, row_limit: int, offset: int = 0) -> None:
        self.source = source
        self.offset = offset
        self.missing_lf = False
        self._block_size = max(block_size, 16)
        self._row_limit = row_limit
        self._carry = b""  # the start of a row whose end is not read yet
        self._done = False

    def fill(self, buffer: bytearray, pad: int) -> int:
        """Read the next block into `buffer`, which grows where a row needs it; `pad` bytes behind it stay free.

        Returns:
            The size of the block; 0 at the end.

        Raises:
            SourceError: reading fails, or a row is longer than the row limit.
        """
        carry, self._carry = self._carry, b""
        size = len(carry)
        grow(buffer, max(self._block_size, size + 2) + pad)
        buffer[:size] = carry
        while True:
            capacity = len(buffer) - pad
            searched = size
            if not self._done:
                with memoryview(buffer) as view:
                    size += self.source.readinto(view[size : capacity - 1])
                self._done = size < capacity - 1
            cut = buffer.rfind(b"\n", searched, size) + 1
            if self._done and self.source.failure is None:
                if cut < size:
                    buffer[size] = 0x0A  # the place kept free above
                    size += 1
                    self.missing_lf = True
                self.offset += size
                return size
            if cut:
                self._carry = bytes(memoryview(buffer)[cut:size])
                self.offset += cut
                return cut
            if self._done and self.source.failure is not None:
                raise self.source.failure
            if size >= self._row_limit:
                raise SourceError(
                    "row-too-long",
                    f"a row is longer than {self._row_limit >> 20} MiB",
                    path=self.source.label,
                    offset=self.offset,
                    hint="this is hardly a table of word vectors in text; what is it?",
                )
            grow(buffer, min(2 * capacity, self._row_limit + 1) + pad)


def grow(buffer: bytearray, size: int) -> None:
    """Make room for `size` bytes; a buffer never shrinks, as it is used again."""
    if len(buffer) < size:
        buffer.extend(bytes(size - len(buffer)))
