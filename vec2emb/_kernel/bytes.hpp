// Bytes and the words of eight that hold them: what every other header here leans on.
//
// A word is read so that the first byte in memory is its lowest, on any machine; so the position of a byte is
// the number of trailing zeros divided by eight.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace vec2emb {

using Bytes = std::string_view;

inline constexpr char LF = '\n', CR = '\r';

// Fields of a row are separated by these two and by nothing else.
inline constexpr bool is_separator(char c) { return c == ' ' || c == '\t'; }

inline constexpr bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

// Values stand at any address, so they are copied out and in; compilers make one move of it.
template <class T>
inline T load(const char* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

template <class T>
inline void store(char* p, T value) {
    std::memcpy(p, &value, sizeof value);
}

// The same bytes in the other order.
template <class T>
inline T byteswap(T value) {
    char bytes[sizeof(T)], turned[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    for (std::size_t i = 0; i < sizeof(T); ++i) turned[i] = bytes[sizeof(T) - 1 - i];
    std::memcpy(&value, turned, sizeof value);
    return value;
}

inline std::uint64_t load_word(const char* p) {
    const auto word = load<std::uint64_t>(p);
    return std::endian::native == std::endian::little ? word : byteswap(word);
}

namespace words {

inline constexpr std::uint64_t ONES = 0x0101010101010101, HIGHS = 0x8080808080808080;

// 0x80 in every byte of `word` that is zero, exactly: no borrow runs from one byte into the next.
inline constexpr std::uint64_t zeros(std::uint64_t word) {
    return ~(((word & ~HIGHS) + ~HIGHS) | word) & HIGHS;
}

// 0x80 in every byte that equals `c`.
inline constexpr std::uint64_t equal(std::uint64_t word, char c) {
    return zeros(word ^ (ONES * static_cast<unsigned char>(c)));
}

// 0x80 in every byte that is no ASCII digit.
inline constexpr std::uint64_t no_digits(std::uint64_t word) {
    const std::uint64_t from_zero = word ^ (ONES * '0');  // digits are now 0 to 9
    return (((from_zero & ~HIGHS) + ONES * (0x80 - 10)) | from_zero) & HIGHS;
}

// Bit i for byte i, of a word with nothing but 0x80s in it.
inline constexpr std::uint64_t gather(std::uint64_t highs) {
    return ((highs >> 7) * 0x0102040810204080) >> 56;
}

// How many bytes stand before the first 0x80; 8 if there is none.
inline constexpr int before_first(std::uint64_t highs) { return std::countr_zero(highs) / 8; }

// The number that eight digits (already 0 to 9, the first in the lowest byte) stand for.
inline constexpr std::uint64_t eight_digits(std::uint64_t digits) {
    digits = (digits * 10) + (digits >> 8);  // every second byte: a pair
    constexpr std::uint64_t mask = 0x000000FF000000FF;
    constexpr std::uint64_t outer = 100 + (std::uint64_t{1000000} << 32);
    constexpr std::uint64_t inner = 1 + (std::uint64_t{10000} << 32);
    return (((digits & mask) * outer) + (((digits >> 16) & mask) * inner)) >> 32;
}

}  // namespace words
}  // namespace vec2emb
