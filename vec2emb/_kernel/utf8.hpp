// Strict UTF-8, as Python's decoder has it: no overlong form, no surrogate, nothing beyond U+10FFFF.
#pragma once

#include "bytes.hpp"

namespace vec2emb {

inline bool is_utf8(Bytes text) {
    const char* p = text.data();
    const char* const end = p + text.size();
    const auto byte = [&](int i) { return static_cast<unsigned char>(p[i]); };
    const auto is_tail = [&](int i) { return (byte(i) & 0xC0) == 0x80; };
    while (p < end) {
        if (end - p >= 8 && !(load_word(p) & words::HIGHS)) {
            p += 8;
            continue;
        }
        const unsigned char lead = byte(0);
        if (lead < 0x80) {
            p += 1;
        } else if (lead < 0xC2) {  // a stray tail, or two bytes for what one can say
            return false;
        } else if (lead < 0xE0) {
            if (end - p < 2 || !is_tail(1)) return false;
            p += 2;
        } else if (lead < 0xF0) {
            if (end - p < 3 || !is_tail(1) || !is_tail(2)) return false;
            if (lead == 0xE0 && byte(1) < 0xA0) return false;   // overlong
            if (lead == 0xED && byte(1) >= 0xA0) return false;  // surrogate
            p += 3;
        } else {
            if (lead > 0xF4 || end - p < 4 || !is_tail(1) || !is_tail(2) || !is_tail(3)) return false;
            if (lead == 0xF0 && byte(1) < 0x90) return false;   // overlong
            if (lead == 0xF4 && byte(1) >= 0x90) return false;  // beyond U+10FFFF
            p += 4;
        }
    }
    return true;
}

}  // namespace vec2emb
