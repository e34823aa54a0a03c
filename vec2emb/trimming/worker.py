"""Work in a process of its own, so that the tokenizers it loads take no memory here, and theirs can be measured.

The `tokenizers` package needs about 500 MB for a Unigram vocabulary of 250,000 tokens.

The two processes exchange pickles through the standard streams of the child: a job to it, then any number of
("progress", (done, total)) and at last ("result", (value, bytes)) or ("error", exception) from it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from ..errors import TryAgainError, Vec2embError
from ..io.progress import Progress
from ..typed import ModelSettings

JOBS = {"count": "vec2emb.trimming.counts:count_ids", "prove": "vec2emb.trimming.proof:prove"}

# -P: the current folder is not searched for modules, only the environment and where this package is.
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from vec2emb.trimming.worker import serve; serve()"


class Done(NamedTuple):
    """What a job returned, and the most memory its process had, in bytes."""

    value: Any
    memory: int


def run_apart(job: str, arguments: ModelSettings, threads: int | None, show: Progress | None) -> Done:
    """Run one of `JOBS` in a process of its own.

    Args:
        arguments: of the job's function, which is given `show` besides.
        threads: how many threads the tokenizers may use; None for one a core.
        show: is told (bytes done, bytes in all or None).

    Raises:
        Vec2embError: what the job raised.
        TryAgainError: the process ended early, as when the system kills it for its memory.
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "true"}
    if threads is not None:
        environment["RAYON_NUM_THREADS"] = str(threads)
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-c", _PROGRAM, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            pickle.dump((job, arguments), process.stdin)
            process.stdin.close()
        kind, content = _answer(process.stdout, show)
        if not kind:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)  # its exit code is part of the error
    finally:
        process.kill()  # the answer is here, or this call was interrupted
        process.wait()
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    if kind == "error":
        raise content
    if kind != "result":
        raise TryAgainError(
            "worker-ended",
            "the process that runs the tokenizer ended early",
            found=f"exit code {process.returncode}",
            hint="is there enough memory?",
        )
    return Done(*content)


def serve() -> None:
    """Run the job that standard input has; for the child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the parent ends this process
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers

    def send(kind: str, content: object) -> None:
        pickle.dump((kind, content), answers)
        answers.flush()

    job, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the parent
    module, _, name = JOBS[job].partition(":")
    try:
        from importlib import import_module

        value = getattr(import_module(module), name)(**arguments, show=lambda *done: send("progress", done))
    except Vec2embError as error:
        send("error", error)
    else:
        send("result", (value, peak_memory()))


def peak_memory() -> int:
    """Return the most memory that this process has had, in bytes."""
    # Not ru_maxrss on Linux, which starts from the memory of the process that started this one.
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _answer(stream: BinaryIO | Any, show: Callable[[int, int | None], None] | None) -> tuple[str, Any]:
    while True:
        try:
            kind, content = pickle.load(stream)  # noqa: S301 - written by the child
        except (EOFError, pickle.UnpicklingError):  # it ended, perhaps in the middle of an answer
            return "", None
        if kind != "progress":
            return kind, content
        if show is not None:
            show(*content)
