"""Which tokens of a corpus a source has, and what would find the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, SupportsInt

import numpy as np
from numpy.typing import NDArray

from .._kernel import TokenIndex
from ..bundle.reader import HEADER_BYTES
from ..words.vocabulary import other_forms
from .coverage_figures import Band, Coverage, CurvePoint, Misses, MissingWord, Remedy, Restricted, Together
from .remedies import CASE_FALLBACK, LOWERCASE, TEXTS, CaseRemedy, TextRemedy
from .results import figure
from .tokens import strings

if TYPE_CHECKING:
    from .streaming import Streamed

SHOWN = 100  # missing words that the result names
_PIECE = 1 << 16  # tokens of a corpus that are strings at a time
_POINTS = 60  # of the curve, about

Bools = NDArray[np.bool_]
Ids = NDArray[np.int64]


class Counted(Protocol):
    """Tokens of a corpus with their counts, the most frequent first: what `vec2emb.corpus.count_tokens` returns."""

    @property
    def tokens(self) -> Sequence[str]: ...
    @property
    def counts(self) -> Ids: ...


class Finder:
    """Looks words up in a source: rows that no file gave do not count, and case is treated as the source does it."""

    def __init__(self, source: Streamed) -> None:
        self._index = source.index
        self._forms = other_forms(source.lookup)
        self._made = np.array(sorted(source.made), np.int64)
        self._changed: TokenIndex | None = None  # the lower-cased spellings of tokens that have upper-case letters

    def exact(self, words: list[str]) -> Ids:
        """int64[n]: the row of each word as it stands; -1 where there is none."""
        rows = _find(self._index, words)
        if len(self._made):
            rows[np.isin(rows, self._made)] = -1
        return rows

    def rows(self, words: list[str]) -> Ids:
        """int64[n]: the row of each word, in another case where the source's lookup allows it; else -1."""
        return self._first(words, [lambda word: word, *self._forms])

    def fallback(self, words: list[str]) -> Bools:
        """bool[n]: which words are there as they stand, in lower case, capitalised or in upper case."""
        return self._first(words, [lambda word: word, *other_forms("case-fallback")]) >= 0

    def lower(self, words: list[str]) -> Bools:
        """bool[n]: which words are there once words are lower-cased."""
        return self.exact([word.lower() for word in words]) >= 0

    def lower_both(self, words: list[str]) -> Bools:
        """bool[n]: which words are there once words and tokens are lower-cased."""
        if self._changed is None:
            self._changed, made = TokenIndex(), set(self._made.tolist())
            for id, token in strings(self._index):
                if (lowered := token.lower()) != token and id not in made:
                    self._changed.add(lowered.encode())
        lowered_words = [word.lower() for word in words]
        return (self.exact(lowered_words) >= 0) | (_find(self._changed, lowered_words) >= 0)

    def _first(self, words: list[str], forms: Iterable[Callable[[str], str]]) -> Ids:
        rows = np.full(len(words), -1, np.int64)
        for form in forms:
            missing = np.flatnonzero(rows < 0)
            rows[missing] = self.exact([form(words[i]) for i in missing.tolist()])
        return rows


def _find(index: TokenIndex, words: list[str]) -> Ids:
    rows = np.empty(len(words), np.int64)
    if words:
        index.find(words, rows.data, -1)
    return rows


def cover(source: Streamed, counted: Counted, *, pad: str = "<pad>", unk: str = "<unk>") -> Coverage:
    """Look all tokens of a corpus up in a source.

    Args:
        source: what was read.
        counted: the corpus; one token at least.
        pad, unk: the special tokens of a bundle that is made of it.
    """
    finder = Finder(source)
    tokens, counts = counted.tokens, np.asarray(counted.counts, np.int64)
    rows = np.concatenate([finder.rows(list(tokens[i : i + _PIECE])) for i in range(0, len(counts), _PIECE)])
    found = rows >= 0
    missing = np.flatnonzero(~found)
    words = [tokens[i] for i in missing.tolist()]
    weights = counts[missing]
    total, types = int(counts.sum()), len(counts)
    wins = _wins(finder, words, source.kind == "bundle")
    ranked = sorted(wins, key=lambda win: (-int(weights[win[1]].sum()), -int(win[1].sum())))
    best = _best([win for win in ranked if win[1].any()], len(words))
    remedies = [_remedy(*win, weights, types, total, source.kind == "bundle") for win in ranked]
    together = _one_after_the_other(finder, words)
    for _, finds in wins:
        together |= finds
    lost, lost_running = int((~together).sum()), int(weights[~together].sum())
    used = np.unique(rows[found])
    specials = {id for token in (pad, unk) if (id := source.index.get(token.encode())) >= 0}
    restricted = len(used) + 2 - len(specials & set(used.tolist()))
    running_found = int(counts[found].sum())
    return Coverage(
        types=_share(types - len(words), types),
        tokens=_share(running_found, total),
        types_found=types - len(words),
        types_missing=len(words),
        tokens_found=running_found,
        tokens_missing=total - running_found,
        bands=_bands(counts, found),
        curve=_curve(counts, found),
        remedies=remedies,
        together=Together(_share(types - lost, types), _share(total - lost_running, total)),
        used_rows=len(used),
        unused_rows=len(source.index) - len(source.made) - len(used),
        restricted=Restricted(restricted, *(HEADER_BYTES + restricted * source.dim * width for width in (4, 2))),
        missing=[
            MissingWord(word, int(count), remedy, [])
            for word, count, remedy, _ in zip(words, weights, best, range(SHOWN), strict=False)
        ],
        misses=Misses(words, weights, best),
    )


# Remedies.

Win = tuple[TextRemedy | CaseRemedy, Bools]  # a remedy, and which of the missing words it finds


def _wins(finder: Finder, words: list[str], bundle: bool) -> list[Win]:
    wins: list[Win] = [
        (LOWERCASE, (finder.lower if bundle else finder.lower_both)(words)),
        (CASE_FALLBACK, finder.fallback(words)),
    ]
    for remedy in TEXTS:
        touched = np.array([i for i, word in enumerate(words) if remedy.touches.search(word)], np.int64)
        pieces = remedy.of([words[i] for i in touched.tolist()])
        found = np.zeros(len(words), np.bool_)
        found[touched] = _all_found(finder, pieces)
        wins.append((remedy, found))
    return wins


def _all_found(finder: Finder, pieces: list[list[str]]) -> Bools:
    """bool[n]: for which entries every piece is there."""
    here = finder.rows([piece for entry in pieces for piece in entry]) >= 0
    sizes = np.array([len(entry) for entry in pieces], np.int64)
    owner = np.repeat(np.arange(len(pieces)), sizes)
    return np.asarray((sizes > 0) & (np.bincount(owner, ~here, len(pieces)) == 0))


def _best(ranked: list[Win], count: int) -> list[str | None]:
    best: list[str | None] = [None] * count
    for remedy, found in reversed(ranked):
        for i in np.flatnonzero(found).tolist():
            best[i] = remedy.name
    return best


def _one_after_the_other(finder: Finder, words: list[str]) -> Bools:
    """bool[n]: which words are found when each piece that is missing goes through all remedies, the case last."""
    entries = [[word] for word in words]
    for remedy in TEXTS:
        entries = _applied(finder, remedy, entries)
    flat = [piece for entry in entries for piece in entry]
    here = finder.fallback(flat) | finder.lower_both(flat)
    owner = np.repeat(np.arange(len(entries)), [len(entry) for entry in entries])
    return np.asarray(np.bincount(owner, ~here, len(entries)) == 0)


def _applied(finder: Finder, remedy: TextRemedy, entries: list[list[str]]) -> list[list[str]]:
    flat = [piece for entry in entries for piece in entry]
    here = iter((finder.rows(flat) >= 0).tolist())
    return [[new for piece in entry for new in ([piece] if next(here) else remedy.of([piece])[0])] for entry in entries]


def _remedy(
    remedy: TextRemedy | CaseRemedy, found: Bools, weights: Ids, types: int, total: int, bundle: bool
) -> Remedy:
    types_won, tokens_won = int(found.sum()), int(weights[found].sum())
    in_types, in_tokens = types - len(found) + types_won, total - int(weights.sum()) + tokens_won
    options = remedy.options if isinstance(remedy, CaseRemedy) and not bundle else None
    return Remedy(
        remedy.name, remedy.title, _share(in_types, types), _share(in_tokens, total), types_won, tokens_won,
        options, None if options else remedy.code,
    )  # fmt: skip


# Frequencies.


def _bands(counts: Ids, found: Bools) -> list[Band]:
    """Once, 2 to 9 times, 10 to 99, ..; the most frequent first."""
    bands = []
    most, low = int(counts.max()), 1
    while low <= most:
        high = 1 if low == 1 else 10 ** len(str(low)) - 1
        inside = (counts >= low) & (counts <= high)
        if inside.any():
            both = inside & found
            bands.append(
                Band(low, high, *map(int, (inside.sum(), both.sum(), counts[inside].sum(), counts[both].sum())))
            )
        low = high + 1
    return bands[::-1]


def _curve(counts: Ids, found: Bools) -> list[CurvePoint]:
    types, running, there = np.cumsum(found), np.cumsum(counts), np.cumsum(counts * found)
    ranks = np.unique(np.geomspace(1, len(counts), _POINTS).round().astype(np.int64))
    return [
        CurvePoint(rank, _share(types[rank - 1], rank), _share(there[rank - 1], running[rank - 1]))
        for rank in ranks.tolist()
    ]


def _share(part: SupportsInt, whole: SupportsInt) -> float:
    """A ratio of counts, to the last bit: a gate compares it."""
    return int(part) / int(whole) if whole else 0.0


__all__ = ["SHOWN", "Counted", "Finder", "cover", "figure"]
