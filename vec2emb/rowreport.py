"""`--row-report`: JSON lines, one for each row that is not simply the file's own, with the reason.

First what was dropped, in the order of the file (`line`), then what was made, in the order of the table (`row`):

    {"what": "duplicate", "line": 7, "token": "the"}
    {"what": "special", "row": 0, "token": "<pad>", "reason": "padding, zeros"}

`what` is `duplicate`, `merged`, `skipped`, `special`, `fallback` or `initialised`.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import IO, Any

from .filesystem import writing
from .report import Report
from .selection import RowEvent, Selection


class RowReport:
    """Written beside its final place while the conversion runs; moved there once the bundle is."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else os.fspath(path)
        self._file: IO[str] | None = None

    def __enter__(self) -> RowReport:
        if self._path is not None:
            with writing(self._path):
                self._file = open(f"{self._path}.tmp", "w", encoding="utf-8", newline="\n")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._path}.tmp")

    def follow(self, selection: Selection) -> None:
        """Write what the selection drops, as it drops it."""
        if self._file is not None:
            selection.on_event = self._event

    def publish(self, report: Report) -> None:
        """Add the rows that were made, and move the file to its place."""
        if self._file is None or self._path is None:
            return
        for entry in report.made_rows():
            self._write(entry)
        with writing(self._path):
            self._file.close()
            os.replace(f"{self._path}.tmp", self._path)

    def _event(self, event: RowEvent) -> None:
        token = event.token.decode("utf-8", "backslashreplace")
        entry = {"what": event.what, "line": event.line, "token": token}
        self._write(entry if event.reason is None else {**entry, "reason": event.reason})

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is not None and self._path is not None:
            with writing(self._path):
                self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
