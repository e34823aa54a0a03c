"""Zip: a directory at the end of the file says where its members are, so one must be able to jump in it.

`zip_directory` reads the directory. The members are read here: a member is a slice of the
file, decompressed, and checked against the size and the checksum that the directory gives.
"""

from __future__ import annotations

import stat
import struct
import zipfile
from collections.abc import Callable
from typing import IO

from ...errors import FormatError
from ..compression import Codec, Decompressed, Read, bzip2, raw_deflate, xz, zip_lzma, zstd
from .choice import Choice
from .members import Entry, Member, Slice, corrupt, cut
from .zip_directory import LOCAL_HEADER, read_directory

_ENCRYPTED = 0x2041  # flags: encrypted, strongly, header hidden

_CODECS: dict[int, Callable[[zipfile.ZipInfo], Codec | None]] = {
    0: lambda _: None,
    8: lambda _: raw_deflate(),
    12: lambda _: bzip2(),
    14: lambda info: zip_lzma(info.file_size, bool(info.flag_bits & 2)),
    93: lambda _: zstd(),
    95: lambda _: xz(),
}
_UNREADABLE = {
    1: "Shrink", 6: "Implode", 9: "Deflate64", 10: "DCL Implode", 16: "CMPSC", 18: "TERSE", 19: "LZ77", 94: "MP3",
    96: "JPEG", 97: "WavPack", 98: "PPMd", 99: "AES",
}  # fmt: skip


def open_zip(file: IO[bytes], read: Read, choice: Choice) -> Member:
    """The member of a zip that is meant. `file` can be jumped in; `read` reads it from where it stands.

    Raises:
        InputError: the archive is cut or corrupt, is of another trade, or no single member is meant.
    """
    archive = _Zip(file, read, choice.label)
    for entry in archive.entries():
        choice.take(entry, lambda entry=entry: archive.contents(entry.place)[0])  # type: ignore[misc]
    chosen = choice.settle()
    contents, codec = archive.contents(chosen.place)
    return Member(chosen.name, contents, chosen.place.compress_size, codec)


class _Zip:
    def __init__(self, file: IO[bytes], read: Read, label: str) -> None:
        self._file = file
        self._read = read
        self._label = label
        self._size = file.seek(0, 2)

    def entries(self) -> list[Entry]:
        """All members, as the directory lists them."""
        infos = read_directory(self._file, self._label).infolist()
        _refuse_other_trades([info.filename for info in infos], self._label)
        return [_entry(info) for info in infos]

    def contents(self, info: zipfile.ZipInfo) -> tuple[Read, Codec | None]:
        """A member's bytes, checked, and what they are compressed with; they are read before others are opened."""
        codec = _CODECS[info.compress_type](info)
        start = self._start(info)
        if start + info.compress_size > self._size:
            raise cut("zip", self._label)
        self._file.seek(start)
        read: Read = Slice(self._read, info.compress_size, "zip", self._label).readinto
        if codec is not None:
            read = Decompressed(read, codec, self._label).readinto
        return _Checked(read, info, self._label).readinto, codec

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Where the data begin: behind a header of the member's own, whose length only it can tell."""
        start: int = info.header_offset
        header = b""
        if 0 <= start < self._size:
            self._file.seek(start)
            header = self._file.read(LOCAL_HEADER)
        if len(header) < LOCAL_HEADER or not header.startswith(b"PK\3\4"):
            raise corrupt("zip", self._label, "no member begins where its directory says so")
        name, extra = struct.unpack("<HH", header[26:])
        return start + LOCAL_HEADER + int(name) + int(extra)


def _entry(info: zipfile.ZipInfo) -> Entry:
    kind = stat.S_IFMT(info.external_attr >> 16)
    is_file = not info.filename.endswith("/") and kind in (0, stat.S_IFREG)
    method = info.compress_type
    unreadable = None
    if info.flag_bits & _ENCRYPTED:
        unreadable = "encryption"
    elif method not in _CODECS:
        unreadable = f"compression with {_UNREADABLE.get(method, f'the unknown method {method}')}"
    return Entry(info.filename, is_file, unreadable, info)


def _refuse_other_trades(names: list[str], label: str) -> None:
    """Name the formats that are zip archives by their make."""
    if names and all(name.endswith(".npy") for name in names):
        slug, what = "npz", "NumPy arrays (.npz)"
        advice = "load them with numpy.load and pass them to vec2emb.save with their words"
    elif any(name.split("/")[-1] == "data.pkl" for name in names):
        slug, what = "torch", "a PyTorch file (.pt), which may hold any code and is never opened here"
        advice = "export its words and vectors from a trusted place"
    elif "[Content_Types].xml" in names:
        slug, what, advice = "office", "an office document", "export its words and vectors as text"
    else:
        return
    raise FormatError(f"is-{slug}", "this is no file of word vectors", path=label, found=what, hint=advice)


class _Checked:
    """Bytes that must have the size and the checksum that the directory gives."""

    def __init__(self, read: Read, info: zipfile.ZipInfo, label: str) -> None:
        self._read = read
        self._left = info.file_size
        self._expected = info.CRC
        self._crc = 0
        self._crc32 = _crc32()
        self._label = label

    def readinto(self, view: memoryview) -> int:
        count = self._read(view)
        self._crc = self._crc32(view[:count], self._crc)
        self._left -= count
        if self._left < 0 or (not count and self._left):
            raise corrupt("zip", self._label, "a member has not the size that its directory gives")
        if not count and self._crc != self._expected:
            raise corrupt("zip", self._label, "a member has not the checksum that its directory gives")
        return count


def _crc32() -> Callable[[memoryview, int], int]:
    try:
        from isal.isal_zlib import crc32
    except ImportError:
        from zlib import crc32
    return crc32
