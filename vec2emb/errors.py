"""Everything that vec2emb raises or warns of.

    Exception
     └─ Vec2embError                 code, path, line, offset, record, expected, found, hint
         ├─ InputError (ValueError)  the input is at fault
         │   ├─ FormatError          it is not what it was taken for
         │   ├─ HeaderError          its first line and its rows disagree
         │   ├─ RowError             one row of it is wrong
         │   ├─ SourceError          its bytes end early, or its compression is corrupt
         │   ├─ VocabularyError      tokens or ids contradict each other
         │   └─ BundleError          a bundle's files are damaged or do not belong together
         ├─ OutputError (ValueError) the target is at fault: it exists, is full, cannot be written
         ├─ UsageError (ValueError)  an option or argument is
         ├─ CheckError (ValueError)  a gate or a verification was missed
         ├─ TryAgainError            the same call may succeed later
         └─ MissingPackageError (ImportError)  an extra is not installed

    UserWarning
     └─ Vec2embWarning               code, count, path, line

`exit_code` is what the command line ends with. Every `code` is a slug that never changes, with an entry in the guide.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

GUIDE = "docs/how-to/my-file-does-not-load.md"


class Vec2embError(Exception):
    """Base of all errors: says where, what was expected, what was found and what to do.

    Args:
        code: a stable slug, such as `row-width`.
        message: what is wrong, in one sentence without a full stop.
        path: name of the file as the caller gave it.
        line: line of the file, from 1.
        offset: byte of the (decompressed) file, from 0.
        record: number of a binary record, from 1.
        expected: what should stand there.
        found: what stands there.
        hint: what to do about it.
    """

    exit_code = 1

    def __init__(
        self,
        code: str,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        offset: int | None = None,
        record: int | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.line = line
        self.offset = offset
        self.record = record
        self.expected = expected
        self.found = found
        self.hint = hint

    def __str__(self) -> str:
        text = self.message
        if self.expected is not None:
            text += f": expected {self.expected}"
        if self.found is not None:
            text += f"{',' if self.expected is not None else ':'} found {self.found}"
        if self.where:
            text = f"{self.where}: {text}"
        if self.hint:
            text += f"; {self.hint}"
        return printable(text)

    @property
    def guide(self) -> str:
        """Where the documentation says more: why this happens, and what to do."""
        return f"{GUIDE}#{self.code}"

    @property
    def where(self) -> str:
        """The place, as `file, line 3`; empty where there is none."""
        parts = [] if self.path is None else [self.path.replace("\n", "\\n")]
        if self.line is not None:
            parts.append(f"line {self.line}")
        if self.record is not None:
            parts.append(f"record {self.record}")
        if self.offset is not None and self.line is None:
            parts.append(f"byte {self.offset}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "code": self.code,
            "message": str(self),
            "path": self.path,
            "line": self.line,
            "record": self.record,
            "offset": self.offset,
            "expected": self.expected,
            "found": self.found,
            "hint": self.hint,
        }

    def __reduce__(self) -> tuple[object, ...]:
        # An ImportError keeps `path` outside of its dictionary.
        return _rebuild, (type(self), self.code, self.message, {**self.__dict__, "path": self.path})


def _rebuild(kind: type[Vec2embError], code: str, message: str, state: dict[str, object]) -> Vec2embError:
    error = kind(code, message)
    for name, value in state.items():
        setattr(error, name, value)
    return error


class InputError(Vec2embError, ValueError):
    """The input is at fault."""


class FormatError(InputError):
    """The input is not what it was taken for."""


class HeaderError(InputError):
    """The header and the rows disagree."""


class RowError(InputError):
    """One row is wrong: its width, a numeral, its range, its encoding."""


class SourceError(InputError):
    """The bytes end early, cannot be read, or their compression is corrupt."""


class VocabularyError(InputError):
    """Tokens or ids contradict each other."""


class BundleError(InputError):
    """A bundle's files are damaged, or do not belong together."""


class OutputError(Vec2embError, ValueError):
    """The target exists, is full or cannot be written."""


class UsageError(Vec2embError, ValueError):
    """An option or argument cannot be used so."""

    exit_code = 2


class CheckError(Vec2embError, ValueError):
    """A gate or a verification was missed."""

    exit_code = 3


class TryAgainError(Vec2embError):
    """The network failed or the target is in use: the same call may succeed later."""

    exit_code = 4


class MissingPackageError(Vec2embError, ImportError):
    """A package of an extra is not installed."""

    def __init__(self, code: str, message: str, **place: Any) -> None:
        super().__init__(code, message, **place)

    @classmethod
    def of(cls, package: str, extra: str, purpose: str) -> MissingPackageError:
        """The error that names the command to run."""
        return cls(
            "missing-package", f"{purpose} needs {package}", hint=f"install it with: pip install 'vec2emb[{extra}]'"
        )


@contextlib.contextmanager
def needed(package: str, extra: str, purpose: str) -> Iterator[None]:
    """Around imports of a package that an extra brings: raise MissingPackageError where it is not installed."""
    try:
        yield
    except ImportError:
        raise MissingPackageError.of(package, extra, purpose) from None


class Vec2embWarning(UserWarning):
    """Something is odd, though nothing is lost.

    One warning stands for all cases of its kind: `count` says how many, `line` where the first is.
    """

    def __init__(
        self, code: str, message: str, *, count: int = 1, path: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.count = count
        self.path = path
        self.line = line

    def __str__(self) -> str:
        return printable(self.message)

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"code": self.code, "message": str(self), "count": self.count, "line": self.line}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_warning, (self.code, self.message, self.count, self.path, self.line)


def _rebuild_warning(code: str, message: str, count: int, path: str | None, line: int | None) -> Vec2embWarning:
    return Vec2embWarning(code, message, count=count, path=path, line=line)


def warn_caller(warning: Vec2embWarning) -> None:
    """Warn, as of the line outside of the package that has led here, however many calls lie between."""
    level, package = 2, __name__.partition(".")[0]  # 1 is this function
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def printable(text: str) -> str:
    """Text that is safe in a terminal: control, format and surrogate characters are shown escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in " \n" else c.encode("unicode_escape").decode() for c in text)


def shown(value: bytes | str, limit: int = 60) -> str:
    """A token or a piece of a file for a message: quoted, escaped, cut to about `limit` characters."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    cut = text if len(text) <= limit else text[:limit] + "…"
    return f"'{printable(cut)}'".replace("\n", "\\n")
