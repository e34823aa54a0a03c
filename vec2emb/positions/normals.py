"""Normal numbers that are the same on every machine and with every version of numpy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .arguments import Float64, demand

_BLOCK = 1 << 16  # numbers drawn at a time; even, as they come in pairs


def normals(count: int, seed: int, limit: float = math.inf) -> Float64:
    """Standard normal numbers, `float64[count]`, none beyond +-`limit`.

    Number e depends on (seed, e) alone. The raw bits are those of Philox 4x64-10 with the seed as its key, which numpy
    promises to keep (unlike its `standard_normal`), made normal by Box and Muller. What falls beyond the limit is
    drawn again, at its own place, from the stream of the next key.
    """
    demand("seed", seed, 0 <= seed < 1 << 64, "0 to 2^64 - 1")
    numbers = np.empty(count)
    missing = np.ones(count, bool)
    stream = 0
    while missing.any():
        source = np.random.Philox(key=int(seed) | stream << 64)
        for at in range(0, count, _BLOCK):
            some = missing[at : at + _BLOCK]
            drawn = _pairs(source.random_raw(len(some) + len(some) % 2))[: len(some)]
            numbers[at : at + _BLOCK][some] = drawn[some]
            some[:] = np.abs(numbers[at : at + _BLOCK]) > limit
        stream += 1
    return numbers


def _pairs(raw: NDArray[np.uint64]) -> Float64:
    """An even number of 64 random bits each to as many normal numbers."""
    uniform = (raw >> np.uint64(11)) * 2.0**-53
    radius = np.sqrt(-2 * np.log1p(-uniform[0::2]))  # log of 1 - u, which is never zero
    turn = 2 * math.pi * uniform[1::2]
    return np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1).reshape(-1)
