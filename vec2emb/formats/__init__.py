"""The formats of vector files: what a file is, and how its rows are cut and read.

`detection` tells what a file is, `text` and `binary` read rows, `faults` says in words what is wrong with one.
"""

from ..sources import Source
from .binary import BinaryRecords
from .described import FORMATS, Detected, ReadAs
from .detection import detect, why_not_meant
from .text import TextRows

__all__ = [
    "FORMATS",
    "BinaryRecords",
    "Detected",
    "ReadAs",
    "RowsReader",
    "TextRows",
    "detect",
    "rows_reader",
    "why_not_meant",
]

RowsReader = TextRows | BinaryRecords


def rows_reader(source: Source, detected: Detected, read_as: ReadAs, block_bytes: int, dtype: str) -> RowsReader:
    """The reader of a source's rows; `dtype` is the type they will be stored as."""
    kind = BinaryRecords if detected.format == "word2vec-binary" else TextRows
    return kind(source, detected, read_as, block_bytes, dtype)
