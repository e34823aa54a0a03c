"""Signals that end a command: they unwind the stack, so that what is under way cleans up after itself.

The command line installs the handlers. In a library call the handlers of the program stay, and Ctrl-C is a
KeyboardInterrupt as ever.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_held = 0  # blocks of the main thread that must not be interrupted
_came: int | None = None  # a signal that came meanwhile


class Stopped(BaseException):
    """A signal came.

    Attributes:
        number: which.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def install() -> None:
    """Let SIGINT, SIGTERM and SIGHUP raise; those that the parent ignores, as nohup does, stay ignored."""
    for number in _ENDING:
        with contextlib.suppress(ValueError):  # not in the main thread: somebody else's business
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, _handle)
    sys.unraisablehook = _lost


def _handle(number: int, _: object) -> None:
    global _came
    if _held:
        _came = number
        return
    _stop(number)


def _stop(number: int) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Stopped(number)


def _lost(unraisable: Any) -> None:
    """Send a signal again whose exception met a destructor, or a callback of an import, where Python drops it."""
    if not issubclass(unraisable.exc_type, (KeyboardInterrupt, Stopped)):
        sys.__unraisablehook__(unraisable)
        return
    number = getattr(unraisable.exc_value, "number", signal.SIGINT)
    main = threading.main_thread().ident or 0
    threading.Timer(0.01, lambda: signal.pthread_kill(main, number)).start()


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Let a signal wait for the end of a short block, if `install` was called and this is the main thread."""
    global _held, _came
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _held += 1
    try:
        yield
    finally:
        _held -= 1
        if not _held and _came is not None:
            number, _came = _came, None
            _stop(number)
