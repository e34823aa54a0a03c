"""Whether records of Word2Vec binary hold what they are taken for, told by the first of them.

A file of doubles, of halves or of the other byte order has no mark; but its tokens do not line up, or its values are
not of the size that word vectors have.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ..errors import FormatError


class _Reading(NamedTuple):
    """How a few records look under one width and byte order."""

    fits: bool  # tokens look like tokens, as far as the sample goes
    plausible: bool  # and hardly a value is one that no word vector has
    usual: float  # the share of values that are of the common size


def check_sample(body: bytes, whole: bool, rows: int, dim: int, label: str) -> None:
    """Refuse, by name, records that are not `dim` little-endian float32 each, told by the first ones.

    Args:
        body: the bytes behind the header, as many as were sampled.
        whole: whether these are all.
        rows: records that the header promises.

    Raises:
        FormatError: another width or byte order fits, and little-endian float32 does not.
    """
    asked = _look(body, whole, rows, dim, 4, "<")
    if asked.fits and asked.plausible:
        return
    others = [
        (width, dtype, order, name)
        for width, dtype in ((4, "float32"), (8, "float64"), (2, "float16"))
        for order, name in (("<", "little"), (">", "big"))
    ]
    looks = {other: _look(body, whole, rows, dim, other[0], other[2]) for other in others}
    fitting = [other for other in others if looks[other].fits and looks[other].plausible]
    if not fitting:
        return
    width, dtype, _, name = max(fitting, key=lambda other: looks[other].usual)
    raise FormatError(
        f"binary-{dtype}" if width != 4 else "binary-big-endian",
        "the records do not hold little-endian 4-byte floats",
        path=label,
        expected="float32, little-endian",
        found=f"{width}-byte floats, {name}-endian" if width != 4 else "reversed byte order",
        hint=f"--binary-dtype {dtype} --byte-order {name} reads them",
    )


def _look(body: bytes, whole: bool, rows: int, dim: int, width: int, order: str) -> _Reading:
    letter = {2: "e", 4: "f", 8: "d"}[width]
    values: list[float] = []
    at = seen = 0
    while seen < min(rows, 50):
        start = at + 1 if body[at : at + 1] == b"\n" else at
        space = body.find(b" ", start, start + 1000)
        stop = space + 1 + dim * width
        if space < 0 or stop > len(body):
            break
        token = body[start:space]
        if not token or any(byte < 32 for byte in token):
            return _MISFIT
        values += struct.unpack_from(f"{order}{min(dim, 64)}{letter}", body, space + 1)
        at, seen = stop, seen + 1
    if not seen or (whole and seen == rows and body[at:] not in (b"", b"\n")):
        return _MISFIT
    plausible = sum(value == 0 or 1e-10 < abs(value) < 1e6 for value in values)
    usual = sum(value == 0 or 1e-4 < abs(value) < 1e2 for value in values)
    return _Reading(True, plausible * 10 >= len(values) * 9, usual / len(values))


_MISFIT = _Reading(False, False, 0.0)
