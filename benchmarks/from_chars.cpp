// The kernel's numbers, one thread, beside a plain loop over std::from_chars: compiled by `compiled.py`.
//
//   from_chars FILE DIM RUNS     {"numbers": .., "equal": .., "kernel": [seconds ..], "from_chars": [seconds ..]}
//
// FILE is GloVe text. Its rows are found first, untimed. Then both turn all numbers of all rows into float32, a block of
// 1 MiB of text after the other, into the same kind of buffer, touched before. They take turns.

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "dispatch.hpp"

using namespace vec2emb;

namespace {

constexpr std::size_t BLOCK = 1 << 20, ROOM = 64;

struct Block {
    std::string text;  // whole lines, and room behind them that the kernel may read
    Rows rows;
};

std::vector<Block> blocks_of(const std::string& file, std::size_t dim) {
    std::vector<Block> blocks;
    for (std::size_t start = 0; start < file.size();) {
        std::size_t stop = file.size();
        if (stop - start > BLOCK) stop = file.rfind(LF, start + BLOCK - 1) + 1;
        if (stop <= start) throw std::runtime_error("a row is longer than a block");
        Block& block = blocks.emplace_back();
        block.text = file.substr(start, stop - start);
        loops()->scan_text(block.text, dim, block.rows, true);
        if (block.rows.first_fault() >= 0) throw std::runtime_error("a row has a fault");
        for (std::uint32_t row = 0; row < block.rows.count(); ++row) block.rows.kept.push_back(row);
        block.text.append(ROOM, '\0');
        start = stop;
    }
    return blocks;
}

void with_kernel(Block& block, std::size_t dim, char* out) {
    const Values values(dim, Nonfinite::error, false, std::numeric_limits<float>::infinity());
    const auto count = static_cast<std::int64_t>(block.rows.kept.size());
    if (loops()->fill_text(block.text, block.rows, 0, count, out, values) >= 0) {
        throw std::runtime_error("the kernel found a fault");
    }
}

void with_from_chars(const Block& block, std::size_t dim, char* out) {
    for (const Row& row : block.rows.rows) {
        const char* p = block.text.data() + row.values;
        const char* const end = block.text.data() + row.end;
        for (std::size_t i = 0; i < dim; ++i) {
            double value;
            const auto [stop, error] = std::from_chars(p, end, value);
            if (error != std::errc{}) throw std::runtime_error("from_chars found a fault");
            store(out, static_cast<float>(value));
            out += sizeof(float);
            p = stop + 1;
        }
    }
}

template <class Parse>
double seconds_of(std::vector<Block>& blocks, std::size_t dim, std::vector<char>& out, Parse parse) {
    const auto begun = std::chrono::steady_clock::now();
    for (Block& block : blocks) parse(block, dim, out.data());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void print(const char* name, const std::vector<double>& seconds) {
    std::printf(", \"%s\": [", name);
    for (std::size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.9f", i ? ", " : "", seconds[i]);
    std::printf("]");
}

void measure(const char* path, std::size_t dim, int runs) {
    std::ifstream stream(path, std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(stream), {}};
    if (file.empty() || file.back() != LF) throw std::runtime_error("the file has no rows, or no LF at its end");
    std::vector<Block> blocks = blocks_of(file, dim);

    std::size_t most = 0, rows = 0;
    for (const Block& block : blocks) {
        most = std::max(most, block.rows.count());
        rows += block.rows.count();
    }
    std::vector<char> ours(4 * dim * most), theirs(4 * dim * most);
    bool equal = true;
    for (Block& block : blocks) {
        with_kernel(block, dim, ours.data());
        with_from_chars(block, dim, theirs.data());
        equal = equal && std::memcmp(ours.data(), theirs.data(), 4 * dim * block.rows.count()) == 0;
    }
    std::vector<double> kernel, from_chars;
    for (int i = 0; i < runs; ++i) {
        kernel.push_back(seconds_of(blocks, dim, ours, with_kernel));
        from_chars.push_back(seconds_of(blocks, dim, theirs, with_from_chars));
    }
    std::printf("{\"numbers\": %zu, \"equal\": %s", rows * dim, equal ? "true" : "false");
    print("kernel", kernel);
    print("from_chars", from_chars);
    std::printf("}\n");
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) return 2;
    try {
        measure(arguments[1], std::strtoull(arguments[2], nullptr, 10), std::atoi(arguments[3]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
