"""Runs that are stopped at one of the calls that change a disk."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from vec2emb.errors import OutputError
from vec2emb.io import atomic, filesystem


class KilledError(BaseException):
    """The process is gone: whatever it would still do does not happen."""


class Steps:
    """Counts the calls that change a disk, and stops the run at one of them."""

    NAMES = ("open", "mkdir", "rename", "replace", "link", "unlink", "rmdir", "fsync", "ftruncate", "pwrite")

    def __init__(self, patch: pytest.MonkeyPatch, at: int, how: str) -> None:
        self.count = 0
        self._at, self._how = at, how
        for name in self.NAMES:
            patch.setattr(os, name, self._counted(getattr(os, name)))
        patch.setattr(atomic, "exchange", self._counted(filesystem.exchange))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return call(*args, **kwargs)  # what is written is flushed there, nothing else
            self.count += 1
            if self.count == self._at and self._how == "fails":
                raise OSError(errno.EIO, "Input/output error")
            if self.count == self._at and self._how == "interrupted":
                raise KeyboardInterrupt
            if self.count >= self._at and self._how == "killed":
                raise KilledError
            return call(*args, **kwargs)

        return counted


def without_exchange(patch: pytest.MonkeyPatch) -> None:
    """As on file systems that can neither exchange two folders nor link files."""

    def no_link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    patch.setattr(atomic, "exchange", lambda a, b: False)
    patch.setattr(os, "link", no_link)


def stopped_at(step: int, how: str, able: bool, action: Callable[[], object]) -> bool:
    """Run an action up to a step; whether it came to its end before that."""
    with pytest.MonkeyPatch.context() as patch:
        if not able:
            without_exchange(patch)
        steps = Steps(patch, step, how)
        with contextlib.suppress(KilledError, KeyboardInterrupt, OutputError):
            action()
        return steps.count < step


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is to be seen of fsync here, and it takes its time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
