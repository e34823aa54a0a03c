"""Writing rows of text, with a Word2Vec header or without; the grammar stands in `text.py`.

    the 0.418 0.24968 -0.41242 LF

One space separates, none stands at the end. Numbers are the shortest decimals that every reader takes for the same
float32. What text cannot carry is said by `unfit`.
"""

from __future__ import annotations

from .._kernel import format_rows
from .text import ROW_LIMIT

_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}".encode()
_SEPARATORS = b" \t"


def header(rows: int, dim: int) -> bytes:
    """The first line of Word2Vec text."""
    return b"%d %d\n" % (rows, dim)


def unfit(token: bytes) -> str | None:
    """Why rows of text cannot hold a token; None if they can."""
    if not token:
        return "it is empty"
    if b"\0" in token:
        return "it holds NUL"
    if token[-1] in _SEPARATORS and token.strip(_SEPARATORS):
        return "it ends in a space or tab, which would be taken for a separator"
    if len(token) >= ROW_LIMIT // 2:
        return "it is longer than a row may be"
    return None


def unfit_first(token: bytes) -> str | None:
    """Why a file without a header cannot begin with a token; None if it can."""
    if token.startswith(_BOM) and token != _BOM:
        return "it starts with U+FEFF, which at the start of a file is a byte order mark and no part of the token"
    return None


def encode(tokens: bytes, rows: bytes, dim: int) -> bytes:
    """Rows of text, of tokens each followed by LF and float32[n, dim]."""
    return format_rows(tokens, rows, dim)
