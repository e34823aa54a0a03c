"""A piece of a corpus in blocks: whole tokens, whole lines, or rows of a column."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import InputError, SourceError
from ..io.sources import Source, open_source
from ..io.urls import label_of
from ..options.sizes import size_of_environment
from .inputs import PARQUET, Piece, open_raw
from .settings import FIELD, Settings
from .splitting import splitter_of
from .tables import arrow, parquet_file

if TYPE_CHECKING:
    import pyarrow as pa

    from .tables import OpenFile

BLOCK = 1 << 20  # bytes read at a time
LIMIT = 64 << 20  # bytes that a token or line may have
ROWS = 4096  # of a Parquet file, read at a time
SPACES = b" \n\t\r\v\f"


class Block(NamedTuple):
    """What is counted in one go.

    Attributes:
        label: the file's name.
        kind: `text`, `json` (whole lines) or `rows`.
        size: of text and lines, the bytes used of the buffer.
        offset: byte of the (decompressed) file at which the block starts.
        line: number of its first line, or None where nobody has counted.
        rows: of `rows`, the column.
    """

    label: str
    kind: str
    size: int = 0
    offset: int = 0
    line: int | None = None
    rows: pa.Array | None = None


class Reader(Protocol):
    """The blocks of one piece, in order."""

    def read(self, buffer: bytearray) -> Block | None: ...
    def close(self) -> None: ...
    @property
    def consumed(self) -> int: ...


class Blocks:
    """The blocks of many pieces, one after the other.

    Attributes:
        consumed: bytes taken from the files, for progress.
    """

    def __init__(self, pieces: Iterator[Piece], settings: Settings) -> None:
        self._pieces = pieces
        self._settings = settings
        self._reader: Reader | None = None
        self._done = 0
        self._cancelled = False

    def cancel(self) -> None:
        """End a read that waits in another thread for data; it raises an error, and so does every later one."""
        self._cancelled = True

    @property
    def consumed(self) -> int:
        reader = self._reader
        return self._done + (reader.consumed if reader is not None else 0)

    def read(self, buffer: bytearray) -> Block | None:
        """The next block, its bytes in `buffer`, which grows as needed; None at the end.

        Raises:
            InputError: a file cannot be read, or is not what it should be.
        """
        while True:
            if self._reader is None:
                piece = next(self._pieces, None)
                if piece is None:
                    return None
                self._reader = open_piece(piece, self._settings, lambda: self._cancelled)
            block = self._reader.read(buffer)
            if block is not None:
                return block
            self.close()

    def close(self) -> None:
        """Close the file that is open."""
        if self._reader is not None:
            self._done = self.consumed
            self._reader.close()
            self._reader = None


def open_piece(piece: Piece, settings: Settings, given_up: Callable[[], bool] | None = None) -> Reader:
    """The reader of a piece.

    Raises:
        InputError: the file cannot be read.
    """
    separators = b"\n" if piece.kind == "json" or splitter_of(settings).split is not None else SPACES
    if not piece.is_whole and piece.kind != "parquet":
        source, start = _range_of(piece, separators)
        return _TextReader(source, piece.kind, separators, start, source)
    if piece.kind == "parquet":
        return _ParquetReader(open_raw(piece.path), piece, settings.field or FIELD)
    with contextlib.ExitStack() as opened:
        source = opened.enter_context(open_source(piece.path, given_up=given_up))
        head = source.read(len(PARQUET))
        source.unread(head)
        if head == PARQUET and piece.path != "-":
            return _ParquetReader(_seekable(source, piece.path), piece, settings.field or FIELD)
        return _TextReader(source, piece.kind, separators, 0, opened.pop_all())


class _TextReader:
    """Blocks that end at a separator."""

    def __init__(
        self, source: Source, kind: str, separators: bytes, start: int, opened: Source | contextlib.ExitStack
    ) -> None:
        self._source = source
        self._kind = kind
        self._separators = separators
        self._opened = opened
        self._offset = start
        self._line = 1 if start == 0 else None
        self._carry = b""  # the start of a token or line whose end is not read yet
        self._done = False
        size = size_of_environment("VEC2EMB_BLOCK_BYTES", BLOCK)  # tests set it, as nothing may depend on it
        self._chunk = memoryview(bytearray(max(16, size)))

    @property
    def consumed(self) -> int:
        return self._source.consumed

    def read(self, buffer: bytearray) -> Block | None:
        size = len(self._carry)
        _put(buffer, 0, self._carry)
        self._carry = b""
        while not self._done:
            searched = size
            # Not into the buffer itself: a failure that waits to be raised holds on to where it read to.
            count = self._source.readinto(self._chunk)
            self._done = count < len(self._chunk) and self._source.failure is None
            _put(buffer, size, self._chunk[:count])
            size += count
            cut = 1 + max(buffer.rfind(separator, searched, size) for separator in self._separators)
            if cut and not self._done:
                self._carry = bytes(memoryview(buffer)[cut:size])
                size = cut
                break
            self._check_length(size)
        return self._block(buffer, size) if size else None

    def _check_length(self, size: int) -> None:
        if size > LIMIT:
            unit = "token" if self._separators == SPACES else "line"
            raise SourceError(
                "token-too-long",
                f"a {unit} is longer than {LIMIT >> 20} MiB",
                path=self._source.label,
                offset=self._offset,
                hint="is this text?",
            )

    def _block(self, buffer: bytearray, size: int) -> Block:
        block = Block(self._source.label, self._kind, size, self._offset, self._line)
        self._offset += size
        if self._line is not None:
            self._line += buffer.count(b"\n", 0, size)
        return block

    def close(self) -> None:
        self._opened.close()


def _put(buffer: bytearray, start: int, data: bytes | memoryview) -> None:
    """Write into a buffer that grows where it has to."""
    if len(buffer) < start + len(data):
        buffer.extend(bytes(start + len(data) - len(buffer)))
    buffer[start : start + len(data)] = data


class _ParquetReader:
    """Rows of the column that holds text."""

    def __init__(self, file: OpenFile, piece: Piece, column: str) -> None:
        self._label = label_of(piece.path)
        self._file = file
        self._row = 0
        try:
            self._opened = parquet_file(file, self._label)
            self._batches = self._rows_of(column, piece)
        except BaseException:
            file.close()
            raise

    def _rows_of(self, column: str, piece: Piece) -> Iterator[pa.RecordBatch]:
        names = self._opened.schema_arrow.names
        if column not in names:
            raise InputError(
                "field-missing",
                f"there is no column {column!r}",
                path=self._label,
                found=", ".join(names),
                hint="name the one that holds text with field= or --field",
            )
        stop = self._opened.metadata.num_row_groups if piece.stop is None else piece.stop
        groups = list(range(piece.start, stop))
        return self._opened.iter_batches(ROWS, row_groups=groups, columns=[column], use_threads=False)  # type: ignore[no-any-return]

    @property
    def consumed(self) -> int:
        return int(self._file.tell()) if not self._file.closed else 0

    def read(self, buffer: bytearray) -> Block | None:
        try:
            batch = next(self._batches, None)
        except (arrow().ArrowException, OSError) as error:
            raise InputError("bad-parquet", f"the file is damaged ({error})", path=self._label) from None
        if batch is None:
            return None
        block = Block(self._label, "rows", offset=self._row, rows=batch.column(0))
        self._row += batch.num_rows
        return block

    def close(self) -> None:
        self._opened.close(force=True)
        self._file.close()


class _Part(io.RawIOBase):
    """The bytes from `start` on, up to `stop`, of a file that is closed with it."""

    def __init__(self, file: OpenFile, name: str, start: int = 0, stop: int | None = None) -> None:
        self.name = name
        self._file = file
        self._left = None if stop is None else stop - start
        file.seek(start)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # which io always gives
        size = len(buffer)
        data = self._file.read(size if self._left is None else min(size, self._left))
        buffer[: len(data)] = data
        if self._left is not None:
            self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _range_of(piece: Piece, separators: bytes) -> tuple[Source, int]:
    """The whole tokens (or lines) of a range of bytes, and where the first of them starts."""
    assert piece.stop is not None
    file = open_raw(piece.path)
    try:
        start, stop = (boundary(file, at, separators) for at in (piece.start, piece.stop))
        label = label_of(piece.path)
        return Source(_Part(file, label, start, stop), label, label, None, owned=True), start
    except BaseException:
        file.close()
        raise


def boundary(file: OpenFile, at: int, separators: bytes) -> int:
    """The first place from `at` on that has a separator in front of it; the file's end if there is none."""
    if at == 0:
        return 0
    place = at - 1
    file.seek(place)
    while chunk := file.read(1 << 16):
        hits: list[int] = [hit for hit in (chunk.find(separator) for separator in separators) if hit >= 0]
        if hits:
            return place + min(hits) + 1
        place += len(chunk)
    return place


def _seekable(source: Source, path: str) -> OpenFile:
    """A file that can be read at any place: the source's own, or a copy on disk of what it decompresses to."""
    if source.compression == "none" and source.member is None:
        file = open_raw(path)
        if file.seekable():
            source.close()
            return file
        file.close()
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - the reader closes it
    buffer = bytearray(BLOCK)
    with source:
        while size := source.readinto(memoryview(buffer)):
            copy.write(memoryview(buffer)[:size])
    copy.seek(0)
    return copy
