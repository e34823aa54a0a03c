"""The safetensors file of a bundle, or its shards: headers read at once, rows mapped when they are asked for."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import mmap
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import BundleError
from ..io.digest import digest_of, hash_pieces, pieces_of
from ..io.filesystem import identity
from .header import TensorInfo, read_header, reading
from .sharding import FileRecord


class Stretch(NamedTuple):
    """Consecutive rows in one file: its bytes, mapped, where in them the rows begin, and how many there are."""

    data: mmap.mmap
    offset: int
    rows: int


class TableFile:
    """One file.

    Attributes:
        path: where it is.
        header: of safetensors.
        first: the row of the word table with which it begins.
        recorded: what vec2emb.json says of it.
    """

    def __init__(self, path: str, recorded: FileRecord, first: int = 0, *, stays_mapped: bool = False) -> None:
        self.path = path
        self.recorded = recorded
        self.first = first
        self._stays = stays_mapped
        with reading(path) as descriptor:
            self.header = read_header(descriptor, path=path)
            self._identity = identity(descriptor, links_may_change=True)
            self._data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if stays_mapped else None

    @property
    def data(self) -> mmap.mmap:
        """The file, mapped.

        Raises:
            BundleError: another file has come to stand there since its header was read.
        """
        data = self._data  # another thread may release it meanwhile
        if data is None:
            with reading(self.path) as descriptor:
                if identity(descriptor, links_may_change=True) != self._identity:
                    raise BundleError(
                        "bundle-changed", "the file was replaced while the bundle was open", path=self.path,
                        hint="open the bundle again",
                    )  # fmt: skip
                data = self._data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        return data

    def stretch(self, tensor: TensorInfo, row: int, rows: int) -> Stretch:
        """Rows of one of its tensors, counted from that tensor's own first."""
        width = (tensor.stop - tensor.start) // max(1, tensor.shape[0])
        return Stretch(self.data, self.header.data_start + tensor.start + row * width, rows)

    def digest(self) -> str:
        """The digest of the file as it is mapped; the memory of what was read is released on the way."""
        data = self.data

        def read(view: memoryview, offset: int) -> int:
            part = data[offset : offset + len(view)]
            view[: len(part)] = part
            _release(data)
            return len(part)

        found = digest_of(hash_pieces([(read, piece) for piece in pieces_of(len(data))]))
        self.release()
        return found

    def release(self) -> None:
        """Give back the memory of the mapped file; what is used again is mapped again."""
        if (data := self._data) is not None:
            _release(data)
        if not self._stays:
            self._data = None  # and with it a descriptor, of which there are not many


def _release(data: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)


class TableFiles(list[TableFile]):
    """The files that hold a word table, in the order of their rows."""

    def stretches(self, key: str, start: int, stop: int) -> Iterator[Stretch]:
        """Where rows start .. stop-1 of the word table stand; at least one stretch, which may have no row.

        A file that is left for the next is released, so that few are open at a time.
        """
        at = bisect_right(self, start, key=lambda file: file.first) - 1
        while True:
            file, tensor = self[at], self[at].header.tensors[key]
            rows = min(stop - start, file.first + tensor.shape[0] - start)
            yield file.stretch(tensor, start - file.first, rows)
            start, at = start + rows, at + 1
            if start >= stop:
                return
            file.release()

    def release(self) -> None:
        """Give back the memory of all that is mapped."""
        for file in self:
            file.release()
