"""A learned table made longer or shorter."""

from __future__ import annotations

import numpy as np

from ..errors import InputError, UsageError
from .arguments import Float64, Matrix, check_size, checked, choice, count, demand
from .key_styles import METHODS
from .normals import normals


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
    table, num = checked(table), count("num", num)
    if not 0 <= offset < len(table):
        raise InputError(
            "no-usable-rows", "the table has no usable row", expected=f"over {offset} rows", found=str(len(table))
        )
    if method is not None:
        choice("method", method, METHODS)
    n = len(table) - offset
    if num == n:
        return table.copy()
    if method is None:
        one_of = f"one of {', '.join(METHODS)}"
        raise UsageError("no-resize-method", f"{n} positions to {num} needs a method", expected=one_of)
    _check_length(method, n, num, alpha, keep)
    check_size(offset + num, table.shape[1])
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


def _check_length(method: str, n: int, num: int, alpha: float, keep: int) -> None:
    """Refuse a length that the method cannot give, or a parameter that makes it meaningless."""
    if method == "truncate":
        demand("num", num, num <= n, f"at most {n}, because truncate cannot lengthen a table")
    if method == "hierarchical":
        # At one half the two vectors weigh the same, and position (i, j) equals position (j, i).
        demand("alpha", alpha, 0 < alpha < 1 and alpha != 0.5, "between 0 and 1, but not 0.5")
        demand("num", num, num <= n * n, f"at most {n * n}, the square of {n} positions, for hierarchical")
    if method == "stretch":
        most = min(n, num) - 1
        demand("num", num, most > 0, "2 or more, in both tables, for stretch")
        demand("keep", keep, 0 <= keep <= most, f"0 to {most}, to stretch {n} positions to {num}")


def _computed(p: Float64, num: int, method: str, alpha: float, keep: int, align_corners: bool, seed: int) -> Float64:
    """The new usable rows, `float64[num, dim]`, by a method that computes them."""
    n, dim = p.shape
    if method in ("random", "hierarchical"):
        later = np.arange(n, num)
        if method == "random":
            new = p.std() * normals(len(later) * dim, seed).reshape(-1, dim)
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
