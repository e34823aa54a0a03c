"""What a numeral is, and which float32 it stands for."""

from __future__ import annotations

import math
import re
import struct

_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NONFINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def is_numeral(text: bytes) -> bool:
    """Whether `text` is a plain C decimal numeral, or `nan`, `inf`, `infinity` in any case and sign.

    No hexadecimal, no digit groups, no digits but ASCII ones: `1_0`, `0x10`, `1.2.3`, `.` are words.
    """
    return bool(_DECIMAL.fullmatch(text) or _NONFINITE.fullmatch(text))


def to_float32(value: float) -> float:
    """Round a float64 to the nearest float32, ties to even; infinity beyond its range."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]  # type: ignore[no-any-return]
    except OverflowError:
        return math.copysign(math.inf, value)


def parse(text: bytes) -> tuple[float, bool] | None:
    """(the float32 value, whether it is in range) of a numeral; None for anything else.

    The nearest float64 comes first and is then rounded to float32, as `numpy.float32(float(text))` does.
    A decimal numeral that rounds to infinity is out of range; one that rounds to zero is zero.
    """
    if not is_numeral(text):
        return None
    value = to_float32(float(text))
    return value, math.isfinite(value) or bool(_NONFINITE.fullmatch(text))
