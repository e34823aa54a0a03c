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
from .blocks import Block, Bytes, Policy
from .numbers import is_numeral, parse, to_float32
from .rows import Rows

LF, CR = 0x0A, 0x0D


def scan_text(block: Block, policy: Policy) -> None:
    """Find the rows of a block, which ends with LF, and where their tokens and values are. No number is parsed.

    Raises:
        ValueError: the block is longer than its buffer or does not end with LF.
    """
    size, rows = block.size, block.rows
    text = _whole_lines(block.buffer, size)
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
            _scan_row(text, start, end, block.dim, rows, policy.utf8)
        rows.lines += 1
        start = stop + 1


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


def parse_row(block: Block, row: int, policy: Policy) -> array[float] | None:
    """The vector of a row of text, or None after marking its fault."""
    data, rows = block.buffer, block.rows
    vector = array("f")
    at, end = rows.values[row], rows.end[row]
    odd: tuple[int, int] | None = None
    for _ in range(block.dim):
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
            if policy.nonfinite == Nonfinite.ZERO:
                value = 0.0
        vector.append(value)
        at = stop
    return finished(vector, rows, row, odd, policy)


def finished(
    vector: array[float], rows: Rows, row: int, odd: tuple[int, int] | None, policy: Policy
) -> array[float] | None:
    """The vector as it is stored; or None, after marking the row's fault. `odd`: its first value that is not finite."""
    if odd:
        rows._remark(row, Note.NONFINITE)
        if policy.nonfinite == Nonfinite.ERROR:
            rows._blame(row, Fault.NONFINITE_VALUE, *odd)
            return None
    if policy.unit_norm:
        normalise(vector)
    if any(abs(value) > policy.limit and math.isfinite(value) for value in vector):
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
