// Words of eight bytes, for any machine. What each function promises is told in `text_loops.hpp`.
#pragma once

#include "text.hpp"

namespace vec2emb::portable {

inline constexpr std::size_t READS_AHEAD = 48;  // bytes that `plain_decimal` may look at

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
        for (int i = 0; i < 2; ++i) {  // at most sixteen digits behind the point
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
    const double wide = static_cast<double>(mantissa) / POWERS[fraction];
    number = {p, static_cast<float>(negative ? -wide : wide)};
    return digits > 0 && digits <= 15;
}

#include "text_loops.hpp"

}  // namespace vec2emb::portable
