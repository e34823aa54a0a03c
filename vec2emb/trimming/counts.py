"""How often each id of a tokenizer is used: counted in a corpus, or read from a file of counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..corpus.counts import TokenCounts
from ..corpus.inputs import Input, Piece
from ..corpus.local import count_locally
from ..corpus.settings import Settings
from ..errors import InputError, shown
from ..io.progress import Progress
from .selection import Counts
from .tokenizer_json import TokenizerJson

_MEMORY = 64 << 20  # bytes; ids are few, so that their counts never need more


class Corpus(NamedTuple):
    """A corpus and how it is read; small enough to be sent to another process.

    Attributes:
        files: found once, so that both passes read the same.
        field: of JSON lines the key, of Parquet the column that holds text; None for `text`.
        encoding_errors: `error`, `replace` or `escape`, at text that is not UTF-8.
    """

    files: tuple[Input, ...]
    field: str | None
    encoding_errors: str

    def pieces(self) -> Iterator[Piece]:
        """Its files, each read as a whole."""
        return (Piece(one.path, one.kind) for one in self.files)

    def settings(self, kind: str, content: str = "") -> Settings:
        """How to read it: as `lines`, or as `ids` of the tokenizer.json `content`."""
        return Settings(kind, field=self.field, encoding_errors=self.encoding_errors, content=content)


def count_ids(tokenizer: str, size: int, corpus: Corpus, show: Progress) -> bytes:
    """Encode a corpus and count the ids; a job for `run_apart`.

    Args:
        tokenizer: path of the tokenizer.json.
        size: number of ids.

    Returns:
        int64[size] as bytes.

    Raises:
        InputError: the corpus or the tokenizer cannot be read.
    """
    with open(tokenizer, encoding="utf-8") as file:
        settings = corpus.settings("ids", file.read())
    sizes = [one.size for one in corpus.files]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    # One reader: the tokenizers encode a block with threads of their own.
    found = count_locally(corpus.pieces(), settings, _MEMORY, 1, lambda done: show(done, total))
    counts = np.zeros(size, np.int64)
    for id, count in found.items():
        if int(id) >= size:
            raise ids_differ(tokenizer)
        counts[int(id)] = count
    return counts.tobytes()


def ids_differ(path: str) -> InputError:
    """The error of a tokenizer.json whose ids are not those that the `tokenizers` package gives."""
    return InputError(
        "tokenizer-ids",
        "the tokenizers package must give each token the id that the file says",
        path=path,
        hint="save the tokenizer again with that package, and check that the model still belongs to it",
    )


def read_counts(path: str | os.PathLike[str], tokenizer: TokenizerJson) -> Counts:
    """Read a file of counts of the tokenizer's tokens: int64[tokens].

    With a Unigram model, the unknown tokens are in such a file as the text that they stood for.

    Raises:
        InputError: the file cannot be read, or its tokens are not of this tokenizer.
    """
    found = TokenCounts.load(path)
    counts = np.zeros(len(tokenizer.tokens), np.int64)
    unknown = 0
    for token, count in found.items():
        id = tokenizer.ids.get(token)
        if id is not None:
            counts[id] = count
            continue
        unknown += count
        if tokenizer.kind != "Unigram" or tokenizer.unknown_id is None:
            raise _not_its_tokens(path, tokenizer, shown(token))
    if not (found.tokenizer or "hf:").startswith("hf:"):
        raise _not_its_tokens(path, tokenizer, f"counts of the tokenizer {shown(found.tokenizer or '')}")
    if 2 * unknown > found.total:
        raise _not_its_tokens(path, tokenizer, f"{unknown:,} of {found.total:,} tokens that are not in the vocabulary")
    if tokenizer.unknown_id is not None:
        counts[tokenizer.unknown_id] += unknown
    return counts


def _not_its_tokens(path: str | os.PathLike[str], tokenizer: TokenizerJson, found: str) -> InputError:
    return InputError(
        "counts-of-other-tokens",
        "the counts must be of the tokens of the model's own tokenizer",
        path=os.fspath(path),
        found=found,
        hint=f"count with: vec2emb vocab CORPUS --tokenizer hf:{tokenizer.path} --save-counts counts.parquet "
        "-o tokens.txt",
    )
