// The Python side of the kernel: arguments in, results out, the GIL released while blocks are worked on. Nothing is
// decided here.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "arithmetic.hpp"
#include "binary.hpp"
#include "counting.hpp"
#include "dispatch.hpp"
#include "token_index.hpp"
#include "writing.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace vec2emb;

namespace {

using Size = std::int64_t;

// Somebody's bytes (bytes, bytearray, memoryview, mmap, an array), exported for as long as this lives: they can neither
// move nor go away. Asks for C order; Python says what is wrong otherwise.
class Buffer {
public:
    explicit Buffer(nb::handle source, int flags = PyBUF_SIMPLE) {
        if (PyObject_GetBuffer(source.ptr(), &view_, flags) != 0) throw nb::python_error();
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { PyBuffer_Release(&view_); }

    std::size_t size() const { return static_cast<std::size_t>(view_.len); }
    Bytes bytes() const { return {data(), size()}; }
    char* data() const {
        static char nothing[8];  // empty exports may have no address
        return view_.buf ? static_cast<char*>(view_.buf) : nothing;
    }

private:
    Py_buffer view_;
};

class Output : public Buffer {
public:
    explicit Output(nb::handle target) : Buffer(target, PyBUF_WRITABLE) {}
};

// With the GIL released, two threads could meet in one object; they take turns. Whoever waits holds no GIL. (Recursive
// because a collection may run Python code, and that might come back to the object.)
class Shared {
public:
    class Turn {
    public:
        explicit Turn(const Shared& shared) : mutex_(shared.mutex_) {
            if (!mutex_.try_lock()) {
                const nb::gil_scoped_release release;
                mutex_.lock();
            }
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn() { mutex_.unlock(); }

    private:
        std::recursive_mutex& mutex_;
    };

private:
    mutable std::recursive_mutex mutex_;
};
using Turn = Shared::Turn;

struct PyRows : Rows, Shared {};

struct PyIndex : TokenIndex, Shared {
    using TokenIndex::TokenIndex;
};

struct PyCounter : TokenCounter, Shared {};

nb::bytes to_bytes(Bytes bytes) { return nb::bytes(bytes.data(), bytes.size()); }

Bytes view_of(const nb::bytes& bytes) { return {static_cast<const char*>(bytes.data()), bytes.size()}; }

// An index as Python has it: negative ones count from the end.
std::size_t item(Size index, std::size_t count) {
    const Size size = static_cast<Size>(count);
    if (index < -size || index >= size) {
        throw std::out_of_range("index " + std::to_string(index) + " of " + std::to_string(count));
    }
    return static_cast<std::size_t>(index < 0 ? index + size : index);
}

// A slice's end as Python has it.
std::size_t clip(Size index, std::size_t count) {
    const Size size = static_cast<Size>(count);
    return static_cast<std::size_t>(std::clamp<Size>(index < 0 ? index + size : index, 0, size));
}

Bytes block_of(const Buffer& data, Size size) {
    if (size < 0 || static_cast<std::uint64_t>(size) > data.size()) {
        throw std::invalid_argument("a block of " + std::to_string(size) + " bytes must lie within its buffer");
    }
    return data.bytes().substr(0, static_cast<std::size_t>(size));
}

std::size_t positive(Size value, const char* name) {
    if (value < 1) {
        throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + ", expected at least 1");
    }
    return static_cast<std::size_t>(value);
}

std::size_t width_of(Size width) {
    if (width != 2 && width != 4 && width != 8) {
        throw std::invalid_argument("width is " + std::to_string(width) + ", expected 2, 4 or 8");
    }
    return static_cast<std::size_t>(width);
}

Nonfinite policy_of(Size policy) {
    if (policy < 0 || policy > 2) throw std::invalid_argument("nonfinite is " + std::to_string(policy));
    return static_cast<Nonfinite>(policy);
}

Fault fault_from(Size fault) {
    if (fault < 0 || fault > static_cast<Size>(Fault::nonfinite_value)) {
        throw std::invalid_argument(std::to_string(fault) + " is not a valid Fault");
    }
    return static_cast<Fault>(fault);
}

Values values_of(Size dim, Size nonfinite, bool unit_norm, double limit) {
    return {positive(dim, "dim"), policy_of(nonfinite), unit_norm, limit};
}

// The functions, in the order of the twin.

void scan_text(nb::handle data, Size size, Size dim, PyRows& rows, bool utf8) {
    const Buffer buffer(data);
    const Bytes text = block_of(buffer, size);
    check_whole_lines(text);
    const std::size_t width = positive(dim, "dim");
    const Turn turn(rows);
    const nb::gil_scoped_release release;
    loops()->scan_text(text, width, rows, utf8);
}

Size fill_text(nb::handle data, PyRows& rows, Size start, Size stop, nb::handle out, Size dim, Size nonfinite,
               bool unit_norm, double limit) {
    const Values values = values_of(dim, nonfinite, unit_norm, limit);
    const Buffer buffer(data);
    const Output output(out);
    const Turn turn(rows);
    check_kept(rows, start, stop, output.size(), values.dim);
    check_rows_within(rows, buffer.bytes());
    const nb::gil_scoped_release release;
    return loops()->fill_text(buffer.bytes(), rows, start, stop, output.data(), values);
}

void check_text(nb::handle data, PyRows& rows, Size dim, Size nonfinite, bool unit_norm, double limit) {
    const Values values = values_of(dim, nonfinite, unit_norm, limit);
    const Buffer buffer(data);
    const Turn turn(rows);
    check_rows_within(rows, buffer.bytes());
    const nb::gil_scoped_release release;
    loops()->check_text(buffer.bytes(), rows, values);
}

std::vector<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>> profile(nb::handle data, Size size,
                                                                                    Size limit) {
    const Buffer buffer(data);
    const Bytes text = block_of(buffer, size);
    std::vector<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>> found;
    const nb::gil_scoped_release release;
    for (const Profile& row : profile_text(text, limit)) {
        found.emplace_back(row.start, row.end, row.fields, row.numerals);
    }
    return found;
}

std::size_t scan_records(nb::handle data, Size size, Size dim, Size width, PyRows& rows, Size limit, bool utf8) {
    const Buffer buffer(data);
    const Bytes block = block_of(buffer, size);
    const std::size_t values = positive(dim, "dim"), bytes = width_of(width);
    const Turn turn(rows);
    const nb::gil_scoped_release release;
    return scan_binary(block, values, bytes, rows, limit, utf8);
}

Size fill_records(nb::handle data, PyRows& rows, Size start, Size stop, nb::handle out, Size dim, Size width,
                  bool big_endian, Size nonfinite, bool unit_norm, double limit) {
    const Values values = values_of(dim, nonfinite, unit_norm, limit);
    const std::size_t bytes = width_of(width);
    const Buffer buffer(data);
    const Output output(out);
    const Turn turn(rows);
    check_kept(rows, start, stop, output.size(), values.dim);
    const nb::gil_scoped_release release;
    return fill_binary(buffer.bytes(), rows, start, stop, output.data(), values, bytes, big_endian);
}

void check_records(nb::handle data, PyRows& rows, Size dim, Size width, bool big_endian, Size nonfinite,
                   bool unit_norm, double limit) {
    const Values values = values_of(dim, nonfinite, unit_norm, limit);
    const std::size_t bytes = width_of(width);
    const Buffer buffer(data);
    const Turn turn(rows);
    const nb::gil_scoped_release release;
    check_binary(buffer.bytes(), rows, values, bytes, big_endian);
}

// float64[dim] for float32[n, dim].
void check_table(const Buffer& sums, const Buffer& rows, std::size_t dim) {
    if (sums.size() / 8 < dim || rows.size() % 4 != 0 || rows.size() / 4 % dim != 0) {
        throw std::invalid_argument("expected float32[n, dim] and float64[dim]");
    }
}

Size add(nb::handle sums, nb::handle rows, Size dim) {
    const std::size_t columns = positive(dim, "dim");
    const Output totals(sums);
    const Buffer values(rows);
    check_table(totals, values, columns);
    const nb::gil_scoped_release release;
    return add_rows(totals.data(), values.bytes(), columns);
}

Size add_squares(nb::handle sums, nb::handle means, nb::handle rows, Size dim) {
    const std::size_t columns = positive(dim, "dim");
    const Output totals(sums);
    const Buffer centre(means), values(rows);
    check_table(totals, values, columns);
    check_table(centre, values, columns);
    const nb::gil_scoped_release release;
    return add_square_deviations(totals.data(), centre.data(), values.bytes(), columns);
}

void cast(nb::handle source, nb::handle out, Size kind) {
    const Buffer values(source);
    const Output target(out);
    if (values.size() % 4 != 0 || target.size() / 2 < values.size() / 4) {
        throw std::invalid_argument("the values do not fit");
    }
    const nb::gil_scoped_release release;
    cast_rows(values.bytes(), target.data(), static_cast<Cast>(kind));
}

nb::bytes format(nb::handle tokens, nb::handle rows, Size dim) {
    const std::size_t columns = positive(dim, "dim");
    const Buffer names(tokens), values(rows);
    std::string text;
    {
        const nb::gil_scoped_release release;
        text = format_rows(names.bytes(), values.bytes(), columns);
    }
    return to_bytes(text);
}

nb::list tokens_of(const PyRows& rows, nb::handle data) {
    const Buffer buffer(data);
    const Turn turn(rows);
    nb::list tokens;
    for (std::size_t row = 0; row < rows.count(); ++row) tokens.append(to_bytes(rows.token(buffer.bytes(), row)));
    return tokens;
}

void set_tokens(PyRows& rows, nb::handle tokens) {
    const auto items = nb::steal<nb::object>(PySequence_Fast(tokens.ptr(), "expected a sequence of bytes"));
    if (!items.is_valid()) throw nb::python_error();
    const std::size_t given = nb::len(items);
    const Turn turn(rows);
    if (given != rows.count()) {
        throw std::invalid_argument(std::to_string(given) + " tokens for " + std::to_string(rows.count()) + " rows");
    }
    rows.replace_begin();
    for (std::size_t i = 0; i < given; ++i) rows.replace_next(view_of(nb::cast<nb::bytes>(items[i])));
    rows.replace_end();
}

std::unique_ptr<PyIndex> index_over(nb::handle blob, Size start) {
    // Released where the index dies, which is in Python's hands.
    const auto buffer = std::make_shared<Buffer>(blob);
    const Bytes lines = buffer->bytes().substr(clip(start, buffer->size()));
    const nb::gil_scoped_release release;
    return std::make_unique<PyIndex>(lines, buffer);
}

nb::bytes blob_of(const PyIndex& index, Size start, Size stop) {
    const Turn turn(index);
    const std::size_t first = clip(start, index.size()), last = clip(stop, index.size());
    std::size_t size = 0;
    index.pieces(first, last, [&](Bytes piece) { size += piece.size(); });
    PyObject* const bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (!bytes) throw nb::python_error();
    char* end = PyBytes_AsString(bytes);
    index.pieces(first, last, [&](Bytes piece) {
        std::memcpy(end, piece.data(), piece.size());
        end += piece.size();
    });
    return nb::steal<nb::bytes>(bytes);
}

Size find(const PyIndex& index, nb::handle tokens, nb::handle out, Size missing) {
    const auto items = nb::steal<nb::object>(PySequence_Fast(tokens.ptr(), "expected a sequence of str"));
    if (!items.is_valid()) throw nb::python_error();
    const bool is_list = PyList_Check(items.ptr());
    const std::size_t count = nb::len(items);
    const Output target(out);
    if (target.size() / 8 < count) throw std::invalid_argument("the ids do not fit");
    const Turn turn(index);
    Size first = -1;
    for (std::size_t i = 0; i < count; ++i) {
        const auto position = static_cast<Py_ssize_t>(i);
        PyObject* const token =
            is_list ? PyList_GetItem(items.ptr(), position) : PyTuple_GetItem(items.ptr(), position);
        if (!token) throw nb::python_error();  // the list has shrunk meanwhile
        if (!PyUnicode_Check(token)) throw nb::type_error("expected a sequence of str");
        Py_ssize_t size = 0;
        const char* const text = PyUnicode_AsUTF8AndSize(token, &size);
        std::uint32_t id = NO_ID;
        if (text) {
            id = index.get({text, static_cast<std::size_t>(size)});
        } else if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            PyErr_Clear();  // lone surrogates: no file can hold that
        } else {
            throw nb::python_error();
        }
        if (id == NO_ID && first < 0) first = static_cast<Size>(i);
        store(target.data() + 8 * i, id == NO_ID ? missing : Size{id});
    }
    return first;
}

Size count_text(PyCounter& counter, nb::handle data, Size start, Size stop) {
    const Buffer buffer(data);
    if (start < 0 || start > stop || static_cast<std::uint64_t>(stop) > buffer.size()) {
        throw std::invalid_argument("the text must lie within its buffer");
    }
    const auto first = static_cast<std::size_t>(start), size = static_cast<std::size_t>(stop - start);
    const Turn turn(counter);
    const nb::gil_scoped_release release;
    const std::size_t invalid = counter.add_text(buffer.bytes().substr(first, size));
    return invalid == Bytes::npos ? -1 : start + static_cast<Size>(invalid);
}

// Bytes of Python's that nobody has seen yet, so that they may still be written.
nb::bytes fresh_bytes(std::size_t size) {
    PyObject* const bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (!bytes) throw nb::python_error();
    return nb::steal<nb::bytes>(bytes);
}

// (tokens, each with its LF; counts), in an order.
std::pair<nb::bytes, nb::bytes> written(const PyCounter& counter, const std::vector<TokenCounter::Place>& places) {
    nb::bytes lines = fresh_bytes(counter.nbytes()), counts = fresh_bytes(8 * places.size());
    char* const to_lines = PyBytes_AsString(lines.ptr());
    char* const to_counts = PyBytes_AsString(counts.ptr());
    {
        const nb::gil_scoped_release release;
        counter.write(places, to_lines, to_counts);
    }
    return {lines, counts};
}

std::pair<nb::bytes, nb::bytes> counts_by_count(const PyCounter& counter) {
    const Turn turn(counter);
    std::vector<TokenCounter::Place> places;
    {
        const nb::gil_scoped_release release;
        places = counter.by_count();
    }
    return written(counter, places);
}

std::tuple<nb::bytes, nb::bytes, std::vector<Size>> counts_by_bucket(const PyCounter& counter, Size buckets) {
    if (buckets < 1 || buckets > 1 << 16) {
        throw std::invalid_argument(std::to_string(buckets) + " buckets, expected 1 to 65536");
    }
    const Turn turn(counter);
    std::vector<TokenCounter::Place> places;
    {
        const nb::gil_scoped_release release;
        places = counter.by_bucket(static_cast<std::uint32_t>(buckets));
    }
    std::vector<Size> sizes(static_cast<std::size_t>(buckets));
    for (const auto& place : places) ++sizes[place.first];
    const auto [lines, counts] = written(counter, places);
    return {lines, counts, sizes};
}

Size signed_id(std::uint32_t id) { return id == NO_ID ? -1 : Size{id}; }

nb::dict codes() {
    const auto number = [](auto code) { return static_cast<int>(code); };
    nb::dict fault, note, state, nonfinite, cast, all;
    fault["NONE"] = number(Fault::none);
    fault["TOO_FEW_VALUES"] = number(Fault::too_few_values);
    fault["EMPTY_TOKEN"] = number(Fault::empty_token);
    fault["NUL_IN_TOKEN"] = number(Fault::nul_in_token);
    fault["INVALID_UTF8"] = number(Fault::invalid_utf8);
    fault["NOT_A_NUMERAL"] = number(Fault::not_a_numeral);
    fault["OUT_OF_RANGE"] = number(Fault::out_of_range);
    fault["NONFINITE_VALUE"] = number(Fault::nonfinite_value);
    note["EXCESS_SEPARATORS"] = number(Note::excess_separators);
    note["NUMERAL_ENDED_TOKEN"] = number(Note::numeral_ended_token);
    note["CR_IN_TOKEN"] = number(Note::cr_in_token);
    note["NONFINITE"] = number(Note::nonfinite);
    note["RECODED"] = number(Note::recoded);
    state["UNDECIDED"] = number(State::undecided);
    state["NEW"] = number(State::fresh);
    state["SEEN"] = number(State::seen);
    state["ABSENT"] = number(State::absent);
    state["FAULTY"] = number(State::faulty);
    nonfinite["ERROR"] = number(Nonfinite::error);
    nonfinite["KEEP"] = number(Nonfinite::keep);
    nonfinite["ZERO"] = number(Nonfinite::zero);
    cast["FLOAT16"] = number(Cast::float16);
    cast["BFLOAT16"] = number(Cast::bfloat16);
    all["Fault"] = fault;
    all["Note"] = note;
    all["State"] = state;
    all["Nonfinite"] = nonfinite;
    all["Cast"] = cast;
    return all;
}

void set_simd(const char* name) {
    const std::string wanted(name);
    if (wanted == "best") {
        loops() = &best_loops();
    } else if (wanted == "portable") {
        loops() = &PORTABLE;
    } else {
        throw std::invalid_argument("expected 'portable' or 'best'");
    }
}

}  // namespace

NB_MODULE(_native, m) {
    // An object that lives to the end of the interpreter, in a traceback or in a worker of a DataLoader, is no leak that
    // a user can mend: say nothing of it on their stderr.
    nb::set_leak_warnings(false);
    m.doc() = "The kernel in C++. `vec2emb._kernel.reference` says what each name does.";

    nb::class_<PyRows>(m, "Rows")
        .def(nb::init<>())
        .def("clear", [](PyRows& rows) { const Turn turn(rows); rows.clear(); })
        .def_prop_ro("count", [](const PyRows& rows) { const Turn turn(rows); return rows.count(); })
        .def_prop_ro("kept", [](const PyRows& rows) { const Turn turn(rows); return rows.kept; })
        .def_prop_ro("lines", [](const PyRows& rows) { const Turn turn(rows); return rows.lines; })
        .def_prop_ro("blank_inside", [](const PyRows& rows) { const Turn turn(rows); return rows.blank_inside; })
        .def_prop_ro("blank_after", [](const PyRows& rows) { const Turn turn(rows); return rows.blank_after; })
        .def_prop_ro("first_blank", [](const PyRows& rows) { const Turn turn(rows); return rows.first_blank; })
        .def("truncate", [](PyRows& rows, Size count) { const Turn turn(rows); rows.truncate(count); }, "count"_a)
        .def("place", [](const PyRows& rows, Size row) {
            const Turn turn(rows);
            const Row& one = rows.rows[item(row, rows.count())];
            return std::tuple(one.line, one.start, one.end);
        }, "row"_a)
        .def("fault_of", [](const PyRows& rows, Size row) {
            const Turn turn(rows);
            const Row& one = rows.rows[item(row, rows.count())];
            return std::tuple(static_cast<int>(one.fault), one.fault_start, one.fault_end);
        }, "row"_a)
        .def("id_of", [](const PyRows& rows, Size row) {
            const Turn turn(rows);
            return rows.rows[item(row, rows.count())].signed_id();
        }, "row"_a)
        .def("kept_row", [](const PyRows& rows, Size position) {
            const Turn turn(rows);
            return rows.kept[item(position, rows.kept.size())];
        }, "position"_a)
        .def("id_of", [](const PyRows& rows, Size row) {
            const Turn turn(rows);
            return rows.rows[item(row, rows.count())].signed_id();
        }, "row"_a)
        .def("kept_row", [](const PyRows& rows, Size position) {
            const Turn turn(rows);
            return rows.kept[item(position, rows.kept.size())];
        }, "position"_a)
        .def("first_fault", [](const PyRows& rows) { const Turn turn(rows); return rows.first_fault(); })
        .def("token", [](const PyRows& rows, nb::handle data, Size row) {
            const Buffer buffer(data);
            const Turn turn(rows);
            return to_bytes(rows.token(buffer.bytes(), item(row, rows.count())));
        }, "data"_a, "row"_a)
        .def("tokens", &tokens_of, "data"_a)
        .def("set_tokens", &set_tokens, "tokens"_a)
        .def("tally", [](const PyRows& rows, Size note, bool kept_only) {
            const Turn turn(rows);
            return rows.tally(note, kept_only);
        }, "note"_a, "kept_only"_a = false)
        .def("tally_state", [](const PyRows& rows, Size state) { const Turn turn(rows); return rows.tally_state(state); },
             "state"_a)
        .def("rows_in_state", [](const PyRows& rows, Size state) {
            const Turn turn(rows);
            return rows.rows_in_state(state);
        }, "state"_a)
        .def("below", [](const PyRows& rows, Size limit) { const Turn turn(rows); return rows.below(limit); }, "limit"_a)
        .def("keep", [](PyRows& rows, bool seen_too) { const Turn turn(rows); return rows.keep(seen_too); },
             "seen_too"_a)
        .def("keep_these", [](PyRows& rows, const std::vector<Size>& wanted) {
            const Turn turn(rows);
            return rows.keep_these(wanted);
        }, "rows"_a)
        .def("blame", [](PyRows& rows, Size row, Size fault) {
            const Turn turn(rows);
            Row& one = rows.rows[item(row, rows.count())];
            if (one.fault == Fault::none) one.blame(fault_from(fault), one.token_start, one.token_end);
        }, "row"_a, "fault"_a)
        .def("remark", [](PyRows& rows, Size row, Size note) {
            const Turn turn(rows);
            if (note < 0 || note > 255) throw std::invalid_argument("there is no such note");
            rows.rows[item(row, rows.count())].remark(static_cast<Note>(note));
        }, "row"_a, "note"_a)
        .def("drop", [](PyRows& rows, Size row) { const Turn turn(rows); rows.drop(row); }, "row"_a)
        .def("runs", [](const PyRows& rows, Size start, Size stop) {
            const Turn turn(rows);
            return rows.runs(start, stop);
        }, "start"_a, "stop"_a);

    nb::class_<PyIndex>(m, "TokenIndex")
        .def(nb::init<Size>(), "expected"_a = 0)
        .def_static("over", &index_over, "blob"_a, "start"_a = 0)
        .def_prop_ro("first_duplicate", [](const PyIndex& index) { return index.first_duplicate; })
        .def("__len__", [](const PyIndex& index) { const Turn turn(index); return index.size(); })
        .def_prop_ro("nbytes", [](const PyIndex& index) { const Turn turn(index); return index.nbytes(); })
        .def("add", [](PyIndex& index, const nb::bytes& token) {
            const Turn turn(index);
            return index.add(view_of(token));
        }, "token"_a)
        .def("get", [](const PyIndex& index, const nb::bytes& token) {
            const Turn turn(index);
            return signed_id(index.get(view_of(token)));
        }, "token"_a)
        .def("token", [](const PyIndex& index, Size id) {
            const Turn turn(index);
            if (id < 0 || static_cast<std::uint64_t>(id) >= index.size()) {
                throw std::out_of_range("id " + std::to_string(id) + " in an index of " +
                                        std::to_string(index.size()) + " tokens");
            }
            return to_bytes(index.token(static_cast<std::size_t>(id)));
        }, "id"_a)
        .def("met", [](const PyIndex& index, Size id) {
            const Turn turn(index);
            return index.met(item(id, index.size()));
        }, "id"_a)
        .def("unmet", [](const PyIndex& index, Size start) {
            const Turn turn(index);
            return index.unmet(static_cast<std::size_t>(std::max<Size>(start, 0)));
        }, "start"_a)
        .def("blob", &blob_of, "start"_a, "stop"_a)
        .def("find", &find, "tokens"_a, "out"_a, "missing"_a)
        .def("add_rows", [](PyIndex& index, nb::handle data, PyRows& rows, bool asked_only) {
            const Buffer buffer(data);
            const Turn turn(index), other(rows);
            const nb::gil_scoped_release release;
            index.add_rows(buffer.bytes(), rows, asked_only);
        }, "data"_a, "rows"_a, "asked_only"_a = false)
        .def("find_rows", [](PyIndex& index, nb::handle data, PyRows& rows) {
            const Buffer buffer(data);
            const Turn turn(index), other(rows);
            const nb::gil_scoped_release release;
            index.find_rows(buffer.bytes(), rows);
        }, "data"_a, "rows"_a);

    nb::class_<PyCounter>(m, "TokenCounter")
        .def(nb::init<>())
        .def("__len__", [](const PyCounter& counter) { const Turn turn(counter); return counter.size(); })
        .def_prop_ro("total", [](const PyCounter& counter) { const Turn turn(counter); return counter.total(); })
        .def_prop_ro("nbytes", [](const PyCounter& counter) { const Turn turn(counter); return counter.nbytes(); })
        .def_prop_ro("memory", [](const PyCounter& counter) { const Turn turn(counter); return counter.memory(); })
        .def("add_text", &count_text, "data"_a, "start"_a, "stop"_a)
        .def("add", [](PyCounter& counter, const nb::bytes& token, Size count) {
            const Turn turn(counter);
            counter.add(view_of(token), count);
        }, "token"_a, "count"_a = 1)
        .def("add_lines", [](PyCounter& counter, nb::handle blob, nb::handle counts) {
            const Buffer lines(blob), times(counts);
            if (times.size() % 8 != 0) throw std::invalid_argument("expected int64[n]");
            const Turn turn(counter);
            const nb::gil_scoped_release release;
            counter.add_lines(lines.bytes(), times.data(), times.size() / 8);
        }, "blob"_a, "counts"_a)
        .def("merge", [](PyCounter& counter, const PyCounter& source) {
            const Turn turn(counter), other(source);
            const nb::gil_scoped_release release;
            counter.merge(source);
        }, "other"_a)
        .def("by_count", &counts_by_count)
        .def("by_bucket", &counts_by_bucket, "buckets"_a);

    m.def("scan_text", &scan_text, "data"_a, "size"_a, "dim"_a, "rows"_a, "utf8"_a = true);
    m.def("fill_text", &fill_text, "data"_a, "rows"_a, "start"_a, "stop"_a, "out"_a, "dim"_a, "nonfinite"_a,
          "unit_norm"_a, "limit"_a);
    m.def("check_text", &check_text, "data"_a, "rows"_a, "dim"_a, "nonfinite"_a, "unit_norm"_a, "limit"_a);
    m.def("profile_text", &profile, "data"_a, "size"_a, "limit"_a);
    m.def("scan_binary", &scan_records, "data"_a, "size"_a, "dim"_a, "width"_a, "rows"_a, "limit"_a, "utf8"_a = true);
    m.def("fill_binary", &fill_records, "data"_a, "rows"_a, "start"_a, "stop"_a, "out"_a, "dim"_a, "width"_a,
          "big_endian"_a, "nonfinite"_a, "unit_norm"_a, "limit"_a);
    m.def("check_binary", &check_records, "data"_a, "rows"_a, "dim"_a, "width"_a, "big_endian"_a, "nonfinite"_a,
          "unit_norm"_a, "limit"_a);
    m.def("add_rows", &add, "sums"_a, "rows"_a, "dim"_a);
    m.def("add_square_deviations", &add_squares, "sums"_a, "means"_a, "rows"_a, "dim"_a);
    m.def("cast_rows", &cast, "source"_a, "out"_a, "kind"_a);
    m.def("format_rows", &format, "tokens"_a, "rows"_a, "dim"_a);

    m.attr("codes") = codes();
    m.def("set_simd", &set_simd, "name"_a);
    m.def("simd", [] { return loops()->name; });
}
