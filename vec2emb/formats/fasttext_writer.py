"""Writing fastText's `.vec`, as fastText itself reads it with `-pretrainedVectors`: Word2Vec text, taken word by word.

    V D LF
    the 0.418 0.24968 -0.41242 SPACE LF

fastText cuts at any ASCII white space, so that no token may hold it, and its numbers are finite. What it prints has a
space behind the last value, and five digits; these have as many as the float32 needs.
"""

from __future__ import annotations

from . import text_writer

_WHITE_SPACE = b" \t\v\f\r"


def unfit(token: bytes) -> str | None:
    """Why fastText cannot read a token; None if it can."""
    if any(byte in _WHITE_SPACE for byte in token):
        return "it holds white space, which ends a token"
    return text_writer.unfit(token)


def encode(tokens: bytes, rows: bytes, dim: int) -> bytes:
    """Rows of text, of tokens each followed by LF and float32[n, dim]."""
    return text_writer.encode(tokens, rows, dim).replace(b"\n", b" \n")
