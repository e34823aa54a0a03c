"""Which tokens stay: those that must, those that are asked for, and the most frequent ones as far as there is room."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UsageError, shown
from ..words.vocabulary_file import read
from .tokenizer_json import TokenizerJson, close

Counts = NDArray[np.int64]


class Kept(NamedTuple):
    """The tokens that stay.

    Attributes:
        ids: int64[kept], the old ids in ascending order; the new id of `ids[i]` is i.
        always: how many of them stay whatever the corpus has: special, added, byte and single-character tokens, those
            that the model's files refer to, those of `keep`, and what these are built from.
        frequent: how many were added because of their counts.
        built_from: how many were added because frequent tokens are built from them.
    """

    ids: NDArray[np.int64]
    always: int
    frequent: int
    built_from: int


def choose(
    tokenizer: TokenizerJson, counts: Counts, wanted: Iterable[int], min_count: int, max_size: int | None
) -> Kept:
    """Choose the tokens that stay.

    Args:
        counts: int64[tokens], how often each id is used.
        wanted: ids that stay in any case, besides those that always do.
        min_count: tokens with smaller counts are not added.
        max_size: at most so many tokens, all included; the most frequent are added first, up to the first for which
            there is no room.

    Raises:
        UsageError: `max_size` has no room for the tokens that stay in any case.
    """
    kept = close(tokenizer, tokenizer.always_kept() | set(wanted))
    always = len(kept)
    if max_size is not None and always > max_size:
        raise UsageError(
            "max-size-small",
            "max_size must have room for the special, added, byte and single-character tokens, those of --keep, and "
            "what these are built from",
            expected=f"at least {always}",
            found=str(max_size),
        )
    frequent = 0
    order = np.lexsort((np.arange(len(counts)), -counts))
    for id in order[: int((counts >= min_count).sum())].tolist():
        if id in kept or tokenizer.tokens[id] is None:
            continue
        needed = ({id} | tokenizer.needs(id)) - kept
        if max_size is not None and len(kept) + len(needed) > max_size:
            break
        kept |= needed
        frequent += 1
    return Kept(np.array(sorted(kept), np.int64), always, frequent, len(kept) - always - frequent)


def read_tokens(tokens: str | os.PathLike[str] | Iterable[str], tokenizer: TokenizerJson) -> set[int]:
    """Return the ids of a list of tokens, or of a file with one token per line, as the vocabulary writes them.

    Raises:
        InputError: the file cannot be read, or one of them is not a token.
    """
    path: str | None = None
    if isinstance(tokens, str | os.PathLike):
        path = os.fspath(tokens)
        tokens = _lines(path)
    found = set()
    for number, token in enumerate(tokens, 1):
        if not isinstance(token, str) or token not in tokenizer.ids:
            raise InputError(
                "not-a-token",
                "what is kept must be a token of the model's vocabulary",
                path=path,
                line=None if path is None else number,
                found=shown(token if isinstance(token, str) else repr(token)),
                hint="to keep what a list of words needs, give it as a corpus",
            )
        found.add(tokenizer.ids[token])
    return found


def _lines(path: str) -> list[str]:
    data = read(path, lines=True)
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise InputError("invalid-utf8", "the text is not UTF-8", path=path, offset=error.start) from None
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
