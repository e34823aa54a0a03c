"""Records of Word2Vec binary: `token SP value .. value`, each value a float of fixed width, then perhaps LF.

word2vec.c writes an LF after every vector, gensim and GoogleNews do not, so one LF in front of a token is a
separator and is decided anew for each record. A token ends at its first space.
"""

from __future__ import annotations

import math
import struct
from array import array

from ..codes import Fault, Nonfinite, Note
from .numbers import to_float32
from .rows import Rows
from .text import LF, Bytes, finished

_LETTER = {2: "e", 4: "f", 8: "d"}


def scan_binary(data: Bytes, size: int, dim: int, width: int, rows: Rows, limit: int, utf8: bool = True) -> int:
    """Find whole records in data[:size], at most `limit`; `width` is the bytes of one value (2, 4 or 8).

    `line` counts records here. A record that is not whole is left for the next block.

    Returns:
        The bytes that the whole records take.

    Raises:
        ValueError: data[:size] is longer than `data`, or dim or width is not possible.
    """
    if not 0 <= size <= len(data) or dim < 1 or width not in _LETTER:
        raise ValueError("a block must lie within its buffer, dim be positive and width be 2, 4 or 8")
    rows.clear()
    at = 0
    while rows.count < limit and at < size:
        start = at + 1 if data[at] == LF else at
        space = bytes(data[start:size]).find(b" ")
        values = start + space + 1
        if space < 0 or values + dim * width > size:
            break
        row = rows._add(rows.lines, start, values + dim * width, (start, values - 1), values)
        rows.lines += 1
        token = bytes(data[start : values - 1])
        if not token:
            rows._blame(row, Fault.EMPTY_TOKEN, start, values)
        elif b"\0" in token or b"\n" in token:  # no token has these: the records do not line up
            rows._blame(row, Fault.NUL_IN_TOKEN, start, values - 1)
        elif utf8 and not _is_utf8(token):
            rows._blame(row, Fault.INVALID_UTF8, start, values - 1)
        elif b"\r" in token:
            rows._remark(row, Note.CR_IN_TOKEN)
        at = values + dim * width
    return at


def scan_tokens(data: Bytes, size: int, dim: int, width: int, rows: Rows, utf8: bool = True) -> None:
    """Find the tokens in data[:size], each ended by LF, whose vectors are the rows of a matrix that stands elsewhere.

    `fill_binary` and `check_binary` take that matrix, [n, dim] of values of `width` bytes, for their data; rows of it
    that are not kept are not looked at.

    Raises:
        ValueError: data[:size] is longer than `data` or ends inside a token, or dim or width is not possible.
    """
    if not 0 <= size <= len(data) or dim < 1 or width not in _LETTER or (size and data[size - 1] != LF):
        raise ValueError("a block must end with LF and lie within its buffer, dim be positive and width be 2, 4 or 8")
    rows.clear()
    start = 0
    for token in bytes(data[:size]).split(b"\n")[:-1]:
        end = start + len(token)
        row = rows._add(rows.lines, start, end, (start, end), rows.count * dim * width)
        rows.lines += 1
        if not token:
            rows._blame(row, Fault.EMPTY_TOKEN, start, end)
        elif b"\0" in token:
            rows._blame(row, Fault.NUL_IN_TOKEN, start, end)
        elif utf8 and not _is_utf8(token):
            rows._blame(row, Fault.INVALID_UTF8, start, end)
        elif b"\r" in token:
            rows._remark(row, Note.CR_IN_TOKEN)
        start = end + 1


def fill_binary(
    data: Bytes,
    rows: Rows,
    start: int,
    stop: int,
    out: bytearray | memoryview,
    dim: int,
    width: int,
    big_endian: bool,
    nonfinite: int,
    unit_norm: bool,
    limit: float,
) -> int:
    """Copy the vectors of kept[start:stop] into `out` as float32[stop - start, dim]; as `fill_text`.

    float64 values are rounded to the nearest float32, float16 values widened; a finite value that rounds to
    infinity is out of range.
    """
    if not 0 <= start <= stop <= len(rows.kept) or memoryview(out).nbytes < (stop - start) * dim * 4:
        raise ValueError("the rows asked for do not fit")
    target = memoryview(out).cast("B").cast("f")
    for position in range(start, stop):
        row = rows.kept[position]
        vector = _read_row(data, rows, row, dim, width, big_endian, nonfinite, unit_norm, limit)
        if vector is None:
            if rows.fault[row] != Fault.NONFINITE_VALUE:
                return position
            continue
        place = (position - start) * dim
        target[place : place + dim] = vector
    return -1


def check_binary(
    data: Bytes, rows: Rows, dim: int, width: int, big_endian: bool, nonfinite: int, unit_norm: bool, limit: float
) -> None:
    """Read every record that has no fault yet, only to learn whether it has one."""
    for row in range(rows.count):
        if not rows.fault[row]:
            _read_row(data, rows, row, dim, width, big_endian, nonfinite, unit_norm, limit)


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _read_row(
    data: Bytes,
    rows: Rows,
    row: int,
    dim: int,
    width: int,
    big_endian: bool,
    nonfinite: int,
    unit_norm: bool,
    limit: float,
) -> array[float] | None:
    """The vector of a record, or None after marking its fault."""
    layout = f"{'>' if big_endian else '<'}{dim}{_LETTER[width]}"
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
            if nonfinite == Nonfinite.ZERO:
                value = 0.0
        vector.append(value)
        at += width
    return finished(vector, rows, row, odd, nonfinite, unit_norm, limit)
