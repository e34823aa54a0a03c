"""The tasks of a graph that counts: pure functions, whatever runs them.

    count_pieces(pieces) -> tables, one a bucket
    merge_tables(tables of a bucket) -> table
    write_table(tables of a bucket) -> name of a file

A token's bucket is a checksum of its bytes, the same in every process.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._kernel import TokenCounter
from ..io.remote import filesystem
from ..io.urls import is_url
from .inputs import Piece
from .reading import Blocks
from .settings import Settings
from .tables import arrow, blob_of, slices, table_of, write_parquet
from .tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa


def count_pieces(pieces: Sequence[Piece], settings: Settings, buckets: int, topic: str, number: int) -> list[pa.Table]:
    """The counts of some pieces: a table for each bucket, its tokens in the order of their bytes."""
    blocks, tally, buffer = Blocks(iter(pieces), settings), Tally(settings), bytearray()
    try:
        while (block := blocks.read(buffer)) is not None:
            tally.add(block, buffer)
    finally:
        blocks.close()
    _tell_client(topic, number)
    blob, raw, sizes = tally.finished().by_bucket(buckets)
    tables, start, first = [], 0, 0
    view, counts = memoryview(blob), np.frombuffer(raw, np.int64)
    for size in sizes:
        # Each a copy of its own: whoever is sent one is not sent the others.
        parts = list(slices(view[start:], counts[first : first + size]))
        tables.append(_joined([table_of(*part) for part in parts]))
        start += sum(len(part) for part, _ in parts)
        first += size
    return tables


def merge_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of all counts of a bucket."""
    counter = TokenCounter()
    for table in tables:
        for batch in table.to_batches():
            blob, counts = blob_of(batch)
            counter.add_lines(blob, np.ascontiguousarray(counts).data)
    blob, raw, _ = counter.by_bucket(1)
    return _joined([table_of(*part) for part in slices(blob, np.frombuffer(raw, np.int64))])


def write_table(tables: Sequence[pa.Table], folder: str, bucket: int) -> str:
    """Merge the last tables of a bucket into a file; its name. Writing it twice gives the same file."""
    table, name = merge_tables(tables), f"{bucket:05}.parquet"
    if is_url(folder):
        sink = arrow().BufferOutputStream()
        write_parquet(sink, [table])
        system, path = filesystem(folder)
        system.pipe_file(f"{path}/{name}", sink.getvalue().to_pybytes())
    else:
        temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}")
        write_parquet(temporary, [table])
        os.replace(temporary, os.path.join(folder, name))
    return name


def _joined(tables: list[pa.Table]) -> pa.Table:
    return arrow().concat_tables(tables) if tables else table_of(b"", np.zeros(0, np.int64))


def _tell_client(topic: str, number: int) -> None:
    """On a cluster: say that a task is done, for progress."""
    with contextlib.suppress(ImportError, ValueError):  # ValueError: this is no worker of a cluster
        from distributed import get_worker

        get_worker().log_event(topic, number)
