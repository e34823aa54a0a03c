// The small integers that both kernels speak: `codes.py` once more. A test compares the two.
#pragma once

#include <cstdint>

namespace vec2emb {

// What is wrong with a row. A row has at most one fault: the first of this order.
enum class Fault : std::uint8_t {
    none = 0,
    too_few_values = 1,
    empty_token = 2,
    nul_in_token = 3,
    invalid_utf8 = 4,
    not_a_numeral = 5,
    out_of_range = 6,
    nonfinite_value = 7,
};

// What is odd about a row, though it loads. Bits.
enum class Note : std::uint8_t {
    excess_separators = 1,
    numeral_ended_token = 2,
    cr_in_token = 4,
    nonfinite = 8,
    recoded = 16,
};

// What selection decided about a row.
enum class State : std::uint8_t {
    undecided = 0,
    fresh = 1,  // NEW, which C++ keeps for itself
    seen = 2,
    absent = 3,
    faulty = 4,
};

// What becomes of `nan` and `inf`.
enum class Nonfinite : std::uint8_t { error = 0, keep = 1, zero = 2 };

// Two-byte types that finished rows can be cast to.
enum class Cast : std::uint8_t { float16 = 1, bfloat16 = 2 };

}  // namespace vec2emb
