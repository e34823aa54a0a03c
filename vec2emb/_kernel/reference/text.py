"""Rows of text: `token SEP value SEP .. value LF`, in GloVe, Word2Vec text and fastText `.vec` files.

A row ends at LF only. One CR before it, and the spaces and tabs before that, belong to no field. The last
`dim` fields are the vector; the run of spaces or tabs in front of them separates; everything before that run
is the token, byte for byte, with whatever spaces it has. If nothing stands before the run, the token is the
run less its last byte: a token of white space. A line with nothing on it is blank and is no row.
"""

from __future__ import annotations

import math
from array import array

from ..codes import ROW_IS_SEPARATED_BY as SEPARATORS
from ..codes import Fault, Nonfinite, Note
from .numbers import is_numeral, parse, to_float32
from .rows import Rows

Bytes = bytes | bytearray | memoryview

LF, CR = 0x0A, 0x0D


def scan_text(data: Bytes, size: int, dim: int, rows: Rows, utf8: bool = True) -> None:
    """Find the rows of data[:size], which ends with LF, and where their tokens and values stand.

    No number is parsed. With `utf8` false the tokens' encoding is somebody else's to check.

    Raises:
        ValueError: data[:size] is longer than `data` or does not end with LF, or `dim` is below 1.
    """
    text = _whole_lines(data, size)
    if dim < 1:
        raise ValueError(f"dim is {dim}, expected at least 1")
    rows.clear()
    start = 0
    while start < size:
        stop = text.index(b"\n", start)
        end = _end_of_fields(text, start, stop)
        if end == start:
            if rows.first_blank < 0:
                rows.first_blank = rows.lines
            rows.blank_after += 1
        else:
            rows.blank_inside += rows.blank_after
            rows.blank_after = 0
            _scan_row(text, start, end, dim, rows, utf8)
        rows.lines += 1
        start = stop + 1


def fill_text(
    data: Bytes,
    rows: Rows,
    start: int,
    stop: int,
    out: bytearray | memoryview,
    dim: int,
    nonfinite: int,
    unit_norm: bool,
    limit: float,
) -> int:
    """Parse the vectors of kept[start:stop] into `out`, float32[stop - start, dim], native byte order.

    Rows in which nothing but a non-finite value is wrong are marked and passed over, so that they can be
    counted; at any other fault filling stops. Values beyond `limit` in magnitude, after normalising, are
    out of range.

    Returns:
        The position in `kept` of the first row with another fault, or -1.

    Raises:
        ValueError: `out` is too small, or the range does not lie within the kept rows.
    """
    if not 0 <= start <= stop <= len(rows.kept) or memoryview(out).nbytes < (stop - start) * dim * 4:
        raise ValueError("the rows asked for do not fit")
    target = memoryview(out).cast("B").cast("f")
    for position in range(start, stop):
        row = rows.kept[position]
        vector = _parse_row(data, rows, row, dim, nonfinite, unit_norm, limit)
        if vector is None:
            if rows.fault[row] != Fault.NONFINITE_VALUE:
                return position
            continue
        place = (position - start) * dim
        target[place : place + dim] = vector
    return -1


def check_text(data: Bytes, rows: Rows, dim: int, nonfinite: int, unit_norm: bool, limit: float) -> None:
    """Parse every row that has no fault yet, only to learn whether it has one."""
    for row in range(rows.count):
        if not rows.fault[row]:
            _parse_row(data, rows, row, dim, nonfinite, unit_norm, limit)


def profile_text(data: Bytes, size: int, limit: int) -> list[tuple[int, int, int, int]]:
    """(first byte, end, number of fields, how many of the last ones are numerals) of the first `limit` rows.

    data[:size] ends with LF; blank lines are passed over.
    """
    text = _whole_lines(data, size)
    found: list[tuple[int, int, int, int]] = []
    start = 0
    while start < size and len(found) < limit:
        stop = text.index(b"\n", start)
        end = _end_of_fields(text, start, stop)
        if end > start:
            fields = text[start:end].replace(b"\t", b" ").split(b" ")
            fields = [field for field in fields if field]
            numerals = 0
            while numerals < len(fields) and is_numeral(fields[-1 - numerals]):
                numerals += 1
            found.append((start, end, len(fields), numerals))
        start = stop + 1
    return found


def _whole_lines(data: Bytes, size: int) -> bytes:
    text = bytes(data[:size])
    if len(text) != size or (size and text[-1] != LF):
        raise ValueError(f"a block of {size} bytes must lie within its buffer and end with LF")
    return text


def _end_of_fields(text: bytes, start: int, stop: int) -> int:
    """Where the fields of the line text[start:stop] end: before one CR and the separators in front of it."""
    if stop > start and text[stop - 1] == CR:
        stop -= 1
    while stop > start and text[stop - 1] in SEPARATORS:
        stop -= 1
    return stop


def _scan_row(text: bytes, start: int, end: int, dim: int, rows: Rows, utf8: bool) -> None:
    """Walk back over `dim` fields; what stands before them is the token and its separator."""
    field = run = end
    for taken in range(1, dim + 1):
        field = run
        while field > start and text[field - 1] not in SEPARATORS:
            field -= 1
        run = field
        while run > start and text[run - 1] in SEPARATORS:
            run -= 1
        if field == start or (run == start and taken < dim):
            row = rows._add(rows.lines, start, end, (start, start), start)
            rows._blame(row, Fault.TOO_FEW_VALUES, start, end)
            return
    token_end = run if run > start else field - 1
    row = rows._add(rows.lines, start, end, (start, token_end), field)
    if token_end == start:
        rows._blame(row, Fault.EMPTY_TOKEN, start, field)
        return
    if run > start and field - run > 1:
        rows._remark(row, Note.EXCESS_SEPARATORS)
    _look_at_token(text, start, token_end, row, rows, utf8)


def _look_at_token(text: bytes, start: int, end: int, row: int, rows: Rows, utf8: bool) -> None:
    token = text[start:end]
    if b"\0" in token:
        rows._blame(row, Fault.NUL_IN_TOKEN, start, end)
        return
    if utf8:
        try:
            token.decode("utf-8")
        except UnicodeDecodeError:
            rows._blame(row, Fault.INVALID_UTF8, start, end)
            return
    if b"\r" in token:
        rows._remark(row, Note.CR_IN_TOKEN)
    pieces = token.replace(b"\t", b" ").rsplit(b" ", 1)
    if len(pieces) == 2 and is_numeral(pieces[1]):
        rows._remark(row, Note.NUMERAL_ENDED_TOKEN)


def _parse_row(
    data: Bytes, rows: Rows, row: int, dim: int, nonfinite: int, unit_norm: bool, limit: float
) -> array[float] | None:
    """The vector of a row, or None after marking its fault."""
    vector = array("f")
    at, end = rows.values[row], rows.end[row]
    odd: tuple[int, int] | None = None
    for _ in range(dim):
        while data[at] in SEPARATORS:
            at += 1
        stop = at
        while stop < end and data[stop] not in SEPARATORS:
            stop += 1
        parsed = parse(bytes(data[at:stop]))
        if parsed is None:
            rows._blame(row, Fault.NOT_A_NUMERAL, at, stop)
            return None
        value, in_range = parsed
        if not in_range:
            rows._blame(row, Fault.OUT_OF_RANGE, at, stop)
            return None
        if not math.isfinite(value):
            odd = odd or (at, stop)
            if nonfinite == Nonfinite.ZERO:
                value = 0.0
        vector.append(value)
        at = stop
    return finished(vector, rows, row, odd, nonfinite, unit_norm, limit)


def finished(
    vector: array[float],
    rows: Rows,
    row: int,
    odd: tuple[int, int] | None,
    nonfinite: int,
    unit_norm: bool,
    limit: float,
) -> array[float] | None:
    """The vector as it is to be stored; or None, after marking the row's fault.

    `odd` is where its first value that is not finite stands.
    """
    if odd:
        rows._remark(row, Note.NONFINITE)
        if nonfinite == Nonfinite.ERROR:
            rows._blame(row, Fault.NONFINITE_VALUE, *odd)
            return None
    if unit_norm:
        normalise(vector)
    if any(abs(value) > limit and math.isfinite(value) for value in vector):
        rows._blame(row, Fault.OUT_OF_RANGE, rows.values[row], rows.end[row])
        return None
    return vector


def normalise(vector: array[float]) -> None:
    """Scale to length 1 in float64; rows of zeros and rows that are not finite stay as they are."""
    total = 0.0
    for value in vector:
        total += value * value
    if total == 0 or not math.isfinite(total):
        return
    norm = math.sqrt(total)
    for i, value in enumerate(vector):
        vector[i] = to_float32(value / norm)
