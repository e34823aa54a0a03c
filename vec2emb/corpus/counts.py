"""`TokenCounts`: how often each token of a corpus comes."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._kernel import TokenCounter
from ..errors import UsageError, VocabularyError, shown
from ..words.token_lookup import TokenSequence
from ..words.vocabulary import Vocabulary
from ..words.vocabulary_file import blob_of as checked_blob

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TokenCounts:
    """Different tokens and their counts, by falling count, those of one count by the bytes of their UTF-8.

    Holds no Python object a token; `tokens` makes strings when they are asked for.

    Attributes:
        counts: int64[distinct], read-only.
        total: running tokens, which is the sum of `counts`.
        tokenizer: what a token is, as `count_tokens` was told; None where nobody knows.
        lowercase: whether the tokens were lower-cased.
    """

    def __init__(
        self,
        blob: bytes | memoryview,
        counts: NDArray[np.int64],
        *,
        tokenizer: str | None = None,
        lowercase: bool = False,
    ) -> None:
        self._blob = memoryview(blob).toreadonly()
        self.counts = counts.view()
        self.counts.flags.writeable = False
        self.total = int(counts.sum())
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self._ends: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> TokenCounts:
        """Counts that somebody else has made, such as a `collections.Counter`.

        Raises:
            VocabularyError: a token holds LF or has no UTF-8 form.
            UsageError: a token is no string, or a count is no whole number from 1.
        """
        for token, count in counts.items():
            if not isinstance(count, int | np.integer) or count < 1:
                raise UsageError(
                    "count-range",
                    f"{shown(str(token))} has no count",
                    expected="a whole number from 1",
                    found=repr(count),
                )
        counter = TokenCounter()
        counter.add_lines(checked_blob(list(counts)), array("q", map(int, counts.values())))
        return cls.sorted(counter)

    @classmethod
    def sorted(cls, counter: TokenCounter, *, tokenizer: str | None = None, lowercase: bool = False) -> TokenCounts:
        """What a counter of the kernel holds."""
        blob, raw = counter.by_count()
        return cls(blob, np.frombuffer(raw, np.int64), tokenizer=tokenizer, lowercase=lowercase)

    @property
    def distinct(self) -> int:
        """How many different tokens there are."""
        return len(self.counts)

    @property
    def blob(self) -> memoryview:
        """The tokens in UTF-8, each followed by LF, in the order of `counts`."""
        return self._blob

    @property
    def tokens(self) -> Sequence[str]:
        """The tokens, in the order of `counts`."""
        return _Tokens(self)

    def __len__(self) -> int:
        return self.distinct

    def items(self) -> Iterator[tuple[str, int]]:
        """Each token with its count."""
        return zip(self.tokens, (int(count) for count in self.counts), strict=True)

    def most_common(self, number: int) -> list[tuple[str, int]]:
        """The first `number` tokens, each with its count."""
        return list(zip(self.tokens[:number], self.counts[:number].tolist(), strict=True))

    def kept(self, min_count: int = 1, max_size: int | None = None) -> int:
        """How many tokens, from the first on, come at least `min_count` times; at most `max_size`.

        Raises:
            UsageError: one of the two is no whole number from 1.
        """
        for name, value in (("min_count", min_count), ("max_size", max_size)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                expected = "a whole number from 1"
                raise UsageError(
                    f"{name.replace('_', '-')}-range", f"{name} cannot be so", expected=expected, found=repr(value)
                )
        often = int(np.searchsorted(-self.counts, -min_count, "right"))
        return often if max_size is None else min(often, max_size)

    def vocabulary(self, min_count: int = 1, max_size: int | None = None, *, without: Iterable[str] = ()) -> Vocabulary:
        """The most frequent tokens as a vocabulary; special tokens are not added.

        Args:
            min_count: leave out tokens that come less often.
            max_size: keep at most so many.
            without: tokens to leave out.

        Raises:
            UsageError: as in `kept`.
            VocabularyError: no token comes often enough.
        """
        left_out = [token.encode() for token in dict.fromkeys(without)]
        number = self.kept(min_count, max_size)
        # As many more as may be left out.
        blob = b"\n" + bytes(self._blob[: self.place(min(number + len(left_out), self.kept(min_count)))])
        for token in left_out:
            blob = blob.replace(b"\n" + token + b"\n", b"\n", 1)
        blob = blob[1:]
        if max_size is not None and blob.count(b"\n") > max_size:
            blob = b"\n".join([*blob.split(b"\n", max_size)[:max_size], b""])
        if not blob:
            raise VocabularyError(
                "empty-vocabulary",
                "no token comes often enough" if self.distinct else "the corpus has no token",
                expected=f"a token that comes {min_count} times" if self.distinct else None,
                found=f"at most {self.counts[0]}" if self.distinct else None,
            )
        return Vocabulary.from_blob(blob, padding_idx=None, unk_idx=None)

    def place(self, number: int) -> int:
        """Where in the blob token `number` starts; behind the last token, where the blob ends."""
        if self._ends is None:
            self._ends = np.flatnonzero(np.frombuffer(self._blob, np.uint8) == 0x0A)
        return int(self._ends[number - 1]) + 1 if number else 0

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write a file, complete or not at all: Parquet, or `token TAB count` a line where its name ends in `.tsv`.

        Raises:
            OutputError: it exists and `replace` is not set, or it cannot be written.
            MissingPackageError: Parquet needs pyarrow.
        """
        from .storing import CountFacts, save

        facts: CountFacts = {"tokenizer": self.tokenizer, "lowercase": self.lowercase}
        save(os.fspath(path), self._blob, self.counts, facts, replace)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TokenCounts:
        """Read what `save` wrote, or any file like it, in whatever order.

        Raises:
            InputError: the file cannot be read, or is none of counts.
            VocabularyError: a token stands twice.
        """
        from .storing import load

        counter, facts = load(os.fspath(path))
        return cls.sorted(counter, tokenizer=facts.get("tokenizer"), lowercase=bool(facts.get("lowercase")))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenCounts):
            return NotImplemented
        return np.array_equal(self.counts, other.counts) and self._blob == other._blob

    __hash__ = None  # type: ignore[assignment]  # as arrays have none

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (bytes(self._blob), np.array(self.counts), self.tokenizer, self.lowercase)

    def __repr__(self) -> str:
        return f"<TokenCounts of {self.distinct:,} different tokens, {self.total:,} in all>"


def _restore(blob: bytes, counts: NDArray[np.int64], tokenizer: str | None, lowercase: bool) -> TokenCounts:
    return TokenCounts(blob, counts, tokenizer=tokenizer, lowercase=lowercase)


class _Tokens(TokenSequence):
    """The tokens of counts."""

    __slots__ = ("_counts",)

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = counts

    def __len__(self) -> int:
        return self._counts.distinct

    def _run(self, start: int, stop: int) -> list[str]:
        counts = self._counts
        return str(counts.blob[counts.place(start) : counts.place(max(start, stop))], "utf-8").split("\n")[:-1]
