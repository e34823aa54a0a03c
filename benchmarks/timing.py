"""Processes that take turns, and what is said of their times.

A machine is never quite the same from one minute to the next. So those that are compared run one after the other, round
by round, every second round backwards; and what counts is the median of each, which neither a lucky run nor a
disturbed one moves. The minimum is told too: on a quiet machine it is close.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SLOW = 10.0  # seconds: who takes longer runs only a few times
SLOW_RUNS = 3


@dataclass(frozen=True)
class Figure:
    """The median and the minimum of several runs: seconds or bytes."""

    median: float
    minimum: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure:
        """Of all that were measured."""
        values = list(values)
        return cls(statistics.median(values), min(values))

    def __sub__(self, other: Figure) -> Figure:
        """What is left when another, such as the start of a process, is taken off."""
        return Figure(self.median - other.median, self.minimum - other.minimum)


@dataclass(frozen=True)
class Contender:
    """A process that is timed: its command, and a folder or file that it writes and that goes before the next run."""

    command: list[str]
    target: Path | None = None


@dataclass
class Runs:
    """What a contender's processes took."""

    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)  # bytes

    @property
    def figure(self) -> Figure:
        return Figure.of(self.seconds)


def child_environment() -> dict[str, str]:
    """Of every process that is timed: nothing that keeps Python from using its compiled modules, or changes us."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VEC2EMB_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept


def run(command: list[str], folder: Path) -> str:
    """Run a process that is not timed; what it prints.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run(command, cwd=folder, env=child_environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def timed(command: list[str], folder: Path) -> tuple[float, int]:
    """Seconds of a process from its start to its end, and bytes of its peak memory.

    The peak counts what this process held when it started the other, so this one has to stay small.

    Raises:
        SystemExit: it failed.
    """
    with tempfile.TemporaryFile() as said:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=child_environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            text = said.read()[-2000:].decode(errors="replace")
            raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}: {text}")
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def alternate(contenders: Mapping[str, Contender], rounds: int, folder: Path) -> dict[str, Runs]:
    """Time each as often as there are rounds, taking turns; those that are slow a few times, spread over the rounds."""
    found = {name: Runs() for name in contenders}
    for number in range(rounds):
        for name in list(contenders) if number % 2 == 0 else reversed(list(contenders)):
            runs, contender = found[name], contenders[name]
            if runs.seconds and runs.seconds[0] > SLOW and not _is_due(number, len(runs.seconds), rounds):
                continue
            seconds, peak = timed(contender.command, folder)
            runs.seconds.append(seconds)
            runs.peaks.append(peak)
            if contender.target is not None:
                remove(contender.target)
    return found


def _is_due(number: int, done: int, rounds: int) -> bool:
    """Whether a slow one runs in this round."""
    return done < SLOW_RUNS and number * SLOW_RUNS >= done * rounds


def remove(path: Path) -> None:
    """Remove a file or a folder, before what it left behind is written to the disk."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


class Disturbance:
    """How much of the machine others used meanwhile: a context manager; afterwards `share` is 0 for nothing, 1 for all.

    Of Linux, by what /proc/stat counts; None elsewhere.
    """

    share: float | None = None

    def __enter__(self) -> Disturbance:
        self._begun = self._now()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._begun is None or (now := self._now()) is None:
            return
        busy, ours, wall = (after - before for before, after in zip(self._begun, now, strict=True))
        if wall > 0:
            self.share = min(max((busy - ours) / wall, 0.0), 1.0)

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        try:
            with open("/proc/stat") as file:
                user, nice, system, idle, waiting, interrupts, soft, stolen = map(int, file.readline().split()[1:9])
        except (OSError, ValueError):
            return None
        tick = os.sysconf("SC_CLK_TCK")
        busy = user + nice + system + interrupts + soft + stolen
        return busy / tick, sum(os.times()[:4]), (busy + idle + waiting) / tick
