// What a numeral is, and which float32 it stands for: the careful way, for any field of any length.
//
// The value is the nearest float64, then rounded to float32: two roundings, because that is what
// `numpy.float32(float(text))` does. Going to float32 at once would differ in the last bit near half-way points.
#pragma once

#include <cmath>
#include <limits>

#include "rounding.hpp"

namespace vec2emb {

enum class Numeral { word, finite, nonfinite, out_of_range };

// Take `[+-]?(digits.?digits*|.digits)([eE][+-]?digits)?` apart, as far as it goes.
inline Decimal read_decimal(const char* p, const char* const end) {
    Decimal found{p};
    if (p < end && (*p == '-' || *p == '+')) found.negative = *p++ == '-';

    const auto take_digits = [&] {
        const char* const first = p;
        while (p < end && is_digit(*p)) {
            if (found.digits == 0 && *p == '0') {  // leading zeros signify nothing
                ++p;
            } else if (std::uint64_t word; end - p >= 8 && found.digits + 8 <= MANTISSA_DIGITS &&
                                           words::no_digits(word = load_word(p)) == 0) {
                found.mantissa = found.mantissa * 100'000'000 + words::eight_digits(word - words::ONES * '0');
                found.digits += 8;
                p += 8;
            } else {
                if (found.digits++ < MANTISSA_DIGITS) found.mantissa = found.mantissa * 10 + (*p - '0');
                ++p;
            }
        }
        return p - first;
    };
    std::int64_t written = take_digits();
    if (p < end && *p == '.') {
        ++p;
        const std::int64_t fraction = take_digits();
        written += fraction;
        found.power = -fraction;
    }
    found.stop = p;
    if (written == 0) return found;

    if (p < end && (*p == 'e' || *p == 'E')) {
        ++p;
        bool down = false;
        if (p < end && (*p == '-' || *p == '+')) down = *p++ == '-';
        const char* const first = p;
        std::int64_t exponent = 0;
        for (; p < end && is_digit(*p); ++p) {
            if (exponent < 1'000'000'000'000) exponent = exponent * 10 + (*p - '0');  // any more changes nothing
        }
        found.stop = p;
        if (p == first) return found;
        found.power += down ? -exponent : exponent;
    }
    found.valid = true;
    return found;
}

// `[+-]?(nan|inf|infinity)` in any case: its value, or 0 for anything else.
inline float nonfinite_word(Bytes text) {
    const bool negative = !text.empty() && text[0] == '-';
    if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
    const auto is = [&](Bytes word) {
        if (text.size() != word.size()) return false;
        for (std::size_t i = 0; i < word.size(); ++i) {
            const char c = text[i];
            if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != word[i]) return false;
        }
        return true;
    };
    float value = 0;
    if (is("nan")) value = std::numeric_limits<float>::quiet_NaN();
    if (is("inf") || is("infinity")) value = std::numeric_limits<float>::infinity();
    return std::copysign(value, negative ? -1.0F : 1.0F);
}

inline bool is_numeral(Bytes text) {
    const Decimal decimal = read_decimal(text.data(), text.data() + text.size());
    return (decimal.valid && decimal.stop == text.data() + text.size()) || nonfinite_word(text) != 0;
}

// Parse a whole field. `value` is set unless the field is a word or out of range.
inline Numeral parse_numeral(Bytes text, float& value) {
    const char* const p = text.data();
    const Decimal decimal = read_decimal(p, p + text.size());
    if (!decimal.valid || decimal.stop != p + text.size()) {
        value = nonfinite_word(text);
        return value != 0 ? Numeral::nonfinite : Numeral::word;
    }
    const float magnitude = magnitude_of(decimal, p);
    value = decimal.negative ? -magnitude : magnitude;
    return std::isfinite(value) ? Numeral::finite : Numeral::out_of_range;
}

}  // namespace vec2emb
