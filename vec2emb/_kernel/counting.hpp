// `TokenCounter`: how often each token stands in text.
//
// Tokens are what ASCII white space separates, as Python's bytes.split() has it. A token is copied once, when it comes for
// the first time; from then on it costs a look-up and an addition.
#pragma once

#include <array>

#include "token_index.hpp"
#include "utf8.hpp"

namespace vec2emb {

// Bit i for the i-th of 64 bytes: whether it belongs to a token, being neither blank nor one of 9 to 13.
inline std::uint64_t token_bytes(const char* p) {
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) {
        const std::uint64_t word = load_word(p + 8 * i), low = word & ~words::HIGHS;
        const std::uint64_t from_9 = low + words::ONES * (0x80 - 9), from_14 = low + words::ONES * (0x80 - 14);
        const std::uint64_t space = (from_9 & ~from_14 & ~word & words::HIGHS) | words::equal(word, ' ');
        bits |= words::gather(space) << (8 * i);
    }
    return ~bits;
}

// Cuts text into its tokens, one after the other.
class TokenCutter {
public:
    explicit TokenCutter(Bytes text) : text_(text) {}

    bool next(Bytes& token) {
        for (;;) {
            while (edges_ != 0) {
                const std::size_t at = base_ + static_cast<std::size_t>(std::countr_zero(edges_));
                edges_ &= edges_ - 1;
                inside_ = !inside_;
                if (inside_) {
                    start_ = at;
                } else {
                    token = text_.substr(start_, at - start_);
                    return true;
                }
            }
            if (!load_next()) break;
        }
        if (!inside_) return false;
        inside_ = false;
        token = text_.substr(start_);
        return true;
    }

private:
    static constexpr std::size_t CHUNK = 64;

    Bytes text_;
    std::size_t base_ = 0, next_ = 0;  // where the present chunk starts, and the one after it
    std::size_t start_ = 0;            // of the token that is under way
    std::uint64_t edges_ = 0;          // of the present chunk: where tokens start and end, by turns
    std::uint64_t last_ = 0;           // 1 if the last byte before it belongs to a token
    bool inside_ = false;

    bool load_next() {
        if (next_ >= text_.size()) return false;
        base_ = next_;
        next_ += CHUNK;
        std::uint64_t bits;
        if (next_ <= text_.size()) {
            bits = token_bytes(text_.data() + base_);
        } else {
            char rest[CHUNK];
            std::memset(rest, ' ', CHUNK);
            std::memcpy(rest, text_.data() + base_, text_.size() - base_);
            bits = token_bytes(rest);
        }
        edges_ = bits ^ (bits << 1 | last_);
        last_ = bits >> 63;
        return true;
    }
};

// The checksum of zip and gzip (polynomial 0xEDB88320), as zlib.crc32 has it: the same in every process, which the hash
// of the index is not.
inline std::uint32_t crc32(Bytes bytes) {
    static const auto table = [] {
        std::array<std::uint32_t, 256> values{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t value = i;
            for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0u);
            values[i] = value;
        }
        return values;
    }();
    std::uint32_t value = ~0u;
    for (const char c : bytes) value = value >> 8 ^ table[(value ^ static_cast<unsigned char>(c)) & 0xFF];
    return ~value;
}

class TokenCounter {
public:
    std::size_t size() const { return index_.size(); }
    std::uint64_t nbytes() const { return index_.nbytes(); }
    std::int64_t total() const { return total_; }
    std::size_t memory() const { return index_.memory() + counts_.memory(); }

    // Where the first token stands that came for the first time and is not UTF-8; npos if there is none.
    std::size_t add_text(Bytes text) {
        std::size_t invalid = Bytes::npos;
        TokenCutter cutter(text);
        add_each([&](Bytes& token) { return cutter.next(token); },
                 [&](std::uint32_t id, Bytes token) {
                     if (count(id, 1) && invalid == Bytes::npos && !is_utf8(token)) {
                         invalid = static_cast<std::size_t>(token.data() - text.data());
                     }
                 });
        return invalid;
    }

    void add(Bytes token, std::int64_t times) {
        check_times(times);
        count(index_.add(token), times);
    }

    // `lines` are tokens, each with its LF; `times` points to one int64 for each of them.
    void add_lines(Bytes lines, const char* times, std::size_t given) {
        if (!lines.empty() && lines.back() != LF) throw std::invalid_argument("the last line does not end with LF");
        const auto tokens = static_cast<std::size_t>(std::count(lines.begin(), lines.end(), LF));
        if (tokens != given) {
            throw std::invalid_argument(std::to_string(given) + " counts for " + std::to_string(tokens) + " tokens");
        }
        for (std::size_t i = 0; i < given; ++i) check_times(load<std::int64_t>(times + 8 * i));
        std::size_t at = 0;
        add_each(
            [&](Bytes& token) {
                if (at == lines.size()) return false;
                const std::size_t end = lines.find(LF, at);
                token = lines.substr(at, end - at);
                at = end + 1;
                return true;
            },
            [&](std::uint32_t id, Bytes) {
                count(id, load<std::int64_t>(times));
                times += 8;
            });
    }

    void merge(const TokenCounter& other) {
        const std::size_t size = other.size();  // it may be this one
        std::size_t read = 0, taken = 0;
        add_each(
            [&](Bytes& token) {
                if (read == size) return false;
                token = other.index_.token(read++);
                return true;
            },
            [&](std::uint32_t id, Bytes) { count(id, other.counts_[taken++]); });
    }

    // One token in an order. What comes first decides; then the first bytes; then all of them.
    struct Place {
        std::uint64_t first, bytes;
        std::uint32_t id;
    };

    std::vector<Place> by_count() const {
        return sorted([&](std::size_t id) { return ~static_cast<std::uint64_t>(counts_[id]); });
    }

    std::vector<Place> by_bucket(std::uint32_t buckets) const {
        return sorted([&](std::size_t id) { return std::uint64_t{crc32(index_.token(id)) % buckets}; });
    }

    // The tokens, each with its LF, and their counts, int64, to where there is room for them.
    void write(const std::vector<Place>& places, char* lines, char* counts) const {
        for (const Place& place : places) {
            const Bytes token = index_.token(place.id);
            std::memcpy(lines, token.data(), token.size());
            lines[token.size()] = LF;
            lines += token.size() + 1;
            store(counts, counts_[place.id]);
            counts += 8;
        }
    }

private:
    TokenIndex index_;
    Pieces<std::int64_t> counts_;
    std::int64_t total_ = 0;

    static void check_times(std::int64_t times) {
        if (times < 1) throw std::invalid_argument("a count is " + std::to_string(times) + ", expected at least 1");
    }

    template <class Next, class Take>
    void add_each(Next next, Take take) {
        index_.add_each(next, [&](std::uint32_t id) { if (id < counts_.size()) prefetch(&counts_[id]); }, take);
    }

    // Whether the token is new.
    bool count(std::uint32_t id, std::int64_t times) {
        total_ += times;
        if (id < counts_.size()) {
            counts_[id] += times;
            return false;
        }
        counts_.push(times);
        return true;
    }

    template <class First>
    std::vector<Place> sorted(First first) const {
        std::vector<Place> places;
        places.reserve(size());
        for (std::size_t id = 0; id < size(); ++id) {
            places.push_back({first(id), first_bytes(index_.token(id)), static_cast<std::uint32_t>(id)});
        }
        std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
            if (a.first != b.first) return a.first < b.first;
            if (a.bytes != b.bytes) return a.bytes < b.bytes;
            return index_.token(a.id) < index_.token(b.id);
        });
        return places;
    }

    // A number that rises with the first eight bytes, those that are not there being zero.
    static std::uint64_t first_bytes(Bytes token) {
        char bytes[8] = {};
        std::memcpy(bytes, token.data(), std::min<std::size_t>(token.size(), 8));
        return byteswap(load_word(bytes));
    }
};

}  // namespace vec2emb
