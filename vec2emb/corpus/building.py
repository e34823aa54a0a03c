"""`build_vocab`: the vocabulary of a corpus, as a file."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from ..bundle.outputs import check_outputs
from ..errors import OutputError, printable
from ..io.atomic import check_file
from ..io.urls import local_only
from ..options.commands import BUILD_VOCAB
from ..options.definition import check
from ..typed import JsonReport
from ..words.vocabulary_file import write
from .counting import count_tokens
from .inputs import PathsLike
from .storing import check_name


class VocabReport(NamedTuple):
    """What came of a corpus.

    Attributes:
        path: the vocabulary.
        tokens: how many it has.
        distinct: how many different tokens the corpus has.
        total: how many running tokens the corpus has.
        covered: how many of these are in the vocabulary.
        sha256: of the file.
        counts_path: the file of counts, or None.
        seconds: it took.
    """

    path: str
    tokens: int
    distinct: int
    total: int
    covered: int
    sha256: str
    counts_path: str | None
    seconds: float

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        return self._asdict()

    def __str__(self) -> str:
        share = self.covered / self.total
        lines = [
            f"{self.path}: {self.tokens:,} tokens, written in {self.seconds:.2f} s",
            f"  of {self.distinct:,} different ones in a corpus of {self.total:,}, of which they are {share:.2%}",
        ]
        if self.counts_path is not None:
            lines.append(f"  all counts: {self.counts_path}")
        return printable("\n".join(lines))


def build_vocab(
    paths: PathsLike,
    output: str | os.PathLike[str],
    *,
    min_count: int = 1,
    max_size: int | None = None,
    save_counts: str | os.PathLike[str] | None = None,
    if_exists: str = "error",
    **counting: Any,
) -> VocabReport:
    """Write the most frequent tokens of a corpus, one a line, by falling count; special tokens are not added.

    Args:
        paths: the corpus, as in `count_tokens`.
        output: the file, which `vec2emb convert --vocab` takes.
        min_count: leave out tokens that come less often.
        max_size: keep at most so many.
        save_counts: a file for the counts of all tokens: `.parquet` or `.tsv`.
        if_exists: raise an `error` if a file is there already, or `replace` it.
        counting: further arguments of `count_tokens`.

    Raises:
        InputError: the corpus is at fault, or no token is left.
        OutputError: a file exists or cannot be written.
        UsageError: an argument cannot be so.
    """
    check(BUILD_VOCAB, locals())
    begun = time.monotonic()
    path = os.fspath(output)
    counts_path = None if save_counts is None else os.fspath(save_counts)
    if counts_path is not None:
        check_name(counts_path)
    local_only(path, "a vocabulary that is written")
    for target in filter(None, (path, counts_path)):
        _check_target(target, if_exists)
    check_outputs({"output": path, "save_counts": counts_path}, [paths, counting.get("tokenizer")])
    counts = count_tokens(paths, **counting)
    vocab = counts.vocabulary(min_count, max_size)
    if counts_path is not None:
        counts.save(counts_path, replace=if_exists == "replace")
    write(bytes(vocab.blob), path, replace=if_exists == "replace")
    covered = int(counts.counts[: len(vocab)].sum())
    return VocabReport(
        path, len(vocab), counts.distinct, counts.total, covered, vocab.sha256, counts_path, time.monotonic() - begun
    )


def _check_target(path: str, if_exists: str) -> None:
    """Refuse a target before the corpus is read."""
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise OutputError("no-such-folder", "there is no such folder to write in", path=path)
    check_file(path, replace=if_exists == "replace", hint="--if-exists replace writes it anew")
