"""Which member of an archive is the table that is meant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Generic, TypeVar

from ...errors import FormatError, InputError, shown
from ..compression import Read
from .members import Entry

_LISTED = 20  # members that an error lists
MOST_PROBED = 1000  # members whose head is read to find the table
MOST_READ = 256 << 20  # decompressed bytes of all these heads

Probe = Callable[[Read], InputError | None]  # reads the head of a member; why it is not the table that is meant

# Files that stand beside tables, by their names; folders of macOS and hidden files are among them.
_NO_TABLE = re.compile(
    r"(?:.*/)?(?:"
    r"__MACOSX/.*|\.[^/]*|"
    r"(?:readme|licen[cs]e|copying|notice|authors|changelog|changes|manifest)(?:[._-][^/]*)?|"
    r"[^/]*\.(?:md|markdown|rst|pdf|html?|docx?|rtf|json|ya?ml|xml|bib|py|sh|md5|sha[0-9]+|asc|sig|png|jpe?g|gif)"
    r")",
    re.IGNORECASE | re.DOTALL,
)


T = TypeVar("T")


class _First(Generic[T]):
    """The first few of many things, and how many there are: the memory does not grow with an archive."""

    def __init__(self) -> None:
        self.first: list[T] = []
        self.count = 0

    def add(self, one: T) -> None:
        self.count += 1
        if len(self.first) < _LISTED:
            self.first.append(one)

    def more(self) -> str:
        return f" and {self.count - _LISTED} more" if self.count > _LISTED else ""


class Choice:
    """Notes the members of an archive, and which is meant: the one that is named, else the only possible table.

    Args:
        label: the archive's name, for errors.
        named: the name of the member, or None.
        probe: tells by its head that a member is something else.
    """

    def __init__(self, label: str, named: str | None, probe: Probe) -> None:
        self.label = label
        self.named = named
        self._probe = probe
        self._seen = 0
        self._files: _First[Entry] = _First()
        self._meant: _First[Entry] = _First()
        self._refused: _First[tuple[Entry, InputError]] = _First()
        self._probed = 0
        self._read = 0

    def take(self, entry: Entry, contents: Callable[[], Read]) -> bool:
        """Note the next member; whether it is the first that is meant. `contents` opens it, to look at its head."""
        self._seen += 1
        if entry.is_file:
            self._files.add(entry)
        if self._is_meant(entry, contents):
            self._meant.add(entry)
            return self._meant.count == 1
        return False

    def _is_meant(self, entry: Entry, contents: Callable[[], Read]) -> bool:
        if self.named is not None:
            return entry.name.removeprefix("./") == self.named.removeprefix("./")
        if not entry.is_file or _NO_TABLE.fullmatch(entry.name):
            return False
        try:
            reason = None if entry.unreadable else self._probe(self._counted(contents()))
        except InputError:  # what cannot be looked at may be the table
            reason = None
        self._probed += 1
        if self._probed > MOST_PROBED or self._read > MOST_READ:
            raise self._error(
                "too-many-members",
                f"the archive has more members than are searched for a table (at most {MOST_PROBED:,} members and "
                f"{MOST_READ >> 20} MiB of their contents)",
                hint="name the table with --member",
            )
        if reason is not None:
            self._refused.add((entry, reason))
        return reason is None

    def _counted(self, read: Read) -> Read:
        def counted(view: memoryview) -> int:
            count = read(view)
            self._read += count
            return count

        return counted

    def check(self, entry: Entry) -> Entry:
        """The member that is meant, if it can be read.

        Raises:
            FormatError: it cannot.
        """
        if not entry.is_file:
            raise self._error("member-is-no-file", f"{shown(entry.name)} is a folder, a link or a device")
        if entry.unreadable:
            raise self._error(
                "member-unreadable", f"{shown(entry.name)} cannot be read", entry.unreadable, "unpack it first"
            )
        return entry

    def settle(self) -> Entry:
        """The member that is meant, now that all are known.

        Raises:
            FormatError: none is, or several, or it cannot be read.
            InputError: the only one that may be a table is none, for this reason.
        """
        if self._meant.count == 1:
            return self.check(self._meant.first[0])
        if self.named is not None:
            raise self._error_of_name(shown(self.named))
        if self._meant.count:
            raise self._error(
                "several-tables",
                "the archive holds several files that may be the table",
                f"{self._meant.count} of {self._seen} members",
                f"say which:\n{self._commands(self._meant.first)}{self._meant.more()}",
            )
        if self._refused.count == 1:
            raise self._refused.first[0][1]
        if self._refused.count:
            reasons = [
                f"{shown(entry.name)}: {why.found if why.code.startswith('is-') else why.message}"
                for entry, why in self._refused.first
            ]
            raise self._error(
                "no-table-fits",
                "no member of the archive fits",
                "; ".join(reasons) + self._refused.more(),
                f"say which:\n{self._commands([entry for entry, _ in self._refused.first])}{self._refused.more()}",
            )
        raise self._error("no-table-in-archive", "the archive holds no table", self._listed())

    def _error_of_name(self, name: str) -> FormatError:
        if self._meant.count:
            return self._error("member-twice", f"the archive has {self._meant.count} members named {name}")
        return self._error("no-such-member", f"the archive has no member {name}", self._listed())

    def _error(self, code: str, message: str, found: str | None = None, hint: str | None = None) -> FormatError:
        return FormatError(code, message, path=self.label, found=found, hint=hint)

    def _commands(self, entries: list[Entry]) -> str:
        """What to run, to be copied."""
        if self.label == "<stream>":  # a file object, which only Python has
            lines = [f"  member={entry.name!r}" for entry in entries]
        else:
            start = f"  vec2emb convert {'-' if self.label == '<stdin>' else shlex.quote(self.label)}"
            lines = [f"{start} --member {shlex.quote(entry.name)} -o OUT" for entry in entries]
        return "\n".join(lines)

    def _listed(self) -> str:
        return (", ".join(shown(entry.name) for entry in self._files.first) or "no file") + self._files.more()
