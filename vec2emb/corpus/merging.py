"""Partial counts in Parquet files, merged by DuckDB within a limit of memory; the result lies on disk, mapped."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from types import ModuleType
from typing import IO

import numpy as np

from .._kernel import TokenCounter
from ..errors import needed
from .counts import TokenCounts
from .settings import Settings
from .tables import blob_of, parquet_file, slices, table_of, write_parquet

_LEAST = 256 << 20  # with less DuckDB cannot sort


def duckdb() -> ModuleType:
    """The duckdb package. Raises MissingPackageError."""
    with needed("duckdb", "corpus", "counting more than fits in memory"):
        import duckdb as package
    return package


class Spill:
    """A folder of partial counts, for as long as a count lasts."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="vec2emb-counts-")
        self.paths: list[str] = []

    def add(self, counter: TokenCounter) -> None:
        """Write the counts of a counter."""
        path = os.path.join(self._folder.name, f"{len(self.paths)}.parquet")
        self.paths.append(path)
        blob, raw, _ = counter.by_bucket(1)
        write_parquet(path, (table_of(*part) for part in slices(blob, np.frombuffer(raw, np.int64))))

    def merged(self, memory: int, threads: int, settings: Settings) -> TokenCounts:
        """All counts that were written, in order."""
        return merge_files(self.paths, self._folder.name, memory, threads, settings)

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()


def merge_files(paths: Iterable[str], folder: str, memory: int, threads: int, settings: Settings) -> TokenCounts:
    """The counts of several files, added up and ordered, within about `memory` bytes; `folder` is for scratch files."""
    merged = os.path.join(folder, "merged.parquet")
    files = ", ".join(_quoted(path) for path in paths)
    connection = duckdb().connect()
    try:
        connection.execute(f"SET memory_limit = '{max(memory, _LEAST)}B'")
        connection.execute(f"SET threads = {threads}")
        connection.execute(f"SET temp_directory = {_quoted(os.path.join(folder, 'duckdb'))}")
        connection.execute("SET preserve_insertion_order = false")
        # Tokens are compared as bytes: no collation has a say.
        connection.execute(
            f"""COPY (SELECT encode(token) AS token, sum(count)::BIGINT AS count FROM read_parquet([{files}])
                      GROUP BY token ORDER BY count DESC, token)
                TO {_quoted(merged)} (FORMAT parquet, COMPRESSION zstd)"""  # noqa: S608 - names of our own files
        )
    finally:
        connection.close()
    return mapped(merged, folder, settings)


def mapped(path: str, folder: str, settings: Settings) -> TokenCounts:
    """The counts of a Parquet file that is in order, in two flat files that nobody else sees, mapped."""
    with (
        tempfile.TemporaryFile(dir=folder) as tokens,
        tempfile.TemporaryFile(dir=folder) as numbers,
        open(path, "rb") as file,
    ):
        for batch in parquet_file(file, path).iter_batches(columns=["token", "count"]):
            blob, counts = blob_of(batch)
            tokens.write(blob)
            numbers.write(np.ascontiguousarray(counts, np.int64).data)
        blob_map, counts_map = _map(tokens), _map(numbers)
    return TokenCounts(
        blob_map, np.frombuffer(counts_map, np.int64), tokenizer=settings.tokenizer, lowercase=settings.lowercase
    )


def _map(file: IO[bytes]) -> memoryview:
    """A file of ours that has no name any more: it can neither change nor outlive the map."""
    file.flush()
    size = file.tell()
    return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"
