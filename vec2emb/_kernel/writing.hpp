// Rows of text, written: the shortest numerals that every reader takes for the same float32.
#pragma once

#include <charconv>
#include <stdexcept>
#include <string>

#include "numerals.hpp"

namespace vec2emb {

// digits[0].digits[1] digits[2] .. x 10^exponent, without zeros at the end.
struct Shortest {
    char digits[24];
    int count = 0;
    int exponent = 0;
};

// Whether text is read as `value`, which is above 0, both by readers that go through float64 and by those that do not.
inline bool reads_as(const char* first, const char* last, float value) {
    const Decimal decimal = read_decimal(first, last);
    if (magnitude_of(decimal, first) != value) return false;
    const float before = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) - 1);
    const int low = compare(decimal, first, middle_above(before)), high = compare(decimal, first, middle_above(value));
    return (low > 0 && high < 0) || ((low == 0 || high == 0) && !is_odd(value));
}

// Take `d.ddde[+-]dd` apart.
inline Shortest digits_of(const char* p, const char* const end) {
    Shortest found;
    for (; p < end && *p != 'e'; ++p) {
        if (*p != '.') found.digits[found.count++] = *p;
    }
    while (found.count > 1 && found.digits[found.count - 1] == '0') --found.count;
    const bool down = p + 1 < end && p[1] == '-';
    for (++p; p < end; ++p) {
        if (is_digit(*p)) found.exponent = found.exponent * 10 + (*p - '0');
    }
    if (down) found.exponent = -found.exponent;
    return found;
}

// As the library has it, where that survives float64, which is for all but 7.038531e-26; else as the twin looks for it.
inline Shortest shortest(float value) {
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
    const Shortest found = digits_of(text, end);
    if (magnitude_of(read_decimal(text, end), text) == value) return found;
    for (int length = found.count; length <= 17; ++length) {
        // The nearest decimal of this length, and if that will not do, the one on its other side.
        const auto stop = std::to_chars(text, text + sizeof text, double{value}, std::chars_format::scientific,
                                        length - 1).ptr;
        const Shortest nearest = digits_of(text, stop);
        if (reads_as(text, stop, value)) return nearest;
        std::int64_t count = 0;
        for (int i = 0; i < length; ++i) count = count * 10 + (i < nearest.count ? nearest.digits[i] - '0' : 0);
        for (const int step : {-1, 1}) {
            const std::string whole = std::to_string(count + step);  // 9 + 1 is one digit longer
            const std::string other = whole + 'e' + std::to_string(nearest.exponent - length + 1);
            const char* const p = other.data();
            if (!reads_as(p, p + other.size(), value)) continue;
            Shortest beside = digits_of(p, p + other.size());
            beside.exponent += static_cast<int>(whole.size()) - 1;
            return beside;
        }
    }
    throw std::logic_error("17 digits tell every float64 apart");
}

inline constexpr std::size_t LONGEST = 32;  // bytes that a numeral may take, with room to spare

// Write the numeral of a float32 at `p`, as Python's `repr` writes floats but without `.0`; the end of it.
inline char* write_value(char* p, float value) {
    const auto copy = [&](const char* from, int count) { p = std::copy_n(from, count, p); };
    const auto zeros = [&](int count) { p = std::fill_n(p, count, '0'); };
    if (std::signbit(value)) *p++ = '-';
    if (!std::isfinite(value)) {
        copy(std::isnan(value) ? "nan" : "inf", 3);
        return p;
    }
    if (value == 0) {
        zeros(1);
        return p;
    }
    const Shortest found = shortest(std::abs(value));
    const int count = found.count, exponent = found.exponent, whole = exponent + 1;
    if (exponent < -4 || exponent >= 16) {
        *p++ = found.digits[0];
        if (count > 1) *p++ = '.';
        copy(found.digits + 1, count - 1);
        *p++ = 'e';
        *p++ = exponent < 0 ? '-' : '+';
        const int size = std::abs(exponent);
        *p++ = static_cast<char>('0' + size / 10);
        *p++ = static_cast<char>('0' + size % 10);
    } else if (exponent < 0) {
        copy("0.", 2);
        zeros(-whole);
        copy(found.digits, count);
    } else if (count > whole) {
        copy(found.digits, whole);
        *p++ = '.';
        copy(found.digits + whole, count - whole);
    } else {
        copy(found.digits, count);
        zeros(whole - count);
    }
    return p;
}

// `token SP value SP .. value LF` for each of the tokens, which are followed by LF, and float32[n, dim].
inline std::string format_rows(Bytes tokens, Bytes rows, std::size_t dim) {
    const std::size_t width = 4 * dim;
    const auto count = static_cast<std::size_t>(std::count(tokens.begin(), tokens.end(), '\n'));
    if ((!tokens.empty() && tokens.back() != '\n') || rows.size() % width != 0 || rows.size() / width != count) {
        throw std::invalid_argument("there are not as many tokens as rows");
    }
    std::string out;
    out.reserve(tokens.size() + rows.size() * 3);  // about what vectors take
    char numeral[LONGEST];
    for (std::size_t at = 0; at < rows.size(); at += width) {
        const std::size_t end = tokens.find('\n');
        out.append(tokens.substr(0, end));
        tokens.remove_prefix(end + 1);
        for (std::size_t i = 0; i < width; i += 4) {
            *numeral = ' ';
            out.append(numeral, write_value(numeral + 1, load<float>(rows.data() + at + i)));
        }
        out += '\n';
    }
    return out;
}

}  // namespace vec2emb
