"""Tar: a row of headers and contents, in blocks of 512 bytes; a block of zeros ends it.

    archive = member* zeros         member = [long name] [extended header] header contents padding

A plain file is looked through first, from header to header. One that is compressed or comes from a pipe is read in
order, so what follows the table is known only when the table has been read. The standard library reads a header; the
walk is ours, as the library's takes memory as a header bids it, and takes a cut archive for a whole one.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from typing import IO

from ...errors import SourceError
from ..compression import Read
from .choice import Choice
from .members import Entry, Member, Slice, corrupt, cut, tar_header

_BLOCK = 512
_LONGEST_EXTRA = 1 << 20  # bytes of a long name or an extended header
_WITHOUT_CONTENTS = (
    tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE,
)  # fmt: skip


def open_tar(file: IO[bytes] | None, read: Read, choice: Choice) -> Member:
    """The member of a tar that is meant.

    Args:
        file: the archive as a file that stands at its start and can be jumped in; None if it must be read in order.
        read: reads on from where the archive stands.
        choice: decides which.

    Raises:
        InputError: the archive is cut or corrupt, or no single member is meant; as far as that is known already.
    """
    walk = _Walk(file, read, choice.label)
    if file is None:
        return _InOrder(walk, choice).member()
    for entry in walk.entries:
        choice.take(entry, lambda: walk.readinto)
    chosen = choice.settle()
    start, size = chosen.place
    file.seek(start)
    return Member(chosen.name, Slice(read, size, "tar", choice.label).readinto, size)


class _InOrder:
    """A member of a tar that is read in order, and then a look at the rest."""

    def __init__(self, walk: _Walk, choice: Choice) -> None:
        self._walk = walk
        self._choice = choice
        self._seen = bytearray()  # of the contents, while they are looked at
        self._ended = False

    def member(self) -> Member:
        """The first that is meant."""
        for entry in self._walk.entries:
            if self._choice.take(entry, self._look):
                self._choice.check(entry)
                return Member(entry.name, self.readinto, finish=None if self._choice.named else self.finish)
        raise AssertionError(self._choice.settle())  # it raises: nothing was taken

    def _look(self) -> Read:
        """The contents, of which what is read will be read again."""
        self._seen.clear()

        def read(view: memoryview) -> int:
            count = self._walk.readinto(view)
            self._seen += view[:count]
            return count

        return read

    def readinto(self, view: memoryview) -> int:
        """Some of the contents; 0 at their end.

        Raises:
            FormatError: another table follows.
            SourceError: the archive is cut or corrupt.
        """
        if self._seen:
            piece = self._seen[: len(view)]
            del self._seen[: len(view)]
            view[: len(piece)] = piece
            return len(piece)
        count = 0 if self._ended else self._walk.readinto(view)
        if not count:
            self.finish()
        return count

    def finish(self) -> None:
        """Read the rest: another table may follow, or two members of one name; and a checksum of the whole."""
        if not self._ended:
            self._ended = True
            for entry in self._walk.entries:
                self._choice.take(entry, lambda: self._walk.readinto)
            self._choice.settle()


class _Walk:
    """Goes through a tar: `entries` stops at each member, whose contents `readinto` then gives."""

    def __init__(self, file: IO[bytes] | None, read: Read, label: str) -> None:
        self.entries = self._go()
        self._file = file
        self._read = read
        self._label = label
        self._left = 0  # bytes of the contents that are not read yet
        self._padding = 0  # bytes between their end and the next header
        self._scratch = memoryview(bytearray(64 << 10))

    def readinto(self, view: memoryview) -> int:
        """Some of the contents of the member at which `entries` stopped; 0 at their end."""
        count = self._read(view[: self._left]) if self._left else 0
        if self._left and not count:
            raise cut("tar", self._label)
        self._left -= count
        return count

    def _go(self) -> Iterator[Entry]:
        long_name = None
        general: dict[str, str] = {}
        special: dict[str, str] = {}
        while any(block := self._take(_BLOCK)):
            header = tar_header(block)
            if header is None or header.size < 0:
                raise self._corrupt("a header has not the checksum that it gives")
            if header.type == tarfile.GNUTYPE_LONGNAME:
                long_name = self._extra(header.size).split(b"\0")[0].decode("utf-8", "surrogateescape")
            elif header.type == tarfile.GNUTYPE_LONGLINK:
                self._extra(header.size)
            elif header.type == tarfile.XGLTYPE:
                general.update(self._extended(header.size))
            elif header.type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
                special = self._extended(header.size)
            else:
                extended = {**general, **special}
                yield self._entry(header, extended.get("path") or long_name or header.name, extended)
                self._skip(self._left + self._padding)
                long_name, special = None, {}
        while count := self._read(self._scratch):
            if any(self._scratch[:count]):
                raise self._corrupt("more follows its end; is it two archives in one?")

    def _entry(self, header: tarfile.TarInfo, name: str, extended: dict[str, str]) -> Entry:
        size = extended.get("size", str(header.size))
        if not re.fullmatch("[0-9]{1,18}", size):
            raise self._corrupt("the size of a member cannot be so")
        self._left = 0 if header.type in _WITHOUT_CONTENTS else int(size)
        self._padding = -self._left % _BLOCK
        place = (self._file.tell(), self._left) if self._file is not None else None
        sparse = header.issparse() or any(key.startswith("GNU.sparse") for key in extended)
        return Entry(name, header.isreg(), "a sparse file" if sparse else None, place)

    def _extended(self, size: int) -> dict[str, str]:
        """An extended header: records of `length key=value LF`."""
        data, found = self._extra(size), {}
        start = 0
        while start < len(data):
            record = re.compile(rb"([0-9]{1,7}) ([^=]+)=").match(data, start)
            stop = start + int(record[1]) if record else 0
            if record is None or not record.end() < stop <= len(data) or data[stop - 1] != 0x0A:
                raise self._corrupt("an extended header cannot be read")
            value = data[record.end() : stop - 1]
            found[record[2].decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
            start = stop
        return found

    def _extra(self, size: int) -> bytes:
        if size > _LONGEST_EXTRA:
            raise self._corrupt("a name or an extended header is longer than 1 MiB")
        return self._take(size + -size % _BLOCK)[:size]

    def _take(self, size: int) -> bytes:
        data, done = bytearray(size), 0
        while done < size and (count := self._read(memoryview(data)[done:])):
            done += count
        if done < size:
            raise cut("tar", self._label)
        return bytes(data)

    def _skip(self, size: int) -> None:
        self._left = 0
        if self._file is not None and size:
            # The last byte is read, to know that it is there.
            self._file.seek(size - 1, 1)
            size = 1
        while size:
            count = self._read(self._scratch[:size])
            if not count:
                raise cut("tar", self._label)
            size -= count

    def _corrupt(self, reason: str) -> SourceError:
        return corrupt("tar", self._label, reason)
