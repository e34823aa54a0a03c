// Many threads over the kernel, as the engine uses it, for the thread sanitizer:
//
//   g++ -std=c++20 -O1 -g -ffp-contract=off -fsanitize=thread -pthread -I vec2emb/_kernel tests/kernel/native/threads.cpp
//       -o threads && ./threads [seed] [rounds]
//
// Each thread takes a block under a lock and scans it, waits for its turn to select, and fills its rows unlocked into one
// table. 1, 2, 3 and 16 threads must give the same index and the same table. Then all look words up in the finished
// index at once, without a lock.

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "dispatch.hpp"
#include "token_index.hpp"

using namespace vec2emb;

namespace {

constexpr std::size_t DIM = 5, BLOCKS = 40;

// Rows of which some tokens come again, and some numbers need the careful way.
std::vector<std::string> blocks_of(std::uint64_t seed) {
    std::mt19937_64 generator(seed);
    const auto below = [&](std::size_t limit) { return generator() % limit; };
    std::vector<std::string> blocks(BLOCKS);
    for (std::string& block : blocks) {
        for (std::size_t n = 1 + below(60); n > 0; --n) {
            block += 't' + std::to_string(below(1500));
            for (std::size_t i = 0; i < DIM; ++i) {
                char number[40];
                std::snprintf(number, sizeof number, below(20) ? " %.5f" : " %.20e",
                              static_cast<double>(below(2000000)) / 1e5 - 10);
                block += number;
            }
            block += LF;
        }
    }
    return blocks;
}

struct Result {
    std::string tokens;
    std::vector<float> table;
    bool operator==(const Result& other) const {
        return tokens == other.tokens && table.size() == other.table.size() &&
               !std::memcmp(table.data(), other.table.data(), table.size() * sizeof(float));
    }
};

Result convert(const std::vector<std::string>& blocks, std::size_t workers) {
    TokenIndex index;
    std::vector<float> table(blocks.size() * 60 * DIM);
    std::mutex reading, turn;
    std::condition_variable passed;
    std::size_t next = 0, selected = 0;
    const Values values(DIM, Nonfinite::error, false, std::numeric_limits<double>::infinity());

    const auto work = [&] {
        Rows rows;
        std::vector<float> out;
        while (true) {
            std::size_t ticket;
            {
                const std::lock_guard lock(reading);
                if (next == blocks.size()) return;
                ticket = next++;
            }
            const Bytes block = blocks[ticket];
            loops()->scan_text(block, DIM, rows, true);
            {
                std::unique_lock lock(turn);
                passed.wait(lock, [&] { return selected == ticket; });
                index.add_rows(block, rows, false);
                ++selected;
                passed.notify_all();
            }
            const auto count = static_cast<std::int64_t>(rows.keep(false));
            out.resize(static_cast<std::size_t>(count) * DIM);
            if (loops()->fill_text(block, rows, 0, count, reinterpret_cast<char*>(out.data()), values) != -1) std::abort();
            for (const auto& [position, id, length] : rows.runs(0, count)) {
                std::copy_n(out.begin() + position * DIM, length * DIM, table.begin() + id * DIM);
            }
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < workers; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();

    // Many readers of an index that nobody changes.
    threads.clear();
    for (std::size_t i = 0; i < workers; ++i) {
        threads.emplace_back([&] {
            for (std::size_t id = 0; id < index.size(); ++id) {
                if (index.get(index.token(id)) != id) std::abort();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();

    table.resize(index.size() * DIM);
    Result result{"", std::move(table)};
    index.pieces(0, index.size(), [&](Bytes piece) { result.tokens.append(piece); });
    return result;
}

}  // namespace

int main(int count, char** arguments) {
    const unsigned long seed = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1;
    const unsigned long rounds = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 100;
    for (unsigned long i = 0; i < rounds; ++i) {
        const auto blocks = blocks_of(seed + i);
        const Result alone = convert(blocks, 1);
        for (const std::size_t workers : {2, 3, 16}) {
            if (!(convert(blocks, workers) == alone)) {
                std::fprintf(stderr, "%zu threads differ from one: seed %lu\n", workers, seed + i);
                return 1;
            }
        }
    }
    std::printf("%lu rounds, no difference\n", rounds);
}
