// Sixteen bytes at once on 64-bit ARM, where NEON is always there. What each function promises is told in
// `text_loops.hpp`; `simd_sse41.hpp` takes the same steps and says more about them.
#pragma once

#include "text.hpp"

#if defined(__aarch64__) && defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define VEC2EMB_HAS_NEON

#include <arm_neon.h>

#include "shuffles.hpp"

namespace vec2emb::neon {

inline constexpr std::size_t READS_AHEAD = 48;

struct Masks {
    std::uint64_t line_feeds, separators;
};

inline uint8x16_t load16(const char* p) { return vld1q_u8(reinterpret_cast<const std::uint8_t*>(p)); }

inline uint8x16_t equal(uint8x16_t text, char c) { return vceqq_u8(text, vdupq_n_u8(static_cast<std::uint8_t>(c))); }

// Four masks of sixteen bytes to 64 bits: each byte keeps the bit of its place, and neighbours are added up thrice.
inline std::uint64_t bits_of(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    constexpr std::uint8_t places[] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t place = vld1q_u8(places);
    const uint8x16_t ab = vpaddq_u8(vandq_u8(a, place), vandq_u8(b, place));
    const uint8x16_t cd = vpaddq_u8(vandq_u8(c, place), vandq_u8(d, place));
    const uint8x16_t all = vpaddq_u8(ab, cd);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

inline Masks masks(const char* p) {
    const uint8x16_t a = load16(p), b = load16(p + 16), c = load16(p + 32), d = load16(p + 48);
    const auto separator = [](uint8x16_t text) { return vorrq_u8(equal(text, ' '), equal(text, '\t')); };
    return {bits_of(equal(a, LF), equal(b, LF), equal(c, LF), equal(d, LF)),
            bits_of(separator(a), separator(b), separator(c), separator(d))};
}

inline int count(std::uint64_t mask) { return std::popcount(mask); }

// Four bits for each byte of a mask: the cheapest that this processor has.
inline std::uint64_t nibbles_of(uint8x16_t mask) {
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(mask), 4)), 0);
}

inline uint8x16_t values_of(uint8x16_t text) { return vsubq_u8(text, vdupq_n_u8('0')); }

inline uint8x16_t is_digit(uint8x16_t values) { return vcleq_u8(values, vdupq_n_u8(9)); }

// The number that at most fifteen digits stand for.
inline double mantissa_of(uint8x16_t values, const Layout& layout) {
    const auto* const shuffle = reinterpret_cast<const std::uint8_t*>(layout.shuffle);
    const uint8x16_t ones = vqtbl1q_u8(vandq_u8(values, is_digit(values)), vld1q_u8(shuffle));
    // 10 a + b, 100 a + b, 10000 a + b: neighbours times their weights, added up.
    constexpr std::uint8_t tens[] = {10, 1, 10, 1, 10, 1, 10, 1};
    constexpr std::uint16_t hundreds[] = {100, 1, 100, 1};
    constexpr std::uint32_t ten_thousands[] = {10000, 1};
    const uint8x8_t ten = vld1_u8(tens);
    const uint16x8_t twos = vpaddq_u16(vmull_u8(vget_low_u8(ones), ten), vmull_u8(vget_high_u8(ones), ten));
    const uint16x4_t hundred = vld1_u16(hundreds);
    const uint32x4_t fours = vpaddq_u32(vmull_u16(vget_low_u16(twos), hundred), vmull_u16(vget_high_u16(twos), hundred));
    const uint32x2_t ten_thousand = vld1_u32(ten_thousands);
    const uint64x2_t eights =
        vpaddq_u64(vmull_u32(vget_low_u32(fours), ten_thousand), vmull_u32(vget_high_u32(fours), ten_thousand));
    return static_cast<double>(vgetq_lane_u64(eights, 0) * 100'000'000 + vgetq_lane_u64(eights, 1));
}

// A number of at least 16 bytes.
inline bool long_decimal(const char* p, uint8x16_t values, std::uint64_t points, bool minus, Plain& number) {
    const std::uint64_t others = ~nibbles_of(is_digit(values_of(load16(p + 16))));
    if (points == 0 || others == 0) return false;  // no point in the first 16 bytes, or no end in the next
    const auto point = static_cast<unsigned>(std::countr_zero(points)) / 4;
    const char* const stop = p + 16 + std::countr_zero(others) / 4;
    return long_number(stop, mantissa_of(values, LAYOUTS.at(16, point)), point, minus, number);
}

inline bool plain_decimal(const char* p, Plain& number) {
    const uint8x16_t text = load16(p), values = values_of(text);
    const std::uint64_t minus = *p == '-' ? 0xF : 0;
    const std::uint64_t digits = nibbles_of(is_digit(values)), points = nibbles_of(equal(text, '.'));
    const std::uint64_t body = digits | points | minus;
    const std::uint64_t behind = ~body & (body + 1), within = behind - 1;
    const std::uint64_t inner = points & within;
    if (inner & ~(0xF * (inner & (~inner + 1)))) [[unlikely]] return false;  // two points
    if (behind == 0) [[unlikely]] return long_decimal(p, values, points, minus != 0, number);
    if (!(digits & within)) [[unlikely]] return false;
    const int length = std::countr_zero(behind) / 4, point = std::countr_zero(inner | behind) / 4;
    const Layout& layout = LAYOUTS.at(length, point);
    number.value = static_cast<float>(mantissa_of(values, layout) / layout.scale[minus != 0]);
    number.stop = p + length;
    return true;
}

#include "text_loops.hpp"

}  // namespace vec2emb::neon

#endif
