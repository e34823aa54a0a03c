"""Vectors for rows that the file does not have: special tokens and missing words.

`mean`, `normal` and `uniform` are fitted to the rows that were taken from the file, per dimension: with their mean m
and standard deviation s (both in float64, over the rows in their final order), `normal` draws from N(m, s^2) and
`uniform` from [m - sqrt(3) s, m + sqrt(3) s], which has the same mean and deviation. Without any such row (a conversion
from scratch), m is 0 and s is 1, as in `torch.nn.Embedding`, which draws from N(0, 1).

A random row depends on the seed and the token alone, not on which other rows are drawn: its bits come from Philox, a
counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), keyed by
SHA-256(seed, token). The step from bits to numbers is written out here, so that it never changes under us.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .._kernel import add_rows, add_square_deviations
from ..errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Blocks = Callable[[], Iterator[bytes | bytearray | memoryview]]


class Sums(NamedTuple):
    """float64[D], the sum of `rows` rows."""

    totals: array[float]
    rows: int


class RunningSums:
    """Adds up rows while they come, from several threads and out of order, as if they came in the order of their ids.

    A sum of floats depends on the order, so a piece that comes early is copied and waits. Reading all rows once more
    would give the same, and takes its time.

    Args:
        first: the smallest id.
        dim: D.
    """

    WAITING = 16 << 20  # bytes; should one thread be held up for so long, the sums are given up

    def __init__(self, first: int, dim: int) -> None:
        self._dim = dim
        self._sums = array("d", bytes(8 * dim))
        self._count = 0
        self._next = first
        self._waiting: dict[int, bytes] = {}
        self._room = self.WAITING
        self._adding = False
        self._whole = True
        self._lock = threading.Lock()

    def add(self, id: int, rows: memoryview) -> None:
        """Add float32[n, D], the rows of ids id .. id+n-1; every id comes once."""
        with self._lock:
            if id < self._next or not self._whole:
                self._give_up()
                return
            if id != self._next or self._adding:
                self._put_aside(id, rows)
                return
            self._adding = True
        turn: memoryview | bytes | None = rows
        while turn is not None:
            self._count += add_rows(memoryview(self._sums), turn, self._dim)
            with self._lock:
                self._next += len(turn) // (4 * self._dim)
                turn = self._waiting.pop(self._next, None)
                self._adding = turn is not None
                self._room += len(turn or b"")

    def upto(self, stop: int) -> Sums | None:
        """The sums, if exactly the rows of the ids below `stop` came."""
        return Sums(self._sums, self._count) if self._whole and self._next == stop and not self._waiting else None

    def _put_aside(self, id: int, rows: memoryview) -> None:
        self._room -= len(rows)
        if self._room < 0 or id in self._waiting:
            self._give_up()
        else:
            self._waiting[id] = bytes(rows)

    def _give_up(self) -> None:
        self._whole = False
        self._waiting.clear()


class Statistics:
    """Mean and standard deviation of the file's rows, computed when they are first asked for.

    Args:
        blocks: yields the rows as float32[n, dim], in their final order; it is called once a statistic.
        dim: D.
        sums: the sums of the rows, where they are known already.
    """

    def __init__(self, blocks: Blocks, dim: int, sums: Sums | None = None) -> None:
        self._blocks = blocks
        self._sums = sums
        self.dim = dim
        self._mean: array[float] | None = None
        self._deviation: array[float] | None = None

    @classmethod
    def standard(cls, dim: int) -> Statistics:
        """Mean 0 and standard deviation 1 in each dimension, whatever the rows are."""
        found = cls(lambda: iter(()), dim)
        found._mean, found._deviation = array("d", bytes(8 * dim)), array("d", [1.0]) * dim
        return found

    @property
    def mean(self) -> array[float]:
        """float64[D]; equal to `rows.mean(axis=0, dtype=numpy.float64)`, rows that are not finite left out."""
        if self._mean is None:
            sums, count = self._sums or self._add_up()
            if not count:
                raise InputError(
                    "nothing-to-fit",
                    "no row was taken from the file, so nothing has a mean",
                    hint="use zeros: --unk-init zeros, --special TOKEN=zeros",
                )
            self._mean = array("d", (total / count for total in sums))
        return self._mean

    def _add_up(self) -> Sums:
        sums = array("d", bytes(8 * self.dim))
        return Sums(sums, sum(add_rows(memoryview(sums), block, self.dim) for block in self._blocks()))

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
    elif init == "uniform":
        drawn = math.sqrt(3) * (2 * _uniform(seed, token, dim) - 1)
    else:
        raise AssertionError(f"an init {init!r}")  # refused where it was given
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
