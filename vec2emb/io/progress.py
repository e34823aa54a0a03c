"""Progress of a long read: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from ..errors import printable

Progress = Callable[[int, int | None], None]
ProgressLike = bool | Progress

_QUIET_SECONDS = 0.5  # nothing is shown of what is done before
_LINE_SECONDS = 30.0


def progress_of(wanted: ProgressLike, label: str) -> AbstractContextManager[Progress | None]:
    """What `progress=` stands for: nothing, the usual display on stderr, or the caller's own function.

    The function is called with (bytes taken from the file, size of the file or None).
    """
    if wanted is False:
        return nullcontext(None)
    if wanted is not True:
        return nullcontext(wanted)
    label = printable(label).replace("\n", "\\n")  # the name of a file, which may be anything
    return _Bar(label) if sys.stderr is not None and sys.stderr.isatty() else _Lines(label)


class _Bar:
    """tqdm by bytes, imported only once there is something to show."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._begun = time.monotonic()
        self._bar: object = None

    def __enter__(self) -> Progress:
        return self.update

    def update(self, done: int, total: int | None) -> None:
        from tqdm import tqdm

        if self._bar is None:
            if time.monotonic() - self._begun < _QUIET_SECONDS:
                return
            self._bar = tqdm(total=total, desc=self._label, unit="B", unit_scale=True, leave=False, file=sys.stderr)
        bar = self._bar
        bar.update(done - bar.n)  # type: ignore[attr-defined]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()  # type: ignore[attr-defined]


class _Lines:
    """One line each 30 seconds, for logs."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._begun = self._last = time.monotonic()

    def __enter__(self) -> Progress:
        return self.update

    def update(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._last < _LINE_SECONDS:
            return
        self._last = now
        rate = done / (now - self._begun)
        text = f"{self._label}: {done / 1e6:,.0f} MB"
        if total:
            text += f" of {total / 1e6:,.0f} ({done / total:.0%}), {(total - done) / max(rate, 1):,.0f} s left"
        print(f"{text}, {rate / 1e6:,.0f} MB/s", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
