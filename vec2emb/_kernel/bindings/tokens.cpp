// TokenIndex: tokens and their ids.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "shared.hpp"

namespace vec2emb::bindings {

namespace {

Size signed_id(std::uint32_t id) { return id == NO_ID ? -1 : Size{id}; }

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

}  // namespace

void bind_tokens(nb::module_& m) {
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
}

}  // namespace vec2emb::bindings
