"""A download on the disk, for what has to be jumped in where the server does not let a part of a file be read."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import BinaryIO

from ...errors import InputError
from ...options.sizes import size_of_environment
from ..filesystem import writing

LIMIT = 16 << 30  # bytes; the environment variable VEC2EMB_SPOOL_BYTES names another limit, as 32GB
_PIECE = 1 << 20


def spooled(read: Callable[[memoryview], int], label: str, size: int | None) -> BinaryIO:
    """All that `read` gives, in a nameless file of the system's folder for temporary files, at its start.

    Raises:
        InputError: it is too large.
        OutputError: it does not fit on the disk, or the system does not let it be written.
        UsageError: the limit of the environment is none.
    """
    limit = size_of_environment("VEC2EMB_SPOOL_BYTES", LIMIT)
    if size is not None and size > limit:
        raise _too_large(label, limit, f"{size:,}")
    with writing(label, "a copy to read it at several places", "set TMPDIR to a folder with room"):
        folder = tempfile.gettempdir()
        if size is not None and size > shutil.disk_usage(folder).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)
        file = tempfile.TemporaryFile(prefix="vec2emb-", buffering=0)  # noqa: SIM115 - whoever reads it closes it
        done, buffer = 0, memoryview(bytearray(_PIECE))
        try:
            while count := read(buffer):
                done += count
                if done > limit:
                    raise _too_large(label, limit, "more")
                view = buffer[:count]
                while view:
                    view = view[file.write(view) :]
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file


def _too_large(label: str, limit: int, found: str) -> InputError:
    return InputError(
        "download-too-large", "the server does not let a part of the file be read, and all of it is too large to be "
        "kept while it is read", path=label, expected=f"at most {limit:,} bytes", found=found,
        hint="download the file first, or set VEC2EMB_SPOOL_BYTES",
    )  # fmt: skip
