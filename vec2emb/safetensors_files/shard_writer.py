"""Writes the rows of a table into shards: they come in whatever order, and from several threads."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..errors import OutputError
from ..io.digest import WrittenPieces, finish_all
from .header import TensorInfo, encode_header
from .rows import RowFile
from .sharding import MOST, FileRecord, shard_name, sharding_metadata

_OPEN = 64  # files at a time: systems allow a process a few hundred


class ShardSize(NamedTuple):
    """Bytes of a shard, and the rows of the word table that it holds."""

    bytes: int
    rows: tuple[int, int] | None


class ShardedRows(RowFile):
    """Rows of the stored type at their place in the shards of a table.

    Args:
        path_of: where a file of this name is written.
        each: rows of a full shard.
        header_bytes: in front of the rows of each.
    """

    def __init__(
        self, path_of: Callable[[str], str], each: int, header_bytes: int, dim: int, label: str, item: int
    ) -> None:
        super().__init__(-1, header_bytes, dim, label, item)
        self._path_of = path_of
        self._each = each
        self._held: dict[int, list[int]] = {}  # shard -> [descriptor, users], the one that was used last at the end
        self._lock = threading.Lock()
        self._early = False
        self._pieces_of: dict[int, WrittenPieces] = {}

    def hash_early(self, early: bool) -> None:
        self._early = early
        for pieces in list(self._pieces_of.values()):
            pieces.early = early

    def _written(self, shard: int) -> WrittenPieces:
        """What was written of a shard."""

        def read(view: memoryview, offset: int) -> int:
            with self._opened(shard) as descriptor:
                return os.preadv(descriptor, [view], offset)

        with self._lock:
            pieces = self._pieces_of.get(shard)
            if pieces is None:
                pieces = self._pieces_of[shard] = WrittenPieces(read)
                pieces.early = self._early
            return pieces

    def _places(self, row: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Shard, offset in its file, and how many of `count` rows from `row` on stand there."""
        while count:
            shard, at = divmod(row, self._each)
            inside = min(count, self._each - at)
            yield shard, self._base + at * self._width, inside
            row, count = row + inside, count - inside

    def _write(self, row: int, rows: memoryview) -> None:
        for shard, offset, count in self._places(row, len(rows) // self._width):
            self._put_into(shard, rows[: count * self._width], offset)
            rows = rows[count * self._width :]

    def _put_into(self, shard: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        with self._opened(shard) as descriptor:
            self._put(descriptor, self._written(shard), memoryview(data), offset)

    def _read(self, row: int, count: int) -> bytes:
        pieces = []
        for shard, offset, inside in self._places(row, count):
            with self._opened(shard) as descriptor:
                pieces.append(os.pread(descriptor, inside * self._width, offset))
        return b"".join(pieces)

    @contextlib.contextmanager
    def _opened(self, shard: int) -> Iterator[int]:
        """The descriptor of a shard; of those that nobody uses, the longest unused are closed if there are many."""
        with self._lock:
            entry = self._held.pop(shard, None) or [self._create(shard), 0]
            entry[1] += 1
            self._held[shard] = entry
            idle = [other for other, (_, users) in self._held.items() if not users]
            for other in idle[: max(0, len(self._held) - _OPEN)]:
                os.close(self._held.pop(other)[0])
        try:
            yield entry[0]
        finally:
            with self._lock:
                entry[1] -= 1

    def _create(self, shard: int) -> int:
        if shard >= MOST:
            raise OutputError(
                "too-many-shards", "the table has too many shards", path=self._label, expected=f"at most {MOST}",
                hint="a larger --shard-size",
            )  # fmt: skip
        return os.open(self._path_of(shard_name(shard + 1)), os.O_RDWR | os.O_CREAT, 0o666)

    def close(self) -> None:
        """Close all files."""
        while self._held:
            os.close(self._held.popitem()[1][0])

    def finish(
        self, count: int, key: str, dtype: str, metadata: dict[str, str], positions: dict[str, bytes | bytearray]
    ) -> list[ShardSize]:
        """Write the headers, and a shard for the positions.

        Args:
            count: V, the rows of the table.
            key, dtype: of the tensor of words, as safetensors names them.
            metadata: what every header says.
            positions: key and bytes of each position table.

        Returns:
            The size of each shard, in order.
        """
        sizes: list[ShardSize] = []
        for shard, _, rows in list(self._places(0, count)) or [(0, self._base, 0)]:  # of no rows, too, the names stay
            size, first = rows * self._width, shard * self._each
            tensors = {key: TensorInfo(dtype, (rows, self.dim), 0, size)}
            self._put_header(shard, tensors, {**metadata, **sharding_metadata([key], first)}, size)
            sizes.append(ShardSize(self._base + size, (first, first + rows)))
        if positions:
            shard, tensors, end = len(sizes), {}, 0
            for name, table in positions.items():
                shape = (len(table) // self._width, self.dim)
                tensors[name] = TensorInfo(dtype, shape, end, end + len(table))
                self._put_into(shard, table, self._base + end)
                end += len(table)
            self._put_header(shard, tensors, {**metadata, **sharding_metadata(positions, 0)}, end)
            sizes.append(ShardSize(self._base + end, None))
        return sizes

    def records(self, sizes: list[ShardSize], threads: int | None) -> dict[str, FileRecord]:
        """The record of each finished shard by its name."""
        digests = finish_all([(self._written(shard), size.bytes) for shard, size in enumerate(sizes)], threads)
        return {
            shard_name(number): FileRecord(size.bytes, digest, size.rows)
            for number, (size, digest) in enumerate(zip(sizes, digests, strict=True), 1)
        }

    def sync(self) -> None:
        for shard in sorted(self._pieces_of):
            with self._opened(shard) as descriptor:
                os.fsync(descriptor)

    def _put_header(self, shard: int, tensors: dict[str, TensorInfo], metadata: dict[str, str], size: int) -> None:
        header = encode_header(tensors, metadata, align=self._base)
        if len(header) != self._base:
            raise AssertionError(f"a header of {len(header)} bytes")
        self._put_into(shard, header, 0)
        with self._opened(shard) as descriptor:
            os.ftruncate(descriptor, self._base + size)
