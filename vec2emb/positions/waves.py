"""The frequencies of a sinusoidal table, and where its sines and cosines stand."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..errors import UsageError
from .arguments import Float64, choice, demand
from .key_styles import FREQUENCIES, LAYOUTS, ODD, PRESETS


class Waves(NamedTuple):
    """Where sines and cosines stand, and 1/w of each sine; a cosine shares the one of its sine."""

    dim: int
    sines: slice
    cosines: slice
    divisors: Float64

    def rows(self, angles: Float64) -> Float64:
        """Rows of a table, `float64[n, dim]`, at the angles of the fastest pair, `float64[n]`."""
        table = np.zeros((len(angles), self.dim))
        every = angles[:, np.newaxis] / self.divisors
        table[:, self.sines] = np.sin(every)
        table[:, self.cosines] = np.cos(every)[:, : self.dim // 2]
        return table


def waves_of(
    dim: int,
    preset: str,
    layout: str | None = None,
    frequencies: str | None = None,
    base: float = 10000.0,
    odd: str | None = None,
) -> Waves:
    home = PRESETS[choice("preset", preset, tuple(PRESETS))]
    layout = choice("layout", layout or home.layout, LAYOUTS)
    frequencies = choice("frequencies", frequencies or home.frequencies, FREQUENCIES)
    odd = choice("odd", odd or home.odd, ODD)
    demand("base", base, math.isfinite(base) and base >= 1, "1 or more")
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
        return Waves(dim, slice(0, pairs + sines, 2), slice(1, 2 * pairs, 2), divisors)
    if layout == "sin-cos":
        return Waves(dim, slice(0, sines), slice(sines, sines + pairs), divisors)
    return Waves(dim, slice(pairs, pairs + sines), slice(0, pairs), divisors)
