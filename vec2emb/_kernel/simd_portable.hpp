// Words of eight bytes, for any machine. What each function promises is told in `text_loops.hpp`.
#pragma once

#include "text.hpp"

namespace vec2emb::portable {

inline constexpr std::size_t READS_AHEAD = 64;  // bytes that `plain_decimal` may look at

struct Masks {
    std::uint64_t line_feeds, separators;
};

inline Masks masks(const char* p) {
    Masks found{0, 0};
    for (int i = 0; i < 8; ++i) {
        const std::uint64_t word = load_word(p + 8 * i);
        found.line_feeds |= words::gather(words::equal(word, LF)) << (8 * i);
        found.separators |= words::gather(words::equal(word, ' ') | words::equal(word, '\t')) << (8 * i);
    }
    return found;
}

inline constexpr std::uint64_t WHOLE_POWERS[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// A float64 holds these exactly, and whole numbers of 15 digits too; so one division of the two rounds once.
inline constexpr double DIVISORS[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

inline int count(std::uint64_t mask) { return std::popcount(mask); }

inline bool plain_decimal(const char* p, Plain& number) {
    const bool negative = *p == '-';
    p += negative;
    const char* const first = p;
    std::uint64_t mantissa = 0;
    while (is_digit(*p) && p - first < 8) mantissa = mantissa * 10 + (*p++ - '0');
    std::int64_t digits = p - first, fraction = 0;
    if (*p == '.') {
        ++p;
        for (int i = 0; i < 3; ++i) {  // at most 24 digits behind the point
            const std::uint64_t word = load_word(p);
            const int more = words::before_first(words::no_digits(word));
            if (more > 0) {
                // Shift what is no digit out, zeros in at the front.
                const std::uint64_t kept = (word - words::ONES * '0') << (8 * (8 - more));
                mantissa = mantissa * WHOLE_POWERS[more] + words::eight_digits(kept);
            }
            p += more;
            fraction += more;
            if (more < 8) break;
        }
        digits += fraction;
    }
    float value;
    if (digits <= 15) {
        value = static_cast<float>(static_cast<double>(mantissa) / DIVISORS[fraction]);
    } else {
        const Range range = range_of(mantissa, -fraction, false);
        if (digits > MANTISSA_DIGITS || range.low != range.high) return false;
        value = range.low;
    }
    number = {p, negative ? -value : value};
    return digits > 0;
}

#include "text_loops.hpp"

}  // namespace vec2emb::portable
