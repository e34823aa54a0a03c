"""`Export`: what was exported, in numbers, files and notes."""

from __future__ import annotations

from typing import TypedDict

from ..errors import Vec2embWarning, printable
from ..typed import JsonObject, JsonReport


class ReadingOptions(TypedDict, total=False):
    """What `convert` is told of a file, by the names of its arguments."""

    format: str
    dim: int
    binary_dtype: str
    byte_order: str


class Export:
    """What was exported.

    Attributes:
        path: the file or folder, as the caller gave it.
        format: the layout, as `to` named it.
        compression: of the file; `none` for a folder.
        rows, dim: its rows, and values a row.
        dtype: of its values; None where it holds none.
        dropped: special tokens that were left out.
        bytes: of the file, or of all files of the folder together.
        sha256: of the file; None for a folder.
        digest: of the table in shards, as `--expect digest=` takes it; else None.
        files: of a folder, each file with its bytes and sha256, of shards their digest; empty for a file.
        read_back: whether it was read back and is the same to the bit.
        options: options that `convert` needs to read it; mostly none, since it finds out itself.
        notes: what its readers make of it that one should know, one sentence each.
        warnings: what is odd.
    """

    def __init__(self, path: str, format: str, compression: str, rows: int, dim: int, dropped: int) -> None:
        self.path = path
        self.format = format
        self.compression = compression
        self.rows = rows
        self.dim = dim
        self.dtype: str | None = "float32"
        self.dropped = dropped
        self.bytes = 0
        self.sha256: str | None = None
        self.digest: str | None = None
        self.files: dict[str, JsonObject] = {}
        self.read_back = False
        self.options: ReadingOptions = {}
        self.notes: list[str] = []
        self.warnings: list[Vec2embWarning] = []

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        return {**vars(self), "warnings": [warning.to_dict() for warning in self.warnings]}

    def __str__(self) -> str:
        table = f"{self.rows:,} tokens" if self.dtype is None else f"{self.rows:,} rows x {self.dim}"
        if self.dtype not in (None, "float32"):
            table += f", {self.dtype}"
        if self.compression != "none":
            table = f"{self.compression}, {table}"
        if self.dropped:
            table += f", {self.dropped} special tokens left out"
        if self.read_back:
            table += "; read back, the same to the bit"
        return printable("\n".join([f"{self.path}: {self.format}, {table}", *(f"  {note}" for note in self.notes)]))
