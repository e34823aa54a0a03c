"""Figures of vectors, gathered while the rows stream by: lengths, dimensions, directions, rows that are the same.

No vector is kept. A row leaves 17 bytes: its length, a hash of its bits, and its flags. Sums are made for each run of
rows by whichever thread brings it, and folded together in the order of the rows (Chan, Golub and LeVeque, "Updating
formulae and a pairwise algorithm for computing sample variances", 1979), so that threads change nothing.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..conversion.parsed_rows import ParsedRows
from .health_figures import Dimensions, Histogram, Norms, Rogue
from .results import figure

BINS = 48  # of the histogram of lengths
NAN, INF, ZERO, CONSTANT, MADE, COPY = 1, 2, 4, 8, 16, 32
_LEFT_OUT = NAN | INF | MADE

F64 = NDArray[np.float64]


class _Sums(NamedTuple):
    """Sums over n finite rows: mean and square deviations of each dimension, and the sum of the unit vectors."""

    rows: int
    mean: F64
    deviations: F64
    units: F64

    def fold(self, other: _Sums) -> _Sums:
        if not self.rows or not other.rows:
            return other if other.rows else self
        count = self.rows + other.rows
        delta = other.mean - self.mean
        mean = self.mean + delta * (other.rows / count)
        deviations = self.deviations + other.deviations + delta**2 * (self.rows * other.rows / count)
        return _Sums(count, mean, deviations, self.units + other.units)


class _Part(NamedTuple):
    """What a run of rows leaves behind."""

    sums: _Sums
    norms: F64  # [n]
    hashes: NDArray[np.uint64]  # [n]
    flags: NDArray[np.uint8]  # [n]


class Geometry:
    """Takes float32 rows of rising ids from several threads, in any order of the runs; then has the figures.

    Args:
        dim: D.

    Attributes:
        norms: float64[V], after `finish`; NaN for rows that are not finite.
        flags: uint8[V], after `finish`: NAN, INF, ZERO, CONSTANT, MADE, COPY.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._lock = threading.Lock()
        self._parts: dict[int, _Part] = {}
        self._norms: list[F64] = []
        self._hashes: list[NDArray[np.uint64]] = []
        self._flags: list[NDArray[np.uint8]] = []
        self._next = 0
        zeros = np.zeros(dim)
        self._sums = _Sums(0, zeros, zeros, zeros)
        # Two multilinear hashes, of which the upper halves are used: 2^-64 that two different rows agree.
        self._factors = np.random.Philox(key=1).random_raw(2 * dim).reshape(dim, 2) | np.uint64(1)

    def take(self, parsed: ParsedRows) -> None:
        """Take rows as they come from the engine."""
        for id, rows in parsed.runs():
            self.add(id, np.frombuffer(rows, np.float32).reshape(-1, self.dim))

    def add(self, id: int, rows: NDArray[np.float32], flags: NDArray[np.uint8] | None = None) -> None:
        """Take float32[n, D]; `flags` says which are MADE, and left out, or a COPY by intention."""
        part = self._part(rows, np.zeros(len(rows), np.uint8) if flags is None else flags.copy())
        with self._lock:
            self._parts[id] = part
            while self._next in self._parts:
                self._take(self._parts.pop(self._next))

    def _part(self, rows: NDArray[np.float32], flags: NDArray[np.uint8]) -> _Part:
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            nan = np.isnan(rows).any(axis=1)
            flags[nan] |= NAN
            flags[~finite & ~nan] |= INF
        norms = np.full(len(rows), np.nan)
        wide = rows[finite].astype(np.float64)
        norms[finite] = np.sqrt(np.einsum("nd,nd->n", wide, wide))
        flags[norms == 0] |= ZERO
        if self.dim > 1:
            flags[(rows == rows[:, :1]).all(axis=1) & (norms > 0)] |= CONSTANT
        kept = wide if not (flags & MADE).any() else wide[(flags[finite] & MADE) == 0]
        products = rows.view(np.uint32).astype(np.uint64) @ self._factors
        hashes = (products[:, 0] & np.uint64(0xFFFFFFFF00000000)) | (products[:, 1] >> np.uint64(32))
        return _Part(_sums_of(kept), norms, hashes, flags)

    def _take(self, part: _Part) -> None:
        self._sums = self._sums.fold(part.sums)
        self._norms.append(part.norms)
        self._hashes.append(part.hashes)
        self._flags.append(part.flags)
        self._next += len(part.norms)

    def finish(self) -> None:
        """No more rows come."""
        if self._parts:
            raise AssertionError(f"rows from {self._next} on never came")
        self.norms: F64 = np.concatenate([*self._norms, np.empty(0)])
        self.flags: NDArray[np.uint8] = np.concatenate([*self._flags, np.empty(0, np.uint8)])
        self._all_hashes = np.concatenate([*self._hashes, np.empty(0, np.uint64)])
        self._norms, self._hashes, self._flags = [], [], []

    # The figures.

    def rows_with(self, flag: int) -> NDArray[np.int64]:
        """Ids of the rows that carry a flag and are not made."""
        return np.flatnonzero(((self.flags & flag) != 0) & ((self.flags & MADE) == 0))

    @property
    def nan_rows(self) -> NDArray[np.int64]:
        """Ids of rows with a value that is not a number."""
        return self.rows_with(NAN)

    def lengths(self) -> Norms:
        """Quantiles and histogram of the lengths of finite rows."""
        norms = self.norms[(self.flags & _LEFT_OUT) == 0]
        if not len(norms):
            return Norms(None, None, None, None, None, Histogram([], []))
        low, p01, median, p99, high = np.quantile(norms, [0, 0.01, 0.5, 0.99, 1]).tolist()
        # One row a hundred times longer than all others would leave a histogram of one bar.
        top = min(high, median + 4 * max(p99 - median, 1e-6 * high))
        if top - low < 2 * BINS * np.spacing(top):  # too close for so many bins, even if they are far from 0
            low_edge, top = low - 0.5 * max(1.0, 1e-6 * high), top + 0.5 * max(1.0, 1e-6 * high)
        else:
            low_edge = low
        counts, edges = np.histogram(norms.clip(max=top), BINS, (low_edge, top))
        histogram = Histogram([figure(edge) or 0.0 for edge in edges.tolist()], counts.tolist())
        return Norms(figure(low), figure(p01), figure(median), figure(p99), figure(high), histogram)

    def outliers(self) -> NDArray[np.int64]:
        """Ids of rows whose length is far from the usual: outside of Tukey's outer fences; the farthest first."""
        ids = np.flatnonzero((self.flags & (_LEFT_OUT | ZERO)) == 0)
        norms = self.norms[ids]
        if len(ids) < 4:
            return ids[:0]
        first, median, third = np.quantile(norms, [0.25, 0.5, 0.75])
        # The quartiles of unit vectors differ by rounding alone.
        reach = 3 * max(third - first, 1e-3 * median)
        beyond = np.maximum(norms - third, first - norms) - reach
        far = np.flatnonzero(beyond > 0)
        return ids[far[np.argsort(-beyond[far], kind="stable")]]

    def identical(self) -> tuple[int, list[tuple[int, int]]]:
        """How many rows have the vector of an earlier one; the first few pairs (earlier id, later id)."""
        ids = np.flatnonzero((self.flags & (ZERO | MADE | COPY)) == 0)
        hashes = self._all_hashes[ids]
        order = np.argsort(hashes, kind="stable")
        ranked, sorted_ids = hashes[order], ids[order]
        same = np.flatnonzero(ranked[1:] == ranked[:-1])
        pairs = sorted(zip(sorted_ids[same].tolist(), sorted_ids[same + 1].tolist(), strict=True))
        return len(same), pairs[:20]

    def dimensions(self) -> Dimensions:
        """Mean, spread and weight of each dimension."""
        sums, dim = self._sums, self.dim
        if not sums.rows:
            return Dimensions([], [], [], [], [])
        squares = sums.deviations + sums.rows * sums.mean**2
        total = float(squares.sum())
        share = squares / total if total else np.zeros(dim)
        bound = min(5 / dim, 0.5)
        rogue = np.flatnonzero(share >= bound).tolist() if dim > 1 else []
        constant = np.flatnonzero(np.sqrt(sums.deviations / sums.rows) <= 1e-9 * np.abs(sums.mean))
        return Dimensions(
            _figures(sums.mean),
            _figures(np.sqrt(sums.deviations / sums.rows)),
            _figures(share),
            [Rogue(d, figure(share[d]) or 0.0, figure(sums.mean[d]) or 0.0) for d in rogue],
            constant.tolist() if sums.rows > 1 else [],
        )

    @property
    def mean_length(self) -> float | None:
        """Length of the mean vector."""
        return figure(float(np.sqrt((self._sums.mean**2).sum()))) if self._sums.rows else None

    @property
    def mean_cosine(self) -> float | None:
        """Average cosine of all pairs of rows: of n unit vectors with sum s, (|s|^2 - n) / (n^2 - n)."""
        count = int(((self.flags & (_LEFT_OUT | ZERO)) == 0).sum())
        if count < 2:
            return None
        return figure((float((self._sums.units**2).sum()) - count) / (count * (count - 1)))


def _sums_of(rows: F64) -> _Sums:
    """The sums over float64[n, D], all finite."""
    if not len(rows):
        zeros = np.zeros(rows.shape[1])
        return _Sums(0, zeros, zeros, zeros)
    mean = rows.mean(axis=0)
    deviations = ((rows - mean) ** 2).sum(axis=0)
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    weights = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return _Sums(len(rows), mean, deviations, weights @ rows)


def _figures(values: F64) -> list[float]:
    return [figure(value) or 0.0 for value in values.tolist()]
