"""The words of a conversion, taken from a corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..bundle.target import target_of
from ..errors import UsageError
from ..io.progress import ProgressLike
from ..io.urls import is_url, name_of, plain
from ..words.special_tokens import SpecialLike, arrange
from ..words.word_list import CorpusRecord, WordList
from .counting import count_tokens
from .counts import TokenCounts
from .inputs import PathsLike

CorpusLike = PathsLike | TokenCounts


def words_of(
    corpus: CorpusLike,
    specials: Iterable[SpecialLike],
    *,
    pad: str | None,
    unk: str | None,
    tokenizer: str,
    lowercase: bool,
    field: str | None,
    min_count: int,
    max_size: int | None,
    threads: int | None,
    progress: ProgressLike,
) -> WordList:
    """The most frequent tokens of a corpus, less the special tokens, which get rows anyway.

    Args:
        corpus: as in `count_tokens`, or counts that are made already; the other arguments are those of `convert`.

    Raises:
        InputError: the corpus is at fault, or no token is left.
        UsageError: an argument cannot be so.
    """
    if isinstance(corpus, TokenCounts):
        if tokenizer != "whitespace" or field is not None:
            raise UsageError("counts-are-made", "counts that are made already have their tokenizer and field")
        counts, names = corpus, None
    else:
        given = [corpus] if isinstance(corpus, str | os.PathLike) else list(corpus)
        counts = count_tokens(
            given, tokenizer=tokenizer, lowercase=lowercase, field=field, threads=threads, progress=progress
        )
        paths = [plain(os.fspath(path)) for path in given]
        names = [name_of(path) if is_url(path) else os.path.basename(path.rstrip("/")) for path in paths]
    own = [special.token for special in arrange(pad, unk, None, specials)]
    record = CorpusRecord(
        None if names is None else tuple(names), counts.tokenizer, counts.lowercase, field, min_count, max_size,
        counts.distinct, counts.total,
    )  # fmt: skip
    return WordList(counts.vocabulary(min_count, max_size, without=own), None, corpus=record)


def refuse_early(output: str | os.PathLike[str] | None, if_exists: str) -> None:
    """Refuse a target before the corpus is read, unless a run that was interrupted has left something to heal."""
    if output is not None:
        target_of(output).publication(if_exists).check_early()
