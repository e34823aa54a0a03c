"""Rows of text, written: the shortest numerals that every reader takes for the same float32."""

from __future__ import annotations

import math
import struct
from array import array
from fractions import Fraction

from .blocks import Bytes
from .numbers import to_float32


def format_rows(tokens: Bytes, rows: Bytes, dim: int) -> bytes:
    """Rows of text, `token SP value SP .. value LF`, of tokens each followed by LF and float32[n, dim].

    Raises:
        ValueError: `dim` is below 1, or there are not as many tokens as rows.
    """
    if dim < 1:
        raise ValueError(f"dim is {dim}, expected at least 1")
    names = bytes(tokens).split(b"\n")
    values = array("f", bytes(rows))
    if names.pop() or len(values) != len(names) * dim:
        raise ValueError("there are not as many tokens as rows")
    out = bytearray()
    for i, name in enumerate(names):
        out += b" ".join([name, *map(format_value, values[i * dim : (i + 1) * dim])]) + b"\n"
    return bytes(out)


def format_value(value: float) -> bytes:
    """The numeral of a float32, as `repr` writes floats but without `.0`: 0.25, -7, 1e-45, nan, -inf."""
    sign = b"-" if math.copysign(1, value) < 0 else b""
    if math.isnan(value):
        return sign + b"nan"
    if math.isinf(value):
        return sign + b"inf"
    if value == 0:
        return sign + b"0"
    digits, exponent = shortest(abs(value))
    if not -4 <= exponent < 16:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return sign + f"{digits[0]}{fraction}e{exponent:+03d}".encode()
    if exponent < 0:
        return sign + b"0." + b"0" * (-exponent - 1) + digits.encode()
    whole = digits.ljust(exponent + 1, "0")
    point = "." if len(whole) > exponent + 1 else ""
    return sign + (whole[: exponent + 1] + point + whole[exponent + 1 :]).encode()


def shortest(value: float) -> tuple[str, int]:
    """The significant digits of a positive float32, and the power of ten that the first of them counts.

    It is the shortest decimal that is nearest to `value` among all float32, and the nearest to it of that length
    (ties to an even digit). One thing more is asked for: readers that go through float64, as this one and gensim do,
    must come to `value` as well. For one float32 they do not: 7.038531e-26 is so close to the half-way point to the
    next float32 that float64 lands on the point itself, and then falls to the wrong side. It gets one digit more.
    """
    exact = Fraction(value)
    first = int(f"{value:.16e}".partition("e")[2])  # the power of the first digit
    for length in range(1, 18):
        power = first - length + 1
        below = exact // Fraction(10) ** power if power > 0 else exact.numerator * 10**-power // exact.denominator
        fit = [count for count in (below, below + 1) if to_float32(float(f"{count}e{power}")) == value]
        decimals = {count * Fraction(10) ** power: str(count) for count in fit}
        nearest = [decimal for decimal in decimals if _is_nearest(value, decimal)]
        if nearest:
            digits = decimals[min(nearest, key=lambda decimal: (abs(decimal - exact), int(decimals[decimal]) % 2))]
            return digits.rstrip("0"), first - length + len(digits)
    raise AssertionError("17 digits tell every float64 apart")


def _is_nearest(value: float, decimal: Fraction) -> bool:
    """Whether a positive float32 is the nearest to a decimal; half-way, it is if its last bit is 0."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    below, above = (Fraction(2) ** 128 if b == 0x7F800000 else Fraction(_of_bits(b)) for b in (bits - 1, bits + 1))
    lowest, highest = (below + Fraction(value)) / 2, (above + Fraction(value)) / 2
    return lowest < decimal < highest or (bits % 2 == 0 and decimal in (lowest, highest))


def _of_bits(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]  # type: ignore[no-any-return]
