"""Files of any other file system of fsspec, read in ranges: s3, hf, gs, memory .."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ...errors import InputError
from .facts import Digest, Facts, changed, digest_of
from .systems import Calls, Info, TransferError, in_our_words, meaning

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

LARGEST = 8 << 20  # bytes asked for at a time, reached step by step
FIRST = 1 << 20

# What one or another file system calls what changes with a file.
_VERSION = (
    "ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created", "generation", "VersionId",
    "blob_id", "oid", "md5Hash", "content_hash",
)  # fmt: skip


def version_of(info: Info) -> tuple[str, ...]:
    """What changes with a file, of what its file system says of it."""
    return tuple(str(info[name]) for name in _VERSION if info.get(name) is not None)


class RangeOrigin:
    """A file that is read range by range.

    Attributes:
        label: its URL, without secrets.
    """

    def __init__(self, system: AbstractFileSystem, path: str, label: str) -> None:
        self.label = label
        self._is_async = bool(getattr(system, "async_impl", False)) and getattr(system, "loop", None) is not None
        self.calls = Calls(system.loop if self._is_async else None, label)
        self._system = system
        self._path = path

    def open(self, start: int, window: int | None, known: Facts | None) -> tuple[Facts, RangeStream]:
        """The bytes from `start` on; `window` says how many to begin with.

        Raises:
            TransferError: it may go well the next time.
            InputError: there is no such file, or it must not be read.
            TryAgainError: the file is not the one that is `known`.
        """
        facts = self._facts(fresh=known is not None) if window is None or known is None else known
        if known is not None and (facts.size, facts.version) != (known.size, known.version):
            raise changed(self.label)
        return known or facts, RangeStream(self, start, facts.size or 0, window or FIRST)

    def check(self, known: Facts) -> None:
        """Raise TryAgainError if the file is not the one that is `known` any more."""
        now = self._facts(fresh=True)
        if (now.size, now.version) != (known.size, known.version):
            raise changed(self.label)

    def _facts(self, *, fresh: bool) -> Facts:
        info = in_our_words(lambda: self._info(fresh), self._meaning)
        if info.get("type") == "directory":
            raise InputError("is-a-folder", "this is a folder, not a file of vectors", path=self.label)
        size = info.get("size")
        if not isinstance(size, int):
            raise InputError("size-unknown", "the file system does not say how large the file is", path=self.label,
                             hint="download the file first")  # fmt: skip
        return Facts(size, version_of(info), True, None if fresh else self._digest(info))

    def _info(self, fresh: bool) -> Info:
        if fresh:
            with contextlib.suppress(TypeError):
                self._system.invalidate_cache(self._path)
        return self._system.info(self._path)  # type: ignore[no-any-return]

    def _meaning(self, error: Exception) -> Exception:
        return meaning(error, self.label)

    def _digest(self, info: Info) -> Digest | None:
        """The checksum that the file system gives, where it surely is one of the file's bytes."""
        lfs = info.get("lfs")
        sha256 = lfs.get("sha256") if isinstance(lfs, dict) else getattr(lfs, "sha256", None)
        if isinstance(sha256, str):
            return digest_of("sha256", sha256, is_hex=True)
        if isinstance(info.get("md5Hash"), str):
            return digest_of("md5", info["md5Hash"])
        found = digest_of("md5", str(info.get("ETag") or "").strip('"'), is_hex=True)
        if "s3" in _protocols(self._system) and found is not None:
            # Of an object in parts it is none, of one that is encrypted with a key of its own neither.
            with contextlib.suppress(Exception):  # not everyone may ask
                bucket, key, _ = self._system.split_path(self._path)
                head = self._system.call_s3("head_object", Bucket=bucket, Key=key)
                if head.get("ServerSideEncryption", "AES256") == "AES256" and "SSECustomerAlgorithm" not in head:
                    return found
        return None

    def begin(self, start: int, stop: int) -> Future[bytes] | None:
        """Ask for a range without waiting for it, where the file system can do that."""
        if not self._is_async:
            return None
        return self.calls.start(self._system._cat_file(self._path, start=start, end=stop))

    def fetch(self, start: int, stop: int, begun: Future[bytes] | None) -> bytes:
        """A range, all of it.

        Raises:
            TransferError: it did not come, or not all of it.
        """

        def ask() -> bytes:
            future = begun or self.begin(start, stop)
            return self.calls.result(future) if future is not None else self._read(start, stop)

        data = in_our_words(ask, self._meaning)
        if len(data) != stop - start:
            raise TransferError(f"{len(data)} bytes came of {stop - start} that were asked for")
        return bytes(data)

    def _read(self, start: int, stop: int) -> bytes:
        from fsspec import AbstractFileSystem

        if type(self._system).cat_file is not AbstractFileSystem.cat_file:
            data: bytes = self._system.cat_file(self._path, start=start, end=stop)
            return data
        with self._system.open(self._path, "rb", cache_type="none") as file:  # the usual cache reads further on
            file.seek(start)
            rest: bytes = file.read(stop - start)
        return rest


class RangeStream:
    """The bytes from one place on; the next range is under way while the last one is used.

    Attributes:
        start: byte of the file at which it begins.
    """

    def __init__(self, origin: RangeOrigin, start: int, size: int, first: int) -> None:
        self.start = start
        self._origin = origin
        self._at = start
        self._size = size
        self._width = first
        self._piece = memoryview(b"")
        self._coming: Future[bytes] | None = None

    def read(self, size: int) -> memoryview:
        """Some bytes, at most `size`; none at the end.

        Raises:
            TransferError: they did not come.
        """
        if not self._piece and self._at < self._size:
            begun, self._coming = self._coming, None
            stop = self._stop()
            self._piece = memoryview(self._origin.fetch(self._at, stop, begun))
            self._at = stop
            self._width = min(4 * self._width, LARGEST)
            if self._at < self._size and self._width >= FIRST:  # whoever jumps about reads little at a place
                self._coming = self._origin.begin(self._at, self._stop())
        data, self._piece = self._piece[:size], self._piece[size:]
        return data

    def _stop(self) -> int:
        return min(self._at + self._width, self._size)

    def close(self) -> None:
        """Give up what is under way."""
        if self._coming is not None:
            self._coming.cancel()


def _protocols(system: AbstractFileSystem) -> tuple[str, ...]:
    protocol = system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
