"""Records of Word2Vec binary: `token SP value .. value`, each value a float of fixed width, then perhaps LF.

word2vec.c writes an LF after every vector, gensim and GoogleNews do not, so one LF in front of a token is a
separator and is decided anew for each record. A token ends at its first space.
"""

from __future__ import annotations

import math
import struct
from array import array

from ..codes import Fault, Nonfinite, Note
from .blocks import Block, Policy
from .numbers import to_float32
from .text import LF, finished

_LETTER = {2: "e", 4: "f", 8: "d"}


def scan_binary(block: Block, limit: int, policy: Policy) -> int:
    """Find the whole records of a block, at most `limit`.

    `line` counts records here. A record that is not whole is left for the next block.

    Returns:
        The bytes that the whole records take.

    Raises:
        ValueError: the block is longer than its buffer, or is one of text.
    """
    data, size, rows, values_size = block.buffer, block.size, block.rows, block.dim * block.width
    if not 0 <= size <= len(data) or not block.width:
        raise ValueError("a block of records must lie within its buffer and have values of 2, 4 or 8 bytes")
    rows.clear()
    at = 0
    while rows.count < limit and at < size:
        start = at + 1 if data[at] == LF else at
        space = bytes(data[start:size]).find(b" ")
        values = start + space + 1
        if space < 0 or values + values_size > size:
            break
        row = rows._add(rows.lines, start, values + values_size, (start, values - 1), values)
        rows.lines += 1
        token = bytes(data[start : values - 1])
        if not token:
            rows._blame(row, Fault.EMPTY_TOKEN, start, values)
        elif b"\0" in token or b"\n" in token:  # no token has these: the records do not line up
            rows._blame(row, Fault.NUL_IN_TOKEN, start, values - 1)
        elif policy.utf8 and not _is_utf8(token):
            rows._blame(row, Fault.INVALID_UTF8, start, values - 1)
        elif b"\r" in token:
            rows._remark(row, Note.CR_IN_TOKEN)
        at = values + values_size
    return at


def scan_tokens(block: Block, policy: Policy) -> None:
    """Find the tokens of a block, each ended by LF, whose vectors are the rows of a matrix: see `Block.set_vectors`.

    Rows of the matrix that are not kept are not looked at.

    Raises:
        ValueError: the block is longer than its buffer, ends inside a token, or is one of text.
    """
    data, size, rows = block.buffer, block.size, block.rows
    if not 0 <= size <= len(data) or not block.width or (size and data[size - 1] != LF):
        raise ValueError("a block must end with LF, lie within its buffer and have values of 2, 4 or 8 bytes")
    rows.clear()
    start = 0
    for token in bytes(data[:size]).split(b"\n")[:-1]:
        end = start + len(token)
        row = rows._add(rows.lines, start, end, (start, end), rows.count * block.dim * block.width)
        rows.lines += 1
        if not token:
            rows._blame(row, Fault.EMPTY_TOKEN, start, end)
        elif b"\0" in token:
            rows._blame(row, Fault.NUL_IN_TOKEN, start, end)
        elif policy.utf8 and not _is_utf8(token):
            rows._blame(row, Fault.INVALID_UTF8, start, end)
        elif b"\r" in token:
            rows._remark(row, Note.CR_IN_TOKEN)
        start = end + 1


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def read_record(block: Block, row: int, policy: Policy) -> array[float] | None:
    """The vector of a record, or None after marking its fault.

    float64 values are rounded to the nearest float32, float16 values widened; a finite value that rounds to
    infinity is out of range.
    """
    rows, width = block.rows, block.width
    data = block.buffer if block.vectors is None else block.vectors
    layout = f"{'>' if block.big_endian else '<'}{block.dim}{_LETTER[width]}"
    vector = array("f")
    odd: tuple[int, int] | None = None
    at = rows.values[row]
    for wide in struct.unpack_from(layout, data, at):
        value = to_float32(wide)
        if math.isfinite(wide) and not math.isfinite(value):
            rows._blame(row, Fault.OUT_OF_RANGE, at, at + width)
            return None
        if not math.isfinite(value):
            odd = odd or (at, at + width)
            if policy.nonfinite == Nonfinite.ZERO:
                value = 0.0
        vector.append(value)
        at += width
    return finished(vector, rows, row, odd, policy)
