// Sixteen bytes at once: SSE 4.1 and the popcnt instruction, which x86-64 processors have had since 2008.
// What each function promises is told in `text_loops.hpp`.
#pragma once

#include "text.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define VEC2EMB_HAS_SSE41

#include <immintrin.h>

#include "shuffles.hpp"

// From here to the end everything is compiled for these instructions, and must only be called where they are.
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("sse4.1,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("sse4.1,popcnt")
#endif

namespace vec2emb::sse41 {

inline constexpr std::size_t READS_AHEAD = 32;

struct Masks {
    std::uint64_t line_feeds, separators;
};

inline __m128i load16(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

inline unsigned bits_of(__m128i mask) { return static_cast<unsigned>(_mm_movemask_epi8(mask)); }

inline Masks masks(const char* p) {
    const __m128i line_feed = _mm_set1_epi8(LF), space = _mm_set1_epi8(' '), tab = _mm_set1_epi8('\t');
    Masks found{0, 0};
    for (int i = 0; i < 4; ++i) {
        const __m128i text = load16(p + 16 * i);
        const __m128i separators = _mm_or_si128(_mm_cmpeq_epi8(text, space), _mm_cmpeq_epi8(text, tab));
        found.line_feeds |= std::uint64_t{bits_of(_mm_cmpeq_epi8(text, line_feed))} << (16 * i);
        found.separators |= std::uint64_t{bits_of(separators)} << (16 * i);
    }
    return found;
}

inline int count(std::uint64_t mask) { return static_cast<int>(_mm_popcnt_u64(mask)); }

inline bool plain_decimal(const char* p, Plain& number) {
    const __m128i text = load16(p);
    const __m128i from_zero = _mm_sub_epi8(text, _mm_set1_epi8('0'));
    const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(from_zero, _mm_set1_epi8(9)), from_zero);
    const std::size_t minus = *p == '-';
    const unsigned digits = bits_of(is_digit), points = bits_of(_mm_cmpeq_epi8(text, _mm_set1_epi8('.')));
    // The number ends at the first byte that is no digit, no first point and no minus in front.
    const unsigned others = ~(digits | (points & (0 - points)) | static_cast<unsigned>(minus));
    const auto first = [](unsigned bits) { return static_cast<unsigned>(__builtin_ctz(bits)); };
    const unsigned length = first(others), point = first(others | points);
    // All sixteen bytes, or no digit?
    if (length > 15 || first(digits | 0x10000) >= length) [[unlikely]] return false;

    // Whatever is no digit counts as zero; so the sign is a leading zero.
    const Layout& layout = LAYOUTS.at(length, point);
    const __m128i shuffle = _mm_load_si128(reinterpret_cast<const __m128i*>(layout.shuffle));
    const __m128i ones = _mm_shuffle_epi8(_mm_and_si128(from_zero, is_digit), shuffle);
    const __m128i twos = _mm_maddubs_epi16(ones, _mm_set1_epi16(0x010A));       // 10 a + b
    const __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(0x00010064));     // 100 a + b
    const __m128i packed = _mm_packus_epi32(fours, fours);
    const __m128i eights = _mm_madd_epi16(packed, _mm_set1_epi32(0x00012710));  // 10000 a + b
    // Fifteen digits at most, so all of this is exact but the division, which rounds once.
    const __m128d halves = _mm_cvtepi32_pd(eights);
    const double mantissa = _mm_cvtsd_f64(halves) * 1e8 + _mm_cvtsd_f64(_mm_unpackhi_pd(halves, halves));
    number.value = static_cast<float>(mantissa / layout.scale[minus]);
    number.stop = p + length;
    return true;
}

#include "text_loops.hpp"

}  // namespace vec2emb::sse41

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
