// Which instruction set the loops over text use: the best that this machine has, unless a test asks for another.
#pragma once

#include "simd_neon.hpp"
#include "simd_portable.hpp"
#include "simd_sse41.hpp"

namespace vec2emb {

struct Loops {
    const char* name;
    decltype(&portable::scan_text) scan_text;
    decltype(&portable::fill_text) fill_text;
    decltype(&portable::check_text) check_text;
};

inline constexpr Loops PORTABLE{"portable", portable::scan_text, portable::fill_text, portable::check_text};
#ifdef VEC2EMB_HAS_SSE41
inline constexpr Loops SSE41{"sse4.1", sse41::scan_text, sse41::fill_text, sse41::check_text};
#endif
#ifdef VEC2EMB_HAS_NEON
inline constexpr Loops NEON{"neon", neon::scan_text, neon::fill_text, neon::check_text};
#endif

inline const Loops& best_loops() {
#ifdef VEC2EMB_HAS_SSE41
    if (__builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("popcnt")) return SSE41;
#endif
#ifdef VEC2EMB_HAS_NEON
    return NEON;
#else
    return PORTABLE;
#endif
}

inline const Loops*& loops() {
    static const Loops* in_use = &best_loops();
    return in_use;
}

}  // namespace vec2emb
