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

inline constexpr std::size_t READS_AHEAD = 48;

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

// Sixteen bytes less '0', with 0 for what is below; and which are digits, which are points.
struct Digits {
    __m128i values;
    unsigned digits, points;
};

inline Digits digits_of(const char* p) {
    const __m128i text = load16(p);
    // Comparisons are of signed bytes: digits become the lowest ten of them.
    const __m128i shifted = _mm_add_epi8(text, _mm_set1_epi8(static_cast<char>(0x80 - '0')));
    return {
        _mm_subs_epu8(text, _mm_set1_epi8('0')),
        bits_of(_mm_cmplt_epi8(shifted, _mm_set1_epi8(static_cast<char>(0x80 + 10)))),
        bits_of(_mm_cmpeq_epi8(text, _mm_set1_epi8('.'))),
    };
}

inline unsigned first_of(unsigned bits) { return static_cast<unsigned>(__builtin_ctz(bits)); }

// The number that at most fifteen digits stand for. Point and sign are not above '0', so the sign is a leading zero.
inline double mantissa_of(__m128i values, const Layout& layout) {
    const __m128i ones = _mm_shuffle_epi8(values, _mm_load_si128(reinterpret_cast<const __m128i*>(layout.shuffle)));
    const __m128i twos = _mm_maddubs_epi16(ones, _mm_set1_epi16(0x010A));       // 10 a + b
    const __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(0x00010064));     // 100 a + b
    const __m128i packed = _mm_packus_epi32(fours, fours);
    const __m128i eights = _mm_madd_epi16(packed, _mm_set1_epi32(0x00012710));  // 10000 a + b
    const __m128d halves = _mm_cvtepi32_pd(eights);
    return _mm_cvtsd_f64(halves) * 1e8 + _mm_cvtsd_f64(_mm_unpackhi_pd(halves, halves));
}

// A number of at least 16 bytes.
inline bool long_decimal(const char* p, __m128i values, unsigned point, unsigned minus, Plain& number) {
    const unsigned more = first_of(~digits_of(p + 16).digits);
    if (point == 16 || more == 16) return false;  // no point in the first 16 bytes, or no end in the next
    return long_number(p + 16 + more, mantissa_of(values, LAYOUTS.at(16, point)), point, minus, number);
}

inline bool plain_decimal(const char* p, Plain& number) {
    const Digits text = digits_of(p);
    const unsigned minus = *p == '-';
    // The number ends at the first byte that is no digit, no first point and no minus in front.
    const unsigned others = ~(text.digits | (text.points & (0 - text.points)) | minus);
    const unsigned length = first_of(others), point = first_of(others | text.points);
    if (length - 3 > 12) [[unlikely]] {  // one check for two: with three bytes or more there is a digit
        if (length > 15) return long_decimal(p, text.values, point, minus, number);
        if (first_of(text.digits | 0x10000) >= length) return false;  // no digit
    }
    // All of this is exact but the division, which rounds once.
    const Layout& layout = LAYOUTS.at(length, point);
    number.value = static_cast<float>(mantissa_of(text.values, layout) / layout.scale[minus]);
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
