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
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any

from ..bundle.publication import Target
from ..errors import OutputError, UsageError
from ..io.atomic import AtomicFile, place_of
from ..io.filesystem import writing
from ..io.urls import local_only
from .selection import RowEvent, Selection

if TYPE_CHECKING:
    from ..bundle.provenance import Provenance


class RowReport:
    """Written while the conversion runs; it appears, complete, when that ends well. Only a row report is replaced.

    Args:
        path: the file, or None for none.
        bundle: where the conversion writes.

    Raises:
        UsageError: the file would be one of the bundle.
    """

    def __init__(self, path: str | os.PathLike[str] | None, bundle: Target) -> None:
        self._path = None if path is None else os.fsdecode(path)
        self._file: IO[str] | None = None
        self._staged = contextlib.ExitStack()
        if self._path is not None:
            local_only(self._path, "a row report")
            if "\0" in self._path:
                raise UsageError("output-name", "the row report has no name that a file can have")
            self._target = place_of(self._path)
            if self._target in bundle.paths.values() or bundle.path in (self._target, os.path.dirname(self._target)):
                raise UsageError(
                    "row-report-in-bundle", "the row report is no file of the bundle", found=self._path,
                    hint="put it beside the bundle",
                )  # fmt: skip

    def __enter__(self) -> RowReport:
        with self._staged as undo:
            if self._path is not None:
                output = undo.enter_context(AtomicFile(self._target, self._path, self._check))
                undo.push(lambda kind, *_: output.publish() if kind is None else None)
                with writing(self._path):
                    self._file = open(output.file, "w", encoding="utf-8", newline="\n")
                undo.push(self._close)
            self._staged = undo.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._staged.__exit__(*raised)

    def _close(self, *_: object) -> None:
        if self._file is not None:
            with writing(str(self._path)):
                self._file.close()

    def _check(self) -> None:
        if os.path.lexists(self._target) and not _is_row_report(self._target):
            raise OutputError(
                "target-not-a-report", "there is something else than a row report, which is kept", path=self._path,
                hint="choose another name for --row-report",
            )  # fmt: skip

    def follow(self, selection: Selection) -> None:
        """Write what the selection drops, as it drops it."""
        if self._file is not None:
            selection.on_event = self._event

    def conclude(self, provenance: Provenance, vocabulary: Iterable[bytes]) -> None:
        """Add the rows that are not simply the file's own; `vocabulary` is vocab.txt in pieces."""
        if self._file is None:
            return
        tokens = b"".join(vocabulary).decode().split("\n")
        for special in provenance.specials:
            reason = f"{special.role}, {special.init}"
            self._write({"what": "special", "row": special.id, "token": special.token, "reason": reason})
        for row, spelling in provenance.spellings.pairs():
            self._write({"what": "fallback", "row": row, "token": tokens[row], "reason": f"the row of {spelling}"})
        for generated in provenance.generated:
            for row in generated.rows.rows():
                self._write({"what": "initialised", "row": row, "token": tokens[row], "reason": generated.init})

    def _event(self, event: RowEvent) -> None:
        token = event.token.decode("utf-8", "backslashreplace")
        entry = {"what": event.what, "line": event.line, "token": token}
        self._write(entry if event.reason is None else {**entry, "reason": event.reason})

    def _write(self, entry: Mapping[str, object]) -> None:
        if self._file is not None and self._path is not None:
            with writing(self._path):
                self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _is_row_report(path: str) -> bool:
    """Whether a file is empty or begins with a line of a row report."""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        line = file.readline(1 << 20)
    return not line or line.startswith(b'{"what": "')
