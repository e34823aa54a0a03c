"""Counts as Arrow tables and Parquet files: `token: string, count: int64`.

A *blob* is what the kernel gives and takes: tokens in UTF-8, each followed by LF; with it go the counts, int64[n].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from ..errors import InputError, needed

if TYPE_CHECKING:
    from io import FileIO
    from types import ModuleType
    from typing import IO

    import pyarrow as pa
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from ..io.remote.files import RemoteFile

    OpenFile = IO[bytes] | FileIO | RemoteFile  # of bytes, that can be jumped in
    Counts = NDArray[np.int64]
    Buffer = bytes | memoryview

ROWS = 1 << 17  # of a row group; fixed, so that the same counts give the same file
_BLOCK = 8 << 20  # bytes of tokens that are turned at a time


def arrow() -> ModuleType:
    """The pyarrow package, with its Parquet module.

    Raises:
        MissingPackageError: it is not there.
    """
    with needed("pyarrow", "corpus", "reading and writing Parquet"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow  # type: ignore[no-any-return]


def schema(metadata: dict[str, str] | None = None) -> pa.Schema:
    """The schema of all files of counts."""
    pa = arrow()
    return pa.schema([pa.field("token", pa.large_string(), False), pa.field("count", pa.int64(), False)], metadata)


def table_of(blob: Buffer, counts: Counts) -> pa.Table:
    """The table of a blob and its counts; what it holds is its own."""
    pa = arrow()
    data = np.frombuffer(blob, np.uint8)
    ends = np.flatnonzero(data == 0x0A)
    offsets = np.zeros(len(ends) + 1, np.int64)
    offsets[1:] = ends - np.arange(len(ends))
    text = data[data != 0x0A]
    tokens = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
    column = pa.Array.from_buffers(pa.int64(), len(ends), [None, pa.py_buffer(np.ascontiguousarray(counts))])
    return pa.Table.from_arrays([tokens, column], schema=schema())


def blob_of(batch: pa.Table | pa.RecordBatch) -> tuple[bytes, Counts]:
    """The blob and the counts of a table or record batch, in its order."""
    pa = arrow()
    tokens = batch.column("token")
    tokens = tokens.combine_chunks() if isinstance(tokens, pa.ChunkedArray) else tokens
    tokens = tokens.cast(pa.large_string())
    if isinstance(tokens, pa.ChunkedArray):  # of no chunk at all
        tokens = pa.array([], pa.large_string())
    counts: Counts = batch.column("count").to_numpy()
    _, offsets_buffer, text_buffer = tokens.buffers()
    if not len(tokens):
        return b"", np.zeros(0, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int64)[tokens.offset : tokens.offset + len(tokens) + 1]
    text = np.frombuffer(text_buffer if text_buffer is not None else b"", np.uint8)[offsets[0] : offsets[-1]]
    # Each token moves by the LFs of those before it.
    ends = offsets[1:] - offsets[0] + np.arange(len(tokens))
    blob = np.empty(len(text) + len(tokens), np.uint8)
    is_lf = np.zeros(len(blob), bool)
    is_lf[ends] = True
    blob[is_lf] = 0x0A
    blob[~is_lf] = text
    return blob.tobytes(), counts


def slices(blob: Buffer, counts: Counts, rows: int = ROWS) -> Iterator[tuple[memoryview, Counts]]:
    """Blob and counts, at most `rows` tokens at a time."""
    view, start = memoryview(blob), 0
    for first in range(0, len(counts), rows):
        number = min(rows, len(counts) - first)
        stop = _after_tokens(view, start, number)
        yield view[start:stop], counts[first : first + number]
        start = stop


def _after_tokens(view: memoryview, start: int, number: int) -> int:
    """Where the tokens that start at `start` end, after `number` of them."""
    while True:
        ends = np.flatnonzero(np.frombuffer(view[start : start + _BLOCK], np.uint8) == 0x0A)
        if len(ends) >= number:
            return start + int(ends[number - 1]) + 1
        number -= len(ends)
        start += min(_BLOCK, len(view) - start)


def write_parquet(
    file: str | BinaryIO | pa.NativeFile, parts: Iterable[pa.Table], metadata: dict[str, str] | None = None
) -> None:
    """Write tables of at most `ROWS` rows each as the row groups of one Parquet file."""
    pa = arrow()
    with pa.parquet.ParquetWriter(file, schema(metadata), compression="zstd", write_statistics=False) as writer:
        for part in parts:
            writer.write_table(part.replace_schema_metadata(metadata), row_group_size=ROWS)


def parquet_file(file: OpenFile, label: str) -> pq.ParquetFile:
    """An opened Parquet file.

    Raises:
        InputError: it is none, or it is damaged.
    """
    pa = arrow()
    try:
        return pa.parquet.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise InputError("bad-parquet", f"the file is no whole Parquet file ({error})", path=label) from None
