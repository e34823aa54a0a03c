"""One pass over a source: open it, find out what it is, and run its rows through the engine."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from .._kernel import Policy
from .._kernel.codes import Nonfinite
from ..bundle.reader import largest
from ..errors import HeaderError, InputError, UsageError, Vec2embWarning
from ..formats import ReadAs, RowReader, detect, rows_reader, why_not_meant
from ..formats.matrix.recognition import kind_of
from ..io.progress import ProgressLike, progress_of
from ..io.sources import Source, SourceLike, is_open_file, open_source
from ..io.urls import is_url, plain
from ..options.definition import check, pick
from ..options.output import DTYPE, THREADS
from ..options.reading import READING
from ..options.sizes import size_of_environment
from ..options.threads import worker_count
from .engine import BLOCK, Counts, Engine, Tally
from .parsed_rows import Sink
from .report import collect_warnings
from .selection import Selection

if TYPE_CHECKING:
    from ..formats.matrix.source import MatrixSource

T = TypeVar("T")


class ReadOptions(NamedTuple):
    """How a source is read; every field has the meaning of `convert`'s argument of that name."""

    format: str = "auto"
    dim: int | None = None
    limit: int | None = None
    bad_rows: str = "error"
    nonfinite: str = "error"
    unit_norm: bool = False
    dtype: str = "float32"
    encoding: str = "utf-8"
    encoding_errors: str = "error"
    binary_dtype: str | None = None
    byte_order: str | None = None
    threads: int | None = None
    progress: ProgressLike = False
    member: str | None = None
    sha256: str | None = None
    allow_pickle: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any], **decided: Any) -> "ReadOptions":
        """The options among the arguments of a function, or among what a bundle records.

        Args:
            given: arguments by name; those of other options are left out.
            decided: options that the function sets itself.

        Raises:
            UsageError: a value is not of its type, out of range or none of the choices.
        """
        return cls(**check((*READING, DTYPE, THREADS), pick(cls._fields, {**given, **decided})))

    def policy(self) -> Policy:
        """What is done about odd rows and values.

        Raises:
            UsageError: there is no such type.
        """
        nonfinite, skip = Nonfinite[self.nonfinite.upper()], self.bad_rows == "skip"
        return Policy(nonfinite, self.unit_norm, largest(self.dtype), skip, self.read_as().utf8)

    def read_as(self) -> ReadAs:
        """What detection is told."""
        return ReadAs(
            self.format, self.dim, self.encoding, self.encoding_errors, self.binary_dtype, self.byte_order
        ).check()


class Pass:
    """An opened source, known for what it is, whose rows have not been read yet.

    Attributes:
        source: the opened source.
        detected: what it was found to be.
        reader: its rows.
        matrix: the source again, if it is one of words and a matrix; else None.
    """

    def __init__(self, source: "SourceLike | MatrixSource", options: ReadOptions) -> None:
        policy = options.policy()
        self._options = options
        read_as = options.read_as()
        self.source: Source | MatrixSource
        self.reader: RowReader
        self.matrix: MatrixSource | None = None
        source = plain(source) if isinstance(source, str) else source
        # A MatrixSource is opened already, and is an object.
        kind = kind_of(source, options.allow_pickle) if read_as.format == "auto" else None
        if kind is not None:
            self._open_matrix(kind, source, read_as, policy)
            return
        opened = self.source = open_source(
            cast("SourceLike", source), options.member, lambda head: why_not_meant(head, read_as), options.sha256
        )
        try:
            self.detected = detect(opened, read_as)
            self.reader = rows_reader(
                opened, self.detected, read_as, policy, block_bytes(worker_count(options.threads)), options.dtype
            )
        except BaseException:
            opened.close()
            raise

    def _open_matrix(self, kind: str, source: object, read_as: ReadAs, policy: Policy) -> None:
        from ..formats.matrix.opening import open_matrix
        from ..formats.matrix.rows import MatrixRows

        options = self._options
        self.source = self.matrix = open_matrix(kind, source, read_as, options.member, options.sha256)
        self.detected = self.matrix.detected()
        size = block_bytes(worker_count(options.threads))
        self.reader = MatrixRows(self.matrix, read_as, policy, size, options.dtype)

    @property
    def from_scratch(self) -> bool:
        """Whether there is no source of rows, so that every row is generated."""
        return self.matrix is not None and not self.matrix.has_rows

    @property
    def expected_rows(self) -> int:
        """About how many rows there will be: a hint that sizes a table of tokens, never taken from a header."""
        size = self.source.size
        if size is not None and self.source.compression != "none":
            size *= 3  # what text of numbers is usually compressed to
        rows = self.detected.estimated_rows(size)
        return rows if self._options.limit is None else min(rows, self._options.limit)

    def engine(self, selection: Selection, sink: Sink, workers: int | None) -> Engine:
        """The engine for this source."""
        return Engine(
            self.reader,
            selection,
            sink,
            label=self.source.label,
            first_line=self.detected.first_line,
            limit=self._options.limit,
            workers=workers,
        )

    def run(self, selection: Selection, sink: Sink, *, fill: bool = True) -> tuple[Counts, list[Vec2embWarning]]:
        """Pass all rows through scan, select and fill; what was counted and what was odd.

        Without `fill` no vector is read: tokens and shapes are checked, numbers are not.

        Raises:
            InputError: the first fault of the source.
        """
        counts = self.read(selection, sink, fill=fill)
        return counts, self.conclude(selection, counts)

    def read(self, selection: Selection, sink: Sink, *, fill: bool = True) -> Counts:
        """Pass all rows through, as `run`, and conclude nothing."""
        engine = self.engine(selection, sink, self._options.threads)
        engine.fills = fill
        with progress_of(self._options.progress, self.source.name) as show:
            return engine.run(lambda: (self.source.consumed, self.source.size), show)

    def finish(self, counts: Counts) -> None:
        """Check the source itself, once its rows were read.

        Raises:
            InputError: it changed while it was read, or is not what it must be.
        """
        self.source.resume()
        if counts.limited:
            self.source.finish()
        self.source.check_unchanged()

    def check_missing(self, missing: str) -> None:
        """Refuse to make missing words of subwords where there are none.

        Raises:
            UsageError: the source has none.
        """
        if missing == "subword" and not (self.matrix is not None and self.matrix.has_subwords):
            raise UsageError(
                "no-subwords", "the source has no subwords to make missing words of", path=self.source.label,
                expected="a fastText model trained with subwords (.bin)", found=self.detected.format,
                hint="--missing normal, mean, uniform or zeros makes rows for them",
            )  # fmt: skip

    def composer(self) -> tuple[Callable[[list[str]], memoryview], Tally]:
        """What makes rows of words that the source does not have, and a tally of those that have no subwords."""
        from ..formats.matrix.rows import MatrixRows

        reader, lacking = self.reader, Tally()
        if not isinstance(reader, MatrixRows):
            raise AssertionError("check_missing was not asked")

        def compose(words: list[str]) -> memoryview:
            made, count = reader.compose(words)
            lacking.add(count, 0)
            return memoryview(made)

        return compose, lacking

    def conclude(self, selection: Selection, counts: Counts) -> list[Vec2embWarning]:
        """Compare the header with what was there; all that was odd.

        Raises:
            HeaderError: fewer rows than promised, or more.
            InputError: no row was left, or the file changed while it was read.
        """
        label = self.source.label
        self.finish(counts)
        extra_unk = not counts.limited and self._compare_with_header(counts)
        if not counts.rows and not self.from_scratch:
            raise InputError("no-rows", "the file has no rows", path=label)
        if counts.rows and counts.skipped.count == counts.rows:
            first = counts.first_skipped
            raise InputError(
                "all-rows-skipped", f"all {counts.rows} rows are faulty, the first because {first}", path=label
            )
        selection.settle()
        missing_lf = self.reader.missing_lf and not counts.limited
        own = () if self.matrix is None else self.matrix.own_specials()
        found = collect_warnings(label, counts, selection, missing_lf, extra_unk, own)
        if not self.source.marks_end and not counts.limited:
            text = f"{label}: the server does not say where the file ends, so a cut cannot be told; sha256 would"
            found.append(Vec2embWarning("end-unknown", text, path=label))
        return found

    def _compare_with_header(self, counts: Counts) -> bool:
        """Whether there is one row more than the header promises, GloVe's `<unk>`."""
        promised = self.detected.header_rows
        if promised is None or counts.rows == promised:
            return False
        if counts.rows == promised + 1 and counts.last_token == b"<unk>":
            return True
        fewer = counts.rows < promised
        raise HeaderError(
            "header-too-few-rows" if fewer else "header-too-many-rows",
            f"the file has {'fewer' if fewer else 'more'} rows than its header promises",
            path=self.source.label,
            expected=f"{promised} rows",
            found=str(counts.rows),
            hint="the file is cut off: get it again"
            if fewer
            else "correct the header, or remove it and use --format glove",
        )


@contextlib.contextmanager
def open_pass(source: "SourceLike | MatrixSource", options: ReadOptions) -> Iterator[Pass]:
    """Open a source for one pass; it is closed at the end."""
    opened = Pass(source, options)
    with opened.source:
        yield opened


def with_recorded_member(call: Callable[[str | None], T], source: SourceLike, member: str | None) -> T:
    """Call with the member that a bundle records; without one, if the source is no archive: it may be that member."""
    try:
        return call(member)
    except UsageError as error:
        if error.code != "member-without-archive" or _is_read_once(source):
            raise
    return call(None)


def _is_read_once(source: SourceLike) -> bool:
    """Whether a source has lost its first bytes when it was looked at."""
    if not isinstance(source, str | os.PathLike):
        return is_open_file(source)
    path = plain(os.fspath(source))
    return path == "-" or not (is_url(path) or os.path.isfile(path) or os.path.isdir(path))


def block_bytes(workers: int) -> int:
    """Bytes a block. The tests set the variable, as nothing may depend on it.

    Every worker has buffers of its own, so many workers take smaller blocks: together they need what four do.
    """
    return size_of_environment("VEC2EMB_BLOCK_BYTES", min(BLOCK, 4 * BLOCK // workers))
