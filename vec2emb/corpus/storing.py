"""Files of counts: Parquet (`token: string, count: int64`), or text with `token TAB count LF` a line.

A token of text may hold tabs: the count is what follows the last one. Both forms are written in the order of the counts
and read in any; what is written is the same whenever the counts are. Of Parquet the metadata `vec2emb` holds
`{"tokenizer": .., "lowercase": ..}`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO, TypedDict, cast

import numpy as np

from .._kernel import TokenCounter
from ..errors import InputError, UsageError, VocabularyError, shown
from ..io.atomic import check_file, new_output
from ..io.urls import label_of, local_only
from ..typed import Json
from ..words.vocabulary_file import check_utf8, read
from .inputs import lower_name, open_raw
from .tables import blob_of, parquet_file, slices, table_of, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


KEY = "vec2emb"


class CountFacts(TypedDict, total=False):
    """How tokens were counted; a file of another program may say nothing."""

    tokenizer: str | None
    lowercase: bool


SUFFIXES = (".parquet", ".tsv")


def check_name(path: str) -> None:
    """Refuse a name that does not say what the file is to be."""
    if not lower_name(path).endswith(SUFFIXES):
        raise UsageError(
            "counts-suffix",
            "counts are a .parquet or a .tsv file",
            expected=" or ".join(SUFFIXES),
            found=shown(label_of(path)),
        )


def save(path: str, blob: memoryview, counts: NDArray[np.int64], facts: CountFacts, replace: bool) -> None:
    """Write tokens, their counts, int64[distinct], and where the format has a place for them facts on both."""
    local_only(path, "a file of counts that is written")
    check_name(path)
    with new_output(path, lambda: check_file(path, replace=replace)) as file:
        (_write_tsv if lower_name(path).endswith(".tsv") else _write_parquet)(file, blob, counts, facts)


def _write_tsv(file: BinaryIO, blob: memoryview, counts: NDArray[np.int64], facts: CountFacts) -> None:
    for part, numbers in slices(blob, counts):
        tokens = bytes(part).split(b"\n")
        file.write(b"".join(b"%b\t%d\n" % pair for pair in zip(tokens, numbers.tolist(), strict=False)))


def _write_parquet(file: BinaryIO, blob: memoryview, counts: NDArray[np.int64], facts: CountFacts) -> None:
    tables = (table_of(*part) for part in slices(blob, counts))
    write_parquet(file, tables, {KEY: json.dumps(facts, sort_keys=True)})


def load(path: str) -> tuple[TokenCounter, CountFacts]:
    """The counts of a file, and the facts on them.

    Raises:
        InputError: the file cannot be read, or is none of counts.
        VocabularyError: a token stands twice.
    """
    check_name(path)
    counter = TokenCounter()
    facts: CountFacts = {}
    if lower_name(path).endswith(".tsv"):
        rows = _read_tsv(counter, path)
    else:
        rows, facts = _read_parquet(counter, path)
    if rows != len(counter):
        raise VocabularyError("duplicate-token", "a token stands twice", path=path, found=f"{rows - len(counter)} more")
    return counter, facts


def _read_tsv(counter: TokenCounter, path: str) -> int:
    data = read(path)
    if data and not data.endswith(b"\n"):
        raise InputError("missing-last-lf", "the last line does not end with LF; was the file cut?", path=path)
    check_utf8(data, path)
    lines = data.split(b"\n")[:-1]
    for number, line in enumerate(lines, 1):
        token, tab, count = line.rpartition(b"\t")
        if not tab or not count.isdigit() or not 0 < len(count) < 19 or int(count) < 1:
            raise InputError(
                "bad-counts", "the line is no token and count", path=path, line=number, expected="TOKEN TAB COUNT",
                found=shown(line),
            )  # fmt: skip
        counter.add(token, int(count))
    return len(lines)


def _check_types(batch: pa.RecordBatch) -> None:
    if batch.column("token").null_count or batch.column("count").null_count:
        raise ValueError("a value is null")
    if np.dtype(batch.column("count").type.to_pandas_dtype()).kind not in "iu":
        raise TypeError(f"counts are {batch.column('count').type}")


def _read_parquet(counter: TokenCounter, path: str) -> tuple[int, CountFacts]:
    with open_raw(path) as file:
        path = label_of(path)
        opened = parquet_file(file, path)
        names = opened.schema_arrow.names
        if not {"token", "count"} <= set(names):
            raise InputError("bad-counts", "the file holds no counts", path=path, expected="columns token and count",
                             found=", ".join(names))  # fmt: skip
        rows = 0
        for batch in opened.iter_batches(columns=["token", "count"]):
            try:
                _check_types(batch)
                blob, counts = blob_of(batch)
                counter.add_lines(blob, np.ascontiguousarray(counts, np.int64).data)
            except (ValueError, TypeError) as error:
                raise InputError("bad-counts", f"the file holds no counts ({error})", path=path) from None
            rows += batch.num_rows
        metadata = opened.schema_arrow.metadata or {}
    try:
        facts: Json = json.loads(metadata.get(KEY.encode(), b"{}"))
    except ValueError:
        facts = {}
    return rows, cast("CountFacts", facts) if isinstance(facts, dict) else {}
