"""Vectors into memory: `read_vectors` for a whole table, `iter_vectors` for one row after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..bundle.manifest import Manifest
from ..bundle.provenance import Provenance
from ..bundle.table import Table
from ..errors import UsageError, Vec2embError
from ..io.progress import ProgressLike
from ..io.sources import SourceLike
from ..options.conversion import ITER_VECTORS, READ_VECTORS
from ..options.definition import check
from ..words.vocabulary import Vocabulary
from .parsed_rows import Collector, ParsedRows
from .reading_pass import ReadOptions, open_pass
from .recording import source_record
from .report import Report, announce
from .selection import Rules, Selection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ReadTable(Table):
    """A table that was read from a source into memory.

    Attributes:
        report: what reading found.
    """

    _from_file = True

    def __init__(self, vocab: Vocabulary, vectors: NDArray[np.float32], report: Report) -> None:
        super().__init__(vocab, vectors)
        self.report = report


def read_vectors(
    source: SourceLike,
    *,
    member: str | None = None,
    sha256: str | None = None,
    allow_pickle: bool = False,
    format: str = "auto",
    dim: int | None = None,
    limit: int | None = None,
    encoding: str = "utf-8",
    encoding_errors: str = "error",
    binary_dtype: str | None = None,
    byte_order: str | None = None,
    duplicates: str = "first",
    bad_rows: str = "error",
    nonfinite: str = "error",
    unit_norm: bool = False,
    threads: int | None = None,
    strict: bool = False,
    progress: ProgressLike = False,
) -> ReadTable:
    """Read a file of word vectors into memory, as it is: no special token is added and no row zeroed.

    So the table has neither padding nor unknown token; `convert` makes one that has. The arguments are those of
    `convert`.

    Returns:
        A `Table` of the file's V different tokens: `.vocab`, `.vectors` (float32[V, D]), and `.report`.

    Raises:
        InputError: the source is at fault.
        UsageError: an argument is.
    """
    given = check(READ_VECTORS, locals())
    import numpy as np

    options = ReadOptions.of(given)
    with open_pass(source, options) as opened:
        selection = Selection([], rules=Rules(duplicates), expected=opened.expected_rows)
        memory = _Memory(opened.detected.dim)
        counts, found = opened.run(selection, memory.take)
        read = source_record(opened.source, opened.detected, counts, selection, options)
        manifest = Manifest(Provenance(len(selection)), opened.detected.dim, "float32", source=read)
        report = Report(opened.source, opened.detected, counts, selection, manifest)
    announce(found, strict)
    report.warnings = found
    vocab = Vocabulary.from_blob(b"".join(selection.vocabulary()), padding_idx=None, unk_idx=None)
    vectors = np.frombuffer(memory.data, np.float32, report.rows * report.dim).reshape(-1, report.dim)
    return ReadTable(vocab, vectors, report)


class _Memory:
    """Rows in one growing buffer, written at their place by several threads."""

    def __init__(self, dim: int) -> None:
        self.data = bytearray()
        self._width = 4 * dim
        self._lock = threading.Lock()

    def take(self, parsed: ParsedRows) -> None:
        """Write rows at the place of their ids."""
        for id, rows in parsed.runs():
            self._write(id, rows)

    def _write(self, id: int, rows: memoryview) -> None:
        start = id * self._width
        stop = start + len(rows)
        with self._lock:
            if stop > len(self.data):
                # A quarter more each time: few copies, little waste.
                self.data.extend(bytes(max(stop, len(self.data) * 5 // 4) - len(self.data)))
            self.data[start:stop] = rows


def iter_vectors(
    source: SourceLike,
    *,
    member: str | None = None,
    sha256: str | None = None,
    allow_pickle: bool = False,
    format: str = "auto",
    dim: int | None = None,
    limit: int | None = None,
    encoding: str = "utf-8",
    encoding_errors: str = "error",
    binary_dtype: str | None = None,
    byte_order: str | None = None,
    duplicates: str = "first",
    bad_rows: str = "error",
    nonfinite: str = "error",
    unit_norm: bool = False,
    strict: bool = False,
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Read one row after the other, in the order of the file; no more than a block is in memory.

    The arguments are those of `convert`, but `duplicates="last"` is not possible in one pass. Warnings are given at the
    end, when they are known.

    Yields:
        (token, float32[D]); the vector is the caller's own.

    Raises:
        InputError: the source is at fault; the rows in front of the fault have been yielded.
        UsageError: an argument is.
    """
    given = check(ITER_VECTORS, locals())
    if duplicates == "last":
        raise UsageError("duplicates", "the last of duplicates is not known in one pass", hint="use read_vectors")
    options = ReadOptions.of(given)
    options.read_as()
    return _iterate(source, options, Selection([], rules=Rules(duplicates)), strict)


def _iterate(
    source: SourceLike, options: ReadOptions, selection: Selection, strict: bool
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    import numpy as np

    with open_pass(source, options) as opened:
        collector = Collector()
        engine = opened.engine(selection, collector.take, workers=1)
        block, out = opened.reader.new_block(), bytearray()
        failure: Vec2embError | None = None
        more = True
        while more:
            try:
                more = engine.step(block, out)
            except Vec2embError as error:
                failure, more = error, False
            for id, rows in collector.runs:
                vectors = np.frombuffer(rows, np.float32).reshape(-1, opened.detected.dim)
                for i, vector in enumerate(vectors):
                    yield selection.index.token(id + i).decode(), vector.copy()
            collector.runs.clear()
        if failure is not None:
            raise failure
        found = opened.conclude(selection, engine.counts)
    announce(found, strict)
