"""What zip and tar have in common: members, and bytes of them that must be there."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import SourceError
from ..compression import Codec, Read

if TYPE_CHECKING:
    import tarfile

HEAD = 512  # bytes that tell an archive


class Entry(NamedTuple):
    """A member, as the archive lists it.

    Attributes:
        name: as the archive has it.
        is_file: whether it is a file with contents of its own: no folder, link or device.
        unreadable: why its contents cannot be read here, or None.
        place: what its kind of archive needs to read it.
    """

    name: str
    is_file: bool
    unreadable: str | None = None
    place: Any = None


class Member(NamedTuple):
    """The member that is meant, open.

    Attributes:
        name: as the archive has it.
        read: gives its bytes.
        packed: bytes it takes in the file; None where the archive itself is compressed or comes from a pipe.
        codec: what it is compressed with in the archive, or None.
        finish: looks whether the rest of the archive holds another table; None where that is known.
    """

    name: str
    read: Read
    packed: int | None = None
    codec: Codec | None = None
    finish: Callable[[], None] | None = None


def kind_of(head: bytes) -> str | None:
    """`zip` or `tar`, by the first `HEAD` bytes of something; None for neither."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return "zip"
    # Text holds no NUL, so no row can pass for a header, whatever its words.
    if b"\0" in head[:257] and (head[257:262] == b"ustar" or tar_header(head) is not None):
        return "tar"
    return None


def tar_header(block: bytes) -> "tarfile.TarInfo | None":
    """The header of a tar member, if the block of 512 bytes is one; its checksum decides."""
    import tarfile

    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return None


class Slice:
    """The next `size` bytes of what `read` gives, which must be there."""

    def __init__(self, read: Read, size: int, kind: str, label: str) -> None:
        self._read = read
        self._left = size
        self._kind = kind
        self._label = label

    def readinto(self, view: memoryview) -> int:
        """Some of them; 0 at their end.

        Raises:
            SourceError: the archive ends before.
        """
        count = self._read(view[: self._left]) if self._left else 0
        if self._left and not count:
            raise cut(self._kind, self._label)
        self._left -= count
        return count


def cut(kind: str, label: str) -> SourceError:
    """The error of an archive that ends too early."""
    return SourceError(
        "archive-cut",
        f"the {kind} archive ends in the middle",
        path=label,
        hint="the download or copy is not complete: get the file again",
    )


def corrupt(kind: str, label: str, reason: str) -> SourceError:
    """The error of an archive that contradicts itself."""
    return SourceError(
        "archive-corrupt",
        f"the {kind} archive is corrupt ({reason})",
        path=label,
        hint="get the file again and compare its checksum with the published one",
    )
