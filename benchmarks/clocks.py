"""Clocks around functions of the package: what each stage takes, of the wall and of the processor."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

Times = dict[str, list[float]]  # by stage: seconds of the wall, and of the processor


class Clock:
    """Adds up what is spent in wrapped functions, by thread and stage, without what they spend in one another."""

    def __init__(self) -> None:
        self.times: Times = {}
        self._lock = threading.Lock()
        self._local = threading.local()

    def wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed."""

        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            stack: list[list[float]] = self._local.__dict__.setdefault("stack", [])
            inner = [0.0, 0.0]
            stack.append(inner)
            wall, processor = time.perf_counter(), time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                spent = [time.perf_counter() - wall, time.thread_time() - processor]
                stack.pop()
                self.add(stage, spent[0] - inner[0], spent[1] - inner[1])
                if stack:
                    stack[-1][0] += spent[0]
                    stack[-1][1] += spent[1]

        return timed

    def add(self, stage: str, wall: float, processor: float) -> None:
        """Add to a stage."""
        with self._lock:
            total = self.times.setdefault(stage, [0.0, 0.0])
            total[0] += wall
            total[1] += processor

    def wrap_all(self, points: Iterable[tuple[str, str, str]]) -> None:
        """Put a clock around each point: a stage, a module of the package, and the path of a function in it.

        Raises:
            SystemExit: the package has no such function any more.
        """
        for stage, module, path in points:
            owner: Any = import_module(f"vec2emb.{module}")
            *names, last = path.split(".")
            try:
                for name in names:
                    owner = getattr(owner, name)
                function = getattr(owner, last)
            except AttributeError as error:
                raise SystemExit(f"{error}: benchmarks/staged.py names vec2emb.{module}.{path}") from error
            setattr(owner, last, self.wrap(stage, function))
