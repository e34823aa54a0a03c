// The table for parsing a number of at most fifteen bytes in one vector of sixteen.
#pragma once

#include <cstddef>

namespace vec2emb {

// What to do with a number of so many bytes whose point stands there.
struct Layout {
    char shuffle[16];  // which byte goes where: the point is gone, the last digit is the last of sixteen, and zeros
                       // (0x80) come before the first
    double scale[2];   // what to divide by, with and without a minus
};

struct Layouts {
    alignas(32) Layout of[16 * 16];

    // For `length` bytes with the point at `point`, or at `length` if there is none.
    const Layout& at(std::size_t length, std::size_t point) const { return of[16 * length + point]; }
};

inline constexpr Layouts make_layouts() {
    Layouts all{};
    for (int length = 0; length < 16; ++length) {
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

}  // namespace vec2emb
