"""Rows that parse as tokens with values, but are something else: a matrix, word counts, a log, an index in front.

Each row ends in as many numerals as the others, so it would load without a complaint: the first number of a matrix row
would become its token. Only tokens are looked at, of the first rows. Whole numbers as tokens are ids of nodes or items,
and numerals among words are words: both load. A dimension that the caller names is taken at its word, and nothing is
refused here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

ROWS = 100  # that are looked at: enough to tell, and a millisecond of work

_NUMERAL = rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_SEPARATORS = re.compile(rb"[ \t]+")
_Verdict = tuple[str, str, str]


def lookalike(rows: Sequence[bytes], dim: int, dim_is_known: bool) -> _Verdict | None:
    """(slug, what it is, what to do) of rows whose tokens show that they are not word vectors; else None.

    Args:
        rows: rows without their line feed, each with `dim` numerals at its end.
        dim: number of values per row.
        dim_is_known: whether a header or the caller's format says that there are values, even if it is one per row.
    """
    if len(rows) < 2 or (dim > 1 and all(_token(row, dim).isalpha() for row in rows[:3])):
        return None  # words, as nearly always
    tokens = [_token(row, dim) for row in rows]
    for verdict in (_matrix, _glued, _indexed) if dim_is_known else (_counts, _log, _matrix, _glued, _indexed):
        found = verdict(tokens, rows, dim)
        if found is not None:
            return found
    return None


def is_array_over_lines(rows: Sequence[bytes]) -> bool:
    """Whether a row opens a bracket behind its token, and a later row closes it, as Python prints arrays."""
    opens = re.compile(rb"[ \t]*(?:[^ \t]+[ \t]+)?(?:array\(|tensor\()?\[+[ \t]*" + _NUMERAL + rb"(?=[ \t,]|$)[^\]]*")
    closes = re.compile(rb".*" + _NUMERAL + rb"[ \t,]*\]+[\]),]*[ \t]*")
    begun = False
    for row in rows:
        if begun and b"]" in row and closes.fullmatch(row):
            return True
        begun = begun or (b"[" in row and opens.fullmatch(row) is not None)
    return False


def _token(row: bytes, dim: int) -> bytes:
    """All that is in front of the values; its pieces are separated by single spaces."""
    return b" ".join(_SEPARATORS.split(row)[:-dim])


def _most(tokens: Sequence[bytes], fits: Callable[[bytes], object]) -> bool:
    return sum(bool(fits(token)) for token in tokens) * 2 > len(tokens)


def _counts(tokens: Sequence[bytes], rows: Sequence[bytes], dim: int) -> _Verdict | None:
    if dim != 1 or not all(_SEPARATORS.split(row)[-1].isdigit() for row in rows):
        return None
    return (
        "word-counts",
        "words with their counts",
        "a vocabulary goes to --vocab beside a file of vectors; if these are vectors of one value, add --dim 1",
    )


def _log(tokens: Sequence[bytes], rows: Sequence[bytes], dim: int) -> _Verdict | None:
    """Lines of several words that end in a number, or with numbers between the words."""
    numeral = re.compile(_NUMERAL)

    def has_numeral_inside(token: bytes) -> bool:
        return any(map(numeral.fullmatch, token.split(b" ")[1:-1]))

    if not _most(tokens, has_numeral_inside if dim > 1 else lambda token: b" " in token):
        return None
    return (
        "text-with-numbers",
        f"lines of text that end in {'a number' if dim == 1 else 'numbers'}",
        f"if the words in front of the {'last number' if dim == 1 else 'last numbers'} are tokens, add --dim {dim}",
    )


def _matrix(tokens: Sequence[bytes], rows: Sequence[bytes], dim: int) -> _Verdict | None:
    numeral = re.compile(_NUMERAL)
    if not all(map(numeral.fullmatch, tokens)):
        return None
    whole = [token for token in tokens if token.lstrip(b"+-").isdigit()]
    repeated = len(whole) >= 4 and len(set(whole)) * 2 <= len(whole)
    signed = len(whole) >= 4 and sum(token.startswith(b"-") for token in whole) * 4 >= len(whole)
    if len(whole) * 2 > len(tokens) and not repeated and not signed:
        return None  # ids of nodes or items
    return (
        "matrix",
        f"rows of {dim + 1} numbers without words",
        f"the words must be in front of each row; if the first number is a token, add --dim {dim}",
    )


def _glued(tokens: Sequence[bytes], rows: Sequence[bytes], dim: int) -> _Verdict | None:
    glued = re.compile(rb".*[^0-9A-Za-z.+-][-+]?(?:[0-9]*\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
    if not _most(tokens, lambda token: b" " not in token and glued.fullmatch(token)):
        return None
    return (
        "glued-value",
        "tokens that end in a separator and a number: the first value is glued to the token",
        "separate it by a space; if the number is part of the token, add --dim " + str(dim),
    )


def _indexed(tokens: Sequence[bytes], rows: Sequence[bytes], dim: int) -> _Verdict | None:
    pieces = [token.split(b" ", 1) for token in tokens]
    numbers = [int(front[0]) if len(front) == 2 and front[0].isdigit() else -1 for front in pieces]
    numbers = numbers[numbers[0] < 0 :]  # the first row may hold names of columns
    rising = sum(0 <= one < other for one, other in pairwise(numbers))
    if len(numbers) < 2 or rising * 10 < (len(numbers) - 1) * 9:
        return None
    return (
        "row-index",
        "tokens that begin with a row number",
        f"write the rows without their index; if the number is part of the token, add --dim {dim}",
    )
