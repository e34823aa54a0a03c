// The functions on blocks of rows, in the order of the twin: arguments are checked, the GIL is released, work is done.

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "../arithmetic.hpp"
#include "../binary.hpp"
#include "../dispatch.hpp"
#include "../writing.hpp"
#include "shared.hpp"

namespace vec2emb::bindings {

namespace {

Bytes block_of(const Buffer& data, Size size) {
    if (size < 0 || static_cast<std::uint64_t>(size) > data.size()) {
        throw std::invalid_argument("a block of " + std::to_string(size) + " bytes must lie within its buffer");
    }
    return data.bytes().substr(0, static_cast<std::size_t>(size));
}

std::size_t width_of(Size width) {
    if (width != 0 && width != 2 && width != 4 && width != 8) {
        throw std::invalid_argument("width is " + std::to_string(width) + ", expected 0, 2, 4 or 8");
    }
    return static_cast<std::size_t>(width);
}

Nonfinite nonfinite_of(Size policy) {
    if (policy < 0 || policy > 2) throw std::invalid_argument("nonfinite is " + std::to_string(policy));
    return static_cast<Nonfinite>(policy);
}

Values values_of(const PyBlock& block, const PyPolicy& policy) {
    return {block.dim, policy.nonfinite, policy.unit_norm, policy.limit};
}

// Where the values of a block's rows are.
nb::handle vectors_of(const PyBlock& block) { return block.vectors.is_none() ? block.buffer : block.vectors; }

void check_has_records(const PyBlock& block) {
    if (!block.width) throw std::invalid_argument("expected a block with values of 2, 4 or 8 bytes, not one of text");
}

// What `find(bytes)` gives for the bytes of a block, called without the GIL.
template <class Find>
auto scan(PyBlock& block, Find find) {
    const Buffer buffer(block.buffer);
    const Bytes bytes = block_of(buffer, block.size);
    const Turn turn(block.rows);
    const nb::gil_scoped_release release;
    return find(bytes);
}

void scan_lines(PyBlock& block, const PyPolicy& policy) {
    scan(block, [&](Bytes text) {
        check_whole_lines(text);
        loops()->scan_text(text, block.dim, block.rows, policy.utf8);
    });
}

std::size_t scan_records(PyBlock& block, Size limit, const PyPolicy& policy) {
    check_has_records(block);
    return scan(block, [&](Bytes bytes) {
        return scan_binary(bytes, block.dim, block.width, block.rows, limit, policy.utf8);
    });
}

void scan_words(PyBlock& block, const PyPolicy& policy) {
    check_has_records(block);
    scan(block, [&](Bytes bytes) { scan_tokens(bytes, block.dim, block.width, block.rows, policy.utf8); });
}

Size fill(PyBlock& block, Size start, Size stop, nb::handle out, const PyPolicy& policy) {
    const Values values = values_of(block, policy);
    const std::size_t width = block.width;
    const bool big_endian = block.big_endian;
    const Buffer buffer(vectors_of(block));
    const Output output(out);
    const Turn turn(block.rows);
    check_kept(block.rows, start, stop, output.size(), values.dim);
    if (!width) check_rows_within(block.rows, buffer.bytes());
    const nb::gil_scoped_release release;
    return width ? fill_binary(buffer.bytes(), block.rows, start, stop, output.data(), values, width, big_endian)
                 : loops()->fill_text(buffer.bytes(), block.rows, start, stop, output.data(), values);
}

void check(PyBlock& block, const PyPolicy& policy) {
    const Values values = values_of(block, policy);
    const std::size_t width = block.width;
    const bool big_endian = block.big_endian;
    const Buffer buffer(vectors_of(block));
    const Turn turn(block.rows);
    if (!width) check_rows_within(block.rows, buffer.bytes());
    const nb::gil_scoped_release release;
    if (width) {
        check_binary(buffer.bytes(), block.rows, values, width, big_endian);
    } else {
        loops()->check_text(buffer.bytes(), block.rows, values);
    }
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

}  // namespace

void bind_blocks(nb::module_& m) {
    nb::class_<PyPolicy>(m, "Policy")
        .def("__init__", [](PyPolicy* self, Size nonfinite, bool unit_norm, double limit, bool skip_bad_rows, bool utf8) {
            new (self) PyPolicy{nonfinite_of(nonfinite), unit_norm, limit, skip_bad_rows, utf8};
        }, "nonfinite"_a = 0, "unit_norm"_a = false, "limit"_a = std::numeric_limits<double>::infinity(),
             "skip_bad_rows"_a = false, "utf8"_a = true)
        .def_prop_ro("nonfinite", [](const PyPolicy& policy) { return static_cast<int>(policy.nonfinite); })
        .def_ro("unit_norm", &PyPolicy::unit_norm)
        .def_ro("limit", &PyPolicy::limit)
        .def_ro("skip_bad_rows", &PyPolicy::skip_bad_rows)
        .def_ro("utf8", &PyPolicy::utf8);
    nb::class_<PyBlock>(m, "Block")
        .def("__init__", [](PyBlock* self, Size dim, Size width, bool big_endian, nb::object buffer) {
            const std::size_t columns = positive(dim, "dim"), bytes = width_of(width);
            if (buffer.is_none()) {
                buffer = nb::steal(PyByteArray_FromStringAndSize("", 0));
                if (!buffer.is_valid()) throw nb::python_error();
            }
            const auto size = static_cast<Size>(Buffer(buffer).size());
            new (self) PyBlock{columns, bytes, big_endian, buffer};
            self->size = size;
        }, "dim"_a, "width"_a = 0, "big_endian"_a = false, "buffer"_a = nb::none())
        .def_ro("dim", &PyBlock::dim)
        .def_ro("width", &PyBlock::width)
        .def_ro("big_endian", &PyBlock::big_endian)
        .def_ro("buffer", &PyBlock::buffer)
        .def_ro("vectors", &PyBlock::vectors)
        .def_rw("size", &PyBlock::size)
        .def_rw("offset", &PyBlock::offset)
        .def_rw("base", &PyBlock::base)
        .def_prop_ro("rows", [](PyBlock& block) -> PyRows& { return block.rows; }, nb::rv_policy::reference_internal)
        .def("set_vectors", [](PyBlock& block, nb::object vectors, bool big_endian) {
            block.vectors = vectors;
            block.big_endian = big_endian;
        }, "vectors"_a.none(), "big_endian"_a = false)
        .def("token", [](const PyBlock& block, Size row) {
            const Buffer buffer(block.buffer);
            const Turn turn(block.rows);
            return to_bytes(block.rows.token(buffer.bytes(), item(row, block.rows.count())));
        }, "row"_a)
        .def("line", [](const PyBlock& block, Size row) {
            const Turn turn(block.rows);
            return block.base + Size{block.rows.rows[item(row, block.rows.count())].line};
        }, "row"_a);
    m.def("scan_text", &scan_lines, "block"_a, "policy"_a);
    m.def("scan_binary", &scan_records, "block"_a, "limit"_a, "policy"_a);
    m.def("scan_tokens", &scan_words, "block"_a, "policy"_a);
    m.def("fill", &fill, "block"_a, "start"_a, "stop"_a, "out"_a, "policy"_a);
    m.def("check", &check, "block"_a, "policy"_a);
    m.def("profile_text", &profile, "data"_a, "size"_a, "limit"_a);
    m.def("add_rows", &add, "sums"_a, "rows"_a, "dim"_a);
    m.def("add_square_deviations", &add_squares, "sums"_a, "means"_a, "rows"_a, "dim"_a);
    m.def("cast_rows", &cast, "source"_a, "out"_a, "kind"_a);
    m.def("format_rows", &format, "tokens"_a, "rows"_a, "dim"_a);
}

}  // namespace vec2emb::bindings
