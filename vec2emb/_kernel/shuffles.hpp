// Tables for parsing a number of at most fifteen bytes in one vector of sixteen.
#pragma once

namespace vec2emb {

// For a number of `length` bytes with its point at `point` (`length` if it has none): which byte of it goes where, so
// that the point is gone, the last digit is the last of sixteen, and zeros (0x80) come before the first.
struct Shuffles {
    alignas(16) char to[16][16][16];
};

inline constexpr Shuffles make_shuffles() {
    Shuffles all{};
    for (int length = 0; length < 16; ++length) {
        for (int point = 0; point < 16; ++point) {
            int from = length - 1;
            for (int i = 15; i >= 0; --i, --from) {
                if (from == point) --from;
                all.to[length][point][i] = static_cast<char>(from >= 0 ? from : 0x80);
            }
        }
    }
    return all;
}

inline constexpr Shuffles SHUFFLES = make_shuffles();

// What to divide by: whether there is a minus, and how far from the end the point stands, itself counted.
inline constexpr double SCALES[2][16] = {
    {1e0, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14},
    {-1e0, -1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7, -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14},
};

}  // namespace vec2emb
