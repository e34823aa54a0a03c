"""Writing compressed files. The same content gives the same bytes: no clock and no name goes in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, cast

from ..errors import MissingPackageError, UsageError

SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_NOT_WRITTEN = (".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".lzma", ".z", ".br")


def compression_of(path: str) -> str:
    """What the end of a name asks for: `none`, or one of the values of SUFFIXES.

    Raises:
        UsageError: it asks for something that cannot be written.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix in _NOT_WRITTEN:
        raise UsageError(
            "compression-suffix", "this compression cannot be written", path=path,
            expected=f"{', '.join(SUFFIXES)}, or none of them", found=suffix,
        )  # fmt: skip
    return SUFFIXES.get(suffix, "none")


@contextlib.contextmanager
def packed(file: BinaryIO, compression: str) -> Iterator[IO[bytes]]:
    """A stream whose bytes go to an open file, compressed; the file itself stays open.

    Raises:
        MissingPackageError: a package is missing that compresses so.
    """
    if compression == "none":
        yield file
        return
    with _stream(file, compression) as stream:
        yield stream


def _stream(file: BinaryIO, compression: str) -> IO[bytes]:
    if compression == "gzip":
        import gzip

        stream = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
        return cast(IO[bytes], stream)
    if compression == "bzip2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if compression == "xz":
        import lzma

        return lzma.LZMAFile(file, "wb")
    return _zstd_stream(file)


def _zstd_stream(file: BinaryIO) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        pass
    else:
        # In one thread: how the work is cut among several is part of the result.
        return cast(IO[bytes], zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False))
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # from Python 3.14 on
    except ImportError:
        raise MissingPackageError.of("zstandard", "fast", "writing Zstandard (.zst)") from None
    stream: Any = zstd.ZstdFile(file, "wb")
    return cast(IO[bytes], stream)
