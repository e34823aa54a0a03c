// Rows of text, the careful way: `token SEP value SEP .. value LF`.
//
// A row ends at LF only. One CR before it, and the separators before that, belong to no field. The last `dim` fields
// are the vector; the run of separators in front of them separates; everything before that run is the token, byte for
// byte. If nothing stands before the run, the token is the run less its last byte. A line with nothing on it is no row.
//
// Everything here is right for every row. `text_loops.hpp` is faster for plain rows and comes back here for the rest.
#pragma once

#include <array>
#include <cmath>
#include <limits>

#include "numerals.hpp"
#include "rows.hpp"
#include "utf8.hpp"

namespace vec2emb {

// What to do with values, once for all rows.
struct Values {
    std::size_t dim;
    Nonfinite nonfinite;
    bool unit_norm;
    float limit;  // values beyond it in magnitude are out of range

    Values(std::size_t dim, Nonfinite nonfinite, bool unit_norm, double limit)
        : dim(dim), nonfinite(nonfinite), unit_norm(unit_norm), limit(round_down(limit)) {}

private:
    // The largest float32 that is not above `limit`: a float32 exceeds the one exactly if it exceeds the other.
    static float round_down(double limit) {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        if (std::isnan(limit)) return infinity;  // nothing exceeds it
        const float near = static_cast<float>(limit);
        return double{near} > limit ? std::nextafter(near, -infinity) : near;
    }
};

inline void check_whole_lines(Bytes text) {
    if (!text.empty() && text.back() != LF) {
        throw std::invalid_argument("a block of " + std::to_string(text.size()) +
                                    " bytes must lie within its buffer and end with LF");
    }
    if (text.size() > MAX_BLOCK) throw std::invalid_argument("a block must be smaller than 4 GiB");
}

// Where the fields of the line text[start:stop] end: before one CR and the separators in front of it.
inline std::size_t end_of_fields(Bytes text, std::size_t start, std::size_t stop) {
    if (stop > start && text[stop - 1] == CR) --stop;
    while (stop > start && is_separator(text[stop - 1])) --stop;
    return stop;
}

// Find what is wrong or odd with a token.
inline void look_at_token(Bytes text, Row& row, bool utf8) {
    const Bytes token = text.substr(row.token_start, row.token_end - row.token_start);
    if (token.find('\0') != Bytes::npos) {
        row.blame(Fault::nul_in_token, row.token_start, row.token_end);
    } else if (utf8 && !is_utf8(token)) {
        row.blame(Fault::invalid_utf8, row.token_start, row.token_end);
    } else {
        if (token.find(CR) != Bytes::npos) row.remark(Note::cr_in_token);
        const std::size_t last = token.find_last_of(" \t");
        if (last != Bytes::npos && is_numeral(token.substr(last + 1))) row.remark(Note::numeral_ended_token);
    }
}

// Walk back over `dim` fields; what stands before them is the token and its separator.
inline void scan_row(Bytes text, std::size_t start, std::size_t end, std::size_t dim, Rows& rows, bool utf8) {
    std::size_t field = end, run = end;
    for (std::size_t taken = 1; taken <= dim; ++taken) {
        field = run;
        while (field > start && !is_separator(text[field - 1])) --field;
        run = field;
        while (run > start && is_separator(text[run - 1])) --run;
        if (field == start || (run == start && taken < dim)) {
            rows.add(start, end, start, start, start).blame(Fault::too_few_values, start, end);
            return;
        }
    }
    const std::size_t token_end = run > start ? run : field - 1;
    Row& row = rows.add(start, end, start, token_end, field);
    if (token_end == start) {
        row.blame(Fault::empty_token, start, field);
        return;
    }
    if (run > start && field - run > 1) row.remark(Note::excess_separators);
    look_at_token(text, row, utf8);
}

// The first separator at or after `start` (there is one), and whether the bytes before it need a closer look.
struct FirstField {
    std::size_t end;
    bool plain;  // ASCII without NUL and CR
};

inline FirstField first_field(Bytes text, std::size_t start) {
    std::size_t at = start;
    std::uint64_t odd = 0;
    while (text.size() - at >= 8) {
        const std::uint64_t word = load_word(text.data() + at);
        const std::uint64_t separators = words::equal(word, ' ') | words::equal(word, '\t');
        const std::uint64_t strange = (word & words::HIGHS) | words::zeros(word) | words::equal(word, CR);
        if (separators) {
            // Only what stands before the lowest separator counts.
            odd |= strange & (separators ^ (separators - 1));
            return {at + words::before_first(separators), odd == 0};
        }
        odd |= strange;
        at += 8;
    }
    for (; at < text.size() && !is_separator(text[at]); ++at) {
        odd |= static_cast<unsigned char>(text[at]) >= 0x80 || text[at] == '\0' || text[at] == CR;
    }
    return {at, odd == 0};
}

// End the line text[start:stop], in which `inner` fields begin after a separator.
inline void end_line(Bytes text, std::size_t start, std::size_t stop, std::size_t inner, std::size_t dim, Rows& rows,
                     bool utf8) {
    const std::size_t end = end_of_fields(text, start, stop);
    if (end == start) {
        if (rows.first_blank < 0) rows.first_blank = rows.lines;
        ++rows.blank_after;
        ++rows.lines;
        return;
    }
    rows.blank_inside += rows.blank_after;
    rows.blank_after = 0;
    // A CR at the end that stands behind a separator looked like a field.
    if (text[stop - 1] == CR && is_separator(text[stop - 2])) --inner;
    const auto slow = [&] { scan_row(text, start, end, dim, rows, utf8); };
    if (inner != dim || is_separator(text[start])) {
        slow();
    } else {
        // One field and `dim` more: the first is the token, if one byte separates it.
        const FirstField token = first_field(text, start);
        if (is_separator(text[token.end + 1])) {
            slow();
        } else {
            Row& row = rows.add(start, end, start, token.end, token.end + 1);
            if (!token.plain) look_at_token(text, row, utf8);
        }
    }
    ++rows.lines;
}

// A number that was parsed, and where it stops.
struct Plain {
    const char* stop;
    float value;
};

struct Profile {
    std::size_t start, end, fields, numerals;
};

// The first `limit` rows of text that ends with LF: their number of fields, and how many of the last are numerals.
inline std::vector<Profile> profile_text(Bytes text, std::int64_t limit) {
    check_whole_lines(text);
    std::vector<Profile> found;
    std::size_t start = 0;
    while (start < text.size() && static_cast<std::int64_t>(found.size()) < limit) {
        const std::size_t stop = text.find(LF, start), end = end_of_fields(text, start, stop);
        if (end > start) {
            Profile row{start, end, 0, 0};
            bool numerals = true;
            for (std::size_t at = end; at > start;) {  // backwards, because the last ones are asked for
                if (is_separator(text[at - 1])) {
                    --at;
                    continue;
                }
                const std::size_t field_end = at;
                while (at > start && !is_separator(text[at - 1])) --at;
                ++row.fields;
                numerals = numerals && is_numeral(text.substr(at, field_end - at));
                if (numerals) ++row.numerals;
            }
            found.push_back(row);
        }
        start = stop + 1;
    }
    return found;
}

// Scale to length 1 in float64, summed in order; rows of zeros and rows that are not finite stay as they are.
inline void normalise(char* vector, std::size_t dim) {
    double total = 0;
    for (std::size_t i = 0; i < dim; ++i) {
        const double value = load<float>(vector + 4 * i);
        total += value * value;
    }
    if (total == 0 || !std::isfinite(total)) return;
    const double norm = std::sqrt(total);
    for (std::size_t i = 0; i < dim; ++i) {
        store(vector + 4 * i, static_cast<float>(load<float>(vector + 4 * i) / norm));
    }
}

// Whether a finite value exceeds the limit. No early way out, so that compilers make vectors of it.
inline bool any_beyond(const char* vector, std::size_t dim, float limit) {
    unsigned beyond = 0;
    for (std::size_t i = 0; i < dim; ++i) {
        const float magnitude = std::fabs(load<float>(vector + 4 * i));
        beyond |= static_cast<unsigned>(magnitude > limit) &
                  static_cast<unsigned>(magnitude <= std::numeric_limits<float>::max());
    }
    return beyond != 0;
}

// What is left to do when all values of a row stand in `vector`; false after marking a fault.
inline bool finish_row(char* vector, Row& row, const Values& values) {
    if (values.unit_norm) normalise(vector, values.dim);
    if (any_beyond(vector, values.dim, values.limit)) {
        row.blame(Fault::out_of_range, row.values, row.end);
        return false;
    }
    return true;
}

// Where a value was that is not finite; NOWHERE if all were.
struct Odd {
    static constexpr std::size_t NOWHERE = static_cast<std::size_t>(-1);
    std::size_t start = NOWHERE, end = 0;
};

// Remark on values that are not finite; false if they are a fault.
inline bool admit(Odd odd, Row& row, Nonfinite policy) {
    if (odd.start == Odd::NOWHERE) return true;
    row.remark(Note::nonfinite);
    if (policy != Nonfinite::error) return true;
    row.blame(Fault::nonfinite_value, odd.start, odd.end);
    return false;
}

// Parse the field text[at:stop] of a row; false after marking a fault.
inline bool parse_field(Bytes text, std::size_t at, std::size_t stop, Row& row, Nonfinite policy, Odd& odd,
                        float& value) {
    switch (parse_numeral(text.substr(at, stop - at), value)) {
        case Numeral::word:
            row.blame(Fault::not_a_numeral, at, stop);
            return false;
        case Numeral::out_of_range:
            row.blame(Fault::out_of_range, at, stop);
            return false;
        case Numeral::nonfinite:
            if (odd.start == Odd::NOWHERE) odd = {at, stop};
            if (policy == Nonfinite::zero) value = 0;
            return true;
        case Numeral::finite:
            return true;
    }
    return true;
}

// The vector of a row into `vector`; false after marking its fault.
inline bool parse_row(Bytes text, Row& row, const Values& values, char* vector) {
    std::size_t at = row.values;
    Odd odd;
    for (std::size_t i = 0; i < values.dim; ++i) {
        while (at < text.size() && is_separator(text[at])) ++at;
        std::size_t stop = at;
        while (stop < row.end && !is_separator(text[stop])) ++stop;
        float value;
        if (!parse_field(text, at, stop, row, values.nonfinite, odd, value)) return false;
        store(vector + 4 * i, value);
        at = stop;
    }
    return admit(odd, row, values.nonfinite) && finish_row(vector, row, values);
}

// The rows of a block must lie in the block that is given with them.
inline void check_rows_within(const Rows& rows, Bytes block) {
    // Rows stand in order, so the last one reaches furthest.
    if (rows.count() && rows.rows.back().end > block.size()) {
        throw std::out_of_range("the rows reach beyond the " + std::to_string(block.size()) + " bytes given");
    }
}

}  // namespace vec2emb
