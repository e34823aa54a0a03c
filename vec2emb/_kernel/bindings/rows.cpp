// Rows: what was found in a block, and what becomes of it.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "shared.hpp"

namespace vec2emb::bindings {

namespace {

Fault fault_from(Size fault) {
    if (fault < 0 || fault > static_cast<Size>(Fault::nonfinite_value)) {
        throw std::invalid_argument(std::to_string(fault) + " is not a valid Fault");
    }
    return static_cast<Fault>(fault);
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

}  // namespace

void bind_rows(nb::module_& m) {
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
        }, "start"_a, "stop"_a)
        .def("scatter", [](const PyRows& rows, Size start, Size stop, nb::handle vectors, nb::handle table, Size dim) {
            const std::size_t columns = positive(dim, "dim");
            const Buffer from(vectors);
            const Output to(table);
            const Turn turn(rows);
            check_kept(rows, start, stop, from.size(), columns);
            const nb::gil_scoped_release release;
            rows.scatter(start, stop, from.bytes().data(), to.data(), to.size(), 4 * columns);
        }, "start"_a, "stop"_a, "vectors"_a, "table"_a, "dim"_a);
}

}  // namespace vec2emb::bindings
