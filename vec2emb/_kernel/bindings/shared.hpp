// What the bindings share: somebody's memory for as long as it is used, objects that threads take turns with, and
// indices as Python has them.
#pragma once

#include <nanobind/nanobind.h>

#include <mutex>

#include "../counting.hpp"
#include "../token_index.hpp"

namespace vec2emb::bindings {

namespace nb = nanobind;
using namespace nb::literals;

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

// What is done about odd tokens, rows and values; made once a pass.
struct PyPolicy {
    Nonfinite nonfinite;
    bool unit_norm;
    double limit;
    bool skip_bad_rows;
    bool utf8;
};

// A piece of a source and the rows in it. Attributes are read and written with the GIL held; `rows` has turns.
struct PyBlock {
    const std::size_t dim, width;  // width 0: text
    bool big_endian;
    nb::object buffer;
    nb::object vectors = nb::none();  // values that are not in the buffer, or None
    Size size = 0, offset = 0, base = 1;
    PyRows rows;
};

inline nb::bytes to_bytes(Bytes bytes) { return nb::bytes(bytes.data(), bytes.size()); }

inline Bytes view_of(const nb::bytes& bytes) { return {static_cast<const char*>(bytes.data()), bytes.size()}; }

// An index as Python has it: negative ones count from the end.
inline std::size_t item(Size index, std::size_t count) {
    const Size size = static_cast<Size>(count);
    if (index < -size || index >= size) {
        throw std::out_of_range("index " + std::to_string(index) + " of " + std::to_string(count));
    }
    return static_cast<std::size_t>(index < 0 ? index + size : index);
}

// A slice's end as Python has it.
inline std::size_t clip(Size index, std::size_t count) {
    const Size size = static_cast<Size>(count);
    return static_cast<std::size_t>(std::clamp<Size>(index < 0 ? index + size : index, 0, size));
}

inline std::size_t positive(Size value, const char* name) {
    if (value < 1) {
        throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + ", expected at least 1");
    }
    return static_cast<std::size_t>(value);
}

// Each adds what its file is named after to the module.
void bind_rows(nb::module_& module);
void bind_tokens(nb::module_& module);
void bind_counting(nb::module_& module);
void bind_blocks(nb::module_& module);

}  // namespace vec2emb::bindings
