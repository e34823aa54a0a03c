"""`RemoteFile`: a file behind a URL that is read as if it were here, whatever the network does.

A read that fails is tried again, after a pause that doubles. It goes on where it was, if the server can begin there and
still has the same version; if it can not, the file is read from its start, and what was handed on already is skipped,
once it is seen to be the same. The end of the file is where the server said that it is, never where a connection ended.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import Protocol

from ...errors import InputError, TryAgainError
from ..urls import label_of, name_of
from .facts import Facts, changed
from .systems import Calls, TransferError, filesystem, no_network

TRIES = 5  # attempts in a row
PAUSE = 0.5  # seconds before the second; doubled from one to the next
LONGEST_PAUSE = 30.0  # also where a server asks for more
PROGRESS = 1 << 20  # bytes that must have come for the attempts to count anew

_FIRST_WINDOW, _LAST_WINDOW = 64 << 10, 8 << 20  # bytes asked for after a jump, up to where all the rest is
_SKIP = 64 << 10  # bytes that are rather read than jumped over
_LARGEST_WHOLE = 4 << 30  # of a file that is taken into memory


class Stream(Protocol):
    """Bytes from a place on."""

    start: int

    def read(self, size: int) -> memoryview: ...
    def close(self) -> None: ...


class Origin(Protocol):
    """Where a file comes from."""

    label: str
    calls: Calls

    def open(self, start: int, window: int | None, known: Facts | None) -> tuple[Facts, Stream]: ...
    def check(self, known: Facts) -> None: ...


class RemoteFile:
    """A file behind a URL, open for reading.

    Attributes:
        label: the URL, without secrets.
        name: its base name.
        size: bytes, or None where the server does not say.
        marks_end: whether a cut can be told from the end; False only where a server says neither size nor end.
        closed: whether it is closed.
    """

    def __init__(self, origin: Origin, name: str) -> None:
        self.label = origin.label
        self.name = name
        self._origin = origin
        self._at = 0
        self._window: int | None = None  # bytes that the next request is for; None for all the rest
        self._stop: int | None = None  # where the stream ends by intention, if that is not the end of the file
        self._ended = False  # of a file of unknown size: the end was met
        self._stream: Stream | None = None
        self._facts: Facts | None = None
        self._tries = 0
        self._failed_at = 0
        self.closed = False
        self._restart()
        while self._stream is None:
            try:
                self._facts, self._stream = origin.open(0, None, None)
            except TransferError as error:
                self._try_again(error)
        self.size = self._known.size
        self.marks_end = self._known.marks_end
        self._restart()

    @property
    def _known(self) -> Facts:
        assert self._facts is not None
        return self._facts

    def _restart(self) -> None:
        self._crc = 0  # of all up to here, as long as they are read in order
        self._in_order = True
        digest = self._facts.digest if self._facts is not None else None
        self._digest = None if digest is None else hashlib.new(digest.name, usedforsecurity=False)

    # Reading.

    def readinto(self, view: memoryview) -> int:
        """Fill `view` from its start with some bytes; how many, 0 at the end.

        Raises:
            TryAgainError: the network fails, the file has changed, or is not what its checksum says.
            InputError: the server refuses.
        """
        if not len(view):
            return 0
        while not self._at_end():
            try:
                data = self._advance(len(view))
            except TransferError as error:
                self._try_again(error)
                continue
            except BaseException:
                self._drop()  # whatever was under way: the next read asks anew
                raise
            if data:
                self._take(data)
                view[: len(data)] = data
                return len(data)
        self._verify()
        return 0

    def _at_end(self) -> bool:
        return self._ended if self.size is None else self._at >= self.size

    def _advance(self, size: int) -> memoryview:
        """The next bytes; none where the stream ended as it should."""
        if self._stream is None:
            self._connect()
        assert self._stream is not None
        stop = self.size if self._stop is None else self._stop
        if stop is None:
            data = self._stream.read(size)
            self._ended = not data
            return data
        data = self._stream.read(min(size, stop - self._at)) if self._at < stop else memoryview(b"")
        if not data and self._at < stop:
            raise TransferError(f"{self._at:,} bytes came, and no more" + (f" of {self.size:,}" if self.size else ""))
        if not data:
            self._drop()
            self._window = 4 * self._window if self._window and self._window < _LAST_WINDOW else None
        return data

    def _take(self, data: memoryview) -> None:
        self._at += len(data)
        if self._in_order:
            self._crc = zlib.crc32(data, self._crc)
            if self._digest is not None:
                self._digest.update(data)

    def _connect(self) -> None:
        window = self._window
        if window is not None and self.size is not None and self._at + window >= self.size:
            window = None if self.size == self._at else self.size - self._at
        _, stream = self._origin.open(self._at, window, self._facts)
        self._stop = None if window is None else self._at + window
        try:
            self._skip(stream)
        except BaseException:
            stream.close()
            raise
        self._stream = stream

    def _skip(self, stream: Stream) -> None:
        """Of a stream that begins too early, read what was read before, and see that it is the same."""
        left, crc = self._at - stream.start, 0
        if left and not self._in_order:
            raise InputError(
                "no-ranges", "the server does not let a part of the file be read", path=self.label,
                hint="download the file first",
            )  # fmt: skip
        while left:
            data = stream.read(left)
            if not data:
                raise TransferError(f"{self._at - left:,} bytes came, and no more")
            crc = zlib.crc32(data, crc)
            left -= len(data)
        if stream.start < self._at and crc != self._crc:
            raise changed(self.label)

    def _try_again(self, error: TransferError) -> None:
        """Wait a little, unless it was tried often enough."""
        self._drop()
        if self._at - self._failed_at >= PROGRESS:
            self._tries = 0
        self._failed_at = self._at
        self._tries += 1
        if self._tries >= TRIES:
            raise no_network(self.label, f"{error.reason}; tried {TRIES} times") from None
        pause = max(error.after, PAUSE * 2 ** (self._tries - 1))
        self._origin.calls.pause(min(pause, LONGEST_PAUSE))

    # Checking.

    def _verify(self) -> None:
        """Compare with the checksum, if there is one and all was read."""
        expected = self._known.digest
        if self._digest is None or expected is None or not self._in_order:
            return
        if self._digest.hexdigest() != expected.value:
            raise TryAgainError(
                "checksum-differs", "what came is not what the server has", path=self.label,
                expected=f"{expected.name} {expected.value}", found=self._digest.hexdigest(),
                hint="download it again",
            )  # fmt: skip

    def check_unchanged(self) -> None:
        """Raise TryAgainError if what was read is not, or is no more, what the server has."""
        if self._at_end():
            self._verify()
        tries = 0
        while True:
            try:
                return self._origin.check(self._known)
            except TransferError as error:
                tries += 1
                if tries >= TRIES:
                    raise no_network(self.label, error.reason) from None
                self._origin.calls.pause(PAUSE * 2 ** (tries - 1))

    # What a file has.

    def seekable(self) -> bool:
        """Whether it can be read at any place."""
        return self.size is not None and self._known.ranges

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place; nothing is asked of the server before something is read there."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size or 0}[whence]
        place = base + offset
        if place < 0:
            raise ValueError("a place in front of the file")
        if place == self._at:
            return place
        if self._stream is not None and self._at < place <= min(self._at + _SKIP, self._stop or self.size or 0):
            buffer = memoryview(bytearray(place - self._at))
            while self._at < place and (count := self.readinto(buffer[: place - self._at])):
                buffer = buffer[count:]
            return self._at
        self._drop()
        self._at = place
        self._failed_at = min(self._failed_at, place)
        self._window = _FIRST_WINDOW
        if place:
            self._in_order = False
        else:
            self._restart()
        return place

    def tell(self) -> int:
        """The place from which the next bytes come."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """All `size` bytes, or fewer at the end; all the rest if it is negative.

        Raises:
            InputError: the rest is too large; and what `readinto` raises.
        """
        if size < 0:
            return self.read_rest(_LARGEST_WHOLE)
        pieces, left = [], size
        buffer = bytearray(min(left, 1 << 20))
        while left and (count := self.readinto(memoryview(buffer)[: min(left, len(buffer))])):
            pieces.append(bytes(buffer[:count]))
            left -= count
        return b"".join(pieces)

    def read_rest(self, limit: int) -> bytes:
        """All the rest, which must be no larger than `limit` bytes.

        Raises:
            InputError: it is; and what `readinto` raises.
        """
        known = None if self.size is None else self.size - self._at
        data = self.read(limit + 1) if known is None or known <= limit else b""
        if len(data) > limit or (known is not None and known > limit):
            raise InputError(
                "download-too-large", "the file is too large to be taken into memory", path=self.label,
                expected=f"at most {limit:,} bytes", found="more" if known is None else f"{known:,}",
            )  # fmt: skip
        return data

    def readable(self) -> bool:
        """It is."""
        return True

    def writable(self) -> bool:
        """It is not."""
        return False

    def flush(self) -> None:
        """Nothing to do."""

    def cancel(self) -> None:
        """End a read that waits in another thread, as soon as nothing comes."""
        self._origin.calls.given_up.set()

    def resume(self) -> None:
        """Go on where reading was ended."""
        self._origin.calls.given_up.clear()

    def close(self) -> None:
        """Let go of the connection."""
        self._drop()
        self.closed = True
        self.cancel()

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_remote(url: str) -> RemoteFile:
    """Open a file behind a URL.

    Raises:
        InputError: there is no such file, or the server refuses.
        TryAgainError: the network fails.
        UsageError: there is no such protocol.
        MissingPackageError: fsspec, or what it needs for this protocol, is not there.
    """
    system, path = filesystem(url)
    label = label_of(url)
    protocol: str | tuple[str, ...] = system.protocol
    if "http" in ((protocol,) if isinstance(protocol, str) else protocol):
        from .http import HttpOrigin

        return RemoteFile(HttpOrigin(system, path, label), name_of(url))
    from .ranges import RangeOrigin

    return RemoteFile(RangeOrigin(system, path, label), name_of(url))


def read_whole(url: str, limit: int) -> bytes:
    """All bytes of a file behind a URL, which must be no larger than `limit`; raises what `open_remote` raises."""
    with open_remote(url) as file:
        data = file.read_rest(limit)
        file.check_unchanged()
        return data
