"""Tensors over a vocabulary with fewer rows, copied in pieces of 1 MiB."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..editing.checkpoint_files import Shard
from ..errors import InputError, shown
from ..safetensors_files.header import PIECE, TensorInfo, byte_count, pieces, reading

Rows = NDArray[np.int64]


def cut_tensor(shard: Shard, key: str, axis: int, rows: Rows) -> tuple[TensorInfo, Iterator[bytes]]:
    """Take places of one axis of a tensor.

    Args:
        axis: the axis over the vocabulary.
        rows: int64[n], the places to take, in the order of the result.

    Returns:
        Type and shape of the result, from byte 0 on, and its bytes, which are read when they are iterated over.

    Raises:
        InputError: a place is not a whole number of bytes.
    """
    info = shard.header.tensors[key]
    shape = (*info.shape[:axis], len(rows), *info.shape[axis + 1 :])
    try:
        width = byte_count(info.dtype, info.shape[axis + 1 :])
    except ValueError as error:
        raise InputError(
            "tensor-bits", f"a row of {shown(key)} must be a whole number of bytes", path=shard.path, found=info.dtype
        ) from error
    size = width * math.prod(shape[: axis + 1])
    return TensorInfo(info.dtype, shape, 0, size), _read(shard, info, axis, rows, width)


def _read(shard: Shard, info: TensorInfo, axis: int, rows: Rows, width: int) -> Iterator[bytes]:
    length = info.shape[axis]
    with reading(shard.path, shard.identity) as descriptor:
        for block in range(math.prod(info.shape[:axis])):
            start = shard.header.data_start + info.start + block * length * width
            for run in _runs(rows, max(1, PIECE // max(1, width))):
                first, last = int(run.min()), int(run.max()) + 1
                data = b"".join(pieces(descriptor, start + first * width, start + last * width, path=shard.path))
                table = np.frombuffer(data, np.uint8).reshape(last - first, width)
                yield table[run - first].tobytes()


def _runs(rows: Rows, reach: int) -> Iterator[Rows]:
    """Split places into runs, each of which is within `reach` places, so that it is read at once."""
    at = 0
    while at < len(rows):
        ahead = rows[at : at + reach]
        inside = (ahead >= ahead[0]) & (ahead < ahead[0] + reach)
        count = len(ahead) if inside.all() else int(np.argmin(inside))
        yield ahead[:count]
        at += count
