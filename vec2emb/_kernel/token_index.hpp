// `TokenIndex`: tokens, as bytes, in the order they came; each knows its id, and whether the file had it yet.
//
// What a token costs: its bytes and an LF in the arena, eight bytes in the list of places, and 8 / load bytes in the
// hash table, of which the load is between 3/8 and 3/4. Nothing is ever copied to grow but the hash table.
#pragma once

#include <memory>
#include <optional>
#include <random>

#include "rows.hpp"
#include "zeroed.hpp"

namespace vec2emb {

// A keyed hash, 64 bits. The key is drawn once a process, so that no file can be made whose tokens collide; nothing
// but speed depends on it.
class TokenHash {
public:
    TokenHash() {
        std::random_device source;
        for (auto& word : key_) word = (std::uint64_t{source()} << 32) ^ source();
    }

    std::uint64_t operator()(Bytes token) const {
        const char* p = token.data();
        std::size_t left = token.size();
        std::uint64_t hash = key_[0] ^ left;
        while (left > 16) {
            hash = mix(load_word(p) ^ key_[1] ^ hash, load_word(p + 8) ^ key_[2]);
            p += 16;
            left -= 16;
        }
        // Two words that hold every byte of the rest, overlapping as need be; the length is in the hash already.
        std::uint64_t first = 0, second = 0;
        if (left >= 8) {
            first = load_word(p);
            second = load_word(p + left - 8);
        } else if (left >= 4) {
            first = load<std::uint32_t>(p);
            second = load<std::uint32_t>(p + left - 4);
        } else if (left > 0) {
            const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(p[i])}; };
            first = byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1);
        }
        return mix(mix(first ^ key_[1] ^ hash, second ^ key_[2]), key_[3]);
    }

private:
    std::uint64_t key_[4];

    // The product of two words, its halves folded: each bit of the result depends on all of both.
    static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
#ifdef __SIZEOF_INT128__
        const auto product = static_cast<unsigned __int128>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#else
        const std::uint64_t al = a & 0xFFFFFFFF, ah = a >> 32, bl = b & 0xFFFFFFFF, bh = b >> 32;
        const std::uint64_t low = al * bl, cross = ah * bl + (low >> 32), other = al * bh + (cross & 0xFFFFFFFF);
        return (ah * bh + (cross >> 32) + (other >> 32)) ^ (other << 32 | (low & 0xFFFFFFFF));
#endif
    }
};

inline const TokenHash& token_hash() {
    static const TokenHash hash;
    return hash;
}

inline void prefetch([[maybe_unused]] const void* p) {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#endif
}

// Bytes in pages of 1 MiB, addressed from 0 on. A token never lies across two pages that are not neighbours in memory,
// so it can be read as it stands. Pages may belong to somebody else.
class Arena {
public:
    static constexpr int PAGE_BITS = 20;
    static constexpr std::size_t PAGE = std::size_t{1} << PAGE_BITS;

    const char* at(std::uint64_t address) const { return pages_[address >> PAGE_BITS] + (address & (PAGE - 1)); }

    // Put a token and its LF in; where it stands.
    std::uint64_t append(Bytes token) {
        const std::size_t size = token.size() + 1;
        if (size > room_) open(size);
        const std::uint64_t address = next_;
        std::memcpy(end_, token.data(), token.size());
        end_[token.size()] = LF;
        end_ += size;
        next_ += size;
        room_ -= size;
        return address;
    }

    std::size_t memory() const { return owned_pages_ * PAGE; }

    // Take in bytes that somebody else owns, without a copy; where they start.
    std::uint64_t adopt(Bytes bytes) {
        const std::uint64_t address = pages_.size() * PAGE;
        for (std::size_t at = 0; at < bytes.size(); at += PAGE) pages_.push_back(bytes.data() + at);
        room_ = 0;
        return address;
    }

private:
    std::vector<const char*> pages_;
    std::vector<std::unique_ptr<char[]>> owned_;
    char* end_ = nullptr;  // of what is used of the last page
    std::size_t room_ = 0;
    std::uint64_t next_ = 0;
    std::size_t owned_pages_ = 0;

    void open(std::size_t size) {
        const std::size_t pages = (size + PAGE - 1) / PAGE;
        owned_pages_ += pages;
        owned_.push_back(std::unique_ptr<char[]>(new char[pages * PAGE]));
        next_ = pages_.size() * PAGE;
        end_ = owned_.back().get();
        // A token larger than a page has its pages to itself, or what it leaves of the last.
        room_ = pages * PAGE;
        for (std::size_t i = 0; i < pages; ++i) pages_.push_back(end_ + i * PAGE);
    }
};

// Values of one type, numbered from 0, in pieces, so that growing copies nothing.
template <class T>
class Pieces {
public:
    std::size_t size() const { return size_; }
    std::size_t memory() const { return pieces_.size() * PIECE * sizeof(T); }
    T operator[](std::size_t i) const { return pieces_[i >> BITS][i & (PIECE - 1)]; }
    T& operator[](std::size_t i) { return pieces_[i >> BITS][i & (PIECE - 1)]; }
    void push(T value) {
        if (size_ == pieces_.size() * PIECE) pieces_.push_back(std::unique_ptr<T[]>(new T[PIECE]));
        ++size_;
        (*this)[size_ - 1] = value;
    }

private:
    static constexpr int BITS = 14;
    static constexpr std::size_t PIECE = std::size_t{1} << BITS;
    std::vector<std::unique_ptr<T[]>> pieces_;
    std::size_t size_ = 0;
};

class TokenIndex {
public:
    // (the earlier line, the later line) of the first two that are the same, in a view.
    std::optional<std::pair<std::int64_t, std::int64_t>> first_duplicate;

    explicit TokenIndex(std::int64_t expected = 0) {
        // A hint, perhaps from a header that lies: never more than 256 MB are taken for it.
        reserve(static_cast<std::size_t>(std::clamp<std::int64_t>(expected, 0, MAX_EXPECTED)));
    }

    // The index of the lines of `lines`, each ended by LF. Refers to them; `owner` keeps them.
    TokenIndex(Bytes lines, std::shared_ptr<void> owner) : owner_(std::move(owner)) {
        if (!lines.empty() && lines.back() != LF) throw std::invalid_argument("the last line does not end with LF");
        reserve(static_cast<std::size_t>(std::count(lines.begin(), lines.end(), LF)));
        const std::uint64_t base = arena_.adopt(lines);
        nbytes_ = lines.size();
        Batch batch;
        for (std::size_t at = 0; at < lines.size();) {
            std::size_t starts[Batch::SIZE + 1];
            std::size_t n = 0;
            for (; n < Batch::SIZE && at < lines.size(); ++n) {
                starts[n] = at;
                at = lines.find(LF, at) + 1;
                batch.put(*this, n, lines.substr(starts[n], at - 1 - starts[n]));
            }
            starts[n] = at;
            for (std::size_t i = 0; i < n; ++i) {
                const std::uint32_t earlier = look_up(batch.tokens[i], batch.hashes[i]);
                const std::uint32_t id = next_id();
                places_.push(place_of(base + starts[i], batch.tokens[i].size()));
                if (earlier == NO_ID) {
                    link(batch.hashes[i], id);
                } else if (!first_duplicate) {
                    first_duplicate = {earlier, id};
                }
            }
        }
    }

    std::size_t size() const { return places_.size(); }
    std::uint64_t nbytes() const { return nbytes_; }

    // Bytes that the index itself takes; those that somebody else owns are not among them.
    std::size_t memory() const { return arena_.memory() + places_.memory() + (mask() + 1) * sizeof(Slot); }

    std::uint32_t add(Bytes token) {
        check_one_line(token);
        const std::uint32_t hash = hash_of(token), found = look_up(token, hash);
        return found == NO_ID ? insert(token, hash) : found;
    }

    // Put in the tokens that `next(token)` sets, until it returns false, and hand the id of each to `take(id, token)`, in
    // order; `soon(id)` says of most a while before. None holds LF, and all stay where they are meanwhile.
    template <class Next, class Soon, class Take>
    void add_each(Next next, Soon soon, Take take) {
        Batch batch;
        std::uint32_t guesses[Batch::SIZE];
        for (bool more = true; more;) {
            std::size_t n = 0;
            for (Bytes token; n < Batch::SIZE && (more = next(token)); ++n) batch.put(*this, n, token);
            // A look-up goes from slot to place to token. Rather than wait at each step for memory, all tokens take the
            // first step, then all the second.
            for (std::size_t i = 0; i < n; ++i) {
                guesses[i] = guess(batch.hashes[i]);
                if (guesses[i] == NO_ID) continue;
                prefetch(&places_[guesses[i]]);
                soon(guesses[i]);
            }
            for (std::size_t i = 0; i < n; ++i) {
                if (guesses[i] != NO_ID) prefetch(arena_.at(places_[guesses[i]] >> ADDRESS_SHIFT));
            }
            for (std::size_t i = 0; i < n; ++i) {
                std::uint32_t id = guesses[i];
                if (id == NO_ID || token(id) != batch.tokens[i]) id = look_up(batch.tokens[i], batch.hashes[i]);
                take(id == NO_ID ? insert(batch.tokens[i], batch.hashes[i]) : id, batch.tokens[i]);
            }
        }
    }

    // NO_ID if it is not there.
    std::uint32_t get(Bytes token) const { return look_up(token, hash_of(token)); }

    Bytes token(std::size_t id) const {
        const std::uint64_t place = places_[id];
        const char* const p = arena_.at(place >> ADDRESS_SHIFT);
        return {p, length_at(place, p)};
    }

    bool met(std::size_t id) const { return places_[id] & MET; }

    std::vector<std::int64_t> unmet(std::size_t start) const {
        std::vector<std::int64_t> found;
        for (std::size_t id = start; id < size(); ++id) {
            if (!met(id)) found.push_back(static_cast<std::int64_t>(id));
        }
        return found;
    }

    // Hand the tokens start .. stop-1, each with its LF, to `take` in pieces as large as they stand in memory.
    template <class Take>
    void pieces(std::size_t start, std::size_t stop, Take take) const {
        Bytes piece;
        for (std::size_t id = start; id < stop; ++id) {
            const Bytes one = token(id);
            if (!piece.empty() && piece.data() + piece.size() == one.data()) {
                piece = {piece.data(), piece.size() + one.size() + 1};
            } else {
                if (!piece.empty()) take(piece);
                piece = {one.data(), one.size() + 1};
            }
        }
        if (!piece.empty()) take(piece);
    }

    // See the twin: which rows are NEW, SEEN and FAULTY.
    void add_rows(Bytes block, Rows& rows, bool asked_only) {
        each_row(block, rows, asked_only, [&](Row& row, Bytes token, std::uint32_t hash) {
            std::uint32_t id = look_up(token, hash);
            if (id != NO_ID && met(id)) {
                row.state = State::seen;
            } else if (row.fault != Fault::none) {
                row.state = State::faulty;
            } else {
                if (id == NO_ID) {
                    check_one_line(token);
                    id = insert(token, hash);
                }
                places_[id] |= MET;
                row.state = State::fresh;
            }
            row.id = id;
        });
    }

    // As `add_rows`, but nothing is put in: rows of other tokens are ABSENT.
    void find_rows(Bytes block, Rows& rows) {
        each_row(block, rows, false, [&](Row& row, Bytes token, std::uint32_t hash) {
            row.id = look_up(token, hash);
            if (row.id == NO_ID) {
                row.state = State::absent;
            } else if (met(row.id)) {
                row.state = State::seen;
            } else if (row.fault != Fault::none) {
                row.state = State::faulty;
            } else {
                places_[row.id] |= MET;
                row.state = State::fresh;
            }
        });
    }

private:
    static constexpr std::int64_t MAX_EXPECTED = 3 << 23;
    static constexpr std::size_t MAX_LARGE_HINT = std::size_t{16} << 20;  // bytes

    // A place packs where a token stands, how long it is, and whether it was met: 44, 19 and 1 bits.
    static constexpr int ADDRESS_SHIFT = 20;
    static constexpr std::uint64_t MET = 1;
    static constexpr std::uint64_t LONG = (std::uint64_t{1} << 19) - 1;  // at least that long: look for its LF

    static std::uint64_t place_of(std::uint64_t address, std::size_t length) {
        return address << ADDRESS_SHIFT | std::min<std::uint64_t>(length, LONG) << 1;
    }
    static std::size_t length_at(std::uint64_t place, const char* p) {
        const std::uint64_t length = (place >> 1) & LONG;
        if (length < LONG) return length;
        const char* end = p + LONG;
        while (*end != LF) ++end;  // it is there
        return static_cast<std::size_t>(end - p);
    }

    // Open addressing, linear probing from the hash's high bits on. An id of 0 in a slot means empty, so that fresh
    // memory of the system's, which is zero, need not be touched.
    struct Slot {
        std::uint32_t hash, id_plus_one;
    };

    std::shared_ptr<void> owner_;  // of the bytes of a view
    Arena arena_;
    Pieces<std::uint64_t> places_;
    Zeroed<Slot> slots_;
    int bits_ = 0;  // 2^bits_ slots
    std::size_t linked_ = 0;
    std::uint64_t nbytes_ = 0;

    // Many tokens are hashed and their slots asked for from memory before the first is looked up.
    struct Batch {
        static constexpr std::size_t SIZE = 64;
        Bytes tokens[SIZE];
        std::uint32_t hashes[SIZE];

        void put(const TokenIndex& index, std::size_t i, Bytes token) {
            tokens[i] = token;
            hashes[i] = hash_of(token);
            prefetch(&index.slots_[index.home(hashes[i])]);
        }
    };

    static std::uint32_t hash_of(Bytes token) { return static_cast<std::uint32_t>(token_hash()(token) >> 32); }

    static void check_one_line(Bytes token) {
        if (token.find(LF) != Bytes::npos) throw std::invalid_argument("a token cannot hold LF");
    }

    std::size_t mask() const { return (std::size_t{1} << bits_) - 1; }
    std::size_t home(std::uint32_t hash) const {
        return static_cast<std::size_t>(std::uint64_t{hash} << 32 >> (64 - bits_));
    }

    std::uint32_t look_up(Bytes token, std::uint32_t hash) const {
        for (std::size_t i = home(hash); slots_[i].id_plus_one != 0; i = (i + 1) & mask()) {
            if (slots_[i].hash != hash) continue;
            const std::uint32_t id = slots_[i].id_plus_one - 1;
            if (this->token(id) == token) return id;
        }
        return NO_ID;
    }

    // The first id of a token with this hash: nearly always the only one.
    std::uint32_t guess(std::uint32_t hash) const {
        std::size_t i = home(hash);
        while (slots_[i].id_plus_one != 0 && slots_[i].hash != hash) i = (i + 1) & mask();
        return slots_[i].id_plus_one - 1;  // of an empty slot: NO_ID
    }

    // The id of the token that comes next.
    std::uint32_t next_id() const {
        if (size() >= NO_ID) throw std::overflow_error("an index holds at most 4,294,967,295 tokens");
        return static_cast<std::uint32_t>(size());
    }

    // Put in a token that is not there.
    std::uint32_t insert(Bytes token, std::uint32_t hash) {
        const std::uint32_t id = next_id();
        if (full(linked_ + 1)) grow(bits_ + 1);
        places_.push(place_of(arena_.append(token), token.size()));
        nbytes_ += token.size() + 1;
        link(hash, id);
        return id;
    }

    void link(std::uint32_t hash, std::uint32_t id) {
        if (full(linked_ + 1)) grow(bits_ + 1);
        settle({hash, id + 1});
        ++linked_;
    }

    void settle(Slot slot) {
        std::size_t i = home(slot.hash);
        while (slots_[i].id_plus_one != 0) i = (i + 1) & mask();
        slots_[i] = slot;
    }

    bool full(std::size_t tokens) const { return tokens > (mask() + 1) / 4 * 3; }

    void reserve(std::size_t tokens) {
        int bits = 6;
        while (tokens > (std::size_t{1} << bits) / 4 * 3) ++bits;
        grow(bits);
    }

    void grow(int bits) {
        const std::size_t slots = std::size_t{1} << bits;
        // Slots are gone to at random. But large pages are whole as soon as they are touched, and a hint may lie.
        Zeroed<Slot> old(slots, linked_ > 0 || slots * sizeof(Slot) <= MAX_LARGE_HINT);
        std::swap(slots_, old);
        bits_ = bits;
        for (std::size_t i = 0; i < old.size(); ++i) {
            if (old[i].id_plus_one != 0) settle(old[i]);
        }
    }

    // Call `decide(row, token, hash)` for each row in order.
    template <class Decide>
    void each_row(Bytes block, Rows& rows, bool asked_only, Decide decide) {
        Batch batch;
        std::uint32_t members[Batch::SIZE];
        std::size_t row = 0;
        while (row < rows.count()) {
            std::size_t n = 0;
            for (; n < Batch::SIZE && row < rows.count(); ++row) {
                const State state = rows.rows[row].state;
                if (asked_only && (state == State::absent || state == State::faulty)) continue;
                members[n] = static_cast<std::uint32_t>(row);
                batch.put(*this, n++, rows.token(block, row));
            }
            for (std::size_t i = 0; i < n; ++i) decide(rows.rows[members[i]], batch.tokens[i], batch.hashes[i]);
        }
    }
};

}  // namespace vec2emb
