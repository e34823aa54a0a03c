// From a decimal to the float32 that it stands for: the nearest float64, then the nearest float32 to that.
//
// The product of the mantissa and a power of ten that is cut off after 63 bits says between which two numbers the decimal
// is, as in "Number Parsing at a Gigabyte per Second" (Daniel Lemire, 2021, after Michael Eisel). Rounding never changes
// the order of two numbers: if both ends round to the same float32, so does the decimal. The ends are so close together
// that they nearly always do. Otherwise the decimal is compared, in whole numbers of any size, with the point at which the
// result changes. Both roundings are part of the question, so one multiplication of 64 bits is enough.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "bytes.hpp"
#include "powers.hpp"

namespace vec2emb {

// mantissa x 10^power, as written.
struct Decimal {
    const char* stop;            // behind the last byte that belongs to it
    bool valid = false;          // whether it is a numeral up to there
    bool negative = false;
    std::uint64_t mantissa = 0;  // the first 19 significant digits
    std::int64_t digits = 0;     // how many significant digits there are
    std::int64_t power = 0;      // of the last of them
};

inline constexpr int MANTISSA_DIGITS = 19;  // 10^19 - 1 fits into 64 bits

// The upper half of the product of two numbers, from the products of their halves.
inline constexpr std::uint64_t upper_of_halves(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t mask = 0xFFFFFFFF;
    const std::uint64_t low = (a & mask) * (b & mask), cross = (a >> 32) * (b & mask) + (low >> 32);
    const std::uint64_t other = (a & mask) * (b >> 32) + (cross & mask);
    return (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32);
}

inline constexpr std::uint64_t upper_of_product(std::uint64_t a, std::uint64_t b) {
#ifdef __SIZEOF_INT128__
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#else
    return upper_of_halves(a, b);
#endif
}

// What both ends of a range round to. The result is known if the two are equal.
struct Range {
    float low, high;
};

// The range in which mantissa x 10^power is, or would be with more digits behind the mantissa, which then has 19.
inline Range range_of(std::uint64_t mantissa, std::int64_t power, bool more) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (mantissa == 0 || power < LOWEST_POWER) return {0, 0};
    if (power > HIGHEST_POWER) return {infinity, infinity};
    const Power& ten = POWERS_OF_TEN[power - LOWEST_POWER];
    const int shift = std::countl_zero(mantissa);
    // Less than 2^63, so signed; machines convert those in one step.
    const auto low = static_cast<std::int64_t>(upper_of_product(mantissa << shift, ten.significand));
    // Dropped so far: the lower half of the product, less than 1, and what the power was cut off by, less than 2^64 / 2^64.
    // Digits behind 19 add less than 1 to the mantissa, which is 2^4 at most after the shift; times 2^63 / 2^64 that is 8.
    const std::int64_t high = low + (more ? 10 : 2);
    // The unit is a power of two: its exponent is in the bits from 52 on.
    const double unit = std::bit_cast<double>(std::bit_cast<std::uint64_t>(ten.unit) - (std::uint64_t(shift) << 52));
    return {static_cast<float>(static_cast<double>(low) * unit), static_cast<float>(static_cast<double>(high) * unit)};
}

// A whole number, the lowest 32 bits first. `compare` needs less than 900 bits: 200 digits, times 2^203.
struct Whole {
    std::array<std::uint32_t, 32> parts{};

    explicit Whole(std::uint64_t value = 0) {
        parts[0] = static_cast<std::uint32_t>(value);
        parts[1] = static_cast<std::uint32_t>(value >> 32);
    }

    void multiply_and_add(std::uint32_t factor, std::uint32_t summand) {
        std::uint64_t carry = summand;
        for (std::uint32_t& part : parts) {
            carry += std::uint64_t{part} * factor;
            part = static_cast<std::uint32_t>(carry);
            carry >>= 32;
        }
    }

    void multiply_by_power(std::uint32_t base, std::int64_t exponent) {
        while (exponent-- > 0) multiply_and_add(base, 0);
    }

    friend bool operator<(const Whole& a, const Whole& b) {
        return std::lexicographical_compare(a.parts.rbegin(), a.parts.rend(), b.parts.rbegin(), b.parts.rend());
    }
};

// whole x 2^exponent, of at most 54 bits.
struct Point {
    std::uint64_t whole;
    int exponent;
};

// The middle between a float32 that is not negative and the next one; for the largest, as if the range did not end.
inline Point middle_above(float value) {
    const float next = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + 1);
    int exponent;
    const double fraction = std::frexp((double{value} + (std::isinf(next) ? 0x1p128 : double{next})) / 2, &exponent);
    return {static_cast<std::uint64_t>(std::ldexp(fraction, 54)), exponent - 54};
}

// The sign of (decimal - point), for a decimal that begins at `p`. A point in the range of float32 has less than 200
// significant digits: of all digits of the decimal behind the first 200, it only matters whether one is not zero.
inline int compare(const Decimal& decimal, const char* p, Point point) {
    constexpr std::int64_t enough = 200;
    Whole left, right(point.whole);
    std::int64_t digits = 0;
    bool more = false;
    for (; digits < decimal.digits; ++p) {
        if (!is_digit(*p) || (digits == 0 && *p == '0')) continue;
        if (digits++ < enough) {
            left.multiply_and_add(10, static_cast<std::uint32_t>(*p - '0'));
        } else {
            more = more || *p != '0';
        }
    }
    const std::int64_t power = decimal.power + std::max<std::int64_t>(digits - enough, 0);
    (power < 0 ? right : left).multiply_by_power(10, std::abs(power));
    (point.exponent < 0 ? left : right).multiply_by_power(2, std::abs(point.exponent));
    if (left < right) return -1;
    return more || right < left ? 1 : 0;
}

inline bool is_odd(float value) { return std::bit_cast<std::uint32_t>(value) & 1; }

// Which end of a range a decimal that begins at `p` rounds to; the ends are neighbours among all float32.
inline float decide(const Decimal& decimal, const char* p, Range range) {
    // Ties go to the even of two neighbours. A float64 in the middle between two float32 goes to the even one of these.
    // That middle is itself even as a float64, so the points between it and its neighbours go to the middle. So, if the
    // upper float32 is even, the change is at the point below the middle, which belongs to the upper one; if the lower
    // float32 is even, it is at the point above the middle, which belongs to the lower one.
    const bool upper_is_even = is_odd(range.low);
    Point point = middle_above(range.low);
    if (upper_is_even) --point.whole; else ++point.whole;
    const int sign = compare(decimal, p, point);
    return sign > 0 || (sign == 0 && upper_is_even) ? range.high : range.low;
}

// The magnitude of a decimal that begins at `p`.
inline float magnitude_of(const Decimal& decimal, const char* p) {
    const std::int64_t dropped = std::max<std::int64_t>(decimal.digits - MANTISSA_DIGITS, 0);
    const Range range = range_of(decimal.mantissa, decimal.power + dropped, dropped > 0);
    return range.low == range.high ? range.low : decide(decimal, p, range);
}

}  // namespace vec2emb
