"""A file of this machine to a URL: there as a whole, or not there."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ...errors import OutputError, TryAgainError, Vec2embError
from .ranges import version_of
from .systems import Info, TransferError, in_our_words, meaning, reason_of

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from fsspec.spec import AbstractBufferedFile

_PIECE = 8 << 20


def upload(system: AbstractFileSystem, local: str, path: str, label: str) -> None:
    """Write a file, piece by piece; what fails or is interrupted midway is given up, the parts that are there removed.

    When it returns the store has taken the file for good, which `check_size` looks at.

    Raises:
        OutputError: it must not be written there.
        TryAgainError: the network fails.
    """
    in_our_words(lambda: _send(system, local, path), lambda error: upload_error(error, label))


def check_size(system: AbstractFileSystem, local: str, path: str, label: str) -> None:
    """Compare the size of an uploaded file with that of the one here.

    Raises:
        TryAgainError: the store has not all of it, or the network fails.
    """
    size = os.path.getsize(local)

    def meant(error: Exception) -> Vec2embError:
        known = upload_error(error, label)
        known.hint = "all was sent: vec2emb verify says whether it is there"
        return known

    found = in_our_words(lambda: _info(system, path)["size"], meant)
    if found != size:
        raise TryAgainError(
            "upload-cut",
            "the store has not all that was sent",
            path=label,
            expected=f"{size:,} bytes",
            found=f"{found:,}",
            hint="what is there is no bundle: run the command again",
        )


def state(system: AbstractFileSystem, path: str) -> tuple[object, ...] | None:
    """Which file stands at a path: its size, and what changes with it; None where there is none."""
    try:
        info = _info(system, path)
    except FileNotFoundError:
        return None
    return info.get("size"), *version_of(info)


def _info(system: AbstractFileSystem, path: str) -> Info:
    system.invalidate_cache(path)
    return system.info(path)  # type: ignore[no-any-return]


def _send(system: AbstractFileSystem, local: str, path: str) -> None:
    file = system.open(path, "wb")
    try:
        with open(local, "rb") as source:
            while piece := source.read(_PIECE):
                file.write(piece)
        file.close()
    except BaseException:
        _give_up(file)
        raise


def _give_up(file: AbstractBufferedFile) -> None:
    """End an upload so that nothing of it stays: an object in parts costs money also where it is never finished."""
    with contextlib.suppress(Exception):
        file.discard()
    with contextlib.suppress(AttributeError):
        file.closed = True  # else its end as an object would finish the upload after all


def upload_error(error: Exception, label: str) -> Vec2embError:
    """What an error of a file system means for an output."""
    if isinstance(error, Vec2embError):
        return error
    if isinstance(error, FileNotFoundError):
        return OutputError("no-such-folder", "there is no such folder, bucket or repository to write in", path=label)
    known = meaning(error, label)
    if isinstance(known, TransferError):
        return TryAgainError("network", f"the output cannot be uploaded ({known.reason})", path=label)
    if known.exit_code == 1:
        return OutputError("cannot-write", f"the output cannot be uploaded ({reason_of(error)})", path=label)
    return known
