"""The bytes of a source: a path, a URL, `-`, or an open binary file, decompressed, of an archive one member.

What a source is packed in is found out by its first bytes, never by its name. At most it is an archive, compressed as a
whole, of members compressed each: what is packed deeper is refused by whoever looks at the bytes.
"""

from __future__ import annotations

import io
import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ..errors import FormatError, InputError, SourceError, UsageError, Vec2embError, shown
from .archives import HEAD as ARCHIVE_HEAD
from .archives import Member, kind_of
from .checksum import Pinned, checked_hex, compare
from .compression import HEAD as CODEC_HEAD
from .compression import Codec, Decompressed, Read, codec_of
from .filesystem import identity
from .urls import is_url, plain

if TYPE_CHECKING:
    from .archives.choice import Choice

Pathish = str | os.PathLike[str]


class HasVectors(Protocol):
    """An object with vectors in memory: a `Table`, or gensim's `KeyedVectors`."""

    @property
    def vectors(self) -> Any: ...


SourceLike = Pathish | BinaryIO | HasVectors | tuple[Any, Iterable[str]]  # the last is (vectors, words)


def is_open_file(where: object) -> bool:
    """Whether an object can be read like a file."""
    return callable(getattr(where, "read", None))


_PIECE = 1 << 20  # bytes read at a time for a checksum
_WAIT = 100  # milliseconds at most until a read that waits for a slow writer notices that nobody wants it any more


class Source:
    """Bytes in order, decompressed, with a place to put some back.

    Attributes:
        label: the name for messages, as the caller gave it; of an archive, with the member behind it.
        name: the base name, which is what gets recorded.
        member: of an archive, the member that is read; else None.
        compression: `none`, `gzip`, ..; of an archive whose members are compressed too, both, as `gzip, xz`.
        size: bytes of the file itself, or those that the member takes in it; None where nobody can know (pipes).
        advice: what would make reading faster, or None.
        failure: the error at which reading ended, or None.
        marks_end: whether a cut can be told from the end; not so of a download of which nobody knows how long it is.
    """

    def __init__(self, raw: Any, label: str, name: str, size: int | None, owned: bool) -> None:
        self.label = label
        self.name = name
        self.member: str | None = None
        self.size = size
        self.compression = "none"
        self.advice: str | None = None
        self.failure: InputError | None = None
        self.marks_end: bool = getattr(raw, "marks_end", True)
        self.consumed = 0  # bytes taken from the file itself, for progress
        self._raw = raw
        self._owned = owned
        self._ready = _poll_of(raw)
        self._cancelled = False
        self.given_up: Callable[[], bool] | None = None
        self._back = b""  # bytes to hand out before any others
        self._identity = identity(raw.fileno()) if size is not None and hasattr(raw, "fileno") else None
        self._read: Read = self._read_raw
        self._finish: Callable[[], None] | None = None

    def readinto(self, view: memoryview) -> int:
        """Fill `view` from its start, as far as the source goes; less than its length means the end.

        What was read before a failure is handed out first; the failure is raised by the next call.

        Raises:
            SourceError: reading fails, or what it is packed in is cut or corrupt.
            FormatError: an archive that is read in order holds a second table.
        """
        done = 0
        while done < len(view):
            try:
                count = self._take_back(view[done:]) if self._back else self._read_on(view[done:])
            except InputError as error:
                self.failure = error
                if not done:
                    raise
                break
            if not count:
                break
            done += count
        return done

    def _read_on(self, view: memoryview) -> int:
        if self.failure is not None:
            raise self.failure
        return self._read(view)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; less means the end."""
        buffer = bytearray(size)
        return bytes(buffer[: self.readinto(memoryview(buffer))])

    def unread(self, data: bytes) -> None:
        """Put bytes back in front of those that come next."""
        self._back = data + self._back

    def _take_back(self, view: memoryview) -> int:
        piece = self._back[: len(view)]
        self._back = self._back[len(piece) :]
        view[: len(piece)] = piece
        return len(piece)

    def cancel(self) -> None:
        """End a read that waits in another thread for a slow writer; nothing can be read before `resume`."""
        self._cancelled = True
        if hasattr(self._raw, "cancel"):  # a download
            self._raw.cancel()

    def resume(self) -> None:
        """Let it be read again after `cancel`, if no read was under way then."""
        self._cancelled = False
        if hasattr(self._raw, "resume"):
            self._raw.resume()

    def pin(self, sha256: str) -> None:
        """Say which SHA-256 the file must have; what can be read twice is checked here, the rest by `check_unchanged`.

        Raises:
            CheckError: it has another.
        """
        raw = self._raw
        if hasattr(raw, "marks_end") or not (hasattr(raw, "seekable") and raw.seekable()):
            self._raw, self.marks_end = Pinned(raw, sha256, self.label, self._back), True
            return
        import hashlib

        start, digest = raw.tell() - len(self._back), hashlib.sha256()
        raw.seek(start)
        while piece := raw.read(_PIECE):
            digest.update(piece)
        raw.seek(start + len(self._back))
        compare(digest.hexdigest(), sha256, self.label)

    def finish(self) -> None:
        """Look at the rest of an archive that is read in order, where reading ends early: is there another table?

        Raises:
            InputError: there is, or the rest is cut or corrupt.
        """
        if self._finish is not None:
            if self.failure is not None:  # it was met already, though the bytes in front of it are not used up
                raise self.failure
            self._finish()

    def check_unchanged(self) -> None:
        """See that the file is what it was when it was opened, and what it was said to be.

        Raises:
            SourceError: it has changed.
            TryAgainError: so has what was downloaded, or it is not what the server has.
            CheckError: it has not the SHA-256 that was given.
        """
        if hasattr(self._raw, "check_unchanged"):
            self._raw.check_unchanged()
        if self._identity is not None and identity(self._raw.fileno()) != self._identity:
            raise SourceError(
                "source-changed", "the file changed while it was read", path=self.label, hint="run the command again"
            )

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._owned:
            self._raw.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_raw(self, view: memoryview) -> int:
        try:
            count = None
            while count is None:
                self._wait_for_data()
                count = self._read_once(view)
        except (OSError, ValueError) as error:
            if isinstance(error, Vec2embError):
                raise
            reason = getattr(error, "strerror", None) or str(error)
            raise self._read_failed(reason) from error
        self.consumed += count
        return count

    def _wait_for_data(self) -> None:
        while self._ready is not None:
            if self._cancelled or (self.given_up is not None and self.given_up()):
                raise self._read_failed("it was given up")
            if self._ready.poll(_WAIT):
                return

    def _read_once(self, view: memoryview) -> int | None:
        """Bytes read, 0 at the end; None if there are none yet."""
        readinto = getattr(self._raw, "readinto", None)
        if readinto is not None:
            count: int | None = readinto(view)
        else:
            data = self._raw.read(len(view))
            count = None if data is None else len(data)
            view[: count or 0] = data or b""
        if count is None and self._ready is None:
            raise self._read_failed("the file does not wait for its data; open it in blocking mode")
        return count

    def _read_failed(self, reason: str) -> SourceError:
        return SourceError("read-failed", f"reading failed ({reason})", path=self.label, offset=self.consumed)

    # What the bytes are packed in.

    def see_through(self) -> None:
        """Decompress from here on, if the next bytes say so."""
        codec = codec_of(self._peek(CODEC_HEAD))
        if codec is not None:
            self._read = Decompressed(self._rest(), codec, self.label).readinto
            self._note(codec)

    def enter(self, member: str | None, probe: Probe | None) -> None:
        """Be a member from here on, if the next bytes are an archive; the arguments are those of `open_source`."""
        kind = kind_of(self._peek(ARCHIVE_HEAD))
        if kind is None and member is not None:
            raise UsageError(
                "member-without-archive", "a member can be named of an archive only, which this is not",
                path=self.label, found=shown(member),
            )  # fmt: skip
        if kind is not None:
            from .archives.choice import Choice

            choice = Choice(self.label, member, lambda read: None if probe is None else probe(_inner(read, self.label)))
            self._become(self._open_zip(choice) if kind == "zip" else self._open_tar(choice))

    def _open_zip(self, choice: Choice) -> Member:
        if not self._rewind() and not self._spool():
            packed = self.compression != "none"
            raise FormatError(
                "zip-in-order",
                "a zip archive can be read from a file only, as its directory stands at its end",
                path=self.label,
                found=f"one inside {self.compression}" if packed else "a pipe",
                hint="decompress it first" if packed else "save it as a file first",
            )
        from .archives.zip import open_zip

        return open_zip(self._raw, self._read_raw, choice)

    def _open_tar(self, choice: Choice) -> Member:
        from .archives.tar import open_tar

        if self._rewind():
            return open_tar(self._raw, self._read_raw, choice)
        return open_tar(None, self._rest(), choice)

    def _rewind(self) -> bool:
        """Go back to the start of a plain file; whether that could be done."""
        if self.compression != "none" or not (hasattr(self._raw, "seekable") and self._raw.seekable()):
            return False
        self._raw.seek(-len(self._back), os.SEEK_CUR)
        return True

    def _spool(self) -> bool:
        """Put the rest of a download that cannot be jumped in on the disk; whether that is one."""
        pinned = isinstance(self._raw, Pinned) and self._raw.is_download
        if self.compression != "none" or not (pinned or hasattr(self._raw, "marks_end")):
            return False
        from .remote.spooling import spooled

        rest, download = self._rest(), self._raw
        self._raw, self._owned = spooled(rest, self.label, self.size), True
        self._read = self._read_raw
        download.check_unchanged()
        download.close()
        return True

    def _become(self, member: Member) -> None:
        self._back = b""
        self._read, self._finish = member.read, member.finish
        self.member = member.name
        self.label = f"{self.label}/{member.name}"
        self.failure = None
        if member.packed is not None:
            self.size, self.consumed = member.packed, 0
        if member.codec is not None:
            self._note(member.codec)

    def _note(self, codec: Codec) -> None:
        self.compression = codec.name if self.compression == "none" else f"{self.compression}, {codec.name}"
        self.advice = self.advice or codec.advice
        self.failure = None

    def _peek(self, size: int) -> bytes:
        head = self.read(size)
        self.unread(head)
        return head

    def _rest(self) -> Read:
        """The bytes that come next, for a layer that is put on top."""
        back, below = memoryview(self._back), self._read
        self._back = b""

        def read(view: memoryview) -> int:
            nonlocal back
            if not back:
                return below(view)
            count = min(len(back), len(view))
            view[:count], back = back[:count], back[count:]
            return count

        return read


Probe = Callable[[Source], InputError | None]  # looks at the head of a member; why it is not the table that is meant


class _Contents:
    """What `read` gives, as a file."""

    def __init__(self, read: Read) -> None:
        self.readinto = read


def _inner(read: Read, label: str) -> Source:
    """A source of its own for the contents of a member."""
    source = Source(_Contents(read), label, label, None, owned=False)
    source.see_through()
    return source


def open_source(
    where: SourceLike,
    member: str | None = None,
    probe: Probe | None = None,
    sha256: str | None = None,
    given_up: Callable[[], bool] | None = None,
) -> Source:
    """Open a path, a URL, `-` for standard input, or an open binary file; see through compression, enter an archive.

    Args:
        where: what to open.
        member: of an archive, the name of the member; None takes the only one that may be a table.
        probe: looks at the head of each member that may be one, and says why it is not the table that is meant.
        sha256: what the file must have, as it lies there; what can be read but once is not checked before
            `check_unchanged` is called.
        given_up: whether to end a wait for data, in a thread that no signal interrupts; it is asked while opening, too.

    Raises:
        InputError: there is no such file, it must not be read, it is cut or corrupt, or no single member is meant.
        UsageError: `where` is neither a path nor a binary file, or `member` is given and it is no archive.
        MissingPackageError: a package is missing that decompresses it, or reads the URL.
        TryAgainError: the network fails.
        CheckError: the file has not the SHA-256.
    """
    pin = None if sha256 is None else checked_hex(sha256)
    source = _open_raw(where, given_up)
    try:
        if pin is not None:
            source.pin(pin)
        source.see_through()
        source.enter(member, probe)
        if source.member is not None:
            source.see_through()
    except BaseException:
        source.close()
        raise
    return source


def _open_raw(where: Any, given_up: Callable[[], bool] | None = None) -> Source:
    if isinstance(where, bytes):
        raise UsageError("source-type", "a source is a path or an open binary file, not bytes", hint="use io.BytesIO")
    if not isinstance(where, str | os.PathLike):
        if not is_open_file(where):
            raise UsageError("source-type", "a source is a path or an open binary file", found=type(where).__name__)
        try:
            in_text_mode = isinstance(where.read(0), str)
        except ValueError as error:  # closed, or not open for reading
            raise UsageError(
                "source-type", f"the file cannot be read ({error})", hint="open it with mode 'rb'"
            ) from None
        if in_text_mode:
            raise UsageError("source-type", "the file is open in text mode", hint="open it with mode 'rb'")
        name = getattr(where, "name", None)
        name = name if isinstance(name, str) else "<stream>"
        return _of_open_file(where, name, os.path.basename(name))
    path = plain(os.fspath(where))
    if is_url(path):
        from .remote import open_remote

        file = open_remote(path)
        return Source(file, file.label, file.name, file.size, owned=True)
    if path == "-":
        if sys.stdin is None:
            raise InputError("cannot-open", "standard input is closed", path="<stdin>")
        return _of_open_file(sys.stdin.buffer, "<stdin>", "-")
    try:
        # Opened in the usual way, a FIFO waits for its writer, and in a thread nothing ends that.
        opener = _without_waiting if given_up is not None and sys.platform == "linux" else None
        raw = open(path, "rb", buffering=0, opener=opener)  # noqa: SIM115 - the source closes it
    except (OSError, ValueError) as error:
        raise _cannot_open(path, error) from error
    status = os.fstat(raw.fileno())
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    source = Source(raw, path, os.path.basename(path), size, owned=True)
    source.given_up = given_up
    return source


def _without_waiting(path: str, flags: int) -> int:
    """Open a FIFO at once. Elsewhere than on Linux `poll` takes one without a writer for one that has ended."""
    return os.open(path, flags | os.O_NONBLOCK)


def _of_open_file(file: Any, label: str, name: str) -> Source:
    """The source that somebody else opened and will close."""
    if type(file) is not io.BufferedReader or _poll_of(file.raw) is None:
        return Source(file, label, name, None, owned=False)
    # Whether a pipe has data can be asked of the system only, which does not know what Python has read ahead of it.
    source = Source(file.raw, label, name, None, owned=False)
    ahead = file.read1(len(file.peek()))
    source.unread(ahead)
    source.consumed = len(ahead)
    return source


def _poll_of(raw: Any) -> Any:
    """What tells whether a pipe, socket or terminal has data; None for files, which always have."""
    if type(raw) is not io.FileIO or not hasattr(select, "poll") or stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return None
    ready = select.poll()
    ready.register(raw.fileno(), select.POLLIN)
    return ready


def _cannot_open(path: str, error: OSError | ValueError) -> InputError:
    if isinstance(error, FileNotFoundError):
        hint = (
            "a URL is given as a string, as a Path has but one slash" if re.match("[a-z0-9]{2,}:/[^/]", path) else None
        )
        return InputError("not-found", "there is no such file", path=path, hint=hint)
    if isinstance(error, IsADirectoryError):
        return InputError("is-a-folder", "this is a folder, not a file of vectors", path=path)
    return InputError(
        "cannot-open", f"the file cannot be opened ({getattr(error, 'strerror', None) or error})", path=path
    )
