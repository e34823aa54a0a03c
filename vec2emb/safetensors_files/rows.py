"""Rows in a file, each at its place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ..io.digest import WrittenPieces, reader
from ..io.filesystem import write_all, writing
from ..io.writeback import WriteBack

PIECE = 1 << 20  # bytes; larger writes were several times slower


class RowFile:
    """Rows in a file, written and read at their place; float32 unless `item`, bytes a value, says otherwise.

    Args:
        label: the output's name for messages.
        write_back: is told of what was written.
        hashed: whether there will be a `digest` of the file.
    """

    def __init__(
        self,
        descriptor: int,
        base: int,
        dim: int,
        label: str,
        item: int = 4,
        write_back: WriteBack | None = None,
        *,
        hashed: bool = False,
    ) -> None:
        self.descriptor = descriptor
        self.dim = dim
        self._label = label
        self._base = base
        self._width = item * dim
        self._write_back = write_back
        self._pieces = WrittenPieces(reader(descriptor)) if hashed else None

    def hash_early(self, early: bool) -> None:
        """Hash pieces of the file as soon as they are complete, or only in the end.

        The first is for rows that come nearly in order, from several threads: each hashes what is still in its cache.
        """
        if self._pieces is not None:
            self._pieces.early = early

    def put(self, offset: int, data: bytes | bytearray) -> None:
        """Write bytes that are no rows at an offset of the file."""
        self._put(self.descriptor, self._pieces, memoryview(data), offset)

    def digest(self, size: int, threads: int | None = None) -> str:
        """The digest of the finished file of `size` bytes."""
        if self._pieces is None:
            raise AssertionError("not hashed")
        return self._pieces.finish(size, threads)

    def write(self, row: int, rows: bytes | bytearray | memoryview) -> None:
        """Write n rows at row .. row+n-1."""
        with writing(self._label):
            self._write(row, memoryview(rows))
        if self._write_back is not None:
            self._write_back.wrote(len(rows))

    def write_each(self, places: Iterable[tuple[int, int, int]], rows: memoryview) -> None:
        """Write rows that go to many places: of each (at, row, n), rows at .. at+n-1 of `rows` to row .. row+n-1.

        They wait for `sync`: a page of the disk holds parts of several rows, and would be written for each.
        """
        width = self._width
        with writing(self._label):
            for at, row, count in places:
                self._write(row, rows[at * width : (at + count) * width])

    def read(self, row: int, count: int) -> bytes:
        """`count` rows from `row` on."""
        with writing(self._label):
            return self._read(row, count)

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """Rows start .. stop-1, about 1 MiB at a time."""
        step = max(1, PIECE // self._width)
        for row in range(start, stop, step):
            yield self.read(row, min(step, stop - row))

    def sync(self) -> None:
        """Have all that was written on the disk."""
        if self._write_back is not None:
            self._write_back.finish()

    def close(self) -> None:
        """Close what was opened here; a descriptor that was given is its owner's."""
        if self._write_back is not None:
            self._write_back.close()

    def _write(self, row: int, rows: memoryview) -> None:
        self._put(self.descriptor, self._pieces, rows, self._base + row * self._width)

    def _put(self, descriptor: int, pieces: WrittenPieces | None, data: memoryview, offset: int) -> None:
        write_all(descriptor, data, offset)
        if pieces is not None:
            pieces.wrote(offset, len(data))

    def _read(self, row: int, count: int) -> bytes:
        return os.pread(self.descriptor, count * self._width, self._base + row * self._width)
