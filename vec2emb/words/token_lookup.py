"""Around one token: the spellings it is looked up under, the sequence it stands in, the errors when it is missing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, overload

from .._kernel import TokenIndex
from ..errors import UsageError, VocabularyError, shown

_BATCH = 4096  # tokens that are made strings at a time

Lookup = Literal["exact", "lower", "case-fallback"]

# What is tried, in this order, once the token as it stands is not there.
_FORMS: dict[str, tuple[Callable[[str], str], ...]] = {
    "exact": (),
    "lower": (str.lower,),
    "case-fallback": (str.lower, str.capitalize, str.upper),
}


def other_forms(lookup: str) -> tuple[Callable[[str], str], ...]:
    """What makes the spellings that are looked up, in this order, once a token is not there as it stands.

    Raises:
        UsageError: there is no such lookup.
    """
    if lookup not in _FORMS:
        raise UsageError("unknown-lookup", "there is no such lookup", expected=" or ".join(_FORMS), found=f"{lookup!r}")
    return _FORMS[lookup]


class NoSuchTokenError(VocabularyError, KeyError):
    """A token is not in the vocabulary, and no unknown token stands for it."""


class NoSuchIdError(VocabularyError, IndexError):
    """No token has this id."""


class TokenSequence(Sequence[str], ABC):
    """Tokens in the order of their ids: read-only, a string is made when asked for, a slice is a list.

    Equal to a list or tuple of the same strings.
    """

    __slots__ = ()

    @abstractmethod
    def _run(self, start: int, stop: int) -> list[str]:
        """Tokens start .. stop-1; none if stop is not behind start."""

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            ids = range(len(self))[index]
            return self._run(ids.start, ids.stop) if ids.step == 1 else [self[i] for i in ids]
        i = index.__index__()
        if not -len(self) <= i < len(self):
            raise no_such_id(i, len(self))
        return self._run(i % len(self), i % len(self) + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BATCH):
            yield from self._run(start, min(start + _BATCH, len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (TokenSequence, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # equal to lists, which have none

    def __repr__(self) -> str:
        head = ", ".join(map(repr, self[:3]))
        return f"<{len(self):,} tokens: {head}{', ..' if len(self) > 3 else ''}>"


class Tokens(TokenSequence):
    """The tokens of an index. `in` and `index` are exact, and as quick as looking one up."""

    __slots__ = ("_index",)

    def __init__(self, index: TokenIndex) -> None:
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    def _run(self, start: int, stop: int) -> list[str]:
        return self._index.blob(start, max(start, stop)).decode().split("\n")[:-1]

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self._index.get(utf8(token)) >= 0

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """The id of exactly this token. Raises NoSuchTokenError, a ValueError as in other sequences."""
        i = self._index.get(utf8(value)) if isinstance(value, str) else -1
        if i < 0 or i not in range(len(self))[start:stop]:
            raise NoSuchTokenError("no-such-token", f"the token {shown(str(value))} is not there")
        return i

    def count(self, value: str) -> int:
        """1 if the token is there, else 0."""
        return int(value in self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _indexed, (self._index.blob(0, len(self)),)


def _indexed(blob: bytes) -> Tokens:
    return Tokens(TokenIndex.over(blob))


def utf8(token: str) -> bytes:
    """The bytes to look up. A lone surrogate has none: what is looked up instead is in no vocabulary."""
    try:
        return token.encode()
    except UnicodeEncodeError:
        return b"\n"


def no_such_id(i: int, size: int, place: str = "") -> NoSuchIdError:
    """The error of an id outside 0 .. size-1."""
    expected = f"0 .. {size - 1}" if size else "none, since the vocabulary is empty"
    return NoSuchIdError("no-such-id", "no token has this id", expected=expected, found=f"{i}{place}")


def no_such_token(token: str) -> NoSuchTokenError:
    """The error of a missing token where no unknown token stands for it."""
    return NoSuchTokenError(
        "no-such-token",
        f"the token {shown(token)} is not in the vocabulary",
        hint="it has no unknown token; make it with unk_token= to have one stand for missing tokens",
    )
