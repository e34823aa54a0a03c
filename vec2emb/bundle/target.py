"""Where a bundle is to stand: on this machine, or behind a URL."""

from __future__ import annotations

import os

from ..io.urls import is_url, plain
from .publication import Target


def target_of(output: str | os.PathLike[str]) -> Target:
    """The target that an output names; what writes URLs is loaded only for one.

    Raises:
        UsageError: no bundle can stand there.
    """
    path = plain(os.fsdecode(output))
    if not is_url(path):
        return Target(path)
    from .upload import RemoteTarget

    return RemoteTarget(path)
