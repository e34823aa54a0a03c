"""Arrays in files: blocks of rows, read at their place, so that memory stays small and no file is mapped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ...errors import SourceError
from ...words.vocabulary_file import MAX_LINE, line_too_long, no_last_lf
from .source import changed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_GAP = 1 << 14  # bytes between two rows that are read through rather than jumped over
_PIECE = 1 << 18  # bytes of a blob taken at a time


class FileArray:
    """An array [rows, dim] that stands in an open file, row after row or column after column.

    Args:
        descriptor: of the file; it stays the caller's.
        offset: its first byte.
        by_columns: whether columns follow each other (Fortran order).
    """

    def __init__(
        self,
        descriptor: int,
        offset: int,
        rows: int,
        dim: int,
        dtype: np.dtype[np.generic],
        label: str,
        by_columns: bool = False,
    ) -> None:
        self.dtype = dtype
        self._descriptor = descriptor
        self._offset = offset
        self._rows = rows
        self._dim = dim
        self._label = label
        self._by_columns = by_columns

    def block(self, first: int, count: int, wanted: Sequence[int]) -> NDArray[np.generic]:
        """Rows first .. first+count-1; of those that are not wanted anything may be there.

        Raises:
            SourceError: the file has become shorter, or reading fails.
        """
        import numpy as np

        width = self.dtype.itemsize
        if self._by_columns:
            columns = np.empty((self._dim, count), self.dtype)
            for column in range(self._dim):
                self._read(columns[column : column + 1], (column * self._rows + first) * width)
            return columns.T
        block = np.empty((count, self._dim), self.dtype)
        for start, stop in _runs(wanted, max(1, _GAP // (self._dim * width))):
            self._read(block[start:stop], (first + start) * self._dim * width)
        return block

    def _read(self, target: NDArray[np.generic], offset: int) -> None:
        view = target.reshape(-1).view("u1").data
        at = self._offset + offset
        while view:
            try:
                done = os.preadv(self._descriptor, [view], at)
            except OSError as error:
                raise SourceError(
                    "read-failed", f"reading failed ({error.strerror})", path=self._label, offset=at
                ) from error
            if not done:
                raise changed(self._label)
            view, at = view[done:], at + done


def _runs(wanted: Sequence[int], gap: int) -> Iterator[tuple[int, int]]:
    """Ranges that hold all numbers that are wanted, and no more than `gap` others between two of them."""
    if isinstance(wanted, range):
        yield wanted.start, wanted.stop
        return
    start = last = wanted[0]
    for number in wanted[1:]:
        if number - last > gap:
            yield start, last + 1
            start = number
        last = number
    yield start, last + 1


class Lines:
    """The lines of a text that comes piece by piece, so many at a time.

    Args:
        pieces: of the text, of any size.
        label: of where it comes from, for errors.
    """

    def __init__(self, pieces: Iterable[bytes], label: str) -> None:
        self._lines = _lines(pieces, label)

    def take(self, count: int) -> list[bytes]:
        """The next lines, each without its LF; fewer than `count` only at the end.

        Raises:
            InputError: a line is too long, or the last one does not end with LF.
        """
        return list(islice(self._lines, count))

    def skip(self, count: int) -> None:
        """Pass over the next lines."""
        next(islice(self._lines, count, count), None)


def _lines(pieces: Iterable[bytes], label: str) -> Iterator[bytes]:
    rest, size = list[bytes](), 0  # of a line whose end has not come
    for piece in pieces:
        head, *lines = piece.split(b"\n")
        rest.append(head)
        size += len(head)
        if size > MAX_LINE:
            raise line_too_long(label)
        if lines:
            yield b"".join(rest)
            rest = [lines.pop()]
            size = len(rest[0])
            yield from lines
    if size:
        raise no_last_lf(label)


def pieces_of(blob: bytes | memoryview) -> Iterator[bytes]:
    """A blob piece by piece."""
    return (bytes(blob[start : start + _PIECE]) for start in range(0, len(blob), _PIECE))
