"""Writing Word2Vec binary, as gensim and the GoogleNews file have it: no LF behind a vector. The grammar stands in
`binary.py`; what it cannot carry is said by `unfit`.
"""

from __future__ import annotations

import sys
from array import array

from .binary import TOKEN_LIMIT


def unfit(token: bytes) -> str | None:
    """Why Word2Vec binary cannot hold a token; None if it can."""
    if not token:
        return "it is empty"
    if b" " in token:
        return "it holds a space, which ends a token"
    if b"\0" in token:
        return "it holds NUL"
    if len(token) >= TOKEN_LIMIT:
        return "it is longer than a token may be"
    return None


def encode(tokens: bytes, rows: bytes, dim: int) -> bytes:
    """Records, of tokens each followed by LF and float32[n, dim]."""
    if sys.byteorder == "big":
        values = array("f", rows)
        values.byteswap()
        rows = values.tobytes()
    width = 4 * dim
    names = tokens.split(b"\n")[:-1]
    return b"".join(part for i, name in enumerate(names) for part in (name, b" ", rows[i * width : (i + 1) * width]))
