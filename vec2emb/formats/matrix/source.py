"""`MatrixSource`: words and vectors that stand apart, as in a model, an archive of arrays, or memory.

Such a source gives its words block by block and, asked for rows of a block, their vectors. What it is not asked for it
need not read. For the rest of the package it is what `Source` is for bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import SourceError
from ...io.filesystem import Identity
from ...typed import JsonObject
from .. import Detected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...bundle.manifest import Manifest
    from ...words.vocabulary import Vocabulary


class MatrixSource:
    """Words and the rows of a matrix, in the same order.

    Attributes:
        label: the name for messages.
        name: the base name, which is what gets recorded.
        format: `fasttext`, `npz`, `bundle`, `model2vec`, `sentence-transformers`, `gensim`,
            `memory` or `from-scratch`.
        rows, dim: extent of the matrix.
        dim_from: where these come from, in words.
        size: bytes of all of it; `consumed` is how many of them were used, for progress.
        facts: what else is known of it, by name.
        pad, unk: the padding and unknown token that the source itself names, or None.
        pad_is_zero: whether the padding row is known to be zero, as it will be.
        keeps_padding: whether the padding row is part of a model, whatever is in it.
        license, url: where it is recorded, of the vectors.
        manifest, vocab: of a bundle, what it records, and its tokens.
        notes: what it records and what does not come along, in words.
        is_text: whether the words are text already, so that no encoding can be asked for.
        in_order: whether vectors can only be read in order, block by block, together with the words.
        value_bytes: bytes of a value as the kernel takes it.
        has_rows: whether it is meant to have rows; if not, every row of a table is generated.
        has_subwords: whether it can compose vectors of words that it does not have.
        word_bytes: about how much memory a word takes while it is read.
        identity: which file it was opened as, and in which state (see `filesystem`), where it is one.
    """

    member: str | None = None
    compression = "none"
    advice: str | None = None
    failure = None
    marks_end = True
    is_text = True
    in_order = False
    has_rows = True
    has_subwords = False
    word_bytes = 16
    value_bytes = 4
    pad_is_zero = False
    keeps_padding = False
    identity: Identity | None = None

    def __init__(self, label: str, name: str, format: str, rows: int, dim: int, size: int, dim_from: str) -> None:
        self.label = label
        self.name = name
        self.format = format
        self.rows = rows
        self.dim = dim
        self.dim_from = dim_from
        self.size = size
        self.consumed = 0
        self.facts: JsonObject = {}
        self.pad: str | None = None
        self.unk: str | None = None
        self.license: str | None = None
        self.url: str | None = None
        self.manifest: Manifest | None = None
        self.vocab: Vocabulary | None = None
        self.notes: list[str] = []
        self._is_verified = False
        self._verifying = threading.Lock()

    def verify(self) -> None:
        """Compare what has a checksum with it, once, whichever thread is the first to use a vector.

        Raises:
            InputError: it is damaged.
        """
        with self._verifying:
            if not self._is_verified:
                self._verify()
                self._is_verified = True

    def _verify(self) -> None:
        """There is no checksum."""

    def words(self, count: int) -> list[bytes]:
        """The next `count` words, in order, called under a lock."""
        raise NotImplementedError

    def block(self, first: int, count: int, wanted: Sequence[int], words: Sequence[bytes]) -> NDArray[np.generic]:
        """Rows first .. first+count-1 of the matrix.

        Args:
            wanted: those that matter, counted from `first`, in rising order; the others may be anything.
            words: the words of these, as `words` gave them.

        Returns:
            Real numbers of any type, [count, dim].

        Raises:
            InputError: they cannot be read.
        """
        raise NotImplementedError

    def compose(self, words: Sequence[bytes]) -> tuple[NDArray[np.float32], list[int]]:
        """Vectors of words that the source does not have, and which of them have no subwords: their rows are zero."""
        raise NotImplementedError

    def own_specials(self) -> list[str]:
        """The special tokens of which nothing has to be said if the source has them: they are its own."""
        return [
            token
            for token in (self.pad if self.pad_is_zero or self.keeps_padding else None, self.unk)
            if token is not None
        ]

    def detected(self) -> Detected:
        """What a pass is told of it."""
        return Detected(self.format, self.dim, self.dim_from, self.rows, 0, 1, self.rows, 0)

    def cancel(self) -> None:
        """Nothing here waits for anybody."""

    def resume(self) -> None:
        """Nothing here was put off."""

    def finish(self) -> None:
        """There is nothing behind the last row."""

    def check_unchanged(self) -> None:
        """Raise SourceError if a file is not what it was when it was opened."""

    def close(self) -> None:
        """Close what was opened."""

    def __enter__(self) -> MatrixSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def width_of(dtype: np.dtype[np.generic]) -> int:
    """Bytes of a value as the kernel takes it: floats of at most 8 bytes as they are, longer ones as float64, all other
    numbers as float32.
    """
    return min(dtype.itemsize, 8) if dtype.kind == "f" else 4


def changed(label: str) -> SourceError:
    """The error for a file that is not what it was when it was opened."""
    return SourceError("source-changed", "the file changed while it was read", path=label, hint="run the command again")
