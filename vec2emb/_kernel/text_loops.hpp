// The two loops over a block of text that take the time. Included once for each instruction set, in its namespace
// (hence no include guard), because a function is compiled for one set only. The namespace brings:
//
//   masks(p)          in which of the 64 bytes at p a line feed or a separator stands, bit i for byte i
//   count(mask)       how many bits are set
//   plain_decimal(p, number)  parse `-?digits.?digits*` or `-?.digits`. False for anything else, and perhaps for some of
//                     these, long ones among them. May look at READS_AHEAD bytes; what follows is for the caller.

// Find the rows of text that ends with LF. Counting the fields that begin is enough to know most rows.
inline void scan_text(Bytes text, std::size_t dim, Rows& rows, bool utf8) {
    rows.clear();
    std::size_t line = 0, inner = 0;  // where the line starts, and how many fields in it began after a separator
    std::uint64_t after_separator = 0;
    char padded[64];
    for (std::size_t at = 0; at < text.size(); at += 64) {
        const char* p = text.data() + at;
        if (text.size() - at < 64) {
            std::memset(padded, 0, sizeof padded);
            std::memcpy(padded, p, text.size() - at);
            p = padded;
        }
        const Masks found = masks(p);
        std::uint64_t begins = (found.separators << 1 | after_separator) & ~found.separators & ~found.line_feeds;
        after_separator = found.separators >> 63;
        for (std::uint64_t feeds = found.line_feeds; feeds; feeds &= feeds - 1) {
            const std::uint64_t up_to_here = feeds ^ (feeds - 1);
            const std::size_t stop = at + std::countr_zero(feeds);
            end_line(text, line, stop, inner + count(begins & up_to_here), dim, rows, utf8);
            begins &= ~up_to_here;
            inner = 0;
            line = stop + 1;
        }
        inner += count(begins);
    }
}

// A number that is very long, has an exponent, or is none; false if it is not finite, or no number. Marked as rare, and kept
// out of the loops: without that, compilers spend their limits for inlining here, and the loops take up to 1.5 times longer.
#ifdef __GNUC__
__attribute__((noinline, cold))
#endif
inline bool careful_decimal(const char* p, const char* end, Plain& number) {
    const Decimal decimal = read_decimal(p, end);
    if (!decimal.valid || (decimal.stop != end && !is_separator(*decimal.stop))) return false;
    const float magnitude = magnitude_of(decimal, p);
    number = {decimal.stop, decimal.negative ? -magnitude : magnitude};
    return std::isfinite(magnitude);
}

// A row whose numbers are being parsed.
struct Cursor {
    const char* p;
    const char* end;
    char* to;
    char separator;  // files have one; where it is another one, the number goes the slower way

    Cursor(Bytes text, const Row& row, char* vector)
        : p(text.data() + row.values),
          end(text.data() + row.end),
          to(vector),
          separator(text[row.token_end] == '\t' ? '\t' : ' ') {}

    // One number and the one byte behind it; false if it is not finite, not there, or no number.
    bool step() {
        if (p >= end) return false;
        Plain number;
        const bool plain = plain_decimal(p, number) && (*number.stop == separator || number.stop == end);
        if (!plain && !careful_decimal(p, end, number)) [[unlikely]] return false;
        store(to, number.value);
        to += sizeof number.value;
        p = number.stop + 1;
        return true;
    }

    bool done() const { return p == end + 1; }
};

// Parse a row whose numbers are finite and separated by one byte each; false leaves nothing marked.
inline bool parse_plain_row(Bytes text, const Row& row, std::size_t dim, char* vector) {
    Cursor cursor(text, row, vector);
    for (std::size_t i = 0; i < dim; ++i) {
        if (!cursor.step()) return false;
    }
    return cursor.done();
}

// Parse two such rows at once. Where a number starts is known only when the one before it is over; with two rows under
// way the processor has something else to do meanwhile.
inline bool parse_two_plain_rows(Bytes text, const Row& first, const Row& second, std::size_t dim, char* vectors) {
    Cursor a(text, first, vectors), b(text, second, vectors + 4 * dim);
    for (std::size_t i = 0; i < dim; ++i) {
        if (!a.step() || !b.step()) return false;
    }
    return a.done() && b.done();
}

// Whether a row stands far enough from the end of the bytes that are there.
inline bool has_room(Bytes text, const Row& row) { return text.size() - row.end >= READS_AHEAD; }

// The vectors of kept[start:stop] into `out`, one row of `dim` values after the other. Rows that only have a value
// that is not finite are marked and passed over; -1, or the position of the first row with another fault.
inline std::int64_t fill_text(Bytes text, Rows& rows, std::int64_t start, std::int64_t stop, char* out,
                              const Values& values) {
    const std::size_t size = 4 * values.dim;
    for (std::int64_t position = start; position < stop; out += size) {
        Row& row = rows.rows[rows.kept[position]];
        if (position + 1 < stop) {
            Row& next = rows.rows[rows.kept[position + 1]];
            if (has_room(text, row) && has_room(text, next) &&
                parse_two_plain_rows(text, row, next, values.dim, out)) {
                if (!finish_row(out, row, values)) return position;
                out += size;
                if (!finish_row(out, next, values)) return position + 1;
                position += 2;
                continue;
            }
        }
        const bool good = has_room(text, row) && parse_plain_row(text, row, values.dim, out)
                              ? finish_row(out, row, values)
                              : parse_row(text, row, values, out);
        if (!good && row.fault != Fault::nonfinite_value) return position;
        ++position;
    }
    return -1;
}

// Parse every row that has no fault yet, only to learn whether it has one.
inline void check_text(Bytes text, Rows& rows, const Values& values) {
    std::vector<char> vector(4 * values.dim);
    for (Row& row : rows.rows) {
        if (row.fault != Fault::none) continue;
        if (has_room(text, row) && parse_plain_row(text, row, values.dim, vector.data())) {
            finish_row(vector.data(), row, values);
        } else {
            parse_row(text, row, values, vector.data());
        }
    }
}
