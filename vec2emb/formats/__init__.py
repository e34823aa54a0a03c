"""The formats of vector files: what a file is, and how its rows are cut and read.

`detection` tells what a file is, `reader`, `text` and `binary` read rows, `faults` says in words what is wrong with
one.
"""

from __future__ import annotations

from .._kernel import Policy
from ..io.sources import Source
from .described import Detected, ReadAs
from .detection import detect, why_not_meant
from .reader import RowReader
from .text import TextRows

__all__ = [
    "Detected",
    "ReadAs",
    "RowReader",
    "detect",
    "rows_reader",
    "why_not_meant",
]


def rows_reader(
    source: Source, detected: Detected, read_as: ReadAs, policy: Policy, block_bytes: int, dtype: str
) -> RowReader:
    """The reader of a source's rows; `dtype` is the type they will be stored as."""
    if detected.format == "word2vec-binary":
        from .binary import BinaryRecords  # late: text needs nothing of it

        return BinaryRecords(source, detected, read_as, policy, block_bytes, dtype)
    return TextRows(source, detected, read_as, policy, block_bytes, dtype)
