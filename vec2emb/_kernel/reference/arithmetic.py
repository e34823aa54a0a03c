"""Sums and casts over finished rows, in an order and a precision that never change."""

from __future__ import annotations

import math
import struct
from array import array

from ..codes import Cast
from .blocks import Bytes


def add_rows(sums: bytearray | memoryview, rows: Bytes, dim: int) -> int:
    """Add float32[n, dim] to float64[dim], row after row; rows that are not finite are left out.

    One row after the other, never in pairs: this is the order of `numpy.mean(axis=0, dtype=float64)`.

    Returns:
        How many rows were added.

    Raises:
        ValueError: `dim` is below 1, or these are no float32[n, dim] and no float64[dim].
    """
    _check_table(sums, rows, dim)
    totals = memoryview(sums).cast("B").cast("d")
    values = memoryview(rows).cast("B").cast("f")
    added = 0
    for start in range(0, len(values), dim):
        row = values[start : start + dim]
        if all(map(math.isfinite, row)):
            added += 1
            for i, value in enumerate(row):
                totals[i] += value
    return added


def add_square_deviations(sums: bytearray | memoryview, means: Bytes, rows: Bytes, dim: int) -> int:
    """Add (row - means)^2 of float32[n, dim] to float64[dim], as `add_rows` does."""
    _check_table(sums, rows, dim)
    _check_table(means, rows, dim)
    totals = memoryview(sums).cast("B").cast("d")
    centre = memoryview(means).cast("B").cast("d")
    values = memoryview(rows).cast("B").cast("f")
    added = 0
    for start in range(0, len(values), dim):
        row = values[start : start + dim]
        if all(map(math.isfinite, row)):
            added += 1
            for i, value in enumerate(row):
                deviation = value - centre[i]
                totals[i] += deviation * deviation
    return added


def cast_rows(source: Bytes, out: bytearray | memoryview, kind: int) -> None:
    """Round float32[n] to a two-byte type, ties to even; `kind` is a `Cast`.

    Values whose rounding is beyond the type become infinite; the limit of `fill_text` keeps them out.
    """
    values = memoryview(source).cast("B").cast("f")
    target = memoryview(out).cast("B").cast("H")
    if len(target) < len(values):
        raise ValueError("the values do not fit")
    for i, value in enumerate(values):
        target[i] = _half_bits(value) if kind == Cast.FLOAT16 else _bfloat16_bits(value)


def _check_table(sums: Bytes, rows: Bytes, dim: int) -> None:
    if dim < 1:
        raise ValueError(f"dim is {dim}, expected at least 1")
    if memoryview(sums).nbytes < 8 * dim or memoryview(rows).nbytes % (4 * dim):
        raise ValueError("expected float32[n, dim] and float64[dim]")


def _half_bits(value: float) -> int:
    if math.isnan(value):
        return 0x7E00 | (0x8000 if math.copysign(1, value) < 0 else 0)
    try:
        (bits,) = struct.unpack("<H", struct.pack("<e", value))
    except OverflowError:
        bits = 0xFC00 if value < 0 else 0x7C00
    return int(bits)


def _bfloat16_bits(value: float) -> int:
    bits: int = struct.unpack("=I", array("f", [value]).tobytes())[0]
    if math.isnan(value):
        return (bits >> 16) | 0x40
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF
