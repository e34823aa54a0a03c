"""What a table looks like: which formula it follows, its norms, its reserved rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .arguments import Matrix, checked
from .key_styles import PRESETS
from .waves import waves_of

_STARTS = (0, 1, -1, -2)  # angles of row 0 that are tried
_SAMPLE = 256  # rows that are compared


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


def facts(table: Matrix) -> Facts:
    """What a table looks like: which preset it matches, its norms, its reserved rows.

    At most 256 rows, evenly spread, are compared; a match may differ by what float32 or bfloat16 arithmetic explains.

    Raises:
        InputError: it is no table.
    """
    table = checked(table)
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
        waves = waves_of(dim, name)
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
