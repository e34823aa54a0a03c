"""Objects in memory: a `Table`, a pair of vectors and words, and what gensim calls `KeyedVectors`.

    (vectors, words)    an `nn.Embedding`, a tensor or an array [V, D], and V words in the order of its rows, or the row
                        of each, {word: row}
    Table               what `vec2emb.load` and `vec2emb.read_vectors` give
    KeyedVectors        of gensim, `FastTextKeyedVectors` among them; or a model that has one as `wv`

Nothing is copied but what torch keeps in another type or on another device.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...bundle.arrays import array_of
from ...errors import InputError, UsageError, shown
from ...words.vocabulary import Vocabulary
from ...words.vocabulary_file import in_order
from .source import MatrixSource, width_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...bundle.table import Table


class MemorySource(MatrixSource):
    """An array and its words."""

    def __init__(
        self, label: str, format: str, array: NDArray[np.generic], words: Iterable[str], dim_from: str
    ) -> None:
        check_table(array.shape, array.dtype, label)
        rows, dim = array.shape
        super().__init__(label, label, format, rows, dim, array.nbytes, dim_from)
        self.value_bytes = width_of(array.dtype)
        self._array = array
        self._words = iter(words)

    def words(self, count: int) -> list[bytes]:
        return [_encoded(word, self.label) for word in itertools.islice(self._words, count)]

    def block(self, first: int, count: int, wanted: Sequence[int], words: Sequence[bytes]) -> NDArray[np.generic]:
        return self._array[first : first + count]


class _Composing(MemorySource):
    """The vectors of a FastText object, which makes those of further words itself."""

    has_subwords = True

    def __init__(self, vectors: Any, label: str, array: NDArray[np.generic], words: Sequence[str]) -> None:
        super().__init__(label, "gensim", array, words, "of the object")
        self._vectors = vectors

    def compose(self, words: Sequence[bytes]) -> tuple[NDArray[np.float32], list[int]]:
        import logging

        import numpy as np

        logger = logging.getLogger("gensim.models.fasttext")
        heard = logger.disabled
        logger.disabled = True  # it writes a line for each word without subwords; here they are counted
        try:
            made = np.array([self._vectors.get_vector(word.decode()) for word in words], np.float32)
        finally:
            logger.disabled = heard
        return made, [row for row, vector in enumerate(made) if not vector.any()]


def open_object(where: object) -> MatrixSource:
    """The source that an object is.

    Raises:
        UsageError: it is none.
        InputError: vectors and words do not fit each other.
    """
    from ...bundle.table import Table

    if isinstance(where, MatrixSource):
        return where
    if isinstance(where, Table):
        return _of_table(where)
    if isinstance(where, tuple) and len(where) == 2:
        return _of_pair(*where)
    if is_of(where, "gensim"):
        return of_gensim(where, f"<{type(where).__name__}>")
    raise UsageError(
        "source-type", "this is no source of word vectors", found=type(where).__name__,
        expected="a path, an open binary file, (vectors, words), a Table, or KeyedVectors",
        hint="an nn.Embedding comes with its words: (embedding, words)" if hasattr(where, "weight") else None,
    )  # fmt: skip


def is_of(where: object, package: str) -> bool:
    """Whether an object is of a class of a package, or of one derived from it; the package is not imported."""
    return any(kind.__module__.split(".")[0] == package for kind in type(where).__mro__)


def _of_table(table: Table) -> MatrixSource:
    source = MemorySource("<Table>", "memory", table.vectors, table.vocab, "of the table")
    source.pad, source.unk = table.vocab.pad_token, table.vocab.unk_token
    source.manifest, source.vocab = getattr(table, "manifest", None), table.vocab
    recorded = None if source.manifest is None else source.manifest.source
    if recorded is not None:
        source.license, source.url = recorded.license, recorded.url
    source.pad_is_zero = table.vocab.padding_idx is not None and not table.vectors[table.vocab.padding_idx].any()
    return source


def _of_pair(vectors: object, words: object) -> MatrixSource:
    label = f"<{type(vectors).__name__}>"
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise UsageError(
            "source-type", "in memory, a source is a pair of vectors and words", expected="(vectors, words)",
            found=f"({type(vectors).__name__}, {type(words).__name__})",
        )  # fmt: skip
    array = array_of(vectors, label)
    vocab = words if isinstance(words, Vocabulary) else None
    listed: Any = words if isinstance(words, Sequence) or vocab is not None else in_order(words)
    if array.ndim != 2 or len(listed) != len(array):
        shape = list(array.shape)
        raise InputError(
            "shape-mismatch", "vectors and words do not fit each other", path=label,
            expected=f"[{len(listed)}, D]", found=str(shape), hint="one row a word, and (vectors, words) in this order",
        )  # fmt: skip
    source = MemorySource(label, "memory", array, listed, "of the vectors")
    if vocab is not None:
        source.pad, source.unk = vocab.pad_token, vocab.unk_token
    return source


def check_table(shape: tuple[int, ...], dtype: np.dtype[np.generic], label: str) -> None:
    """Refuse an array that is no table of real numbers."""
    if len(shape) != 2 or shape[1] < 1:
        raise InputError("shape-mismatch", "the vectors are no table", path=label, expected="[V, D]",
                         found=str(list(shape)))  # fmt: skip
    if dtype.kind not in "fiu":
        raise InputError("vector-type", "the vectors are no real numbers", path=label, found=str(dtype))


def of_gensim(thing: object, label: str) -> MatrixSource:
    """The source that an object of gensim is.

    Raises:
        InputError: it has no word vectors.
    """
    vectors = getattr(thing, "wv", thing)
    words, array = getattr(vectors, "index_to_key", None), getattr(vectors, "vectors", None)
    if words is None or array is None:
        raise InputError(
            "no-word-vectors", "the object has no word vectors", path=label, found=type(thing).__name__,
            expected="KeyedVectors, or a model with them as wv",
            hint=None if words is None and array is None else "load it with the version of gensim that saved it",
        )  # fmt: skip
    count = next((n for n in range(len(words), 0, -1) if words[n - 1] is not None), 0)
    words, array = words[:count], array[:count]  # gensim may have made room for more
    if len(array) != len(words):
        raise InputError("shape-mismatch", "vectors and words do not fit each other", path=label,
                         expected=f"{len(words)} rows", found=str(len(array)))  # fmt: skip
    if getattr(vectors, "bucket", 0) and hasattr(vectors, "vectors_ngrams"):
        return _Composing(vectors, label, array, words)
    return MemorySource(label, "gensim", array, words, "of the object")


def _encoded(word: object, label: str) -> bytes:
    if not isinstance(word, str):
        raise UsageError(
            "token-type",
            "a word is not text",
            path=label,
            expected="str",
            found=f"{type(word).__name__} {shown(str(word))}",
        )
    return word.encode("utf-8", "surrogatepass")  # what is no Unicode text is a fault of its row
