"""Write `powers.hpp`, the table of powers of ten that `rounding.hpp` multiplies by.

    python vec2emb/_kernel/make_powers.py

Each power is cut off after 63 significant bits, in exact integer arithmetic: 10^q = (significand + d) x 2^exponent with
0 <= d < 1. `unit` is 2^(exponent + 64), because the product of two 64-bit factors is used without its lower 64 bits.
"""

from __future__ import annotations

from pathlib import Path

BITS = 63
# Outside of this range every decimal of 1 to 20 digits is 0 or infinity as a float32: the smallest float32 above 0 is
# 1.4e-45, the largest is 3.4e38.
LOWEST, HIGHEST = -64, 38

HEAD = """\
// Powers of ten, cut off after 63 bits: written by `make_powers.py`, not by hand.
#pragma once

#include <cstdint>

namespace vec2emb {

// 10^q is at least significand x unit / 2^64, and less than (significand + 1) x unit / 2^64.
struct Power {
    std::uint64_t significand;
    double unit;
};

inline constexpr int LOWEST_POWER = %d, HIGHEST_POWER = %d;

inline constexpr Power POWERS_OF_TEN[] = {
"""

TAIL = """\
};

}  // namespace vec2emb
"""


def truncated(power: int) -> tuple[int, int]:
    """(significand, exponent) of 10^power: the first 63 bits, and the power of two that the last of them counts."""
    numerator, denominator = (10**power, 1) if power >= 0 else (1, 10**-power)
    exponent = numerator.bit_length() - denominator.bit_length() - BITS
    while True:
        significand = (numerator << max(-exponent, 0)) // (denominator << max(exponent, 0))
        if significand.bit_length() == BITS:
            return significand, exponent
        exponent += significand.bit_length() - BITS


def header() -> str:
    lines = []
    for power in range(LOWEST, HIGHEST + 1):
        significand, exponent = truncated(power)
        lines.append(f"    {{0x{significand:016X}, 0x1p{exponent + 64:+d}}},  // 1e{power}\n")
    return HEAD % (LOWEST, HIGHEST) + "".join(lines) + TAIL


if __name__ == "__main__":
    Path(__file__).with_name("powers.hpp").write_text(header(), encoding="utf-8")
