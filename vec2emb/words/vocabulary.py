"""`Vocabulary`: ordered, unique tokens. The id of a token is its place, its line in `vocab.txt`, its row in the table.

A vocabulary is one blob of bytes, each token followed by LF, with an index over it (16 to 28 bytes a token). A
Python string exists only while somebody holds one, so that looking up counts, copies and changes nothing: threads do
it at once, forked workers share the pages, spawned ones are sent a path and open the file again.

    tokens   "<pad>" "<unk>" "the"              ids 0 1 2
    blob     <pad> LF <unk> LF the LF           which is vocab.txt as it stands
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._kernel import TokenIndex
from ..errors import UsageError, VocabularyError, shown
from ..io.urls import label_of
from . import vocabulary_file
from .token_lookup import Lookup, NoSuchIdError, NoSuchTokenError, Tokens, no_such_id, no_such_token, other_forms, utf8

if TYPE_CHECKING:
    from mmap import mmap
    from types import EllipsisType

    import numpy as np
    from numpy.typing import NDArray

    Pathish = str | os.PathLike[str]

__all__ = ["Lookup", "NoSuchIdError", "NoSuchTokenError", "Tokens", "Vocabulary", "other_forms"]

T = TypeVar("T")


class Vocabulary:
    """Ordered unique tokens, each with an id from 0; immutable.

    Any string is a token unless it holds LF or has no UTF-8 form; nothing is stripped or normalised. The empty string
    is one too (some libraries pad with it).

    Args:
        tokens: the tokens in the order of their ids, or a mapping {token: id} whose ids are 0 .. n-1.
        pad_token: one of `tokens`, to fill up the short rows of a batch; None for none.
        unk_token: one of `tokens`, whose id stands for tokens that are missing; None for none.
        lookup: how a token is looked up that is not there as it stands. `exact`: not at all; `lower`: in lower
            case; `case-fallback`: in lower case, capitalised, in upper case. It governs `encode`, `encode_batch`,
            `vocab[token]`, `get` and `in`; `token in vocab.tokens` is always exact.

    Raises:
        VocabularyError: a token stands twice, holds LF or has no UTF-8 form, `pad_token` or `unk_token` is not there,
            or the ids of a mapping have gaps.
        UsageError: `tokens` is a single string, has no order, or holds something else than strings.
    """

    __slots__ = ("__weakref__", "_blob", "_index", "_lookup", "_origin", "_padding_idx", "_sha256", "_unk_idx")

    def __init__(
        self,
        tokens: Iterable[str],
        *,
        pad_token: str | None = None,
        unk_token: str | None = None,
        lookup: Lookup = "exact",
    ) -> None:
        self._index_blob(vocabulary_file.blob_of(tokens), None)
        self._settle(self._special(pad_token, "", None), self._special(unk_token, "", None), lookup)

    @classmethod
    def from_blob(
        cls,
        blob: bytes | bytearray | memoryview | mmap,
        *,
        padding_idx: int | None,
        unk_idx: int | None,
        lookup: Lookup = "exact",
    ) -> Vocabulary:
        """The vocabulary of UTF-8 text in which LF follows each token. `bytes` and `mmap` are kept, not copied.

        Raises:
            VocabularyError: the blob is no such text, a token stands twice, or there is no such id.
        """
        from mmap import mmap

        held = blob if isinstance(blob, (bytes, mmap)) else bytes(blob)
        return cls._over(held, None, None, padding_idx, unk_idx, lookup)

    @classmethod
    def from_file(
        cls,
        path: Pathish,
        *,
        pad_token: str | EllipsisType | None = ...,
        unk_token: str | EllipsisType | None = ...,
        lookup: Lookup = "exact",
    ) -> Vocabulary:
        """Read a text file: UTF-8, one token a line, lines end with LF, line i (from 0) is id i.

        The padding token is `<pad>` and the unknown token `<unk>` where the file has them; name others, or None for
        none. The file is read, not mapped: it may be edited later, and a mapped file that shrinks ends Python.

        - CR is part of a token, unless every line ends with it: such a file is refused.
        - A byte order mark before the first token is an editor's and is dropped; alone on its line it is a token.
        - An empty line is refused, as it is mostly an accident, unless `pad_token` or `unk_token` is "".
        - A missing last LF is supplied, with a warning, as the file may have been cut.

        Raises:
            VocabularyError: the file is no such text, a token stands on two lines, or a special token on none.
            InputError: the file cannot be read.
        """
        label = os.fsdecode(path)
        data, self, label = vocabulary_file.read(label), cls.__new__(cls), label_of(label)
        self._index_blob(vocabulary_file.blob_in(data, label, empty_line="" in (pad_token, unk_token)), label)
        pad, unk = self._special(pad_token, "<pad>", label), self._special(unk_token, "<unk>", label)
        self._settle(pad, unk, lookup)
        if self._blob is data and os.path.isfile(label):  # a pipe cannot be read again
            self._origin = os.path.abspath(label)
        return self

    @classmethod
    def map_file(
        cls,
        path: Pathish,
        *,
        padding_idx: int | None,
        unk_idx: int | None,
        sha256: str | None = None,
        lookup: Lookup = "exact",
    ) -> Vocabulary:
        """Map the `vocab.txt` of a finished bundle, which nobody edits in place, and take it byte for byte.

        Raises:
            BundleError: the file has another sha256.
            VocabularyError: as in `from_blob`.
            InputError: the file cannot be read.
        """
        label = os.fsdecode(path)
        self = cls._over(vocabulary_file.map_(label), label, sha256, padding_idx, unk_idx, lookup)
        self._origin = os.path.abspath(label)
        return self

    @classmethod
    def _over(
        cls, blob: bytes | mmap, path: str | None, sha256: str | None, pad: int | None, unk: int | None, lookup: Lookup
    ) -> Vocabulary:
        if sha256 is not None:
            vocabulary_file.check_sha256(blob, sha256, path)
        vocabulary_file.check_utf8(blob, path)
        self = cls.__new__(cls)
        self._index_blob(blob, path)
        self._settle(pad, unk, lookup)
        self._sha256 = sha256
        return self

    def _index_blob(self, blob: bytes | mmap, path: str | None) -> None:
        self._blob = blob
        self._index = TokenIndex.over(blob)
        if self._index.first_duplicate is not None:
            first, second = self._index.first_duplicate
            raise VocabularyError(
                "duplicate-token",
                f"the token {shown(self._index.token(second))} stands twice",
                path=path,
                line=None if path is None else second + 1,
                expected="each token once",
                found=f"ids {first} and {second}" if path is None else f"lines {first + 1} and {second + 1}",
                hint="remove one of the two, and its row where there are vectors",
            )

    def _special(self, token: str | EllipsisType | None, usual: str, path: str | None) -> int | None:
        """The id of a special token; for `...` that of the usual one, if it is there."""
        if token is None:
            return None
        i = self._index.get(utf8(token if isinstance(token, str) else usual))
        if i < 0 and isinstance(token, str):
            raise VocabularyError(
                "missing-special",
                f"the special token {shown(token)} is not among the tokens",
                path=path,
                hint="add it, name another, or pass None for none",
            )
        return i if i >= 0 else None

    def _settle(self, padding_idx: int | None, unk_idx: int | None, lookup: Lookup) -> None:
        for i in (padding_idx, unk_idx):
            if i is not None and not 0 <= i < len(self):
                raise no_such_id(i, len(self))
        other_forms(lookup)
        self._padding_idx, self._unk_idx, self._lookup = padding_idx, unk_idx, lookup
        self._sha256: str | None = None
        self._origin: str | None = None  # or the absolute path of the file that holds exactly the blob

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self._id(token) >= 0

    def __getitem__(self, token: str) -> int:
        """The id of a token; the unknown token's if it is missing.

        Raises:
            NoSuchTokenError: a KeyError: it is missing, and there is no unknown token.
        """
        i = self._id(token)
        if i >= 0:
            return i
        if self._unk_idx is None:
            raise no_such_token(token)
        return self._unk_idx

    @overload
    def get(self, token: str) -> int | None: ...
    @overload
    def get(self, token: str, default: T) -> int | T: ...
    def get(self, token: str, default: Any = None) -> Any:
        """The id of a token, or `default` if it is missing; never the unknown token's id instead."""
        i = self._id(token)
        return i if i >= 0 else default

    def _id(self, token: str) -> int:
        if not isinstance(token, str):
            hint = "the token of an id is vocab.tokens[id]"
            raise UsageError("token-type", "a token is a string", found=type(token).__name__, hint=hint)
        i: int = self._index.get(utf8(token))
        for form in other_forms(self._lookup) if i < 0 else ():
            if (i := self._index.get(utf8(form(token)))) >= 0:
                break
        return i

    def encode(self, tokens: Iterable[str], lookup: Lookup | None = None) -> NDArray[np.int64]:
        """The ids of the tokens of one text, int64[n]; missing ones get the unknown token's id.

        Args:
            tokens: n tokens, split as the table's maker split them.
            lookup: to be used instead of the vocabulary's own.

        Raises:
            NoSuchTokenError: a VocabularyError: a token is missing, and there is no unknown token.
            UsageError: `tokens` is a single string, or holds something else than strings.
        """
        if isinstance(tokens, str):
            raise vocabulary_file.not_split(tokens, "split it first: vocab.encode(text.split())")
        return self._encode(list(tokens), lookup)

    __call__ = encode

    def encode_batch(
        self, docs: Iterable[Iterable[str]], max_length: int | None = None, lookup: Lookup | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ids of B texts, padded on the right to the longest of them, T, and the lengths before padding.

        Args:
            docs: B texts, each an iterable of tokens; each may be empty, and B may be 0.
            max_length: tokens beyond it are cut off.
            lookup: to be used instead of the vocabulary's own.

        Returns:
            ids: int64[B, T]; lengths: int64[B].

        Raises:
            VocabularyError: the lengths differ and there is no padding token; or as in `encode`.
            UsageError: `max_length` is negative; or as in `encode`.
        """
        import numpy as np

        if max_length is not None and (not hasattr(max_length, "__index__") or max_length < 0):
            raise UsageError(
                "max-length", "max_length cannot be so", expected="0 or more tokens", found=repr(max_length)
            )
        flat: list[str] = []
        lengths = []
        for doc in [docs] if isinstance(docs, str) else docs:
            if isinstance(doc, str):
                raise vocabulary_file.not_split(
                    doc, "split them first: vocab.encode_batch([text.split() for text in texts])"
                )
            tokens = list(doc)[:max_length]
            flat += tokens
            lengths.append(len(tokens))
        ids = self._encode(flat, lookup)
        sizes = np.array(lengths, np.int64)
        longest = max(lengths, default=0)
        if longest * len(lengths) == len(flat):
            return ids.reshape(len(lengths), longest), sizes
        if self._padding_idx is None:
            raise VocabularyError(
                "no-padding",
                "texts of different lengths need a padding token, and the vocabulary has none",
                found=f"{min(lengths)} to {longest} tokens",
                hint="make it with pad_token=, or give texts of one length",
            )
        batch = np.full((len(lengths), longest), self._padding_idx, np.int64)
        batch[np.arange(longest) < sizes[:, None]] = ids
        return batch, sizes

    def _encode(self, tokens: list[str], lookup: Lookup | None) -> NDArray[np.int64]:
        import numpy as np

        forms = other_forms(self._lookup if lookup is None else lookup)
        unknown = -1 if self._unk_idx is None else self._unk_idx
        ids, first = self._find(tokens, -1 if forms else unknown)
        if forms and first >= 0:
            missing = np.flatnonzero(ids < 0)
            for form in forms:
                found, _ = self._find([form(tokens[i]) for i in missing.tolist()], -1)
                ids[missing] = found
                missing = missing[found < 0]
            ids[missing] = unknown
            first = int(missing[0]) if len(missing) else -1
        if first >= 0 and self._unk_idx is None:
            raise no_such_token(tokens[first])
        return ids

    def _find(self, tokens: list[str], missing: int) -> tuple[NDArray[np.int64], int]:
        """The ids, int64[n], with `missing` where there is none; and the position of the first missing, or -1."""
        import numpy as np

        ids = np.empty(len(tokens), np.int64)
        try:
            first = self._index.find(tokens, ids.data, missing) if tokens else -1
        except (TypeError, AttributeError):
            raise vocabulary_file.unfit(tokens) from None
        return ids, first

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of ids, int[n], given as a list, an array or a tensor.

        Raises:
            NoSuchIdError: an IndexError: an id is negative or too large.
            UsageError: they are not integers, or have another shape.
        """
        import numpy as np

        if hasattr(ids, "tolist"):  # an array, or a tensor on any device
            ids = ids.tolist()
        array = np.asarray(list(ids) if isinstance(ids, Iterable) else ids)
        if array.ndim != 1:
            hint = "decode row by row: [vocab.decode(row) for row in ids]" if array.ndim else "vocab.tokens[id]"
            raise UsageError("ids-shape", "ids of one text are a list", found=f"shape {array.shape}", hint=hint)
        if array.size and array.dtype.kind not in "iu":
            raise UsageError("ids-type", "ids are integers", found=str(array.dtype))
        outside = np.flatnonzero((array < 0) | (array >= len(self)))
        if len(outside):
            raise no_such_id(int(array[outside[0]]), len(self), f" at position {outside[0]}")
        token = self._index.token
        return [token(i).decode() for i in array.tolist()]

    @property
    def tokens(self) -> Tokens:
        """The tokens as a sequence of strings."""
        return Tokens(self._index)

    def to_list(self) -> list[str]:
        """All tokens, in the order of their ids."""
        return self.tokens[:]

    def to_dict(self) -> dict[str, int]:
        """Each token with its id, in the order of the ids."""
        return {token: i for i, token in enumerate(self.tokens)}

    @property
    def padding_idx(self) -> int | None:
        """The id that fills up short rows, or None."""
        return self._padding_idx

    @property
    def unk_idx(self) -> int | None:
        """The id that stands for missing tokens, or None."""
        return self._unk_idx

    @property
    def pad_token(self) -> str | None:
        """The token of `padding_idx`, or None."""
        return None if self._padding_idx is None else self.tokens[self._padding_idx]

    @property
    def unk_token(self) -> str | None:
        """The token of `unk_idx`, or None."""
        return None if self._unk_idx is None else self.tokens[self._unk_idx]

    @property
    def lookup(self) -> Lookup:
        """How a token is looked up that is not there as it stands."""
        return self._lookup

    @property
    def blob(self) -> memoryview:
        """The bytes of `vocab.txt`: each token in UTF-8, followed by LF; read-only."""
        return memoryview(self._blob)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the blob, in hexadecimal."""
        if self._sha256 is None:
            self._sha256 = vocabulary_file.sha256_of(self._blob)
        return self._sha256

    def to_file(self, path: Pathish, *, replace: bool = False) -> None:
        """Write `vocab.txt`, complete or not at all.

        Raises:
            OutputError: it exists and `replace` is not set, it cannot be written, or `from_file` would not read it back
                as it is (no token, an empty one, a byte order mark in front of the first, CR at the end of each).
        """
        label, blob = os.fsdecode(path), bytes(self._blob)
        vocabulary_file.check_readable(blob, label, empty_line="" in (self.pad_token, self.unk_token))
        vocabulary_file.write(blob, label, replace=replace)

    def _identity(self) -> tuple[str, int | None, int | None, Lookup]:
        return self.sha256, self._padding_idx, self._unk_idx, self._lookup

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or (len(self) == len(other) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        lookup = "" if self._lookup == "exact" else f", lookup={self._lookup!r}"
        return f"<Vocabulary of {len(self):,} tokens, padding_idx={self._padding_idx}, unk_idx={self._unk_idx}{lookup}>"

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Vocabulary:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """A vocabulary from a file is pickled as path and hash and opened again; any other one, whole."""
        held = bytes(self._blob) if self._origin is None else self._origin
        return type(self)._restore, (held, not isinstance(self._blob, bytes), *self._identity())

    @classmethod
    def _restore(
        cls, held: bytes | str, mapped: bool, sha256: str, pad: int | None, unk: int | None, lookup: Lookup
    ) -> Vocabulary:
        if isinstance(held, bytes):
            return cls._over(held, None, sha256, pad, unk, lookup)
        opened = vocabulary_file.map_(held) if mapped else vocabulary_file.read(held)
        self = cls._over(opened, held, sha256, pad, unk, lookup)
        self._origin = held
        return self
