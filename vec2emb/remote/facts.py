"""What is known of a file behind a URL before it is read."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import TryAgainError


class Digest(NamedTuple):
    """A checksum that a server gives: the algorithm, as `hashlib` calls it, and the hexadecimal value."""

    name: str
    value: str


class Facts(NamedTuple):
    """What a server says of a file.

    Attributes:
        size: bytes, or None where it does not say.
        version: what changes when the file does.
        ranges: whether a part of it can be asked for.
        digest: of all its bytes, or None.
        validator: what names this version in a request, or None.
        marks_end: whether a cut can be told from the end.
    """

    size: int | None
    version: tuple[str, ...]
    ranges: bool
    digest: Digest | None = None
    validator: str | None = None
    marks_end: bool = True


def changed(label: str) -> TryAgainError:
    """The error of a file that is another one than at first."""
    return TryAgainError(
        "download-changed", "the file changed while it was read", path=label, hint="run the command again"
    )
