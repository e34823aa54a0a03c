"""Child processes whose signals are the usual ones, whatever those of the test run are, and which end with the test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def usual_signals() -> None:
    """For `preexec_fn`: a test run under nohup or in the background ignores some signals, and children inherit that."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def ignored_signals() -> None:
    """For `preexec_fn`: as under nohup and in background jobs."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def started(
    *words: object, env: Mapping[str, str] | None = None, signals: Any = usual_signals, **more: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A command line that runs; it is killed at the end if it still does."""
    command = [sys.executable, "-m", "vec2emb", *map(str, words)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    with subprocess.Popen(command, env={**os.environ, **(env or {})}, preexec_fn=signals, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait()
