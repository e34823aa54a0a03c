"""Position tables: sinusoidal ones, learnable ones, and learned ones made longer or shorter.

A table is `float[rows, dim]`. Its first `offset` rows are reserved and no token ever looks them up; the first token of
a text takes row `offset`. Sinusoidal row k holds the angle `start + k`, the reserved rows included:

    angle of pair i at row k   a = (start + k) * w_i
    frequencies "paper"        w_i = base^(-2i/dim)            Vaswani et al. 2017, section 3.5
    frequencies "t2t"          w_i = base^(-i/max(h - 1, 1))   tensor2tensor, fairseq; h = floor(dim/2)
    layout "interleaved"       sin a_0, cos a_0, sin a_1, cos a_1, ..
    layout "sin-cos"           sin a_0, sin a_1, .., cos a_0, cos a_1, ..
    layout "cos-sin"           the halves the other way round
    odd width "ceil"           one sine more than cosines
    odd width "zero-pad"       h pairs and a last column of zeros

Everything is computed in float64 and cast once: in float32 an angle near 100,000 is wrong by 0.007.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .errors import InputError, UsageError
from .keys import FREQUENCIES, INITS, LAYOUTS, METHODS, ODD, PRESETS

Matrix = NDArray[np.floating[Any]]
Float64 = NDArray[np.float64]

MAX_ROWS = 1 << 24  # a table with more is a slip of the pen
_BLOCK = 1 << 17  # elements computed at a time, so that float64 never holds a second table
_STARTS = (0, 1, -1, -2)  # angles of row 0 that `facts` tries
_SAMPLE = 256  # rows that `facts` compares


class Facts(NamedTuple):
    """What a table looks like.

    Attributes:
        kind: `sinusoidal`, `learned` or `zeros`.
        presets: those that give this table, or `()`; several may agree (at even widths `vaswani` is `xlm`).
        nearest: the preset that comes closest, whether it matches or not; None where there is nothing to compare.
        error, start: the largest difference from `nearest` in the rows compared, and the angle of row 0 that fits best.
        offset: rows in front of the first usable one: up to the last row of zeros among the first four.
        zero_rows, nonfinite_rows: how many rows are all zero, how many hold nan or inf.
        norms: smallest, median and largest of the finite rows from `offset` on; nan where there is none.
    """

    rows: int
    dim: int
    dtype: str
    kind: str
    presets: tuple[str, ...]
    nearest: str | None
    error: float
    start: int
    offset: int
    zero_rows: int
    nonfinite_rows: int
    norms: tuple[float, float, float]


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
    num, dim = _count("num", num), _count("dim", dim)
    waves = _waves(dim, preset, layout, frequencies, base, odd)
    _demand("start", start, math.isfinite(start), "a finite number")
    if padding_idx is None:
        padding_idx = PRESETS[preset].padding_idx
    offset = _offset(offset, padding_idx)
    table = np.empty((offset + num, dim), _float_type(dtype))
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
    dim = _count("dim", dim)
    waves = _waves(dim, preset, layout, frequencies, base, odd)
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

    The same seed gives the same table, and a shorter table is the beginning of a longer one: see `_normals`.

    Args:
        init: `normal`; `trunc-normal`, cut at two standard deviations (true deviation 0.88 `std`), as BERT had it;
            `sinusoidal`, the interleaved table with angle 0 at the first usable row; or `zeros`.
        offset: rows in front of the first usable one; `padding_idx + 1` if there is a padding row, else 0.
        padding_idx: the reserved row that is zero.

    Raises:
        UsageError: an argument is out of range.
    """
    num, dim = _count("num", num), _count("dim", dim)
    offset = _offset(offset, padding_idx)
    _choice("init", init, INITS)
    _demand("std", std, math.isfinite(std) and std >= 0, "0 or more")
    rows = num + offset
    if init == "sinusoidal":
        table = sinusoidal(rows, dim, odd="ceil", start=-offset, dtype=dtype)
    elif init == "zeros":
        table = np.zeros((rows, dim), _float_type(dtype))
    else:
        numbers = std * _normals(rows * dim, seed, 2.0 if init == "trunc-normal" else math.inf)
        with np.errstate(over="ignore"):
            table = numbers.reshape(rows, dim).astype(_float_type(dtype))
        _demand("std", std, bool(np.isfinite(table).all()), f"so small that all numbers fit {table.dtype}")
    if padding_idx is not None:
        table[padding_idx] = 0
    return table


def resize(
    table: Matrix,
    num: int,
    *,
    method: str | None = None,
    offset: int = 0,
    alpha: float = 0.4,
    keep: int = 20,
    align_corners: bool = False,
    seed: int = 0,
) -> Matrix:
    """The table with `num` usable positions in place of its n: `[offset + num, dim]`, of the same type.

    Reserved rows are copied as they are, and so is everything if `num` is n, whatever the method. Otherwise there is
    no default, because no choice is right for every model. With p the usable rows, row k becomes:

        truncate      p[k]                                                   shorter only
        random        p[k], then N(0, deviation of p), from `seed`
        repeat-last   p[k], then p[n-1]
        tile          p[k mod n]                                             Longformer
        hierarchical  p[k mod n] + alpha/(1-alpha) (p[k div n] - p[0])       Su Jianlin; at most n^2 positions
        linear        between neighbours at x = (k+.5) n/num - .5, or k (n-1)/(num-1) with `align_corners`
        cubic         at the same x, with Keys' kernel (a = -0.75) over four rows
        stretch       p[k] below `keep`, then between neighbours at keep + (k-keep) (n-keep)/(num-keep)   LongCLIP

    All but `linear`, `cubic` and `stretch` keep the rows that both tables have, to the bit.

    Raises:
        UsageError: no method, or one that cannot give this length.
        InputError: the table has no usable row, or holds nan or inf where the method has to compute with it.
    """
    table, num = _checked(table), _count("num", num)
    if not 0 <= offset < len(table):
        raise InputError(
            "no-usable-rows", "the table has no usable row", expected=f"over {offset} rows", found=str(len(table))
        )
    if method is not None:
        _choice("method", method, METHODS)
    n = len(table) - offset
    if num == n:
        return table.copy()
    if method is None:
        one_of = f"one of {', '.join(METHODS)}"
        raise UsageError("no-resize-method", f"{n} positions to {num} needs a method", expected=one_of)
    _check_length(method, n, num, alpha, keep)
    p = table[offset:].astype(np.float64)
    if method in ("truncate", "repeat-last", "tile"):
        k = np.arange(num)
        new = p[np.minimum(k, n - 1) if method == "repeat-last" else k % n]
    else:
        if not np.isfinite(p).all():
            row = offset + int(np.argmin(np.isfinite(p).all(axis=1)))
            raise InputError("nonfinite-position", f"row {row} of the table holds nan or inf", hint="repair it first")
        new = _computed(p, num, method, alpha, keep, align_corners, seed)
        if np.abs(new).max() > np.finfo(table.dtype).max:
            raise InputError(
                "position-overflow", f"a new value is too large for {table.dtype}", hint="convert the table first"
            )
    return np.concatenate([table[:offset], new.astype(table.dtype)])


def facts(table: Matrix) -> Facts:
    """What a table looks like: which preset it matches, its norms, its reserved rows.

    At most 256 rows, evenly spread, are compared; a match may differ by what float32 or bfloat16 arithmetic explains.

    Raises:
        InputError: it is no table.
    """
    table = _checked(table)
    rows, dim = table.shape
    zero = np.logical_not(table.any(axis=1))
    norms = np.sqrt(np.einsum("ij,ij->i", table, table, dtype=np.float64))
    finite = np.isfinite(norms)
    reserved = np.flatnonzero(zero[:4])
    offset = int(reserved[-1]) + 1 if len(reserved) and not zero.all() else 0
    usable = norms[offset:][finite[offset:]]
    spread = [float(f(usable)) if len(usable) else math.nan for f in (np.min, np.median, np.max)]

    some = np.flatnonzero(finite & ~zero)
    some = some[np.unique(np.linspace(0, len(some) - 1, min(len(some), _SAMPLE)).astype(int))]
    distances: dict[str, tuple[float, int]] = {}
    for name, preset in PRESETS.items() if len(some) else ():
        # A zero row at the front is what sets the table of fairseq apart from the others of its formula.
        if (dim % 2 and preset.odd == "error") or (preset.padding_idx is not None and not offset):
            continue
        waves = _waves(dim, name)
        each = [(float(np.abs(table[some] - waves.rows(some + float(start))).max()), start) for start in _STARTS]
        distances[name] = min(each, key=lambda pair: pair[0])
    order = sorted(distances, key=lambda name: (distances[name][0], PRESETS[name].padding_idx is None))
    nearest = order[0] if order else None
    error, start = distances[nearest] if nearest else (math.nan, 0)
    matches = error <= max(2.0**-8, rows * 2.0**-22)
    kind = "zeros" if zero.all() else "sinusoidal" if matches else "learned"
    presets = tuple(name for name in order if matches and distances[name][0] == error)
    found = kind, presets, nearest, error, start, offset, int(zero.sum()), int((~finite).sum())
    return Facts(rows, dim, str(table.dtype), *found, norms=(spread[0], spread[1], spread[2]))


class _Waves(NamedTuple):
    """Where sines and cosines stand, and 1/w of each sine; a cosine shares the one of its sine."""

    dim: int
    sines: slice
    cosines: slice
    divisors: Float64

    def rows(self, angles: NDArray[Any]) -> Float64:
        """Rows of a table, `float64[n, dim]`, at the angles of the fastest pair, `float64[n]`."""
        table = np.zeros((len(angles), self.dim))
        every = angles[:, np.newaxis] / self.divisors
        table[:, self.sines] = np.sin(every)
        table[:, self.cosines] = np.cos(every)[:, : self.dim // 2]
        return table


def _waves(
    dim: int,
    preset: str,
    layout: str | None = None,
    frequencies: str | None = None,
    base: float = 10000.0,
    odd: str | None = None,
) -> _Waves:
    home = PRESETS[_choice("preset", preset, tuple(PRESETS))]
    layout = _choice("layout", layout or home.layout, LAYOUTS)
    frequencies = _choice("frequencies", frequencies or home.frequencies, FREQUENCIES)
    odd = _choice("odd", odd or home.odd, ODD)
    _demand("base", base, math.isfinite(base) and base >= 1, "1 or more")
    pairs = sines = dim // 2
    if dim % 2 and odd != "zero-pad":
        if odd == "error":
            raise UsageError(
                "odd-width",
                f"width {dim} is odd, and {preset} has no rule for that",
                hint="choose 'ceil' (one sine more) or 'zero-pad' (a column of zeros) for odd",
            )
        if frequencies == "t2t":
            raise UsageError(
                "odd-width", "the t2t frequencies end at the last pair: there is no further sine", hint="odd='zero-pad'"
            )
        sines += 1
    i = np.arange(sines, dtype=np.float64)
    divisors = np.power(float(base), 2 * i / dim if frequencies == "paper" else i / max(pairs - 1, 1))
    if layout == "interleaved":
        return _Waves(dim, slice(0, pairs + sines, 2), slice(1, 2 * pairs, 2), divisors)
    if layout == "sin-cos":
        return _Waves(dim, slice(0, sines), slice(sines, sines + pairs), divisors)
    return _Waves(dim, slice(pairs, pairs + sines), slice(0, pairs), divisors)


def _normals(count: int, seed: int, limit: float = math.inf) -> Float64:
    """Standard normal numbers, `float64[count]`, none beyond +-`limit`.

    Number e depends on (seed, e) alone. The raw bits are those of Philox 4x64-10 with the seed as its key, which numpy
    promises to keep (unlike its `standard_normal`), made normal by Box and Muller. What falls beyond the limit is
    drawn again, at its own place, from the stream of the next key.
    """
    _demand("seed", seed, 0 <= seed < 1 << 64, "0 to 2^64 - 1")
    numbers = np.empty(count)
    missing = np.ones(count, bool)
    stream = 0
    while missing.any():
        raw = np.random.Philox(key=int(seed) | stream << 64).random_raw(count + count % 2)
        uniform = (raw >> np.uint64(11)) * 2.0**-53
        radius = np.sqrt(-2 * np.log1p(-uniform[0::2]))  # log of 1 - u, which is never zero
        turn = 2 * math.pi * uniform[1::2]
        drawn = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1).reshape(-1)[:count]
        numbers[missing] = drawn[missing]
        missing = np.abs(numbers) > limit
        stream += 1
    return numbers


def _check_length(method: str, n: int, num: int, alpha: float, keep: int) -> None:
    """Refuse a length that the method cannot give, or a parameter that makes it meaningless."""
    if method == "truncate":
        _demand("num", num, num <= n, f"at most {n}, because truncate cannot lengthen a table")
    if method == "hierarchical":
        # At one half the two vectors weigh the same, and position (i, j) equals position (j, i).
        _demand("alpha", alpha, 0 < alpha < 1 and alpha != 0.5, "between 0 and 1, but not 0.5")
        _demand("num", num, num <= n * n, f"at most {n * n}, the square of {n} positions, for hierarchical")
    if method == "stretch":
        most = min(n, num) - 1
        _demand("num", num, most > 0, "2 or more, in both tables, for stretch")
        _demand("keep", keep, 0 <= keep <= most, f"0 to {most}, to stretch {n} positions to {num}")


def _computed(p: Float64, num: int, method: str, alpha: float, keep: int, align_corners: bool, seed: int) -> Float64:
    """The new usable rows, `float64[num, dim]`, by a method that computes them."""
    n, dim = p.shape
    if method in ("random", "hierarchical"):
        later = np.arange(n, num)
        if method == "random":
            new = p.std() * _normals(len(later) * dim, seed).reshape(-1, dim)
        else:
            new = p[later % n] + alpha / (1 - alpha) * (p[later // n] - p[0])
        return np.concatenate([p[:num], new])
    k = np.arange(num, dtype=np.float64)
    if method == "stretch":
        # One division, so that a whole factor meets its old rows exactly.
        return _lerp(p, np.where(k < keep, k, keep + (k - keep) * (n - keep) / (num - keep)))
    x = k * ((n - 1) / max(num - 1, 1)) if align_corners else (k + 0.5) * (n / num) - 0.5
    return _cubic(p, x) if method == "cubic" else _lerp(p, np.clip(x, 0, n - 1))


def _lerp(p: Float64, x: Float64) -> Float64:
    """Rows at x between neighbours; past the last row (stretch alone asks for that) the last slope goes on."""
    below = np.minimum(np.floor(x).astype(int), len(p) - 2)  # -1 for a single row: both neighbours are that row
    rows: Float64 = p[below] + (x - below)[:, np.newaxis] * (p[below + 1] - p[below])
    return rows


def _cubic(p: Float64, x: Float64) -> Float64:
    """Cubic convolution over the four rows around x, the edge rows repeated (Keys 1981, a = -0.75)."""
    a = -0.75
    below = np.floor(x).astype(int)
    result = np.zeros((len(x), p.shape[1]))
    for step in range(-1, 3):
        t = np.abs(x - below - step)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = a * (((t - 5) * t + 8) * t - 4)
        row = np.clip(below + step, 0, len(p) - 1)
        weight: Float64 = np.where(t <= 1, near, far)
        result += weight[:, np.newaxis] * p[row]
    return result


def _offset(offset: int | None, padding_idx: int | None) -> int:
    """Rows in front of the first usable one. A padding row has to be among them, or a position would be zero."""
    if offset is None:
        offset = 0 if padding_idx is None else padding_idx + 1
    if padding_idx is not None:
        _demand("padding_idx", padding_idx, padding_idx >= 0, "0 or more")
        _demand("offset", offset, padding_idx < offset, f"over {padding_idx}, the padding row, which is no position")
    _demand("offset", offset, 0 <= offset <= MAX_ROWS, f"0 to {MAX_ROWS:,}")
    return offset


def _checked(table: Matrix) -> Matrix:
    table = np.asarray(table)
    if table.ndim != 2 or not table.size or table.dtype.kind != "f":
        found = f"{table.dtype}{list(table.shape)}"
        raise InputError("not-a-table", "this is no position table", expected="float[rows, dim]", found=found)
    return table


def _count(name: str, value: int) -> int:
    _demand(name, value, isinstance(value, int | np.integer) and 1 <= value <= MAX_ROWS, f"1 to {MAX_ROWS:,}")
    return int(value)


def _choice(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        one_of = f"one of {', '.join(choices)}"
        raise UsageError(f"unknown-{name}", f"there is no such {name}", expected=one_of, found=repr(value))
    return value


def _demand(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        code = f"{name.replace('_', '-')}-range"
        raise UsageError(code, f"{name} is out of range", expected=expected, found=str(value))


def _float_type(dtype: DTypeLike) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    _demand("dtype", kind, kind.kind == "f" and kind.itemsize <= 8, "float16, float32 or float64")
    return kind
