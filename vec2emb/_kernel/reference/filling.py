"""Vectors of rows, whatever layout they have: `fill` for those that are kept, `check` to learn what is wrong."""

from __future__ import annotations

from array import array

from ..codes import Fault
from .binary import read_record
from .blocks import Block, Policy
from .text import parse_row


def fill(block: Block, start: int, stop: int, out: bytearray | memoryview, policy: Policy) -> int:
    """Write the vectors of kept[start:stop] to `out`, float32[stop - start, dim], native byte order.

    Rows in which nothing but a non-finite value is wrong are marked and passed over, so that they can be
    counted; at any other fault filling stops. Values beyond `policy.limit` in magnitude, after normalizing, are
    out of range.

    Returns:
        The position in `kept` of the first row with another fault, or -1.

    Raises:
        ValueError: `out` is too small, or the range does not lie within the kept rows.
    """
    rows, dim = block.rows, block.dim
    if not 0 <= start <= stop <= len(rows.kept) or memoryview(out).nbytes < (stop - start) * dim * 4:
        raise ValueError("the rows asked for do not fit")
    target = memoryview(out).cast("B").cast("f")
    for position in range(start, stop):
        row = rows.kept[position]
        vector = _vector(block, row, policy)
        if vector is None:
            if rows.fault[row] != Fault.NONFINITE_VALUE:
                return position
            continue
        place = (position - start) * dim
        target[place : place + dim] = vector
    return -1


def check(block: Block, policy: Policy) -> None:
    """Read the values of every row that has no fault yet, only to learn whether it has one."""
    for row in range(block.rows.count):
        if not block.rows.fault[row]:
            _vector(block, row, policy)


def _vector(block: Block, row: int, policy: Policy) -> array[float] | None:
    """The vector of a row, or None after marking its fault."""
    return read_record(block, row, policy) if block.width else parse_row(block, row, policy)
