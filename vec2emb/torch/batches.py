"""Texts to batches of ids."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from ..words.vocabulary import Lookup, Vocabulary


class Collate:
    """The `collate_fn` of a DataLoader whose items are texts, each a list of tokens.

    It can be pickled, so that spawned workers take it; the vocabulary of a bundle is sent as its path.

    Args:
        vocab: looks up and pads.
        max_length: tokens of a text beyond it are cut off: the usable positions of a table.
        lookup: to be used instead of the vocabulary's own.
    """

    def __init__(self, vocab: Vocabulary, max_length: int | None = None, lookup: Lookup | None = None) -> None:
        self.vocab = vocab
        self.max_length = max_length
        self.lookup = lookup

    def __call__(self, texts: Iterable[Iterable[str]]) -> tuple[Tensor, Tensor]:
        """Ids, int64[B, T], padded on the right, and the lengths before padding, int64[B].

        Raises:
            VocabularyError: a token is missing and there is no unknown token, or texts differ in length and there is no
                padding token.
            UsageError: a text is one string.
        """
        ids, lengths = self.vocab.encode_batch(texts, self.max_length, self.lookup)
        return torch.from_numpy(ids), torch.from_numpy(lengths)

    def __repr__(self) -> str:
        return f"Collate({self.vocab!r}, max_length={self.max_length})"
