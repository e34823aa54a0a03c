// Sums and casts over finished rows, in an order and a precision that never change.
//
// Columns are summed side by side, rows strictly one after the other: the order of `mean(axis=0, dtype=float64)`.
#pragma once

#include "binary.hpp"

namespace vec2emb {

// Call `add(row)` for each finite row of float32[n, dim]; how many there are.
template <class Add>
inline std::int64_t for_finite_rows(Bytes rows, std::size_t dim, Add add) {
    std::int64_t added = 0;
    for (std::size_t at = 0; at < rows.size(); at += 4 * dim) {
        const char* const row = rows.data() + at;
        if (!all_finite(row, dim)) continue;
        add(row);
        ++added;
    }
    return added;
}

inline std::int64_t add_rows(char* sums, Bytes rows, std::size_t dim) {
    return for_finite_rows(rows, dim, [=](const char* __restrict row) {
        char* __restrict const totals = sums;
        for (std::size_t i = 0; i < dim; ++i) {
            store(totals + 8 * i, load<double>(totals + 8 * i) + load<float>(row + 4 * i));
        }
    });
}

inline std::int64_t add_square_deviations(char* sums, const char* means, Bytes rows, std::size_t dim) {
    return for_finite_rows(rows, dim, [=](const char* __restrict row) {
        char* __restrict const totals = sums;
        for (std::size_t i = 0; i < dim; ++i) {
            const double deviation = load<float>(row + 4 * i) - load<double>(means + 8 * i);
            store(totals + 8 * i, load<double>(totals + 8 * i) + deviation * deviation);
        }
    });
}

// Ties to even; beyond 65504 + half a step infinite; a NaN keeps its sign alone. All cases are worked out and one is
// taken, so that compilers make vectors of it.
inline std::uint16_t half_bits(std::uint32_t bits) {
    const std::uint32_t sign = (bits >> 16) & 0x8000;
    const std::uint32_t magnitude = bits & 0x7FFFFFFF;
    // Thirteen bits of the fraction go; the exponent's bias falls from 127 to 15.
    const std::uint32_t normal = (magnitude + 0x0FFF + ((magnitude >> 13) & 1) - ((127 - 15) << 23)) >> 13;
    // Below 2^-14 a half counts steps of 2^-24. Adding 0.5 makes the float's own last bit worth just that, so the
    // addition rounds as it should.
    const std::uint32_t steps = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000;
    std::uint32_t half = magnitude < 0x38800000 ? steps : normal;
    half = magnitude >= 0x47800000 ? 0x7C00 : half;  // 65536 and more
    half = magnitude > 0x7F800000 ? 0x7E00 : half;
    return static_cast<std::uint16_t>(sign | half);
}

inline std::uint16_t bfloat16_bits(std::uint32_t bits) {
    const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40;
    return static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
}

inline void cast_rows(Bytes source, char* out, Cast kind) {
    const auto each = [&](auto convert) {
        for (std::size_t i = 0; i < source.size() / 4; ++i) {
            store(out + 2 * i, convert(load<std::uint32_t>(source.data() + 4 * i)));
        }
    };
    kind == Cast::float16 ? each([](std::uint32_t bits) { return half_bits(bits); })
                          : each([](std::uint32_t bits) { return bfloat16_bits(bits); });
}

}  // namespace vec2emb
