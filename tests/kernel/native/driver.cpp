// Random blocks through the kernel's C++ alone, under the sanitizers, where a byte read too far is an error:
//
//   g++ -std=c++20 -O2 -g -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all
//       -I vec2emb/_kernel tests/kernel/native/driver.cpp -o driver && ./driver [first seed] [blocks] [file ..]
//
// Half of the blocks are pieces of the files named, with bytes and fields changed. Each block lies in an allocation of
// exactly its size, and has a seed of its own, the one after that of the block before it. Plain and careful loops must
// tell the same story of it; what the right story is, the Python suite says: with `print` in front of the arguments the
// blocks are written to stdout instead, and both kernels read them there.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "arithmetic.hpp"
#include "counting.hpp"
#include "dispatch.hpp"
#include "token_index.hpp"
#include "writing.hpp"

using namespace vec2emb;

namespace {

std::mt19937_64 generator;
unsigned long seed;  // of the block under way: with it alone, the block comes again

std::size_t below(std::size_t limit) { return generator() % limit; }

const char* const PIECES[] = {
    " ",  " ",   " ",    " ",    "\t",    "\n",   "\n",       "\r",      ".",       "-",     "+",    "e",
    "E",  "0",   "1",    "9",    "a",     "the",  "nan",      "-inf",    "1e39",    "1e-50", "1_0",  "\xc3\xa9",
    "-3", "\xff", "0x1", "\xe3\x80\x80", "1.5", "12345678901234567", "-0.44251", "0.18785", "1e-05", "123456.7890123",
    "0.12345678901234567890", "abcdefghijklmnopqrs",
};

std::string random_piece() {
    if (below(60) == 0) return std::string(1, static_cast<char>(below(256)));
    return PIECES[below(std::size(PIECES))];
}

std::string random_number() {
    char number[40];
    std::snprintf(number, sizeof number, "%.*f", static_cast<int>(below(9)),
                  static_cast<double>(below(2000000)) / 1e5 - 10);
    return number;
}

std::string random_text(std::size_t dim) {
    std::string text;
    if (below(2)) {
        for (std::size_t n = below(80); n > 0; --n) text += random_piece();
    } else {
        for (std::size_t n = below(12); n > 0; --n) {
            text += below(8) ? "t" + std::to_string(below(9)) : random_piece();
            for (std::size_t i = 0; i < dim; ++i) text += ' ' + (below(40) ? random_number() : random_piece());
            text += below(10) ? "\n" : random_piece() + "\n";
        }
    }
    return text;
}

std::string random_records(std::size_t dim, std::size_t width) {
    std::string bytes;
    for (std::size_t n = below(6); n > 0; --n) {
        if (below(2)) bytes += LF;
        bytes += PIECES[below(std::size(PIECES))];
        bytes += ' ';
        for (std::size_t i = 0; i < dim * width; ++i) bytes += static_cast<char>(below(256));
    }
    bytes.resize(bytes.size() - std::min(bytes.size(), below(9)));
    return bytes;
}

std::vector<std::string> corpus;  // the files named, whole

// A piece of a real file in which some bytes are changed, some fields put in, taken out or exchanged.
std::string changed_piece() {
    const std::string& file = corpus[below(corpus.size())];
    std::size_t from = below(file.size());
    if (below(4)) from = file.rfind(LF, from) + 1;  // mostly from the start of a line; npos + 1 is 0
    std::string text = file.substr(from, below(4) ? 1 + below(400) : 1 + below(3000));
    for (std::size_t n = below(5); n > 0 && !text.empty(); --n) {
        const std::size_t at = below(text.size()), field = std::min(text.find_first_of(" \t\n", at), text.size());
        switch (below(7)) {
            case 0: text[at] = static_cast<char>(below(256)); break;
            case 1: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
            case 2: text.insert(at, random_piece()); break;
            case 3: text.erase(at, field - at); break;
            case 4: text.replace(at, field - at, below(2) ? random_number() : random_piece()); break;
            case 5: text.insert(field, below(2) ? " " + random_number() : " "); break;
            default: text.insert(at, text.substr(below(text.size()), below(60))); break;
        }
    }
    return text;
}

// A block, and all that is asked of it.
struct Input {
    std::string bytes;
    bool binary;
    std::size_t dim, width;
    bool utf8, unit_norm, seen_too, big_endian;
    Nonfinite nonfinite;
    double limit;

    Values values() const { return {dim, nonfinite, unit_norm, limit}; }
};

Input random_input() {
    static constexpr double LIMITS[] = {std::numeric_limits<double>::infinity(), 3.4028234663852886e38, 65504, 5, 0.1};
    Input input{};
    input.binary = below(5) == 0;
    input.dim = 1 + below(below(8) ? 6 : 60);
    input.width = std::size_t{2} << below(3);
    input.utf8 = below(4) != 0;
    input.unit_norm = below(3) == 0;
    input.seen_too = below(2) != 0;
    input.big_endian = below(2) != 0;
    input.nonfinite = static_cast<Nonfinite>(below(3));
    input.limit = LIMITS[below(std::size(LIMITS))];
    input.bytes = !corpus.empty() && below(2) ? changed_piece()
                  : input.binary              ? random_records(input.dim, input.width)
                                              : random_text(input.dim);
    if (!input.binary && !input.bytes.empty() && input.bytes.back() != LF) input.bytes += LF;
    return input;
}

void print(const Input& input) {
    std::printf("%d %zu %zu %d %d %d %d %d %.17g %zu\n", input.binary, input.dim, input.width, input.utf8,
                input.unit_norm, input.seen_too, input.big_endian, static_cast<int>(input.nonfinite), input.limit,
                input.bytes.size());
    std::fwrite(input.bytes.data(), 1, input.bytes.size(), stdout);
}

// Bytes in an allocation of their own, of exactly their size.
struct Exact {
    std::unique_ptr<char[]> bytes;
    std::size_t size;
    explicit Exact(const std::string& text) : bytes(new char[text.size()]), size(text.size()) {
        std::memcpy(bytes.get(), text.data(), size);
    }
    Bytes view() const { return {bytes.get(), size}; }
};

[[noreturn]] void differ(const char* what, Bytes text) {
    std::fprintf(stderr, "%s differs for block %lu:\n", what, seed);
    for (const char c : text) std::fprintf(stderr, "\\x%02x", static_cast<unsigned char>(c));
    std::fprintf(stderr, "\n");
    std::abort();
}

void check(bool same, const char* what, Bytes text) {
    if (!same) differ(what, text);
}

bool same(const Row& a, const Row& b) {
    return a.start == b.start && a.end == b.end && a.token_start == b.token_start && a.token_end == b.token_end &&
           a.values == b.values && a.line == b.line && a.fault == b.fault && a.fault_start == b.fault_start &&
           a.fault_end == b.fault_end && a.notes == b.notes && a.id == b.id && a.state == b.state;
}

// The rows as the careful functions alone find them.
void scan_carefully(Bytes text, std::size_t dim, Rows& rows, bool utf8) {
    rows.clear();
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t stop = text.find(LF, start), end = end_of_fields(text, start, stop);
        if (end > start) scan_row(text, start, end, dim, rows, utf8);
        ++rows.lines;
        start = stop + 1;
    }
}

void text_block(const Input& input, const Loops& loops) {
    const std::size_t dim = input.dim;
    const Exact block(input.bytes);
    const Bytes text = block.view();
    const Values values = input.values();

    Rows rows, careful;
    loops.scan_text(text, dim, rows, input.utf8);
    scan_carefully(text, dim, careful, input.utf8);
    check(rows.count() == careful.count(), "the number of rows", text);
    for (std::size_t i = 0; i < rows.count(); ++i) check(same(rows.rows[i], careful.rows[i]), "a row", text);
    profile_text(text, 5);
    if (below(64) == 0) {
        TokenIndex index;
        index.add_rows(text, rows, false);
        index.add_rows(text, careful, true);
        index.find_rows(text, careful);
        careful.truncate(static_cast<std::int64_t>(below(careful.count() + 1)));
    } else {
        for (Row& row : rows.rows) row.state = State::fresh;
    }

    rows.keep(input.seen_too);
    Rows again = rows;
    const std::size_t count = rows.kept.size();
    std::vector<float> out(count * dim), vector(dim);
    char* const to = reinterpret_cast<char*>(out.data());
    for (std::size_t at = 0; at < count;) {
        const std::int64_t stop = loops.fill_text(text, rows, static_cast<std::int64_t>(at),
                                                  static_cast<std::int64_t>(count), to + at * dim * 4, values);
        const std::size_t end = stop < 0 ? count : static_cast<std::size_t>(stop);
        for (; at < end || (at == end && stop >= 0); ++at) {
            Row& row = again.rows[again.kept[at]];
            const bool good = parse_row(text, row, values, reinterpret_cast<char*>(vector.data()));
            check(same(row, rows.rows[rows.kept[at]]), "a filled row", text);
            check(good == (at < end && row.fault != Fault::nonfinite_value), "a fault", text);
            if (good) check(!std::memcmp(vector.data(), to + at * dim * 4, dim * 4), "a vector", text);
        }
    }
    loops.check_text(text, rows, values);
}

void record_block(const Input& input) {
    const std::size_t dim = input.dim;
    const Exact block(input.bytes);
    Rows rows;
    scan_binary(block.view(), dim, input.width, rows, 5, input.utf8);
    for (Row& row : rows.rows) row.state = State::fresh;
    rows.keep(true);
    const Values values = input.values();
    const auto count = static_cast<std::int64_t>(rows.kept.size());
    std::vector<char> out(rows.kept.size() * dim * 4);
    fill_binary(block.view(), rows, 0, count, out.data(), values, input.width, input.big_endian);
    check_binary(block.view(), rows, values, input.width, input.big_endian);
    std::vector<char> sums(8 * dim), halves(out.size() / 2);
    add_rows(sums.data(), {out.data(), out.size()}, dim);
    add_square_deviations(sums.data(), sums.data(), {out.data(), out.size()}, dim);
    cast_rows({out.data(), out.size()}, halves.data(), below(2) ? Cast::float16 : Cast::bfloat16);
    std::string tokens;
    for (std::int64_t i = 0; i < count; ++i) tokens += "a\n";
    format_rows(tokens, {out.data(), out.size()}, dim);
}

// Tokens of all sizes, against std::map.
void tokens() {
    TokenIndex index(static_cast<std::int64_t>(below(100)));
    std::map<std::string, std::uint32_t> expected;
    std::string lines;
    for (int i = 0; i < 3000; ++i) {
        const std::size_t size = below(400) ? below(40) : below(3 << 20);
        const std::string token(size, static_cast<char>('a' + below(26)));
        const auto [place, fresh] = expected.emplace(token, static_cast<std::uint32_t>(expected.size()));
        check(index.add(token) == place->second, "an id", token.substr(0, 50));
        if (fresh) lines += token + LF;
    }
    const Exact exact(lines);
    TokenIndex view(exact.view(), nullptr);
    check(!view.first_duplicate && view.size() == expected.size() && view.nbytes() == lines.size(), "a view", "");
    std::string joined;
    index.pieces(0, index.size(), [&](Bytes piece) { joined.append(piece); });
    check(joined == lines, "the tokens joined", "");
    for (const auto& [token, id] : expected) {
        check(index.token(id) == token && view.token(id) == token && view.get(token) == id, "a token", "");
    }
}

// Text in blocks of any size, counted, against a loop over its bytes.
void counts() {
    TokenCounter counter, half;
    std::map<std::string, std::int64_t> expected;
    for (int i = 0; i < 20; ++i) {
        std::string text;
        for (std::size_t n = below(200); n > 0; --n) {
            text += below(2) ? PIECES[below(std::size(PIECES))] : std::string(1 + below(2), " \t\n\v\f\r"[below(6)]);
        }
        const Exact exact(text);
        (below(2) ? counter : half).add_text(exact.view());
        std::string token;
        for (const char c : text + " ") {
            if (c != ' ' && (c < '\t' || c > '\r')) {
                token += c;
            } else if (!token.empty()) {
                ++expected[token];
                token.clear();
            }
        }
    }
    counter.merge(half);
    check(counter.size() == expected.size(), "the number of tokens", "");
    const auto places = counter.by_bucket(1);
    std::vector<char> lines(counter.nbytes()), numbers(8 * counter.size());
    counter.write(places, lines.data(), numbers.data());
    std::string sorted;
    std::size_t at = 0;
    std::map<std::string, std::int64_t, std::less<>> by_bytes(expected.begin(), expected.end());
    for (const auto& [token, count] : by_bytes) {
        sorted += token + LF;
        check(load<std::int64_t>(numbers.data() + 8 * at++) == count, "a count", token);
    }
    check(sorted == std::string(lines.begin(), lines.end()), "the order of tokens", "");
    TokenCounter again;
    again.add_lines({lines.data(), lines.size()}, numbers.data(), counter.size());
    check(again.total() == counter.total() && again.by_count().size() == counter.size(), "a sum", "");
}

}  // namespace

int main(int count, char** arguments) {
    const bool printing = count > 1 && Bytes(arguments[1]) == "print";
    if (printing) ++arguments, --count;
    const unsigned long first = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1;
    const unsigned long blocks = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 100000;
    for (int i = 3; i < count; ++i) {
        std::ifstream file(arguments[i], std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        if (corpus.back().empty()) corpus.pop_back();
    }
    for (unsigned long i = first; i < first + blocks; ++i) {
        generator.seed(seed = i);
        const Input input = random_input();
        if (printing) {
            print(input);
            continue;
        }
        if (input.binary) {
            record_block(input);
        } else {
            text_block(input, i % 2 ? best_loops() : PORTABLE);
        }
        if (i % 20000 == 0) tokens();
        if (i % 400 == 0) counts();
    }
    if (!printing) std::printf("%lu blocks, no difference\n", blocks);
}
