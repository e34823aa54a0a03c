"""Bringing a large file to the disk while it is still being written.

A disk takes its time: synced only at the end, a table of 80 MB costs as long again as parsing it. So a thread syncs
whatever has been written since it last did, over and over, and the last sync finds little left to do.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

STEP = 16 << 20  # bytes between two syncs: each also writes to the journal, and small ones would be many


@contextlib.contextmanager
def in_background(work: Callable[[], None]) -> Iterator[None]:
    """Run `work` in a thread beside the body of the `with`, and wait for it at the end.

    Raises:
        OSError: what `work` raised, unless the body raised something.
    """
    failures: list[OSError] = []

    def run() -> None:
        try:
            work()
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="vec2emb-sync")
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failures:
        raise failures[0]


class WriteBack:
    """Syncs one open file in the background; small files never start the thread.

    Call `wrote` as often as something was written, from any thread, then `finish` or `close` once.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unsynced = 0
        self._lock = threading.Lock()
        self._due = threading.Event()
        self._ended = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._failure: OSError | None = None

    def wrote(self, count: int) -> None:
        """Note that `count` bytes more were written."""
        with self._lock:
            self._unsynced += count
            if self._unsynced < STEP or self._closed:
                return
            self._unsynced = 0
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="vec2emb-write-back")
                with contextlib.suppress(RuntimeError):  # no thread to be had: then all is synced in the end
                    thread.start()
                    self._thread = thread
        self._due.set()

    def finish(self) -> None:
        """Sync what is left.

        Raises:
            OSError: something did not reach the disk. The system says so once a failure, perhaps long before.
        """
        self.close()
        if self._failure is not None:
            raise self._failure
        os.fsync(self._descriptor)

    def close(self) -> None:
        """End the thread; what it has not synced stays so."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self._due.set()
        if thread is not None:
            self._ended.wait()  # first: interrupted in `join`, Python takes a running thread for one that has ended
            thread.join()

    def _work(self) -> None:
        try:
            while True:
                self._due.wait()
                self._due.clear()
                if self._closed:
                    return
                getattr(os, "fdatasync", os.fsync)(self._descriptor)  # macOS has no fdatasync
        except OSError as error:
            self._failure = error
        finally:
            self._ended.set()
