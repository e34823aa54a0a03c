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
    if (width != 2 && width != 4 && width != 8) {
        throw std::invalid_argument("width is " + std::to_string(width) + ", expected 2, 4 or 8");
    }
    return static_cast<std::size_t>(width);
}

Nonfinite policy_of(Size policy) {
    if (policy < 0 || policy > 2) throw std::invalid_argument("nonfinite is " + std::to_string(policy));
    return static_cast<Nonfinite>(policy);
}

Values values_of(Size dim, Size nonfinite, bool unit_norm, double limit) {
    return {positive(dim, "dim"), policy_of(nonfinite), unit_norm, limit};
}

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

void scan_words(nb::handle data, Size size, Size dim, Size width, PyRows& rows, bool utf8) {
    const Buffer buffer(data);
    const Bytes block = block_of(buffer, size);
    const std::size_t values = positive(dim, "dim"), bytes = width_of(width);
    const Turn turn(rows);
    const nb::gil_scoped_release release;
    scan_tokens(block, values, bytes, rows, utf8);
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

}  // namespace

void bind_blocks(nb::module_& m) {
    m.def("scan_text", &scan_text, "data"_a, "size"_a, "dim"_a, "rows"_a, "utf8"_a = true);
    m.def("fill_text", &fill_text, "data"_a, "rows"_a, "start"_a, "stop"_a, "out"_a, "dim"_a, "nonfinite"_a,
          "unit_norm"_a, "limit"_a);
    m.def("check_text", &check_text, "data"_a, "rows"_a, "dim"_a, "nonfinite"_a, "unit_norm"_a, "limit"_a);
    m.def("profile_text", &profile, "data"_a, "size"_a, "limit"_a);
    m.def("scan_binary", &scan_records, "data"_a, "size"_a, "dim"_a, "width"_a, "rows"_a, "limit"_a, "utf8"_a = true);
    m.def("scan_tokens", &scan_words, "data"_a, "size"_a, "dim"_a, "width"_a, "rows"_a, "utf8"_a = true);
    m.def("fill_binary", &fill_records, "data"_a, "rows"_a, "start"_a, "stop"_a, "out"_a, "dim"_a, "width"_a,
          "big_endian"_a, "nonfinite"_a, "unit_norm"_a, "limit"_a);
    m.def("check_binary", &check_records, "data"_a, "rows"_a, "dim"_a, "width"_a, "big_endian"_a, "nonfinite"_a,
          "unit_norm"_a, "limit"_a);
    m.def("add_rows", &add, "sums"_a, "rows"_a, "dim"_a);
    m.def("add_square_deviations", &add_squares, "sums"_a, "means"_a, "rows"_a, "dim"_a);
    m.def("cast_rows", &cast, "source"_a, "out"_a, "kind"_a);
    m.def("format_rows", &format, "tokens"_a, "rows"_a, "dim"_a);
}

}  // namespace vec2emb::bindings
