"""What is known of a file behind a URL before it is read."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import NamedTuple

from ...errors import TryAgainError


class Digest(NamedTuple):
    """A checksum that a server gives: the algorithm, as `hashlib` calls it, and the hexadecimal value."""

    name: str
    value: str


def digest_of(name: str, text: str, *, is_hex: bool = False) -> Digest | None:
    """A checksum as a server writes it, in base64 or hexadecimal; None for what is none.

    A server that puts one in hexadecimal where base64 is wanted says something else than what it means: 32 such digits
    are base64 of 24 bytes.
    """
    try:
        value = bytes.fromhex(text) if is_hex else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
    is_one = len(value) == hashlib.new(name, usedforsecurity=False).digest_size
    return Digest(name, value.hex()) if is_one else None


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
