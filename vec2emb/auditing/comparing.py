"""Sources beside each other: the vocabulary that they share, and how far the geometry of shared words agrees.

Vectors of two tables lie in different coordinates, so they are not compared themselves, but the cosines between words:
of a sample of shared words, each pair has one cosine in either table. A second reading fetches just the sample's rows.
"""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .._kernel import TokenIndex
from ..bundle.reader import open_bundle
from ..bundle.table import stored_rows
from ..conversion.parsed_rows import Collector
from ..conversion.reading_pass import ReadOptions, open_pass
from ..conversion.selection import Rules, Selection
from .results import Comparison, figure
from .streaming import Streamed
from .tokens import strings

SAMPLE = 1000
NEIGHBOURS = 10
_BATCH = 1 << 16

F32 = NDArray[np.float32]


def compare_all(sources: list[Streamed], options: ReadOptions) -> list[Comparison]:
    """Every pair of sources."""
    return [_compare(sources, first, second, options) for first, second in combinations(range(len(sources)), 2)]


def _compare(sources: list[Streamed], first: int, second: int, options: ReadOptions) -> Comparison:
    one, two = sources[first], sources[second]
    shared, drawn = 0, _Draw(SAMPLE)
    for token in _shared(one, two):
        shared += 1
        drawn.offer(token)
    sizes = [len(source.index) - len(source.made) for source in (one, two)]
    sample: int | None = None
    same: int | None = None
    agreement = neighbours = None
    if shared and one.again is not None and two.again is not None:
        words = drawn.tokens()
        a, b = (_vectors(source, words, options) for source in (one, two))
        useful = _has_direction(a) & _has_direction(b)
        a, b = a[useful], b[useful]
        sample = len(a)
        same = int((a.view(np.uint32) == b.view(np.uint32)).all(axis=1).sum()) if one.dim == two.dim else 0
        agreement, neighbours = _agreement(_cosines(a), _cosines(b))
    return Comparison(
        first, second, shared, shared / sizes[0] if sizes[0] else 0.0, shared / sizes[1] if sizes[1] else 0.0,
        sample, same, agreement, neighbours,
    )  # fmt: skip


def _shared(one: Streamed, two: Streamed) -> Iterator[str]:
    """Tokens that both have from a file."""
    batch: list[str] = []
    for id, token in strings(one.index):
        if id not in one.made:
            batch.append(token)
        if len(batch) == _BATCH:
            yield from _held(two, batch)
            batch = []
    yield from _held(two, batch)


def _held(source: Streamed, tokens: list[str]) -> Iterator[str]:
    ids = np.empty(len(tokens), np.int64)
    if tokens:
        source.index.find(tokens, ids.data, -1)
    made = source.made
    return (token for token, id in zip(tokens, ids.tolist(), strict=True) if id >= 0 and id not in made)


class _Draw:
    """The tokens with the smallest hashes: a fair sample that depends on nothing but the tokens."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[int, str]] = []  # the largest hash first

    def offer(self, token: str) -> None:
        key = -int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest())
        if len(self._heap) < self._size:
            heapq.heappush(self._heap, (key, token))
        elif key > self._heap[0][0]:
            heapq.heapreplace(self._heap, (key, token))

    def tokens(self) -> list[str]:
        return [token for _, token in sorted(self._heap, reverse=True)]


def _vectors(source: Streamed, words: list[str], options: ReadOptions) -> F32:
    """float32[n, D]: the rows of words that the source has."""
    rows = np.zeros((len(words), source.dim), np.float32)
    if source.kind == "bundle":
        bundle, vocab = open_bundle(os.fspath(source.again))  # type: ignore[arg-type]
        for place, word in enumerate(words):
            row = vocab.tokens.index(word)
            rows[place] = stored_rows(bundle, row, row + 1)[0]
        return rows
    place_of = {word.encode(): place for place, word in enumerate(words)}
    wanted = TokenIndex.over(b"".join(token + b"\n" for token in place_of))
    assert source.again is not None
    with open_pass(source.again, options._replace(progress=False)) as opened:
        selection = Selection([], rules=Rules("first"), wanted=wanted)
        collector = Collector()
        opened.read(selection, collector.take)
        for id, block in collector.runs:
            for offset, vector in enumerate(np.frombuffer(block, np.float32).reshape(-1, source.dim)):
                rows[place_of[selection.index.token(id + offset)]] = vector
    return rows


def _has_direction(rows: F32) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(rows).all(axis=1) & rows.any(axis=1))


def _cosines(rows: F32) -> NDArray[np.float64]:
    """float64[n, n]."""
    wide = rows.astype(np.float64)
    units = wide / np.sqrt(np.einsum("nd,nd->n", wide, wide))[:, None]
    cosines: NDArray[np.float64] = units @ units.T
    return cosines


def _agreement(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Correlation of the cosines of different words, and the share of nearest neighbours that both have."""
    count = len(a)
    if count < 3:
        return None, None
    upper = np.triu_indices(count, 1)
    x, y = a[upper], b[upper]
    constant = x.std() == 0 or y.std() == 0
    agreement = None if constant else figure(float(np.corrcoef(x, y)[0, 1]))
    nearest = min(NEIGHBOURS, count - 1)
    sets = []
    for cosines in (a, b):
        apart = cosines.copy()
        np.fill_diagonal(apart, -np.inf)
        sets.append(np.argsort(-apart, axis=1, kind="stable")[:, :nearest])
    both = sum(len(np.intersect1d(u, v, assume_unique=True)) for u, v in zip(*sets, strict=True))
    return agreement, both / (count * nearest)
