"""What a caller says about a source, and what it was found to be."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from typing import NamedTuple

from .recoding import check_encoding

WIDTHS = {"float16": 2, "float32": 4, "float64": 8}


class ReadAs(NamedTuple):
    """What the caller says about a source.

    Attributes:
        format: `auto`, or the name of a format.
        dim: values a row, or None.
        encoding, encoding_errors: of the tokens.
        binary_dtype, byte_order: of the values of Word2Vec binary; None is float32, little-endian, and checked.
    """

    format: str = "auto"
    dim: int | None = None
    encoding: str = "utf-8"
    encoding_errors: str = "error"
    binary_dtype: str | None = None
    byte_order: str | None = None

    def check(self) -> "ReadAs":
        """Itself, with the encoding's usual name.

        Raises:
            UsageError: there is no such encoding, or rows in it cannot be separated.
        """
        return self._replace(encoding=check_encoding(self.encoding))

    @property
    def utf8(self) -> bool:
        """Whether tokens must be UTF-8, as the kernel checks; otherwise they are decoded by a `Recoder`."""
        return self.encoding in ("utf-8", "utf-8-sig") and self.encoding_errors == "error"

    @property
    def width(self) -> int:
        """Bytes of one value of Word2Vec binary."""
        return WIDTHS[self.binary_dtype or "float32"]


class Detected(NamedTuple):
    """What a file was found to be.

    Attributes:
        format: `word2vec`, `glove` or `word2vec-binary`.
        dim: values a row.
        dim_from: where `dim` comes from, in words.
        header_rows: rows that the header promises, or None where there is no header.
        skip: bytes in front of the first row.
        first_line: number of the line the first row stands on, counted from 1.
        sample_rows, sample_bytes: rows that were looked at, and how many bytes they take.
    """

    format: str
    dim: int
    dim_from: str
    header_rows: int | None
    skip: int
    first_line: int
    sample_rows: int
    sample_bytes: int

    def estimated_rows(self, size: int | None) -> int:
        """Rows that a file of `size` decompressed bytes will have, about; exact for one that was sampled whole."""
        if size is None or not self.sample_bytes:
            return self.sample_rows
        return round((size - self.skip) * self.sample_rows / self.sample_bytes)
