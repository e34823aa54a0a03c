// The Python side of the kernel: arguments in, results out, the GIL released while blocks are worked on. Nothing is
// decided here.

#include "../codes.hpp"
#include "../dispatch.hpp"
#include "shared.hpp"

namespace vec2emb::bindings {

namespace {

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

}  // namespace vec2emb::bindings

NB_MODULE(_native, m) {
    using namespace vec2emb::bindings;
    // An object that lives to the end of the interpreter, in a traceback or in a worker of a DataLoader, is no leak that
    // a user can mend: say nothing of it on their stderr.
    nb::set_leak_warnings(false);
    m.doc() = "The kernel in C++. `vec2emb._kernel.reference` says what each name does.";
    bind_rows(m);
    bind_tokens(m);
    bind_counting(m);
    bind_blocks(m);
    m.attr("_codes") = codes();
    m.def("set_simd", &set_simd, "name"_a);
    m.def("simd", [] { return vec2emb::loops()->name; });
}
