"""Which rows of a table are to train: all, none, the new ones, or a list. It is recorded; `vec2emb.torch` applies it.

A row is new if the file of vectors did not have it: special tokens that were set, and words that were missing. The
padding row never trains, whatever a plan names.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..errors import UsageError, VocabularyError, shown
from ..words.word_list import WordList, read_words
from .ranges import Ranges

PLANS = ("all", "new")

TrainLike = str | os.PathLike[str] | Iterable[int] | Iterable[str]


class TrainRows(NamedTuple):
    """A plan: `all`, `none`, `new`, or `rows` with the words or the ids of these."""

    kind: str
    words: WordList | None = None
    ids: tuple[int, ...] = ()

    @classmethod
    def parse(cls, train_rows: TrainLike | None, freeze: bool | None = None) -> "TrainRows | None":
        """The plan that is asked for; None if nothing is.

        Args:
            train_rows: `all`, `new`, a file of words, words, or ids.
            freeze: short for `none` and `all`.

        Raises:
            UsageError: both are given and disagree, or it is no plan.
            VocabularyError: the file of words is damaged.
        """
        if train_rows is None:
            return None if freeze is None else cls("none" if freeze else "all")
        plan = cls._parse(train_rows)
        if freeze is not None and plan.kind != ("none" if freeze else "all"):
            raise UsageError(
                "freeze-and-train", "the rows to train are given in two ways",
                found=f"train_rows and freeze={freeze}", hint="leave one of the two out",
            )  # fmt: skip
        return plan

    @classmethod
    def _parse(cls, train_rows: TrainLike) -> "TrainRows":
        if isinstance(train_rows, str) and train_rows == "none":
            raise UsageError("option-replaced", "no row trains if the table is frozen", hint="use --freeze")
        if isinstance(train_rows, str | os.PathLike):
            return cls(str(train_rows)) if train_rows in PLANS else cls("rows", read_words(train_rows))
        # An array or a tensor gives Python's own numbers so.
        named: list[Any] = train_rows.tolist() if hasattr(train_rows, "tolist") else list(train_rows)
        if named and all(isinstance(item, str) for item in named):
            return cls("rows", read_words(named))
        try:
            return cls("rows", ids=tuple(map(_whole, named)))
        except TypeError:
            raise UsageError(
                "train-rows", "this is no plan of rows to train",
                expected="all, new, a file of words, words, or ids", found=shown(repr(named)),
            ) from None  # fmt: skip

    def ranges(
        self, count: int, padding_idx: int | None, new: Ranges, find: Callable[[str], int | None]
    ) -> Ranges | None:
        """The rows that train, rising; None for all or none of them.

        Args:
            count: V.
            new: the rows that are new.
            find: the row of a token, or None.

        Raises:
            VocabularyError: a word has no row.
            UsageError: an id has none.
        """
        if self.kind in ("all", "none"):
            return None
        rows = set(self.ids) if self.words is None else {self._row(word, find) for word in self.words.vocab}
        if self.kind == "new":
            rows = set(new.rows())
        outside = next((row for row in sorted(rows) if not 0 <= row < count), None)
        if outside is not None:
            raise UsageError("train-rows", "a row to train is none", expected=f"0 .. {count - 1}", found=str(outside))
        return Ranges.of_rows(sorted(rows - {padding_idx}))

    def _row(self, word: str, find: Callable[[str], int | None]) -> int:
        row = find(word)
        if row is None:
            raise VocabularyError(
                "train-word-missing", f"the word {shown(word)} is to train, and has no row",
                path=self.words.label if self.words else None, hint="remove it from the list",
            )  # fmt: skip
        return row


def _whole(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError
    return int(value.__index__())
