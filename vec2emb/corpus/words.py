"""The words of a conversion, taken from a corpus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..bundle.target import target_of
from ..errors import UsageError
from ..io.urls import is_url, name_of, plain
from ..options.definition import pick
from ..words.special_tokens import arrange
from ..words.word_list import CorpusRecord, WordList
from .counting import count_tokens
from .counts import TokenCounts
from .inputs import PathsLike

CorpusLike = PathsLike | TokenCounts


def words_of(corpus: CorpusLike, options: Mapping[str, Any]) -> WordList:
    """Return the most frequent tokens of a corpus, without the special tokens, which get rows anyway.

    Args:
        corpus: as in `count_tokens`, or counts that are made already.
        options: the arguments of `convert`, by name.

    Raises:
        InputError: the corpus is at fault, or no token is left.
        UsageError: an argument is.
    """
    field, min_count, max_size = options["field"], options["min_count"], options["max_size"]
    if isinstance(corpus, TokenCounts):
        if options["tokenizer"] != "whitespace" or field is not None:
            raise UsageError("counts-are-made", "counts that are made already have their tokenizer and field")
        counts, names = corpus, None
    else:
        given = [corpus] if isinstance(corpus, str | os.PathLike) else list(corpus)
        names_of_counting = ("tokenizer", "lowercase", "field", "encoding_errors", "threads", "progress")
        counts = count_tokens(given, **pick(names_of_counting, options))
        paths = [plain(os.fspath(path)) for path in given]
        names = [name_of(path) if is_url(path) else os.path.basename(path.rstrip("/")) for path in paths]
    pad, unk = (
        usual if options[name] is ... else options[name] for name, usual in (("pad", "<pad>"), ("unk", "<unk>"))
    )
    own = [special.token for special in arrange(pad, unk, None, options["specials"])]
    record = CorpusRecord(
        None if names is None else tuple(names), counts.tokenizer, counts.lowercase, field, min_count, max_size,
        counts.distinct, counts.total,
    )  # fmt: skip
    return WordList(counts.vocabulary(min_count, max_size, without=own), None, corpus=record)


def refuse_early(output: str | os.PathLike[str] | None, if_exists: str) -> None:
    """Refuse a target before the corpus is read, unless a run that was interrupted has left something to heal."""
    if output is not None:
        target_of(output).publication(if_exists).check_early()
