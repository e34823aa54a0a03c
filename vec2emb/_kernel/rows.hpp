// `Rows`: what scanning found in one block of bytes, and what selection made of it.
#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bytes.hpp"
#include "codes.hpp"

namespace vec2emb {

// Offsets within a block are four bytes wide; nobody should want larger blocks.
inline constexpr std::size_t MAX_BLOCK = std::numeric_limits<std::uint32_t>::max();

inline constexpr std::uint32_t NO_ID = std::numeric_limits<std::uint32_t>::max();

struct Row {
    std::uint32_t start, end;              // its first byte; one past the last byte that belongs to a field
    std::uint32_t token_start, token_end;  // nothing is copied: the token is bytes of the block
    std::uint32_t values;                  // first byte of the first value
    std::uint32_t line;
    std::uint32_t fault_start = 0, fault_end = 0;  // the bytes that are at fault
    std::uint32_t id = NO_ID;
    Fault fault = Fault::none;
    std::uint8_t notes = 0;
    State state = State::undecided;

    void blame(Fault what, std::size_t from, std::size_t to) {
        fault = what;
        fault_start = static_cast<std::uint32_t>(from);
        fault_end = static_cast<std::uint32_t>(to);
    }
    void remark(Note note) { notes |= static_cast<std::uint8_t>(note); }
    std::int64_t signed_id() const { return id == NO_ID ? -1 : std::int64_t{id}; }
};

// The rows of one block. Cleared and reused block after block, so that the memory is touched for the first time once.
class Rows {
public:
    std::vector<Row> rows;
    std::vector<std::uint32_t> kept;  // rows whose vectors are wanted, in file order
    std::int64_t lines = 0;           // lines in the block, blank ones included
    std::int64_t blank_inside = 0;    // blank lines with a row after them in this block
    std::int64_t blank_after = 0;     // blank lines after the last row
    std::int64_t first_blank = -1;    // line of the first blank one

    void clear() {
        rows.clear();
        kept.clear();
        lines = blank_inside = blank_after = 0;
        first_blank = -1;
        replaced_ = false;
    }

    std::size_t count() const { return rows.size(); }

    // For the scanners.
    Row& add(std::size_t start, std::size_t end, std::size_t token_start, std::size_t token_end, std::size_t values) {
        const auto narrow = [](std::size_t offset) { return static_cast<std::uint32_t>(offset); };
        rows.push_back({narrow(start), narrow(end), narrow(token_start), narrow(token_end), narrow(values),
                        static_cast<std::uint32_t>(lines)});
        return rows.back();
    }

    void truncate(std::int64_t count) {
        if (count < 0) throw std::invalid_argument("the rows to keep cannot be fewer than none");
        if (static_cast<std::uint64_t>(count) >= rows.size()) return;
        lines = rows[count].line;
        const std::int64_t blank = lines - count;
        const std::int64_t last = count ? std::int64_t{rows[count - 1].line} + 1 : 0;
        blank_after = lines - last;
        blank_inside = blank - blank_after;
        if (blank == 0) first_blank = -1;
        rows.resize(count, Row{});
        std::erase_if(kept, [&](std::uint32_t row) { return row >= count; });
    }

    std::int64_t first_fault() const {
        return first_where([](const Row& row) { return row.fault != Fault::none; });
    }

    // The token of a row: of the block, or what `set_tokens` put in its place. Never beyond the block given.
    Bytes token(Bytes block, std::size_t row) const {
        if (replaced_) {
            const std::size_t from = row ? replaced_ends_[row - 1] : 0;
            return Bytes(replaced_bytes_).substr(from, replaced_ends_[row] - from);
        }
        const std::size_t from = std::min<std::size_t>(rows[row].token_start, block.size());
        return block.substr(from, rows[row].token_end - from);
    }

    // Other tokens in the place of the file's: a first call, one for each row, and nothing counts until the last.
    void replace_begin() {
        replaced_ = false;
        replaced_bytes_.clear();
        replaced_ends_.clear();
    }
    void replace_next(Bytes token) {
        replaced_bytes_.append(token);
        replaced_ends_.push_back(replaced_bytes_.size());
    }
    void replace_end() { replaced_ = true; }

    // (how many rows carry a note, the first of them or -1)
    std::pair<std::int64_t, std::int64_t> tally(std::int64_t note, bool kept_only) const {
        std::pair<std::int64_t, std::int64_t> found{0, -1};
        const auto look = [&](std::size_t row) {
            if ((rows[row].notes & note) && found.first++ == 0) found.second = static_cast<std::int64_t>(row);
        };
        if (kept_only) {
            for (const std::uint32_t row : kept) look(row);
        } else {
            for (std::size_t row = 0; row < rows.size(); ++row) look(row);
        }
        return found;
    }

    std::pair<std::int64_t, std::int64_t> tally_state(std::int64_t state) const {
        const auto is = [&](const Row& row) { return static_cast<std::int64_t>(row.state) == state; };
        return {std::count_if(rows.begin(), rows.end(), is), first_where(is)};
    }

    std::vector<std::int64_t> rows_in_state(std::int64_t state) const {
        std::vector<std::int64_t> found;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            if (static_cast<std::int64_t>(rows[row].state) == state) found.push_back(static_cast<std::int64_t>(row));
        }
        return found;
    }

    // (row, id) of the rows in state NEW or SEEN whose id is smaller than `limit`.
    std::vector<std::pair<std::int64_t, std::int64_t>> below(std::int64_t limit) const {
        std::vector<std::pair<std::int64_t, std::int64_t>> found;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            const std::int64_t id = rows[row].signed_id();
            if (0 <= id && id < limit && wanted(rows[row], true)) found.emplace_back(row, id);
        }
        return found;
    }

    std::size_t keep(bool seen_too) {
        kept.clear();
        for (std::size_t row = 0; row < rows.size(); ++row) {
            if (wanted(rows[row], seen_too)) kept.push_back(static_cast<std::uint32_t>(row));
        }
        return kept.size();
    }

    // By hand: rows that are there, in rising order.
    std::size_t keep_these(const std::vector<std::int64_t>& wanted) {
        std::int64_t last = -1;
        for (const std::int64_t row : wanted) {
            if (row <= last || row >= static_cast<std::int64_t>(rows.size())) {
                throw std::invalid_argument("rows to keep must be there, each after the one before");
            }
            last = row;
        }
        kept.assign(wanted.begin(), wanted.end());
        return kept.size();
    }

    void drop(std::int64_t row) {
        const auto place = std::find(kept.begin(), kept.end(), row);
        if (place == kept.end()) throw std::invalid_argument("row " + std::to_string(row) + " is not kept");
        kept.erase(place);
    }

    // kept[start:stop] cut into runs of consecutive ids: (position in kept, first id, length).
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> runs(std::int64_t start, std::int64_t stop) const {
        std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> found;
        if (start >= stop) return found;
        if (start < 0 || static_cast<std::uint64_t>(stop) > kept.size()) {
            throw std::out_of_range("kept has " + std::to_string(kept.size()) + " rows");
        }
        for (std::int64_t position = start; position < stop; ++position) {
            const std::int64_t id = rows[kept[position]].signed_id();
            if (!found.empty() && std::get<1>(found.back()) + std::get<2>(found.back()) == id) {
                ++std::get<2>(found.back());
            } else {
                found.emplace_back(position, id, 1);
            }
        }
        return found;
    }

    // Copy the vectors of kept[start:stop], `width` bytes each and one after the other in `vectors`, each to the place of
    // its id in `table`; the caller has checked that the vectors are there.
    void scatter(std::int64_t start, std::int64_t stop, const char* vectors, char* table, std::size_t size,
               std::size_t width) const {
        for (std::int64_t position = start; position < stop; ++position, vectors += width) {
            const std::int64_t id = rows[kept[position]].signed_id();
            if (id < 0 || static_cast<std::size_t>(id) >= size / width) {
                throw std::out_of_range("the table has no row " + std::to_string(id));
            }
            std::memcpy(table + id * width, vectors, width);
        }
    }

private:
    bool replaced_ = false;
    std::string replaced_bytes_;
    std::vector<std::size_t> replaced_ends_;

    static bool wanted(const Row& row, bool seen_too) {
        return row.state == State::fresh || (seen_too && row.state == State::seen);
    }

    template <class Condition>
    std::int64_t first_where(Condition condition) const {
        const auto place = std::find_if(rows.begin(), rows.end(), condition);
        return place == rows.end() ? -1 : place - rows.begin();
    }
};

// The vectors of kept[start:stop] must fit into `out` bytes.
inline void check_kept(const Rows& rows, std::int64_t start, std::int64_t stop, std::size_t out, std::size_t dim) {
    if (start < 0 || start > stop || static_cast<std::uint64_t>(stop) > rows.kept.size() ||
        (stop > start && out / (stop - start) / 4 < dim)) {
        throw std::invalid_argument("the rows asked for do not fit");
    }
}

}  // namespace vec2emb
