"""New tables: sinusoidal ones, the rotation between their rows, and learnable ones."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from ..errors import UsageError
from .arguments import Float64, Matrix, check_size, choice, count, demand, float_type, offset_of
from .key_styles import INITS, PRESETS
from .normals import normals
from .waves import waves_of

_BLOCK = 1 << 17  # elements computed at a time, so that float64 never holds a second table


def sinusoidal(
    num: int,
    dim: int,
    *,
    preset: str = "vaswani",
    layout: str | None = None,
    frequencies: str | None = None,
    base: float = 10000.0,
    odd: str | None = None,
    start: float = 0,
    offset: int | None = None,
    padding_idx: int | None = None,
    dtype: DTypeLike = np.float32,
) -> Matrix:
    """The sinusoidal table of `num` usable positions: `dtype[offset + num, dim]`.

    `layout`, `frequencies` and `odd` stand in for those of the preset. A table of n rows is the beginning of
    every longer one, to the bit.

    Args:
        start: the angle of row 0, whatever `offset` is.
        offset: rows in front of the first usable one; `padding_idx + 1` if there is a padding row, else 0.
        padding_idx: the reserved row that is zero; the preset `fairseq` has 1 unless told otherwise.

    Raises:
        UsageError: an argument is out of range, or the width is odd and the preset has no rule for that.
    """
    num, dim = count("num", num), count("dim", dim)
    waves = waves_of(dim, preset, layout, frequencies, base, odd)
    demand("start", start, math.isfinite(start), "a finite number")
    if padding_idx is None:
        padding_idx = PRESETS[preset].padding_idx
    offset = offset_of(offset, padding_idx)
    check_size(offset + num, dim)
    table = np.empty((offset + num, dim), float_type(dtype))
    step = max(1, _BLOCK // dim)
    for first in range(0, len(table), step):
        last = min(first + step, len(table))
        table[first:last] = waves.rows(start + np.arange(first, last, dtype=np.float64))
    if padding_idx is not None:
        table[padding_idx] = 0
    return table


def rotation(
    n: float,
    dim: int,
    *,
    preset: str = "vaswani",
    layout: str | None = None,
    frequencies: str | None = None,
    base: float = 10000.0,
    odd: str | None = None,
) -> Float64:
    """The matrix M with `M @ PE(k) == PE(k + n)` for every k: `float64[dim, dim]`, orthogonal.

    Each pair turns by its own angle, [[cos nw, sin nw], [-sin nw, cos nw]]. For a table of rows: `table @ M.T`.

    Raises:
        UsageError: an argument is out of range, or the width leaves a sine without its cosine (odd="ceil").
    """
    dim = count("dim", dim)
    waves = waves_of(dim, preset, layout, frequencies, base, odd)
    if len(waves.divisors) != dim // 2:
        raise UsageError(
            "odd-width", "a sine without its cosine cannot be rotated", hint="choose an even width or odd='zero-pad'"
        )
    matrix = np.eye(dim)  # a last column of zeros stays where it is
    columns = np.arange(dim)
    sines, cosines = columns[waves.sines], columns[waves.cosines]
    angles = n / waves.divisors
    matrix[sines, sines] = matrix[cosines, cosines] = np.cos(angles)
    matrix[sines, cosines] = np.sin(angles)
    matrix[cosines, sines] = -np.sin(angles)
    return matrix


def learned(
    num: int,
    dim: int,
    *,
    init: str = "normal",
    std: float = 0.02,
    offset: int | None = None,
    padding_idx: int | None = None,
    seed: int = 0,
    dtype: DTypeLike = np.float32,
) -> Matrix:
    """A table to start training from: `dtype[offset + num, dim]`.

    The same seed gives the same table on every machine, and a shorter table is the beginning of a longer one.

    Args:
        init: `normal`; `trunc-normal`, cut at two standard deviations (true deviation 0.88 `std`), as BERT had it;
            `sinusoidal`, the interleaved table with angle 0 at the first usable row; or `zeros`.
        offset: rows in front of the first usable one; `padding_idx + 1` if there is a padding row, else 0.
        padding_idx: the reserved row that is zero.

    Raises:
        UsageError: an argument is out of range.
    """
    num, dim = count("num", num), count("dim", dim)
    offset = offset_of(offset, padding_idx)
    choice("init", init, INITS)
    demand("std", std, math.isfinite(std) and std >= 0, "0 or more")
    rows = num + offset
    check_size(rows, dim)
    if init == "sinusoidal":
        table = sinusoidal(rows, dim, odd="ceil", start=-offset, dtype=dtype)
    elif init == "zeros":
        table = np.zeros((rows, dim), float_type(dtype))
    else:
        numbers = normals(rows * dim, seed, 2.0 if init == "trunc-normal" else math.inf)
        numbers *= std
        with np.errstate(over="ignore"):
            table = numbers.reshape(rows, dim).astype(float_type(dtype))
        demand("std", std, bool(np.isfinite(table).all()), f"so small that all numbers fit {table.dtype}")
    if padding_idx is not None:
        table[padding_idx] = 0
    return table
