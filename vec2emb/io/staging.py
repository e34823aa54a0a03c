"""A folder or a file of any content that appears complete and in one step, or not at all.

What `publishing` does for bundles, for results whose files only the caller knows. All is written into a hidden folder
beside the target, locked while its owner lives. What a killed run may leave, and what the next for this target does:

- the hidden folder, unlocked: it is emptied. After an exchange it holds what was replaced, which is as good as gone.
- where the system cannot exchange two folders, the old one aside and no new one: the old one is moved back.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ..errors import TryAgainError
from .filesystem import adopt, exchange, move_to_free, same_file, sync, try_lock, writing


@contextlib.contextmanager
def staged(target: str, check: Callable[[], None], *, file: str | None = None) -> Iterator[str]:
    """The hidden folder to write into; leaving the block without an error moves it to `target`.

    Args:
        target: the final path, absolute.
        check: raises if the target must not be taken; called when nobody else can write it any more.
        file: the one file of the hidden folder that becomes the target; without it the folder itself does.

    Raises:
        OutputError: the system refuses to write.
        TryAgainError: another run is writing this target.
    """
    parent, name = os.path.split(target)
    # Of fixed length, so that a target with a name of 255 bytes has room for it too.
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    hidden, aside = (os.path.join(parent, f".vec2emb-{digest}.{end}") for end in ("part", "was"))
    with writing(target), contextlib.ExitStack() as undo:
        above = parent
        missing = []
        while not os.path.isdir(above):
            missing.append(above)
            above = os.path.dirname(above)
        for folder in reversed(missing):
            os.mkdir(folder)
            undo.callback(_remove_if_empty, folder)
        lock = _take(hidden, target)
        undo.callback(os.close, lock)
        undo.callback(lambda: shutil.rmtree(hidden) if same_file(lock, hidden) else None)
        _recover(hidden, aside, target)
        check()
        yield hidden
        for folder, _, _ in os.walk(hidden):
            sync(folder)
        check()
        adopt(hidden if file is None else os.path.join(hidden, file), target)
        if file is not None:
            # A target that was free is never lost, even if another program was faster than the move.
            move = os.replace if os.path.lexists(target) else move_to_free
            move(os.path.join(hidden, file), target)
        elif not os.path.lexists(target) or not os.listdir(target):
            os.rename(hidden, target)
        else:
            _replace(hidden, aside, target)
        sync(parent)


@contextlib.contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    """A new file, with the folders above it; on the disk when the block is left."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def _take(hidden: str, label: str) -> int:
    """Make the hidden folder, or take over one that a killed run left, and lock it: the descriptor of the lock."""
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(hidden)
        try:
            lock = os.open(hidden, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            continue  # its owner finished between the two calls
        if not try_lock(lock):
            os.close(lock)
            raise TryAgainError(
                "target-busy", "another run is writing there", path=label, hint="wait for it, then try again"
            )
        if same_file(lock, hidden):
            return lock
        os.close(lock)  # its owner finished just before the lock: the name is free again


def _recover(hidden: str, aside: str, target: str) -> None:
    if os.path.isdir(aside):
        if os.path.lexists(target) and not (os.path.isdir(target) and not os.listdir(target)):
            shutil.rmtree(aside)
        else:
            os.rename(aside, target)  # takes the place of nothing, or of an empty folder that was made meanwhile
    for entry in os.scandir(hidden):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _replace(hidden: str, aside: str, target: str) -> None:
    old = os.open(target, os.O_RDONLY)
    try:
        try_lock(old)  # it gets the hidden name: nobody may take it over while it is removed
        if exchange(hidden, target):
            shutil.rmtree(hidden)
        else:
            os.rename(target, aside)
            try:
                os.rename(hidden, target)
            except OSError:
                os.rename(aside, target)
                raise
            shutil.rmtree(aside)
    finally:
        os.close(old)


def _remove_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)
