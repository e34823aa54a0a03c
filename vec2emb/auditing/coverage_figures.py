"""The typed figures of a corpus looked up in a source. `results` says how they are to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HIDDEN = {"hidden": True}  # of a field that is no part of the JSON


@dataclass(frozen=True)
class Band:
    """Tokens of a corpus that are about equally frequent.

    Attributes:
        least, most: how often each of them stands in the corpus.
        types: how many different ones there are.
        types_found: how many of these have a row.
        running: how often all of them stand there.
        running_found: how often those stand there that have a row.
    """

    least: int
    most: int
    types: int
    types_found: int
    running: int
    running_found: int


@dataclass(frozen=True)
class CurvePoint:
    """Coverage of the most frequent tokens.

    Attributes:
        rank: how many of the most frequent tokens are looked at.
        types: the share of these that has a row.
        tokens: the same, each weighed with its count.
    """

    rank: int
    types: float
    tokens: float


@dataclass(frozen=True)
class Remedy:
    """What would find more tokens, and how many.

    Attributes:
        name: a stable slug.
        title: in words.
        types: share of distinct tokens that would be found with it alone.
        tokens: share of running tokens that would be found with it alone.
        types_won: how many distinct tokens that adds.
        tokens_won: how many running tokens that adds.
        options: what to add to `vec2emb convert`; null where the text must be changed.
        code: Python that makes of a `token` that is missing the one to look up, or the list of them; null with options.
    """

    name: str
    title: str
    types: float
    tokens: float
    types_won: int
    tokens_won: int
    options: str | None
    code: str | None


@dataclass(frozen=True)
class Together:
    """All remedies: what one of them finds, or all of them one after the other, the case last.

    Attributes:
        types: share of distinct tokens that would be found.
        tokens: share of running tokens that would be found.
    """

    types: float
    tokens: float


@dataclass(frozen=True)
class MissingWord:
    """A token of the corpus without a row.

    Attributes:
        token: the token.
        count: how often it stands in the corpus.
        remedy: the most useful remedy that finds it; null if none does.
        examples: lines of the corpus that hold it, if they were asked for.
    """

    token: str
    count: int
    remedy: str | None
    examples: list[str]


@dataclass(frozen=True)
class Restricted:
    """The bundle of `vec2emb convert SOURCE --only` the corpus's words.

    Attributes:
        rows: its rows, with padding and unknown.
        float32_bytes: size of its model.safetensors.
        float16_bytes: the same with `--dtype float16`.
    """

    rows: int
    float32_bytes: int
    float16_bytes: int


class Misses:
    """All missing words of a corpus, the most frequent first; no object for each.

    Args:
        words: n words.
        counts: int64[n], how often each stands in the corpus.
        remedies: for each the name of the most useful remedy, or None.
    """

    def __init__(self, words: list[str], counts: NDArray[np.int64], remedies: list[str | None]) -> None:
        self._columns = (words, counts, remedies)

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[tuple[str, int, str | None]]:
        """Word, count, remedy of each."""
        words, counts, remedies = self._columns
        return zip(words, counts.tolist(), remedies, strict=True)


@dataclass(frozen=True)
class Coverage:
    """Which tokens of a corpus have a row that came from a file; looked up as the source's own vocabulary does it.

    Attributes:
        types: share of distinct tokens that is found.
        tokens: share of running tokens that is found.
        types_found: how many distinct tokens are found.
        types_missing: how many are not.
        tokens_found: how many running tokens are found.
        tokens_missing: how many are not.
        bands: the same by frequency.
        curve: the same of the most frequent tokens.
        remedies: what would find more, the most useful first.
        together: all of them.
        used_rows: rows that the corpus uses.
        unused_rows: rows that it never uses.
        restricted: what a bundle of the used rows would take.
        missing: the most frequent missing tokens, at most a hundred.
    """

    types: float
    tokens: float
    types_found: int
    types_missing: int
    tokens_found: int
    tokens_missing: int
    bands: list[Band]
    curve: list[CurvePoint]
    remedies: list[Remedy]
    together: Together
    used_rows: int
    unused_rows: int
    restricted: Restricted
    missing: list[MissingWord]
    misses: Misses = field(metadata=HIDDEN, repr=False)
