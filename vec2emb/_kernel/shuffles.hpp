// What the ways to parse a number in one vector of sixteen bytes share: a table of shuffles, and the end of long numbers.
#pragma once

#include "text.hpp"

namespace vec2emb {

// Powers of ten that a float64 holds exactly. With a number of at most 15 digits, which it holds exactly too, one division
// rounds once and is therefore right.
inline constexpr double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr int MAX_POWER = 22;

// What to do with a number of so many bytes whose point stands there.
struct Layout {
    char shuffle[16];  // which byte goes where: the point is gone, the last digit is the last of sixteen, and zeros
                       // (0x80) come before the first
    double scale[2];   // what to divide by, with and without a minus
};

struct Layouts {
    alignas(32) Layout of[16 * 17 + 1];

    // For `length` bytes with the point at `point`, or at `length` if there is none.
    const Layout& at(std::size_t length, std::size_t point) const { return of[16 * length + point]; }
};

inline constexpr Layouts make_layouts() {
    Layouts all{};
    for (int length = 0; length <= 16; ++length) {
        double scale = 1;
        for (int point = length; point >= 0; --point) {
            if (point < length - 1) scale *= 10;
            Layout& layout = all.of[16 * length + point];
            int from = length - 1;
            for (int i = 15; i >= 0; --i, --from) {
                if (from == point) --from;
                layout.shuffle[i] = static_cast<char>(from >= 0 ? from : 0x80);
            }
            layout.scale[0] = scale;
            layout.scale[1] = -scale;
        }
    }
    return all;
}

inline constexpr Layouts LAYOUTS = make_layouts();

// An exponent of one to three digits, and its end; 0 for anything else, for which no number is followed by its end.
inline std::int64_t exponent_at(const char*& p) {
    const bool down = p[1] == '-';
    const char* digit = p + 1 + (down || p[1] == '+');
    if (!is_digit(*digit)) return 0;
    std::int64_t value = 0;
    for (int i = 0; i < 3 && is_digit(*digit); ++i) value = value * 10 + (*digit++ - '0');
    p = digit;
    return down ? -value : value;
}

// A number whose first 16 bytes have 15 digits and a point; the digits behind them end at `stop`. So it is between those
// 15 digits and one more of the last of them. Rounding never changes the order of two numbers: if both ends round to the
// same float32, so does the number; they nearly always do. False if they do not.
inline bool long_number(const char* stop, double mantissa, unsigned point, bool minus, Plain& number) {
    double scale = LAYOUTS.at(16, point).scale[minus];
    if (*stop == 'e' || *stop == 'E') {
        const std::int64_t power = exponent_at(stop) + point - 15;
        if (power > 0 || power < -MAX_POWER) return false;
        scale = std::copysign(POWERS[-power], scale);  // signs are random: no branch on them
    }
    number = {stop, static_cast<float>(mantissa / scale)};
    return number.value == static_cast<float>((mantissa + 1) / scale);
}

}  // namespace vec2emb
