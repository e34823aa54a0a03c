"""The rows of a source, once through: what was there, and all vectors past the geometry."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from .._kernel import Block, TokenIndex
from .._kernel.codes import Fault as Code
from .._kernel.codes import State
from ..bundle.reader import open_bundle
from ..bundle.table import stored_rows
from ..conversion.reading_pass import ReadOptions, open_pass
from ..conversion.report import collect_warnings
from ..conversion.selection import RowEvent, Rules, Selection
from ..errors import InputError, RowError, Vec2embWarning
from ..formats.faults import CODES
from ..io.filesystem import size_and_sha256
from ..io.sources import SourceLike
from ..io.urls import is_url, label_of, plain
from ..words.vocabulary import Lookup
from .geometry import COPY, MADE, Geometry
from .health_figures import Example, Fault
from .results import InputFile
from .tokens import FEW

_BLOCK = 1 << 20  # bytes of a bundle's table taken at a time


@dataclass
class Streamed:
    """A source that was read through.

    Attributes:
        name, kind, format, compression, member, files: as in `results.Source`.
        dim: D.
        rows: rows of the source.
        header_rows: as the header promises, or None.
        limited: whether reading ended at the limit.
        faults: rows that do not load, by code.
        duplicates: rows left out because their token came before.
        duplicate_examples: the first few of them.
        index: tokens of the rows that load; the id of a token is the id of its row.
        made: ids of rows that no file gave.
        lookup: how the source's vocabulary looks up tokens that are not there as they stand.
        geometry: the figures of the vectors.
        warnings: what is odd about a file.
        checks: checks of a bundle, as in `results.Health`; None for a file.
        again: what reads the source a second time, or None if it can be read once only.
    """

    name: str
    kind: str
    format: str
    compression: str
    member: str | None
    files: list[InputFile]
    dim: int
    rows: int
    index: TokenIndex
    geometry: Geometry
    header_rows: int | None = None
    limited: bool = False
    faults: dict[str, Fault] = field(default_factory=dict)
    duplicates: int = 0
    duplicate_examples: list[Example] = field(default_factory=list)
    made: set[int] = field(default_factory=set)
    lookup: Lookup = "exact"
    warnings: list[Vec2embWarning] = field(default_factory=list)
    checks: dict[str, str | None] | None = None
    again: SourceLike | None = None


class _Observed(Selection):
    """Every row of the file in its order, and notes of those that do not load."""

    def __init__(self, expected: int, label: str) -> None:
        super().__init__([], rules=Rules("first", note_events=True), expected=expected)
        self.fault_counts = dict.fromkeys(CODES.values(), 0)
        self.first_faults: dict[str, tuple[int, str]] = {}
        self.duplicate_examples: list[Example] = []
        self._label = label
        self.on_event = self._event

    def select(self, block: Block, label: str) -> tuple[int, RowError | None]:
        result, rows = super().select(block, label), block.rows
        for row in rows.rows_in_state(State.FAULTY):  # a later row of a token is a duplicate, whatever else is wrong
            code = CODES[Code(rows.fault_of(row)[0])]
            self.fault_counts[code] += 1
            self.first_faults.setdefault(code, (block.line(row), ""))
        return result

    def _event(self, event: RowEvent) -> None:
        if event.what == "duplicate" and len(self.duplicate_examples) < FEW:
            self.duplicate_examples.append(Example(_text(event.token), f"line {event.line}"))
        elif event.what == "skipped" and event.reason is not None:
            for code, (line, _) in self.first_faults.items():
                if line == event.line:
                    self.first_faults[code] = (line, event.reason.removeprefix(f"{self._label}, "))


def stream_file(source: SourceLike, options: ReadOptions) -> Streamed:
    """Read a file of vectors; rows that do not load are counted.

    Raises:
        InputError: it is no file of vectors, has no rows, or its bytes end early.
    """
    options = options._replace(bad_rows="skip", nonfinite="keep", unit_norm=False, dtype="float32")
    with open_pass(source, options) as opened:
        selection = _Observed(opened.expected_rows, opened.source.label)
        geometry = Geometry(opened.detected.dim)
        counts = opened.read(selection, geometry.take)
        opened.finish(counts)
        if not counts.rows:
            raise InputError("no-rows", "the file has no rows", path=opened.source.label)
        geometry.finish()
        missing_lf = opened.reader.missing_lf and not counts.limited
        label, detected, path = opened.source.label, opened.detected, _path_of(source)
        extra_unk = detected.header_rows == counts.rows - 1 and counts.last_token == b"<unk>"
        warnings = collect_warnings(label, counts, selection, missing_lf, extra_unk and not counts.limited)
        return Streamed(
            name=label,
            kind="vectors",
            format=detected.format,
            compression=opened.source.compression,
            member=opened.source.member,
            files=[measured(path if os.path.isfile(path or "") else None, label)],
            dim=detected.dim,
            rows=counts.rows,
            index=selection.index,
            geometry=geometry,
            header_rows=detected.header_rows,
            limited=counts.limited,
            faults={code: _fault(selection, code) for code in selection.fault_counts},
            duplicates=selection.duplicates,
            duplicate_examples=selection.duplicate_examples,
            warnings=warnings,
            again=source if path is not None or is_url(source) else None,
        )


def _fault(selection: _Observed, code: str) -> Fault:
    line, message = selection.first_faults.get(code, (None, None))
    return Fault(selection.fault_counts[code], line, message)


def stream_bundle(path: str) -> Streamed:
    """Read a bundle's table, in blocks, and check its files.

    Raises:
        InputError: there is no bundle, or it cannot be opened.
    """
    from ..checking.verification import verify

    path = plain(path)
    name = label_of(path)
    if is_url(path):
        from ..bundle.download import cached

        path = cached(path)
    checks = {check["check"]: check["found"] for check in verify(path).checks}
    bundle, vocab = open_bundle(path)
    provenance = bundle.manifest.provenance
    made, copies = set(provenance.made_rows().rows()), list(provenance.borrowed_rows().rows())
    rows, dim = bundle.tensor.shape
    flags = np.zeros(rows, np.uint8)
    flags[list(made)] |= MADE
    flags[copies] |= COPY
    geometry = Geometry(dim)
    step = max(1, _BLOCK // (4 * dim))
    for start in range(0, rows, step):
        stop = min(start + step, rows)
        geometry.add(start, stored_rows(bundle, start, stop), flags[start:stop])
        bundle.release()
    geometry.finish()
    return Streamed(
        name=name,
        kind="bundle",
        format=bundle.manifest.dtype,
        compression="none",
        member=None,
        files=[measured(file, file) for file in bundle.paths()],
        dim=dim,
        rows=rows,
        index=TokenIndex.over(bytes(vocab.blob)),
        geometry=geometry,
        faults={code: Fault(0, None, None) for code in CODES.values()},
        made=made,
        lookup=vocab.lookup,
        checks=checks,
        again=path,
    )


def check_is_vectors(source: SourceLike, options: ReadOptions) -> None:
    """Open and detect, no more.

    Raises:
        InputError: it is no file of vectors.
    """
    with open_pass(source, options):
        pass


def lasts(path: str | os.PathLike[str]) -> bool:
    """Whether a path can be opened again and gives the same: a file or a folder, no pipe."""
    return os.path.isfile(path) or os.path.isdir(path)


def _path_of(source: SourceLike) -> str | None:
    """The path of a source of this machine that can be opened again: a file or a folder."""
    if isinstance(source, str | os.PathLike) and lasts(path := plain(os.fsdecode(source))):
        return path
    return None


def measured(path: str | None, name: str) -> InputFile:
    """Size and SHA-256 of a file; unknown for what cannot be read again."""
    return InputFile(name, None, None) if path is None else InputFile(name, *size_and_sha256(path))


def _text(token: bytes) -> str:
    return token.decode("utf-8", "backslashreplace")
