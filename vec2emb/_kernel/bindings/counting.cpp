// TokenCounter: how often each token comes.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "shared.hpp"

namespace vec2emb::bindings {

namespace {

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

}  // namespace

void bind_counting(nb::module_& m) {
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
}

}  // namespace vec2emb::bindings
