// Decimal numerals of all shapes, each parsed by every way the kernel has, against `strtod` in the C locale, which rounds
// to the nearest float64, and one more rounding to float32:
//
//   g++ -std=c++20 -O2 -ffp-contract=off -I vec2emb/_kernel tests/kernel/native/numbers.cpp -o numbers
//   ./numbers [first seed] [numerals]
//
// With `print` in front of the arguments the numerals are written to stdout instead, a line each with the bits that
// `strtod` gives, so that another judge can be asked.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "dispatch.hpp"

using namespace vec2emb;

namespace {

std::mt19937_64 generator;

std::size_t below(std::size_t limit) { return generator() % limit; }

std::string digits(std::size_t count) {
    std::string text;
    while (count-- > 0) text += static_cast<char>('0' + below(10));
    return text;
}

// Digits with a point anywhere or nowhere, with zeros in front or behind now and then.
std::string with_point(std::string text) {
    if (below(8) == 0) text.insert(0, std::string(below(25), '0'));
    if (below(8) == 0) text += std::string(below(25), '0');
    if (below(4)) text.insert(below(text.size() + 1), 1, '.');
    return text;
}

std::string exponent(int value) {
    std::string text(1, "eE"[below(2)]);
    if (value >= 0 && below(2)) text += '+';
    if (value < 0) text += '-';
    if (below(4) == 0) text += std::string(below(4), '0');
    return text + std::to_string(std::abs(value));
}

int between(int least, int most) { return least + static_cast<int>(below(static_cast<std::size_t>(most - least + 1))); }

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
    char text[1600];
    return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, format, arguments...))};
}

float random_float() { return std::bit_cast<float>(static_cast<std::uint32_t>(1 + below(0x7F7FFFFF))); }

float subnormal() { return std::bit_cast<float>(static_cast<std::uint32_t>(1 + below(0x00900000))); }

// The point half-way between a float32 and the next, which is a float64.
double tie() {
    const auto bits = static_cast<std::uint32_t>(below(4) ? below(0x7F800000) : below(0x00900000));
    const float low = std::bit_cast<float>(bits);
    const float high = std::bit_cast<float>(bits + 1);
    return std::isfinite(high) ? (double{low} + double{high}) / 2 : 340282356779733661637539395458142568448.0;
}

// The float64 beside it, or the one beside that.
double nearly(double value) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(between(-2, 2)));
}

// Digits of which the last may be changed, or which have a few more behind them. There is a point, so no value is lost
// with zeros at the end.
std::string varied(std::string mantissa) {
    if (below(2)) mantissa.resize(mantissa.find_last_not_of('0') + 1);
    switch (below(4)) {
        case 0: mantissa += digits(1 + below(3)); break;
        case 1: mantissa += std::string(below(40), '0') + '1'; break;
        case 2: if (mantissa.size() > 3 && is_digit(mantissa.back()) && mantissa.back() > '0') --mantissa.back(); break;
        default: break;
    }
    return mantissa;
}

// All digits of a float64, and perhaps a little more or less than that.
std::string exact(double value) {
    const std::string text = formatted(below(2) ? "%.1100f" : "%.780e", value);
    const std::size_t mark = std::min(text.find('e'), text.size());
    return varied(text.substr(0, mark)) + text.substr(mark);
}

// The middle between two float64, which are added up and halved digit by digit; and perhaps a little beside it.
std::string exact_middle(double a, double b) {
    std::string left = formatted("%.1100f", a), right = formatted("%.1100f", b);
    left.insert(0, 1 + std::max(left.size(), right.size()) - left.size(), '0');
    right.insert(0, left.size() - right.size(), '0');
    for (int carry = 0, i = static_cast<int>(left.size()) - 1; i >= 0; --i) {
        if (left[i] == '.') continue;
        const int sum = left[i] - '0' + right[i] - '0' + carry;
        left[i] = static_cast<char>('0' + sum % 10);
        carry = sum / 10;
    }
    int rest = 0;
    for (char& c : left += '0') {
        if (c == '.') continue;
        const int value = 10 * rest + c - '0';
        c = static_cast<char>('0' + value / 2);
        rest = value % 2;
    }
    std::string text = varied(left);
    if (below(2)) return text;
    const std::size_t point = text.find('.'), fraction = text.size() - point - 1;
    return text.erase(point, 1) + "e-" + std::to_string(fraction);  // the same value
}

// Where the float64, and with it the float32, changes.
std::string edge() {
    const double middle = tie();
    return exact_middle(middle, std::bit_cast<double>(std::bit_cast<std::uint64_t>(middle) + (below(2) ? 1 : -1)));
}

std::string random_magnitude() {
    switch (below(16)) {
        case 0: return formatted("%.*f", between(1, 9), static_cast<double>(below(20'000'001)) / 1e6);
        case 1: return with_point(digits(1 + below(25)));
        case 2: return with_point(digits(1 + below(25))) + exponent(between(-70, 60));
        case 3: return with_point(digits(1 + below(25))) + exponent(between(-420, 420));
        case 4: return with_point(digits(14 + below(6)));
        case 5: return with_point(digits(1 + below(19))) + exponent(between(-25, 25));
        case 6: return formatted("%.*g", between(1, 25), double{random_float()});
        case 7: return formatted("%.*e", between(1, 25), double{subnormal()});
        case 8: return formatted("%.*g", between(5, 25), tie());
        case 9: return formatted("%.*e", between(5, 25), nearly(tie()));
        case 10: return formatted("%.17g", nearly(double{random_float()}));
        case 11: return formatted("%.*g", between(1, 20), std::bit_cast<double>(below(0x7FF0000000000000)));
        case 12: return formatted("%.*f", between(1, 30), std::ldexp(static_cast<double>(below(1 << 24)), between(-40, 20)));
        // 2^53 and what is around it; the powers that are exact, and those that are not any more
        case 13: return std::to_string((std::uint64_t{1} << between(50, 63)) + below(5) - 2) + exponent(between(-24, 24));
        case 14:
            switch (below(4)) {
                case 0: return exact(tie());
                case 1: return exact(nearly(tie()));
                case 2: return edge();
                default: return digits(1 + below(6));
            }
        default: return below(40) ? "0." + digits(between(4, 8)) : with_point(digits(1 + below(800)));
    }
}

std::string random_numeral() {
    const std::string magnitude = random_magnitude();
    const std::size_t sign = below(20);
    return (sign < 8 ? "-" : sign == 8 ? "+" : "") + magnitude;
}

float judged(const std::string& numeral) { return static_cast<float>(std::strtod(numeral.c_str(), nullptr)); }

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

[[noreturn]] void differ(const char* who, const std::string& numeral, float found, float expected) {
    std::fprintf(stderr, "%s: %s is %08" PRIx32 ", expected %08" PRIx32 "\n", who, numeral.c_str(), bits(found), bits(expected));
    std::abort();
}

constexpr std::size_t DIM = 4, ROWS = 64;

struct Table {
    std::string text;
    std::vector<std::string> numerals;
    std::vector<float> expected;
};

Table random_table() {
    Table table;
    for (std::size_t row = 0; row < ROWS; ++row) {
        table.text += 't';
        const char separator = " \t"[below(16) == 0];
        for (std::size_t i = 0; i < DIM; ++i) {
            table.numerals.push_back(random_numeral());
            table.expected.push_back(judged(table.numerals.back()));
            table.text += separator + table.numerals.back();
        }
        table.text += LF;
    }
    return table;
}

// One by one, the careful way.
void check_fields(const Table& table) {
    const std::uint64_t a = generator() >> below(64), b = generator() >> below(64);
    if (upper_of_halves(a, b) != upper_of_product(a, b)) std::abort();
    for (std::size_t i = 0; i < table.numerals.size(); ++i) {
        float value = 0;
        const Numeral kind = parse_numeral(table.numerals[i], value);
        const bool finite = std::isfinite(table.expected[i]);
        if (kind != (finite ? Numeral::finite : Numeral::out_of_range) || bits(value) != bits(table.expected[i])) {
            differ("parse_numeral", table.numerals[i], value, table.expected[i]);
        }
    }
}

// As rows of a block, the quick way.
void check_rows(const Table& table, const Loops& loops) {
    Rows rows;
    loops.scan_text(table.text, DIM, rows, true);
    for (Row& row : rows.rows) row.state = State::fresh;
    rows.keep(true);
    std::vector<float> out(ROWS * DIM);
    const Values values(DIM, Nonfinite::error, false, std::numeric_limits<double>::infinity());
    for (std::size_t at = 0; at < ROWS;) {
        const std::int64_t stop = loops.fill_text(table.text, rows, static_cast<std::int64_t>(at), ROWS,
                                                  reinterpret_cast<char*>(out.data() + at * DIM), values);
        const std::size_t end = stop < 0 ? ROWS : static_cast<std::size_t>(stop);
        for (std::size_t i = at * DIM; i < end * DIM; ++i) {
            if (bits(out[i]) != bits(table.expected[i])) differ(loops.name, table.numerals[i], out[i], table.expected[i]);
        }
        if (end < ROWS) {  // the first of its values that is too large
            std::size_t i = end * DIM;
            while (i < (end + 1) * DIM && std::isfinite(table.expected[i])) ++i;
            const Row& row = rows.rows[end];
            const Bytes field = Bytes(table.text).substr(row.fault_start, row.fault_end - row.fault_start);
            if (i == (end + 1) * DIM || row.fault != Fault::out_of_range || field != table.numerals[i]) {
                differ(loops.name, std::string(field), 0, table.expected[std::min(i, ROWS * DIM - 1)]);
            }
        }
        at = end + 1;
    }
}

}  // namespace

int main(int count, char** arguments) {
    const bool printing = count > 1 && Bytes(arguments[1]) == "print";
    if (printing) ++arguments, --count;
    const unsigned long first = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1;
    const unsigned long wanted = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 1'000'000;
    unsigned long done = 0;
    for (unsigned long seed = first; done < wanted; ++seed, done += ROWS * DIM) {
        generator.seed(seed);
        const Table table = random_table();
        if (printing) {
            for (std::size_t i = 0; i < table.numerals.size(); ++i) {
                std::printf("%s %" PRIu32 "\n", table.numerals[i].c_str(), bits(table.expected[i]));
            }
        } else {
            check_fields(table);
            check_rows(table, PORTABLE);
            check_rows(table, best_loops());
        }
    }
    if (!printing) std::printf("%lu numerals, no difference\n", done);
}
