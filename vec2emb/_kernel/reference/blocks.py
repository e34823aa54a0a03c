"""`Block` and `Policy`: what readers and the kernel pass to each other."""

from __future__ import annotations

from dataclasses import dataclass

from .rows import Rows

Bytes = bytes | bytearray | memoryview

WIDTHS = (0, 2, 4, 8)


@dataclass(frozen=True)
class Policy:
    """What is done about odd tokens, rows and values; made once a pass.

    Attributes:
        nonfinite: a `Nonfinite`: what becomes of `nan` and `inf`.
        unit_norm: whether rows are scaled to length 1.
        limit: largest magnitude of a finite value, after scaling; a larger one is out of range.
        skip_bad_rows: whether rows with a fault are left out, instead of ending the pass.
        utf8: whether tokens must be UTF-8; False if the caller checks and decodes them.
    """

    nonfinite: int = 0
    unit_norm: bool = False
    limit: float = 1e400  # infinity
    skip_bad_rows: bool = False
    utf8: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.nonfinite <= 2:
            raise ValueError(f"nonfinite is {self.nonfinite}, expected 0 to 2")


class Block:
    """A piece of a source that ends where a row does, and the rows that were found in it; reused block after block.

    Args:
        dim: values a row.
        width: bytes of a value (2, 4 or 8); 0 for text.
        big_endian: byte order of the values; of no meaning for text.
        buffer: the bytes; by default an empty bytearray, which the reader grows.

    Attributes:
        size: how many bytes of `buffer` belong to the block.
        offset: where the block starts in the source.
        base: number of its first line in the source.
        vectors: float values [n, dim] of the rows if they are not in `buffer` itself, else None.
        rows: what scanning found.

    Raises:
        ValueError: `dim` is below 1, or there is no such width.
    """

    def __init__(self, dim: int, width: int = 0, big_endian: bool = False, buffer: Bytes | None = None) -> None:
        if dim < 1:
            raise ValueError(f"dim is {dim}, expected at least 1")
        if width not in WIDTHS:
            raise ValueError(f"width is {width}, expected 0, 2, 4 or 8")
        self.dim = dim
        self.width = width
        self.big_endian = big_endian
        self.buffer: Bytes = bytearray() if buffer is None else buffer
        self.vectors: Bytes | None = None
        self.size = len(self.buffer)
        self.offset = 0
        self.base = 1
        self.rows = Rows()

    def set_vectors(self, vectors: Bytes | None, big_endian: bool = False) -> None:
        """Give the rows values that are not in the buffer, [n, dim] of `width` bytes each, in the order of the rows."""
        self.vectors = vectors
        self.big_endian = big_endian

    def token(self, row: int) -> bytes:
        """The token of a row."""
        return self.rows.token(self.buffer, row)

    def line(self, row: int) -> int:
        """The line of a row, as a number of the source."""
        return self.base + self.rows.place(row)[0]
