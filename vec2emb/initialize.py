"""Vectors for rows that the file does not have: special tokens and missing words.

`mean`, `normal` and `uniform` are fitted to the rows that were taken from the file, per dimension: with their mean m
and standard deviation s (both in float64, over the rows in their final order), `normal` draws from N(m, s^2) and
`uniform` from [m - sqrt(3) s, m + sqrt(3) s], which has the same mean and deviation.

A random row depends on the seed and the token alone, not on which other rows are drawn: its bits come from Philox, a
counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), keyed by
SHA-256(seed, token). The step from bits to numbers is written out here, so that it never changes under us.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ._kernel import add_rows, add_square_deviations
from .errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Blocks = Callable[[], Iterator[bytes | bytearray | memoryview]]


class Statistics:
    """Mean and standard deviation of the file's rows, computed when they are first asked for.

    Args:
        blocks: yields the rows as float32[n, dim], in their final order; it is called once a statistic.
        dim: D.
    """

    def __init__(self, blocks: Blocks, dim: int) -> None:
        self._blocks = blocks
        self.dim = dim
        self._mean: array[float] | None = None
        self._deviation: array[float] | None = None

    @property
    def mean(self) -> array[float]:
        """float64[D]; equal to `rows.mean(axis=0, dtype=numpy.float64)`, rows that are not finite left out."""
        if self._mean is None:
            sums = array("d", bytes(8 * self.dim))
            count = sum(add_rows(memoryview(sums), block, self.dim) for block in self._blocks())
            if not count:
                raise InputError(
                    "nothing-to-fit",
                    "no row was taken from the file, so nothing has a mean",
                    hint="use zeros: --unk-init zeros, --special TOKEN=zeros",
                )
            self._mean = array("d", (total / count for total in sums))
        return self._mean

    @property
    def deviation(self) -> array[float]:
        """float64[D]; equal to `rows.std(axis=0, dtype=numpy.float64)`."""
        if self._deviation is None:
            sums = array("d", bytes(8 * self.dim))
            mean = memoryview(self.mean)
            count = sum(add_square_deviations(memoryview(sums), mean, block, self.dim) for block in self._blocks())
            self._deviation = array("d", (math.sqrt(total / count) for total in sums))
        return self._deviation


def initial_vector(init: str, token: str, seed: int, statistics: Statistics) -> array[float]:
    """The vector of `token`, float32[D], for an init of `zeros`, `mean`, `normal` or `uniform`."""
    dim = statistics.dim
    if init == "zeros":
        return array("f", bytes(4 * dim))
    mean = statistics.mean
    if init == "mean":
        return array("f", mean)
    import numpy as np

    if init == "normal":
        drawn = standard_normal(seed, token, dim)
    else:
        drawn = math.sqrt(3) * (2 * _uniform(seed, token, dim) - 1)
    vector = array("f", bytes(4 * dim))
    with np.errstate(over="ignore"):  # whoever asks checks the range
        np.frombuffer(vector, np.float32)[:] = np.asarray(mean) + np.asarray(statistics.deviation) * drawn
    return vector


def standard_normal(seed: int, token: str, count: int) -> NDArray[np.float64]:
    """float64[count] from N(0, 1) by the method of Box and Muller, two from two uniform ones."""
    import numpy as np

    u = _uniform(seed, token, count + count % 2)
    radius = np.sqrt(-2 * np.log(1 - u[::2]))  # 1 - u lies in (0, 1]
    angle = 2 * math.pi * u[1::2]
    drawn = np.empty_like(u)
    drawn[::2], drawn[1::2] = radius * np.cos(angle), radius * np.sin(angle)
    return drawn[:count]


def _uniform(seed: int, token: str, count: int) -> NDArray[np.float64]:
    """float64[count] in [0, 1), each from the upper 53 of 64 random bits."""
    import hashlib

    import numpy as np
    from numpy.random import Philox  # its raw bits are fixed by its definition

    key = hashlib.sha256(b"%d\0" % seed + token.encode()).digest()[:16]
    raw: NDArray[np.uint64] = Philox(key=int.from_bytes(key, "little")).random_raw(count)
    uniform: NDArray[np.float64] = (raw >> 11).astype(np.float64) * 2.0**-53
    return uniform
