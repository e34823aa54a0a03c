"""The files of a corpus: paths, folders, patterns and URLs, and the pieces that are read by one worker each."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError, UsageError, Vec2embWarning, warn_caller
from ..io.compression import HEAD, codec_of
from ..io.urls import is_url, label_of, name_of, plain

if TYPE_CHECKING:
    from io import FileIO

    from ..io.remote.files import RemoteFile
    from .tables import OpenFile

PathsLike = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

PARQUET = b"PAR1"  # what such a file starts with
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zstd")
_JSON = (".jsonl", ".ndjson", ".json")
_PATTERN = frozenset("*?[")


class Input(NamedTuple):
    """One file of the corpus.

    Attributes:
        path: of this machine, a URL, or `-`.
        kind: `text` or `json`, by its name; that it is Parquet, its content says.
        size: bytes, or None where nobody knows.
    """

    path: str
    kind: str
    size: int | None

    @property
    def is_packed(self) -> bool:
        """Whether its name says that it is compressed."""
        return lower_name(self.path).endswith(_PACKED)


class Piece(NamedTuple):
    """What is read in one go: a file, or the bytes start .. stop-1 or the row groups start .. stop-1 of one.

    The token (or line) across the start of a range belongs to the piece before, the one across its end to this one.
    """

    path: str
    kind: str
    start: int = 0
    stop: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole file."""
        return self.stop is None


def find_inputs(paths: PathsLike, left_out: list[str] | None = None) -> list[Input]:
    """All files that the paths name, in their order; those of a folder or pattern sorted by name.

    A folder stands for all files in and below it, but for hidden ones. A path is a pattern (`*`, `?`, `[..]`, `**`)
    only if there is no file of that name. Pipes and devices of a folder or pattern, which may never end, are left out.

    Args:
        paths: the corpus.
        left_out: gets the paths that are left out.

    Raises:
        UsageError: no path is given.
        InputError: a path names nothing.
        MissingPackageError: a URL is given and fsspec is not there.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise UsageError("no-corpus", "no file is given to count in")
    found = []
    odd = [] if left_out is None else left_out
    for path in map(_path_of, given):
        files = list(_remote(path) if is_url(path) else _local(path, odd))
        if not files:
            raise InputError("empty-corpus", "no file is there to count in", path=label_of(path))
        found += files
    return found


def find_files(paths: PathsLike) -> list[Input]:
    """All files that the paths name, as `find_inputs`, with a warning about those that are left out."""
    left_out: list[str] = []
    inputs = find_inputs(paths, left_out)
    if left_out:
        more = f" and {len(left_out) - 1:,} more" if len(left_out) > 1 else ""
        text = f"{left_out[0]}{more}: left out, as a pipe or device; name it to read it"
        warn_caller(Vec2embWarning("corpus-no-file", text, count=len(left_out)))
    return inputs


def _path_of(given: object) -> str:
    if isinstance(given, str | os.PathLike):
        return plain(os.fsdecode(given))
    raise UsageError("corpus-type", "a corpus is files, folders, patterns or URLs", found=repr(given)[:60])


def _local(path: str, left_out: list[str]) -> Iterator[Input]:
    if path == "-":
        yield Input(path, "text", None)
    elif os.path.isdir(path):
        for folder, below, names in os.walk(path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            yield from _files(folder, (name for name in sorted(names) if not name.startswith(".")), left_out)
    elif not os.path.lexists(path) and _PATTERN & set(path):
        matches = sorted(glob.glob(path, recursive=True))
        yield from _files("", (match for match in matches if not os.path.isdir(match)), left_out)
    else:
        yield _input(path)


def _files(folder: str, names: Iterable[str], left_out: list[str]) -> Iterator[Input]:
    for name in names:
        one = _input(os.path.join(folder, name))
        if one.size is None:
            left_out.append(one.path)
        else:
            yield one


def _input(path: str) -> Input:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise InputError("not-found", "there is no such file", path=path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError("cannot-open", f"the file cannot be opened ({reason})", path=path) from error
    return Input(path, _kind(path), status.st_size if os.path.isfile(path) else None)


def _remote(url: str) -> Iterator[Input]:
    """The files of a URL. One of a web server is a file, unless it ends with `/` or its path holds `*`."""
    from ..io.remote import listed, open_remote

    listing = listed(url, _PATTERN)
    if listing is None:  # a file of a web server, of which opening it tells all that there is to know
        with open_remote(url) as file:
            yield Input(url, _kind(url), file.size)
        return
    for one, size in listing:
        if not lower_name(one).startswith("."):
            yield Input(one, _kind(one), size)


def open_raw(path: str) -> FileIO | RemoteFile:
    """A file of this machine or behind a URL, opened for reading bytes; seekable, unless a server does not have that.

    Raises:
        InputError: there is no such file, or it cannot be opened.
        TryAgainError: the network fails.
    """
    if is_url(path):
        from ..io.remote import open_remote

        return open_remote(path)
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise InputError("not-found", "there is no such file", path=path) from None
    except OSError as error:
        raise InputError("cannot-open", f"the file cannot be opened ({error.strerror})", path=path) from error


def cut(inputs: Iterable[Input], size: int) -> Iterator[Piece]:
    """The pieces of a corpus, of about `size` bytes each where a file can be cut: text and Parquet that is not packed.

    Only files larger than `size` are looked into.
    """
    for one in inputs:
        if one.size is None or one.size <= size or one.is_packed:
            yield Piece(one.path, one.kind)
            continue
        with open_raw(one.path) as file:
            head = file.read(HEAD)
            if not file.seekable():
                yield Piece(one.path, one.kind)
            elif head.startswith(PARQUET):
                yield from _row_groups(one.path, file, size)
            elif codec_of(head) is not None:
                yield Piece(one.path, one.kind)
            else:
                for start in range(0, one.size, size):
                    yield Piece(one.path, one.kind, start, min(start + size, one.size))


def _row_groups(path: str, file: OpenFile, size: int) -> Iterator[Piece]:
    from .tables import parquet_file

    metadata = parquet_file(file, path).metadata
    start = held = 0
    for group in range(metadata.num_row_groups):
        held += sum(metadata.row_group(group).column(i).total_compressed_size for i in range(metadata.num_columns))
        if held >= size or group == metadata.num_row_groups - 1:
            yield Piece(path, "parquet", start, group + 1)
            start, held = group + 1, 0


def lower_name(path: str) -> str:
    """The base name, in lower case."""
    return (name_of(path) if is_url(path) else os.path.basename(path)).lower()


def _kind(path: str) -> str:
    name = lower_name(path)
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    return "json" if name.endswith(_JSON) else "text"
