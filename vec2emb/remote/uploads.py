"""A file of this machine to a URL: there as a whole, or not there."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from ..errors import OutputError, TryAgainError, Vec2embError
from .systems import TransferError, in_our_words, meaning, reason_of

_PIECE = 8 << 20


def upload(system: Any, local: str, path: str, label: str) -> None:
    """Write a file, piece by piece; what fails or is interrupted midway is given up, the parts that are there removed.

    Raises:
        OutputError: it must not be written there.
        TryAgainError: the network fails, or the store has another size than was sent.
    """
    found, size = in_our_words(lambda: _sent(system, local, path), lambda error: upload_error(error, label))
    if found != size:
        raise TryAgainError(
            "upload-cut",
            "the store has not all that was sent",
            path=label,
            expected=f"{size:,} bytes",
            found=f"{found:,}",
        )


def _sent(system: Any, local: str, path: str) -> tuple[int, int]:
    """Write a file; how many bytes are there afterwards, and how many there should be."""
    file = system.open(path, "wb")
    try:
        with open(local, "rb") as source:
            while piece := source.read(_PIECE):
                file.write(piece)
        file.close()
    except BaseException:
        _give_up(file)
        raise
    system.invalidate_cache(path)
    return system.info(path)["size"], os.path.getsize(local)


def _give_up(file: Any) -> None:
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
