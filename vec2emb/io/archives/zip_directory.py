"""The directory of a zip archive: read with the standard library, zip64 included, once it is known to be sound.

The library takes some twenty times the memory of the directory, and believes every entry. So a directory that is too
large is refused before it is read, and one whose members share bytes afterwards: a few kilobytes of it could stand for
gigabytes to decompress.
"""

from __future__ import annotations

import struct
import zipfile
from typing import Any

from ...errors import FormatError, SourceError
from .members import corrupt

LOCAL_HEADER = 30  # bytes in front of a member, without its name and extra field
_END_RECORD = 22  # bytes of the end record, without its comment
_LARGEST = 1 << 20  # bytes: some ten thousand members


def read_directory(file: Any, label: str) -> zipfile.ZipFile:
    """The archive in a file that can be jumped in, its directory read and checked.

    Raises:
        FormatError: the directory is too large.
        SourceError: the directory is missing or corrupt, or members share bytes.
    """
    try:
        size = _size_of(file)
        archive = zipfile.ZipFile(file) if size <= _LARGEST else None
    except (zipfile.BadZipFile, NotImplementedError, struct.error, OSError, ValueError, EOFError) as error:
        raise SourceError(
            "archive-corrupt",
            f"the zip archive's directory, at its end, is missing or corrupt ({error})",
            path=label,
            hint="the download or copy is not complete: get the file again",
        ) from error
    if archive is None:
        raise FormatError(
            "too-many-members", "the zip archive has too many members", path=label,
            expected=f"a directory of at most {_LARGEST:,} bytes", found=f"{size:,}",
            hint="unpack the table first: unzip ARCHIVE MEMBER",
        )  # fmt: skip
    end = 0
    for start, size in sorted((info.header_offset, info.compress_size) for info in archive.infolist()):
        if start < end:
            raise corrupt("zip", label, "members overlap")
        end = start + LOCAL_HEADER + size
    return archive


def _size_of(file: Any) -> int:
    """Bytes of the directory, as the end record says; 0 where there is no such record."""
    size = file.seek(0, 2)
    file.seek(max(0, size - (1 << 16) - _END_RECORD))
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < _END_RECORD:
        return 0
    (claimed,) = struct.unpack_from("<L", tail, at + 12)
    locator = tail[max(0, at - 20) : at]
    if claimed != 0xFFFFFFFF or not locator.startswith(b"PK\6\7"):
        return int(claimed)
    file.seek(min(size, *struct.unpack_from("<Q", locator, 8)))  # the end record of zip64
    record = file.read(56)
    return int(*struct.unpack_from("<Q", record, 40)) if record.startswith(b"PK\6\6") and len(record) == 56 else 0
