// Records of Word2Vec binary: `token SP value .. value`, each value a float of 2, 4 or 8 bytes, then perhaps LF.
//
// word2vec.c writes an LF after every vector, gensim does not: one LF in front of a token is decided anew for each
// record. A token ends at its first space.
#pragma once

#include "text.hpp"

namespace vec2emb {

// Find the whole records of a block, at most `limit`; the bytes that they take.
inline std::size_t scan_binary(Bytes block, std::size_t dim, std::size_t width, Rows& rows, std::int64_t limit,
                               bool utf8) {
    if (block.size() > MAX_BLOCK) throw std::invalid_argument("a block must be smaller than 4 GiB");
    rows.clear();
    std::size_t at = 0;
    while (static_cast<std::int64_t>(rows.count()) < limit && at < block.size()) {
        const std::size_t start = block[at] == LF ? at + 1 : at;
        const std::size_t space = block.find(' ', start);
        if (space == Bytes::npos) break;
        const std::size_t values = space + 1;
        if ((block.size() - values) / width < dim) break;
        const std::size_t end = values + dim * width;
        Row& row = rows.add(start, end, start, space, values);
        ++rows.lines;
        const Bytes token = block.substr(start, space - start);
        if (token.empty()) {
            row.blame(Fault::empty_token, start, values);
        } else if (token.find('\0') != Bytes::npos || token.find(LF) != Bytes::npos) {
            row.blame(Fault::nul_in_token, start, space);  // no token has these: the records do not line up
        } else if (utf8 && !is_utf8(token)) {
            row.blame(Fault::invalid_utf8, start, space);
        } else if (token.find(CR) != Bytes::npos) {
            row.remark(Note::cr_in_token);
        }
        at = end;
    }
    return at;
}

// Find the tokens of a block, each ended by LF, whose vectors are the rows of a matrix [n, dim] that stands elsewhere:
// `fill_binary` and `check_binary` take that matrix for their block.
inline void scan_tokens(Bytes block, std::size_t dim, std::size_t width, Rows& rows, bool utf8) {
    check_whole_lines(block);
    rows.clear();
    for (std::size_t start = 0, end; start < block.size(); start = end + 1) {
        end = block.find(LF, start);
        const std::size_t values = rows.count() * dim * width;
        if (values > MAX_BLOCK) throw std::invalid_argument("a matrix must be smaller than 4 GiB");
        Row& row = rows.add(start, end, start, end, values);
        ++rows.lines;
        const Bytes token = block.substr(start, end - start);
        if (token.empty()) {
            row.blame(Fault::empty_token, start, end);
        } else if (token.find('\0') != Bytes::npos) {
            row.blame(Fault::nul_in_token, start, end);
        } else if (utf8 && !is_utf8(token)) {
            row.blame(Fault::invalid_utf8, start, end);
        } else if (token.find(CR) != Bytes::npos) {
            row.remark(Note::cr_in_token);
        }
    }
}

// The value of a float16's bits; every float16 is a float64. A NaN keeps its sign alone.
inline double widen_half(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double value;
    if (exponent == 31) {
        value = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    } else {
        value = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    }
    return std::copysign(value, bits & 0x8000 ? -1.0 : 1.0);
}

template <class Bits>
inline double read_value(const char* p, bool swap) {
    Bits bits = load<Bits>(p);
    if (swap) bits = byteswap(bits);
    if constexpr (sizeof(Bits) == 2) return widen_half(bits);
    if constexpr (sizeof(Bits) == 4) return std::bit_cast<float>(bits);
    if constexpr (sizeof(Bits) == 8) return std::bit_cast<double>(bits);
}

// Whether all values are finite: none has an exponent of ones only.
inline bool all_finite(const char* vector, std::size_t dim) {
    unsigned bad = 0;
    for (std::size_t i = 0; i < dim; ++i) {
        bad |= static_cast<unsigned>((load<std::uint32_t>(vector + 4 * i) & 0x7F800000) == 0x7F800000);
    }
    return bad == 0;
}

// The vector of a record into `vector`; false after marking its fault.
template <class Bits>
inline bool read_record(Bytes block, Row& row, const Values& values, bool swap, char* vector) {
    constexpr std::size_t width = sizeof(Bits);
    const char* const from = block.data() + row.values;
    if (width == 4 && !swap && all_finite(from, values.dim)) {
        std::memcpy(vector, from, values.dim * 4);
        return finish_row(vector, row, values);
    }
    Odd odd;
    for (std::size_t i = 0; i < values.dim; ++i) {
        const double wide = read_value<Bits>(from + width * i, swap);
        float value = static_cast<float>(wide);
        if (!std::isfinite(value)) {
            const std::size_t at = row.values + width * i;
            if (std::isfinite(wide)) {
                row.blame(Fault::out_of_range, at, at + width);
                return false;
            }
            if (odd.start == Odd::NOWHERE) odd = {at, at + width};
            if (values.nonfinite == Nonfinite::zero) value = 0;
        }
        store(vector + 4 * i, value);
    }
    return admit(odd, row, values.nonfinite) && finish_row(vector, row, values);
}

using ReadRecord = bool (*)(Bytes, Row&, const Values&, bool, char*);

inline ReadRecord reader_of(std::size_t width) {
    return width == 2   ? read_record<std::uint16_t>
           : width == 4 ? read_record<std::uint32_t>
                        : read_record<std::uint64_t>;
}

// A record must lie in the block that is given with it, for the width and dim that are given with it.
inline void check_record_within(const Row& row, Bytes block, std::size_t dim, std::size_t width) {
    if (row.values > block.size() || (block.size() - row.values) / width < dim) {
        throw std::out_of_range("a record reaches beyond the " + std::to_string(block.size()) + " bytes given");
    }
}

// As `fill_text`.
inline std::int64_t fill_binary(Bytes block, Rows& rows, std::int64_t start, std::int64_t stop, char* out,
                                const Values& values, std::size_t width, bool big_endian) {
    const ReadRecord read = reader_of(width);
    const bool swap = big_endian == (std::endian::native == std::endian::little);
    for (std::int64_t position = start; position < stop; ++position) {
        Row& row = rows.rows[rows.kept[position]];
        check_record_within(row, block, values.dim, width);
        if (!read(block, row, values, swap, out + (position - start) * values.dim * 4) &&
            row.fault != Fault::nonfinite_value) {
            return position;
        }
    }
    return -1;
}

// As `check_text`.
inline void check_binary(Bytes block, Rows& rows, const Values& values, std::size_t width, bool big_endian) {
    const ReadRecord read = reader_of(width);
    const bool swap = big_endian == (std::endian::native == std::endian::little);
    std::vector<float> vector(values.dim);
    for (Row& row : rows.rows) {
        if (row.fault != Fault::none) continue;
        check_record_within(row, block, values.dim, width);
        read(block, row, values, swap, reinterpret_cast<char*>(vector.data()));
    }
}

}  // namespace vec2emb
