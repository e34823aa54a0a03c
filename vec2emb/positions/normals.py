"""Normal numbers that are the same on every machine and with every version of numpy."""

from __future__ import annotations

import math

import numpy as np

from .arguments import Float64, demand


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
        raw = np.random.Philox(key=int(seed) | stream << 64).random_raw(count + count % 2)
        uniform = (raw >> np.uint64(11)) * 2.0**-53
        radius = np.sqrt(-2 * np.log1p(-uniform[0::2]))  # log of 1 - u, which is never zero
        turn = 2 * math.pi * uniform[1::2]
        drawn = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1).reshape(-1)[:count]
        numbers[missing] = drawn[missing]
        missing = np.abs(numbers) > limit
        stream += 1
    return numbers
