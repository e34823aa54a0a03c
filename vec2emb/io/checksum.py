"""A source whose SHA-256 is known beforehand."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

from ..errors import CheckError, UsageError, shown

_PIECE = 1 << 20


class Pinned:
    """The bytes of a file, read in order, which must have a SHA-256 in the end.

    Args:
        raw: the file.
        sha256: in hexadecimal.
        label: the file's name, for errors.
        before: bytes that were taken from it already.
    """

    def __init__(self, raw: Any, sha256: str, label: str, before: bytes = b"") -> None:
        self._raw = raw
        self._expected = sha256
        self._label = label
        self._digest = hashlib.sha256(before)

    def readinto(self, view: memoryview) -> int | None:
        """Some bytes; 0 at the end, None if there are none yet."""
        if hasattr(self._raw, "readinto"):
            count: int | None = self._raw.readinto(view)
        else:
            data = self._raw.read(len(view))
            count = None if data is None else len(data)
            view[: count or 0] = data or b""
        self._digest.update(view[: count or 0])
        return count

    def check_unchanged(self) -> None:
        """Read what nobody has read yet, and compare.

        Raises:
            CheckError: these are other bytes.
        """
        buffer = memoryview(bytearray(_PIECE))
        while self.readinto(buffer) != 0:
            pass
        if hasattr(self._raw, "check_unchanged"):
            self._raw.check_unchanged()
        compare(self._digest.hexdigest(), self._expected, self._label)

    def cancel(self) -> None:
        """End a read that waits in another thread, where that can be done."""
        if hasattr(self._raw, "cancel"):
            self._raw.cancel()

    def resume(self) -> None:
        """Go on where reading was ended."""
        if hasattr(self._raw, "resume"):
            self._raw.resume()

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    @property
    def is_download(self) -> bool:
        """Whether the file is behind a URL."""
        return hasattr(self._raw, "marks_end")


def checked_hex(sha256: str) -> str:
    """A SHA-256 as `hashlib` writes it.

    Raises:
        UsageError: it is none.
    """
    text = sha256.strip().lower()
    with contextlib.suppress(ValueError):
        if len(text) == 64 and len(bytes.fromhex(text)) == 32:
            return text
    raise UsageError("sha256-form", "this is no SHA-256", expected="64 hexadecimal digits", found=shown(sha256, 80))


def compare(found: str, expected: str, label: str) -> None:
    """Raise CheckError unless two SHA-256 are the same."""
    if found != expected:
        raise CheckError(
            "source-sha256", "the source is not the one expected", path=label,
            expected=f"sha256 {expected}", found=found, hint="it was replaced or damaged: look where it came from",
        )  # fmt: skip
