"""Tokens in other encodings than UTF-8, and tokens that are not even that.

Only encodings that hold ASCII as it is can be read: rows are cut at bytes that must mean space, tab and line feed.
"""

from __future__ import annotations

import codecs

from .._kernel import Block
from .._kernel.codes import Fault, Note
from ..errors import UsageError
from ..options.choices import ENCODING_ERRORS

_ASCII = bytes(range(1, 128))


def check_encoding(name: str) -> str:
    """The encoding's usual name.

    Raises:
        UsageError: there is no such encoding, or the encoding does not hold ASCII.
    """
    try:
        codec = codecs.lookup(name)
        holds_ascii = _holds_ascii(codec.name)
    except (LookupError, ValueError):  # also what Python says of codecs that are no encodings of text, of odd names
        raise UsageError(
            "unknown-encoding", "there is no such encoding", found=repr(name), hint="such as latin-1, cp1252, gb18030"
        ) from None
    # A shift sequence, or a second byte that looks like a separator, would break rows apart.
    if not holds_ascii or codec.name.startswith(("iso2022", "hz", "utf-7")):
        raise UsageError(
            "encoding-not-ascii",
            f"rows in {codec.name} cannot be told apart by their bytes",
            hint=f"convert the file first: iconv -f {codec.name} -t UTF-8",
        )
    return codec.name


def _holds_ascii(encoding: str) -> bool:
    try:
        return _ASCII.decode(encoding) == _ASCII.decode("ascii")
    except UnicodeError:
        return False


class Recoder:
    """Turns the tokens of a block into UTF-8."""

    def __init__(self, encoding: str, errors: str) -> None:
        self._encoding = encoding
        self._handler = ENCODING_ERRORS[errors]

    def recode(self, block: Block) -> None:
        """Put UTF-8 tokens in place; tokens that cannot be decoded get a fault or, as asked for, lose bytes."""
        rows = block.rows
        recoded: list[bytes] = []
        for row, token in enumerate(rows.tokens(block.buffer)):
            try:
                text = token.decode(self._encoding)
            except UnicodeDecodeError:
                if self._handler == "strict":
                    rows.blame(row, Fault.INVALID_UTF8)
                    recoded.append(token)
                    continue
                text = token.decode(self._encoding, self._handler)
                rows.remark(row, Note.RECODED)
            recoded.append(text.encode())
        rows.set_tokens(recoded)
