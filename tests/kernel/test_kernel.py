"""The kernel, case by case, in plain Python and in C++.

Every case runs through the reference, through the native kernel's portable loops and through the best loops that
this machine has. What a case expects is derived by hand or comes from numpy, never from a kernel. The last part
throws random blocks at all of them: there the reference says what is right.
"""

from __future__ import annotations

import importlib.util
import math
import mmap
import os
import struct
import sys
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import faults, record_story, text_story

from vec2emb._kernel import reference
from vec2emb._kernel.codes import Cast, Fault, Nonfinite, Note, State

HAS_NATIVE = importlib.util.find_spec("vec2emb._kernel._native") is not None
ENGINES = ["reference", "native-portable", "native-best"] if HAS_NATIVE else ["reference"]

FLOAT32_MAX = 3.4028234663852886e38
NO_LIMIT = math.inf


def engine(name: str) -> ModuleType:
    """The kernel of that name, set to the loops that the name says."""
    if name == "reference":
        return reference
    native = import_module("vec2emb._kernel._native")
    native.set_simd(name.removeprefix("native-"))
    return native


@pytest.fixture(params=ENGINES)
def kernel(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    yield engine(request.param)
    if HAS_NATIVE:
        engine("native-best")


def scan(kernel: ModuleType, text: bytes, dim: int, utf8: bool = True) -> Any:
    """The rows of text."""
    block = kernel.Block(dim, buffer=text)
    kernel.scan_text(block, kernel.Policy(utf8=utf8))
    return block.rows


def kept_block(kernel: ModuleType, text: bytes | bytearray, dim: int) -> Any:
    """A block of text whose rows have all different tokens, all kept."""
    block = kernel.Block(dim, buffer=text)
    kernel.scan_text(block, kernel.Policy())
    keep_all(kernel, block)
    return block


def cut_block(kernel: ModuleType, data: bytes, size: int, dim: int, width: int = 0) -> Any:
    """A block of a part of the data."""
    block = kernel.Block(dim, width, buffer=data)
    block.size = size
    return block


def keep_all(kernel: ModuleType, block: Any) -> None:
    kernel.TokenIndex().add_rows(block.buffer, block.rows)
    block.rows.keep(False)


def fill(
    kernel: ModuleType,
    text: bytes,
    dim: int,
    *,
    nonfinite: int = Nonfinite.ERROR,
    unit_norm: bool = False,
    limit: float = NO_LIMIT,
) -> tuple[int, np.ndarray[Any, np.dtype[np.float32]], Any]:
    """(what `fill` returns, float32[kept, dim], the rows)."""
    block = kept_block(kernel, text, dim)
    kept = len(block.rows.kept)
    out = np.full((kept, dim), 77, np.float32)
    answer = kernel.fill(block, 0, kept, out, kernel.Policy(int(nonfinite), unit_norm, limit))
    return answer, out, block.rows


def bits(values: Any) -> list[int]:
    return np.asarray(values, np.float32).view(np.uint32).ravel().tolist()


# The native kernel is there where it must be, and speaks the same numbers.


def test_the_native_kernel_is_there_where_it_is_required() -> None:
    if os.environ.get("VEC2EMB_REQUIRE_NATIVE", "0") not in ("", "0", "false"):
        assert HAS_NATIVE, "VEC2EMB_REQUIRE_NATIVE is set, but vec2emb._kernel._native was not built"


@pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel was not built")
def test_codes_are_the_same_in_both_languages() -> None:
    ours = {
        kind.__name__: {member.name: member.value for member in kind} for kind in (Fault, Note, State, Nonfinite, Cast)
    }
    assert import_module("vec2emb._kernel._native")._codes == ours


def test_both_kernels_have_the_same_names(kernel: ModuleType) -> None:
    for name in reference.__all__:
        assert hasattr(kernel, name)
    for kind in ("Block", "Policy", "Rows", "TokenIndex"):
        theirs = {name for name in dir(getattr(reference, kind)) if not name.startswith("_")}
        assert theirs <= set(dir(getattr(kernel, kind)))


# Rows of text: where tokens and values stand.

ROWS_OF_TEXT = [
    # what it is about, the line, dim, the token, its notes
    ("a plain row", b"cat 1 2", 2, b"cat", 0),
    ("one value", b"cat 1", 1, b"cat", 0),
    ("a tab separates", b"cat\t1\t2", 2, b"cat", 0),
    ("a token that looks like a number", b"1995 1 2", 2, b"1995", 0),
    ("a token with spaces", b"new york city 1 2", 2, b"new york city", 0),
    ("a token with two spaces inside", b"a  b 1 2", 2, b"a  b", 0),
    ("a token with a tab inside", b"a\tb 1 2", 2, b"a\tb", 0),
    ("a token that begins with a space", b" a 1 2", 2, b" a", 0),
    ("dots, as in glove.840B", b". . . 1 2", 2, b". . .", 0),
    ("the token's last piece is a numeral", b"at 5 1 2", 2, b"at 5", Note.NUMERAL_ENDED_TOKEN),
    ("its last piece is not a number", b"a nan 1 2", 2, b"a nan", Note.NUMERAL_ENDED_TOKEN),
    ("a numeral in front does not end it", b"5 at 1 2", 2, b"5 at", 0),
    ("two bytes separate", b"cat  1 2", 2, b"cat", Note.EXCESS_SEPARATORS),
    ("three bytes of both kinds separate", b"cat \t 1 2", 2, b"cat", Note.EXCESS_SEPARATORS),
    ("values may stand apart", b"cat 1   2", 2, b"cat", 0),
    ("values may stand apart, tabs", b"cat 1\t \t2", 2, b"cat", 0),
    ("a token that is one space", b"  1 2", 2, b" ", 0),
    ("a token that is a tab", b"\t 1 2", 2, b"\t", 0),
    ("a token that is two spaces", b"   1 2", 2, b"  ", 0),
    ("a trailing space", b"cat 1 2 ", 2, b"cat", 0),
    ("trailing spaces and tabs", b"cat 1 2 \t ", 2, b"cat", 0),
    ("a CR before the LF", b"cat 1 2\r", 2, b"cat", 0),
    ("spaces before the CR", b"cat 1 2 \r", 2, b"cat", 0),
    ("a CR in the token", b"c\rat 1 2", 2, b"c\rat", Note.CR_IN_TOKEN),
    ("a CR is no separator", b"cat\r 1 2", 2, b"cat\r", Note.CR_IN_TOKEN),
    ("two CRs: one belongs to the last field", b"cat 1 2\r\r", 2, b"cat", 0),
    ("no-break space is no separator", "a\u00a0b 1 2".encode(), 2, "a\u00a0b".encode(), 0),
    ("ideographic space is no separator", "\u3000 1 2".encode(), 2, "\u3000".encode(), 0),
    ("vertical tab and form feed are no separators", b"a\x0b\x0c 1 2", 2, b"a\x0b\x0c", 0),
    ("a BOM inside", "a\ufeffb 1 2".encode(), 2, "a\ufeffb".encode(), 0),
    ("all of UTF-8's lengths", "aé€😀 1 2".encode(), 2, "aé€😀".encode(), 0),
    ("words that are no numbers are values all the same", b"cat one two", 2, b"cat", 0),
    ("a token longer than a machine word", b"incomprehensibilities 1 2", 2, b"incomprehensibilities", 0),
]


@pytest.mark.parametrize(("line", "dim", "token", "note"), [case[1:] for case in ROWS_OF_TEXT],
                         ids=[case[0] for case in ROWS_OF_TEXT])  # fmt: skip
def test_token_of_a_row(kernel: ModuleType, line: bytes, dim: int, token: bytes, note: int) -> None:
    text = b"before 8 9\n"[: 11 if dim == 2 else 0] + line + b"\n"
    rows = scan(kernel, text, dim)
    assert rows.tokens(text)[-1] == token
    assert rows.token(text, rows.count - 1) == token
    assert faults(rows) == [(Fault.NONE, 0, 0)] * rows.count
    for one in Note:
        assert rows.tally(one) == ((1, rows.count - 1) if one & note else (0, -1))


ROWS_AT_FAULT = [
    # what it is about, the line, dim, the fault, the bytes of the line that are at fault
    ("a token alone", b"cat", 1, Fault.TOO_FEW_VALUES, (0, 3)),
    ("one value too few", b"cat 1", 2, Fault.TOO_FEW_VALUES, (0, 5)),
    ("values and no token", b"1 2", 2, Fault.TOO_FEW_VALUES, (0, 3)),
    ("spaces at both ends do not count", b" 1 ", 2, Fault.TOO_FEW_VALUES, (0, 2)),
    ("a CR alone in front", b"\r\r", 1, Fault.TOO_FEW_VALUES, (0, 1)),
    ("nothing before the separator", b" 1 2", 2, Fault.EMPTY_TOKEN, (0, 1)),
    ("nothing before the tab", b"\t1", 1, Fault.EMPTY_TOKEN, (0, 1)),
    ("a NUL in the token", b"c\0t 1 2", 2, Fault.NUL_IN_TOKEN, (0, 3)),
    ("a NUL after eight bytes", b"abcdefgh\0 1 2", 2, Fault.NUL_IN_TOKEN, (0, 9)),
    ("NUL comes before UTF-8", b"\xff\0 1 2", 2, Fault.NUL_IN_TOKEN, (0, 2)),
    ("Latin-1", b"\xe9t\xe9 1 2", 2, Fault.INVALID_UTF8, (0, 3)),
    ("a stray tail byte", b"a\x80 1 2", 2, Fault.INVALID_UTF8, (0, 2)),
    ("cut off", b"\xe2\x82 1 2", 2, Fault.INVALID_UTF8, (0, 2)),
    ("overlong, two bytes", b"\xc0\xaf 1 2", 2, Fault.INVALID_UTF8, (0, 2)),
    ("overlong, three bytes", b"\xe0\x9f\xbf 1 2", 2, Fault.INVALID_UTF8, (0, 3)),
    ("overlong, four bytes", b"\xf0\x8f\xbf\xbf 1 2", 2, Fault.INVALID_UTF8, (0, 4)),
    ("a surrogate", b"\xed\xa0\x80 1 2", 2, Fault.INVALID_UTF8, (0, 3)),
    ("beyond U+10FFFF", b"\xf4\x90\x80\x80 1 2", 2, Fault.INVALID_UTF8, (0, 4)),
    ("a byte that UTF-8 never has", b"\xf5\x80\x80\x80 1 2", 2, Fault.INVALID_UTF8, (0, 4)),
]


@pytest.mark.parametrize(("line", "dim", "fault", "place"), [case[1:] for case in ROWS_AT_FAULT],
                         ids=[case[0] for case in ROWS_AT_FAULT])  # fmt: skip
def test_fault_of_a_row(kernel: ModuleType, line: bytes, dim: int, fault: Fault, place: tuple[int, int]) -> None:
    first = b"good" + b" 1" * dim + b"\n"
    rows = scan(kernel, first + line + b"\n", dim)
    start, end = (len(first) + offset for offset in place)
    assert faults(rows) == [(Fault.NONE, 0, 0), (fault, start, end)]
    assert rows.first_fault() == 1


@pytest.mark.parametrize("size", range(1, 20))
def test_utf8_is_checked_wherever_the_bad_byte_stands(kernel: ModuleType, size: int) -> None:
    for bad in range(size):
        token = b"a" * bad + b"\xff" + b"a" * (size - bad - 1)
        assert scan(kernel, token + b" 1\n", 1).fault_of(0)[0] == Fault.INVALID_UTF8


def test_utf8_is_somebody_elses_to_check_if_asked(kernel: ModuleType) -> None:
    rows = scan(kernel, b"\xe9t\xe9 1\nc\0t 1\n", 1, utf8=False)
    assert [fault for fault, _, _ in faults(rows)] == [Fault.NONE, Fault.NUL_IN_TOKEN]


def test_code_points_are_judged_as_python_judges_them(kernel: ModuleType) -> None:
    leads = [0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    tails = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0]
    tokens = [bytes([a, b, c, d][:n]) for a in leads for b in tails for c in tails for d in tails for n in (2, 3, 4)]
    text = b"".join(token + b" 1\n" for token in tokens)
    found = [fault for fault, _, _ in faults(scan(kernel, text, 1))]
    for token, fault in zip(tokens, found, strict=True):
        try:
            token.decode("utf-8")
        except UnicodeDecodeError:
            assert fault == Fault.INVALID_UTF8, token
        else:
            assert fault == Fault.NONE, token


def test_places_are_lines_and_bytes(kernel: ModuleType) -> None:
    rows = scan(kernel, b"\na 1 \r\n\nbc 2\n", 1)
    assert [rows.place(row) for row in range(rows.count)] == [(1, 1, 4), (3, 8, 12)]


def test_blank_lines_are_counted_where_they_stand(kernel: ModuleType) -> None:
    rows = scan(kernel, b"\n \na 1\n\t\r\nb 1\n\n\r\n", 1)
    assert (rows.count, rows.lines) == (2, 7)
    assert (rows.blank_inside, rows.blank_after, rows.first_blank) == (3, 2, 0)


def test_a_block_of_blank_lines_has_no_row(kernel: ModuleType) -> None:
    rows = scan(kernel, b"\n\n", 1)
    assert (rows.count, rows.lines, rows.blank_inside, rows.blank_after, rows.first_blank) == (0, 2, 0, 2, 0)


def test_an_empty_block_is_a_block(kernel: ModuleType) -> None:
    rows = scan(kernel, b"", 3)
    assert (rows.count, rows.lines, rows.first_blank, rows.first_fault()) == (0, 0, -1, -1)


@pytest.mark.parametrize(
    ("count", "lines", "inside", "after", "first_blank"),
    [(0, 1, 0, 1, 0), (1, 3, 1, 1, 0), (2, 4, 2, 0, 0), (3, 7, 2, 2, 0), (9, 7, 2, 2, 0)],
)
def test_truncate_forgets_rows_and_the_blank_lines_behind_them(
    kernel: ModuleType, count: int, lines: int, inside: int, after: int, first_blank: int
) -> None:
    text = b"\na 1\n\nb 1\nc 1\n\n\n"
    rows = scan(kernel, text, 1)
    kernel.TokenIndex().add_rows(text, rows)
    rows.keep(False)
    rows.truncate(count)
    assert rows.count == min(count, 3)
    assert list(rows.kept) == list(range(min(count, 3)))
    assert (rows.lines, rows.blank_inside, rows.blank_after, rows.first_blank) == (lines, inside, after, first_blank)


def test_truncate_forgets_a_first_blank_line_that_came_later(kernel: ModuleType) -> None:
    rows = scan(kernel, b"a 1\nb 1\n\nc 1\n", 1)
    rows.truncate(1)
    assert (rows.lines, rows.blank_inside, rows.blank_after, rows.first_blank) == (1, 0, 0, -1)


def test_only_the_size_given_is_scanned(kernel: ModuleType) -> None:
    block = kernel.Block(1, buffer=b"a 1\nb 2\n")
    assert block.size == 8
    block.size = 4
    kernel.scan_text(block, kernel.Policy())
    assert block.rows.tokens(block.buffer) == [b"a"]


def test_a_block_knows_its_place_in_the_source(kernel: ModuleType) -> None:
    block = kernel.Block(1, buffer=b"\na 1\nb 2\n")
    kernel.scan_text(block, kernel.Policy())
    assert (block.base, block.offset, block.line(1)) == (1, 0, 3)
    block.base, block.offset = 100, 2048
    assert (block.line(0), block.line(1), block.offset) == (101, 102, 2048)
    assert (block.token(0), block.token(1)) == (b"a", b"b")
    block.rows.set_tokens([b"A", b"B"])
    assert block.token(1) == b"B"
    assert kernel.Block(3).buffer == bytearray()
    for ask in (block.token, block.line):
        with pytest.raises(IndexError):
            ask(2)


def test_a_policy_is_made_once(kernel: ModuleType) -> None:
    policy = kernel.Policy(Nonfinite.ZERO, True, 65504.0, skip_bad_rows=True, utf8=False)
    assert (policy.nonfinite, policy.unit_norm, policy.limit) == (Nonfinite.ZERO, True, 65504.0)
    assert (policy.skip_bad_rows, policy.utf8) == (True, False)
    plain = kernel.Policy()
    assert (plain.nonfinite, plain.unit_norm, plain.limit) == (Nonfinite.ERROR, False, math.inf)
    assert (plain.skip_bad_rows, plain.utf8) == (False, True)
    with pytest.raises(AttributeError):
        plain.limit = 1.0
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match="nonfinite"):
            kernel.Policy(wrong)


@pytest.mark.parametrize(("data", "size", "dim"), [(b"a 1", 3, 1), (b"a 1\n", 5, 1), (b"a 1\n", -1, 1),
                                                   (b"a 1\n", 4, 0)])  # fmt: skip
def test_scan_refuses_half_lines_and_wrong_sizes(kernel: ModuleType, data: bytes, size: int, dim: int) -> None:
    with pytest.raises(ValueError, match=r"block|dim"):
        kernel.scan_text(cut_block(kernel, data, size, dim), kernel.Policy())


@pytest.mark.parametrize("length", [*range(1, 70), 127, 128, 129, 200])
def test_rows_are_found_across_any_boundary(kernel: ModuleType, length: int) -> None:
    """Loops look at 8, 16 or 64 bytes at a time; no position in them may be special."""
    text = b"x" * length + b" 1\n" + b"y 2\n" + b"z" * length + b" \t3 \r\n" + b"\n" + b"w 4\n"
    rows = scan(kernel, text, 1)
    assert rows.tokens(text) == [b"x" * length, b"y", b"z" * length, b"w"]
    assert rows.tally(Note.EXCESS_SEPARATORS) == (1, 2)
    assert fill(kernel, text, 1)[1].ravel().tolist() == [1, 2, 3, 4]


def test_any_buffer_is_taken(kernel: ModuleType, tmp_path: Path) -> None:
    text = b"a 1\nb 2\n"
    (tmp_path / "rows").write_bytes(text)
    with (tmp_path / "rows").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for data in (text, bytearray(text), memoryview(b"." + text)[1:], mapped):
            block = kernel.Block(1, buffer=data)
            kernel.scan_text(block, kernel.Policy())
            assert block.rows.tokens(data) == [b"a", b"b"]


# Profiles: fields and trailing numerals.


def test_profile_counts_fields_and_trailing_numerals(kernel: ModuleType) -> None:
    text = b"\ncat 1 2\nnew york\t3  nan \r\n5 6\none 2 three\n"
    assert kernel.profile_text(text, len(text), 9) == [(1, 8, 3, 2), (9, 24, 4, 2), (27, 30, 2, 2), (31, 42, 3, 0)]
    assert len(kernel.profile_text(text, len(text), 2)) == 2
    assert kernel.profile_text(text, len(text), 0) == []


def test_profile_refuses_half_lines(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="block"):
        kernel.profile_text(b"a 1", 3, 9)


# Numerals.

NUMERALS = [
    "0", "-0", "+0", "0.0", "-0.0", "-.0", "-0e99", "0e400", "-0e-400", "1", "+1", "-1", "1.", ".5", "+.5", "-.5",
    "007", "-0.44251", "0.18785", "3.14159265358979", "1e5", "1E5", "1e+5", "1e-5", "1.e2", ".1e1", "-2.5e-3",
    # Fifteen, sixteen, seventeen and more digits; the double that a mantissa of 2^53 + 1 is not.
    "123456789012345", "-123456789012345", "1234567890123456", "12345678901234567", "0.12345678901234567",
    "9007199254740993", "9007199254740993e-3", "0.000000000000000000000000000001", "1" + "0" * 30, "0" * 40 + "1.5",
    "1.000000059604644775390625",  # half-way between two float32 values, ties to even
    "1.0000000596046447753906250000001",  # above half-way as text; to float64 first, it is a tie
    "1.00000005960464477539062500000000000001e0",
    "0." + "0" * 50 + "1e50", "1" + "0" * 50 + "e-50",
    # Subnormal float32 values, the smallest, what rounds to zero, and the largest.
    "1e-38", "1.1754942e-38", "1.4e-45", "7.1e-46", "7e-46", "-7e-46", "1e-50", "1e-400", "-1e-400", "1e-99999999999",
    "3.4028234e38", "3.4028235677973362e38", "-3.4028235677973362e38",
    # Powers of ten at the edge of what a float64 holds exactly.
    "1e22", "1e23", "123e22", "9007199254740992e22", "1e-22", "1e-23", "4503599627370497e-22",
    "1.000000000000000000e+00", "-4.425100088119506836e-01", "6.103515625e-05",
]  # fmt: skip


@pytest.mark.parametrize("text", NUMERALS)
def test_value_of_a_numeral_is_numpys_to_the_bit(kernel: ModuleType, text: str) -> None:
    # Alone, first, in the middle and last; in one row and in two rows that are parsed together.
    block = f"a {text}\nb {text}\n".encode()
    answer, out, _ = fill(kernel, block, 1)
    assert (answer, bits(out)) == (-1, bits([np.float32(float(text))] * 2))
    block = f"a {text} 1 {text}\nb 2 {text} {text}\nc {text} {text} 3\n".encode() + b"pad 4 4 4\n" * 9
    answer, out, _ = fill(kernel, block.replace(b"pad", b"p", 1), 3)
    value = np.float32(float(text))
    assert answer == -1
    assert bits(out[:3]) == bits([[value, 1, value], [2, value, value], [value, value, 3]])


WORDS = [
    ".", "-", "+", "-.", "+.", "--1", "+-1", "1-", "1_0", "0x10", "0x1p3", "1.2.3", "1..2", "..5", "1e", "1e+", "1e-",
    "e5", ".e5", "1e5.", "1e5e5", "1,5", "1.5f", "1d5", "nano", "infinit", "infinityy", "in", "nan(1)", "-", "1\u00a0",
    "\u0661", "1\v", "\x001", "1\x00", "abc", "1/2", "1:2", "½", "1-2", "-1-2", "1+2", "2.5-",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_no_numeral(kernel: ModuleType, word: str) -> None:
    field = word.encode()
    for before, after in ((b"", b""), (b"1 ", b""), (b"", b" 1"), (b"1 ", b" 1")):
        good = b"good" + b" 1" * (1 + len(before + after) // 2) + b"\n"
        line = b"bad " + before + field + after + b"\n"
        text = good + line + good.replace(b"good", b"more") + b"x" * 60 + good[4:]
        start = len(good) + 4 + len(before)
        answer, _, rows = fill(kernel, text, (len(good) - 5) // 2)
        assert answer == 1
        assert rows.fault_of(1) == (Fault.NOT_A_NUMERAL, start, start + len(field))
        assert kernel.profile_text(b"a " + field + b"\n", len(field) + 3, 1)[0][3] == 0


@pytest.mark.parametrize("word", ["nan", "NaN", "-nan", "+NAN", "inf", "-INF", "+Inf", "infinity", "-Infinity", "nAn"])
def test_nan_and_inf_are_numerals(kernel: ModuleType, word: str) -> None:
    text = f"a 1 {word}\nb 2 3\n".encode()
    assert kernel.profile_text(text, len(text), 9)[0][2:] == (3, 2)

    answer, out, rows = fill(kernel, text, 2, nonfinite=Nonfinite.KEEP)
    assert (answer, bits(out)) == (-1, bits([1, np.float32(float(word)), 2, 3]))
    assert rows.tally(Note.NONFINITE) == (1, 0)

    answer, out, rows = fill(kernel, text, 2, nonfinite=Nonfinite.ZERO)
    assert (answer, bits(out)) == (-1, bits([1, 0, 2, 3]))
    assert rows.tally(Note.NONFINITE) == (1, 0)

    answer, out, rows = fill(kernel, text, 2, nonfinite=Nonfinite.ERROR)
    assert (answer, bits(out[1])) == (-1, bits([2, 3]))  # passed over, and the next row is filled
    assert rows.fault_of(0) == (Fault.NONFINITE_VALUE, 4, 4 + len(word))


@pytest.mark.parametrize("big", ["1e39", "-1e39", "3.4028235677973366e38", "1e400", "-1e400", "1e99999999999",
                                 "1" + "0" * 400, "1" + "0" * 39])  # fmt: skip
def test_a_numeral_beyond_float32_is_out_of_range(kernel: ModuleType, big: str) -> None:
    answer, _, rows = fill(kernel, f"a 1 2\nb 1 {big}\n".encode(), 2)
    assert answer == 1
    assert rows.fault_of(1) == (Fault.OUT_OF_RANGE, 10, 10 + len(big))


def test_the_first_fault_of_a_row_counts(kernel: ModuleType) -> None:
    assert fill(kernel, b"a nan x 1e99\n", 3)[2].fault_of(0)[0] == Fault.NOT_A_NUMERAL
    assert fill(kernel, b"a nan 1e99 x\n", 3)[2].fault_of(0)[0] == Fault.OUT_OF_RANGE
    assert fill(kernel, b"a nan inf 1\n", 3)[2].fault_of(0) == (Fault.NONFINITE_VALUE, 2, 5)


def test_filling_goes_on_after_the_row_at_fault(kernel: ModuleType) -> None:
    text = b"a 1\nb x\nc 3\nd y\ne 5\n"
    block = kept_block(kernel, text, 1)
    out = bytearray(20)
    found = []
    start = 0
    while start < 5:
        stop = kernel.fill(block, start, 5, memoryview(out)[4 * start :], kernel.Policy())
        found.append(stop)
        start = stop + 1 if stop >= 0 else 5
    assert found == [1, 3, -1]
    assert [struct.unpack_from("f", out, 4 * i)[0] for i in (0, 2, 4)] == [1, 3, 5]


def test_the_limit_is_about_magnitude_after_normalising(kernel: ModuleType) -> None:
    text = b"a 3 -4\nb 30 40\n"
    assert fill(kernel, text, 2, limit=4)[0] == 1
    assert fill(kernel, text, 2, limit=4)[2].fault_of(1) == (Fault.OUT_OF_RANGE, 9, 14)
    assert fill(kernel, text, 2, limit=4, unit_norm=True)[0] == -1
    assert fill(kernel, text, 2, limit=3.9999999)[0] == 0
    assert fill(kernel, b"a inf 1\n", 2, limit=1, nonfinite=Nonfinite.KEEP)[0] == -1


@pytest.mark.parametrize(("row", "expected"), [(b"3 4", [0.6, 0.8]), (b"0 -0", [0, -0.0]), (b"1e-45 0", [1, 0]),
                                               (b"3e38 3e38", [0.70710678118654757] * 2)])  # fmt: skip
def test_unit_norm(kernel: ModuleType, row: bytes, expected: list[float]) -> None:
    answer, out, _ = fill(kernel, b"a " + row + b"\n", 2, unit_norm=True)
    assert (answer, bits(out)) == (-1, bits(expected))


def test_unit_norm_leaves_rows_that_are_not_finite(kernel: ModuleType) -> None:
    _, out, _ = fill(kernel, b"a 3 inf\n", 2, unit_norm=True, nonfinite=Nonfinite.KEEP)
    assert bits(out) == bits([3, math.inf])


@pytest.mark.parametrize(("start", "stop", "size"), [(0, 2, 7), (-1, 1, 8), (0, 3, 16), (2, 1, 8)])
def test_fill_refuses_what_does_not_fit(kernel: ModuleType, start: int, stop: int, size: int) -> None:
    text = b"a 1\nb 2\n"
    block = kept_block(kernel, text, 1)
    with pytest.raises(ValueError, match="fit"):
        kernel.fill(block, start, stop, bytearray(size // 4 * 4), kernel.Policy())


@pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel was not built")
def test_native_refuses_a_block_that_is_not_the_scanned_one() -> None:
    native = engine("native-best")
    block, policy = kept_block(native, bytearray(b"a 1\nb 2\n"), 1), native.Policy()
    with pytest.raises(BufferError, match="writable"):
        native.fill(block, 0, 2, bytes(8), policy)
    del block.buffer[4:]
    with pytest.raises(IndexError, match="beyond"):
        native.fill(block, 0, 2, bytearray(8), policy)
    with pytest.raises(IndexError, match="beyond"):
        native.check(block, policy)
    records = native.Block(1, 4, buffer=bytearray(b"a 1234"))
    native.scan_binary(records, 9, policy)
    keep_all(native, records)
    del records.buffer[5:]
    with pytest.raises(IndexError, match="beyond"):
        native.fill(records, 0, 1, bytearray(4), policy)
    words = native.Block(1, 4, buffer=b"a\nb\n")
    native.scan_tokens(words, policy)
    words.set_vectors(b"1234")
    words.rows.keep_these([0, 1])
    with pytest.raises(IndexError, match="beyond"):
        native.fill(words, 0, 2, bytearray(8), policy)


def test_check_marks_what_fill_would(kernel: ModuleType) -> None:
    text = b"a 1\nb x\nc nan\nd\ne 1e39\nf 9\n"
    block = kernel.Block(1, buffer=text)
    kernel.scan_text(block, kernel.Policy())
    kernel.check(block, kernel.Policy(Nonfinite.ERROR, False, 5.0))
    rows = block.rows
    assert [fault for fault, _, _ in faults(rows)] == [
        Fault.NONE, Fault.NOT_A_NUMERAL, Fault.NONFINITE_VALUE, Fault.TOO_FEW_VALUES, Fault.OUT_OF_RANGE,
        Fault.OUT_OF_RANGE,
    ]  # fmt: skip
    assert rows.tally(Note.NONFINITE) == (1, 2)


# Records of Word2Vec binary.


def records(pairs: list[tuple[bytes, list[float]]], layout: str, after: bytes = b"") -> bytes:
    return b"".join(token + b" " + struct.pack(layout, *values) + after for token, values in pairs)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("letter", "width"), [("e", 2), ("f", 4), ("d", 8)])
@pytest.mark.parametrize("after", [b"", b"\n"], ids=["no LF", "LF"])
def test_binary_records(kernel: ModuleType, order: str, letter: str, width: int, after: bytes) -> None:
    pairs: list[tuple[bytes, list[float]]] = [(b"cat", [1, -2.5]), ("né".encode(), [0.25, -0.0]), (b"a\rb", [6e-8, 7])]
    data = records(pairs, f"{order}2{letter}", after)
    block = kernel.Block(2, width, order == ">", data)
    rows = block.rows
    whole = kernel.scan_binary(block, 99, kernel.Policy())
    assert whole == len(data) - len(after)  # the LF after the last belongs to the record that comes
    assert rows.tokens(data) == [b"cat", "né".encode(), b"a\rb"]
    assert rows.tally(Note.CR_IN_TOKEN) == (1, 2)
    assert rows.place(1) == (1, 4 + 2 * width + len(after), 4 + 2 * width + len(after) + 4 + 2 * width)

    kernel.TokenIndex().add_rows(data, rows)
    rows.keep(False)
    out = np.empty((3, 2), np.float32)
    assert kernel.fill(block, 0, 3, out, kernel.Policy()) == -1
    small = np.float32(np.float16(6e-8)) if width == 2 else np.float32(6e-8)
    assert bits(out) == bits([1, -2.5, 0.25, -0.0, small, 7])


def test_every_float16_is_widened(kernel: ModuleType) -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    data = b"a " + every.tobytes()
    block = kernel.Block(65536, 2, sys.byteorder == "big", data)
    kernel.scan_binary(block, 1, kernel.Policy())
    keep_all(kernel, block)
    out = np.empty(65536, np.float32)
    kernel.fill(block, 0, 1, out, kernel.Policy(Nonfinite.KEEP))
    with np.errstate(invalid="ignore"):  # signalling NaNs become quiet ones
        expected = every.astype(np.float32)
    assert np.array_equal(out, expected, equal_nan=True)
    assert np.array_equal(np.signbit(out), np.signbit(expected))


BINARY_FAULTS = [
    (b" ", Fault.EMPTY_TOKEN, (0, 1)),
    (b"\n ", Fault.EMPTY_TOKEN, (1, 2)),
    (b"a\0 ", Fault.NUL_IN_TOKEN, (0, 2)),
    (b"a\n\nb ", Fault.NUL_IN_TOKEN, (0, 4)),
    (b"\n\na ", Fault.NUL_IN_TOKEN, (1, 3)),
    (b"\xff ", Fault.INVALID_UTF8, (0, 1)),
]


@pytest.mark.parametrize(("head", "fault", "place"), BINARY_FAULTS)
def test_binary_fault_of_a_token(kernel: ModuleType, head: bytes, fault: Fault, place: tuple[int, int]) -> None:
    data = head + struct.pack("<f", 1)
    block = kernel.Block(1, 4, buffer=data)
    assert kernel.scan_binary(block, 9, kernel.Policy()) == len(data)
    assert faults(block.rows) == [(fault, *place)]


@pytest.mark.parametrize(("values", "fault", "first"), [
    ([1, 1e39, math.nan], Fault.OUT_OF_RANGE, 1), ([1, math.nan, 1e39], Fault.OUT_OF_RANGE, 2),
    ([math.inf, math.nan, 1], Fault.NONFINITE_VALUE, 0),
])  # fmt: skip
def test_binary_fault_of_a_value(kernel: ModuleType, values: list[float], fault: Fault, first: int) -> None:
    data = records([(b"a", values), (b"b", [1, 2, 3])], "<3d")
    block = kernel.Block(3, 8, buffer=data)
    kernel.scan_binary(block, 9, kernel.Policy())
    kernel.check(block, kernel.Policy())
    assert faults(block.rows) == [(fault, 2 + 8 * first, 10 + 8 * first), (Fault.NONE, 0, 0)]


def test_binary_nonfinite_policies_limit_and_norm(kernel: ModuleType) -> None:
    data = records([(b"a", [3, 4]), (b"b", [math.nan, 2])], "<2f")

    def filled(policy: int, unit_norm: bool, limit: float) -> tuple[int, list[int], Any]:
        block, its = kernel.Block(2, 4, buffer=data), kernel.Policy(policy, unit_norm, limit)
        kernel.scan_binary(block, 9, its)
        keep_all(kernel, block)
        out = np.zeros((2, 2), np.float32)
        answer = kernel.fill(block, 0, 2, out, its)
        return answer, bits(out), block.rows

    assert filled(Nonfinite.ZERO, True, 1)[:2] == (-1, bits([0.6, 0.8, 0, 1]))
    assert filled(Nonfinite.ZERO, False, 3)[0] == 0
    assert filled(Nonfinite.ERROR, False, 4)[2].fault_of(1) == (Fault.NONFINITE_VALUE, 12, 16)
    assert filled(Nonfinite.KEEP, False, 4)[2].tally(Note.NONFINITE, True) == (1, 1)


@pytest.mark.parametrize("cut", range(18))
def test_half_a_record_is_left_for_the_next_block(kernel: ModuleType, cut: int) -> None:
    data = records([(b"cat", [1]), (b"dog", [2])], "<f", b"\n")
    block = cut_block(kernel, data, cut, 1, 4)
    whole = kernel.scan_binary(block, 99, kernel.Policy())
    assert (whole, block.rows.count) == ((17, 2) if cut >= 17 else (8, 1) if cut >= 8 else (0, 0))


def test_binary_scan_stops_at_the_limit(kernel: ModuleType) -> None:
    data = records([(b"a", [1]), (b"b", [2])], "<f")
    block = kernel.Block(1, 4, buffer=data)
    assert kernel.scan_binary(block, 1, kernel.Policy()) == 6
    assert kernel.scan_binary(block, 0, kernel.Policy()) == 0


@pytest.mark.parametrize(("size", "dim", "width"), [(7, 1, 4), (-1, 1, 4), (6, 0, 4), (6, 1, 3), (6, 1, 0)])
def test_binary_scan_refuses_what_cannot_be(kernel: ModuleType, size: int, dim: int, width: int) -> None:
    with pytest.raises(ValueError, match=r"block|dim|width"):
        kernel.scan_binary(cut_block(kernel, b"a 1234", size, dim, width), 9, kernel.Policy())


def test_binary_dim_beyond_all_reason_finds_nothing(kernel: ModuleType) -> None:
    assert kernel.scan_binary(kernel.Block(2**62, 8, buffer=b"a 1234"), 9, kernel.Policy()) == 0


# The index.


def test_scan_tokens(kernel: ModuleType) -> None:
    """Worked by hand: lines of tokens, whose vectors are rows of 2 x 4 bytes that stand elsewhere."""
    data = b"the\n\n\xff\xfe\na b\tc \nx\0y\nc\rr\nbeyond"
    block = cut_block(kernel, data, len(data) - len(b"beyond"), 2, 4)
    rows = block.rows
    kernel.scan_tokens(block, kernel.Policy())
    assert rows.tokens(data) == [b"the", b"", b"\xff\xfe", b"a b\tc ", b"x\0y", b"c\rr"]
    assert faults(rows) == [
        (0, 0, 0), (Fault.EMPTY_TOKEN, 4, 4), (Fault.INVALID_UTF8, 5, 7), (0, 0, 0), (Fault.NUL_IN_TOKEN, 15, 18),
        (0, 0, 0),
    ]  # fmt: skip
    assert rows.tally(Note.CR_IN_TOKEN) == (1, 5)
    assert (rows.lines, rows.place(3)) == (6, (3, 8, 14))
    kernel.scan_tokens(block, kernel.Policy(utf8=False))
    assert rows.fault_of(2) == (0, 0, 0)
    block.size = 0
    kernel.scan_tokens(block, kernel.Policy())
    assert rows.count == 0


@pytest.mark.parametrize(("width", "kind"), [(2, "f2"), (4, "f4"), (8, "f8")])
@pytest.mark.parametrize("order", "<>")
def test_fill_from_a_matrix(kernel: ModuleType, width: int, kind: str, order: str) -> None:
    """Kept rows come from their row of the matrix; the others are not looked at."""
    matrix = np.array([[1, 2], [np.nan, 9], [3, 4.5], [np.inf, 0]], order + kind)
    block = kernel.Block(2, width, buffer=b"a\nb\nc\nd\n")
    rows = block.rows
    kernel.scan_tokens(block, kernel.Policy())
    rows.keep_these([0, 2])
    out = bytearray(16)
    block.set_vectors(matrix.tobytes(), order == ">")
    assert kernel.fill(block, 0, 2, out, kernel.Policy()) == -1
    assert np.frombuffer(out, np.float32).tolist() == [1, 2, 3, 4.5]
    kernel.check(block, kernel.Policy())
    assert [fault for fault, _, _ in faults(rows)] == [0, Fault.NONFINITE_VALUE, 0, Fault.NONFINITE_VALUE]
    assert rows.fault_of(1) == (Fault.NONFINITE_VALUE, 2 * width, 3 * width)


@pytest.mark.parametrize(("size", "dim", "width"), [(4, 2, 4), (5, 2, 4), (-1, 2, 4), (3, 0, 4), (3, 2, 3), (2, 2, 0)])
def test_scan_tokens_refuses(kernel: ModuleType, size: int, dim: int, width: int) -> None:
    with pytest.raises(ValueError, match=r"a block|dim|width"):
        kernel.scan_tokens(cut_block(kernel, b"a\nbc", size, dim, width), kernel.Policy())


def test_index_gives_ids_in_order(kernel: ModuleType) -> None:
    index = kernel.TokenIndex()
    assert [index.add(token) for token in (b"a", b"", b"b", b"a", b"A")] == [0, 1, 2, 0, 3]
    assert [index.get(token) for token in (b"a", b"", b"A", b"c")] == [0, 1, 3, -1]
    assert [index.token(id) for id in range(4)] == [b"a", b"", b"b", b"A"]
    assert (len(index), index.nbytes, index.blob(0, 4)) == (4, 7, b"a\n\nb\nA\n")
    assert (index.blob(1, 3), index.blob(2, 9)) == (b"\nb\n", b"b\nA\n")
    assert (index.blob(3, 2), index.blob(-1, 4)) == (b"", b"A\n")
    assert index.unmet(1) == [1, 2, 3]


def test_index_knows_no_other_id(kernel: ModuleType) -> None:
    index = kernel.TokenIndex()
    index.add(b"a")
    for id in (-1, 1, 2**40):
        with pytest.raises(IndexError, match="1 token"):
            index.token(id)
    with pytest.raises(IndexError):
        index.met(1)


def test_index_holds_no_line_feed(kernel: ModuleType) -> None:
    index = kernel.TokenIndex()
    with pytest.raises(ValueError, match="LF"):
        index.add(b"a\nb")
    text = b"a 1\nb 1\n"
    rows = scan(kernel, text, 1)
    rows.set_tokens([b"a", b"\nb"])
    with pytest.raises(ValueError, match="LF"):
        index.add_rows(text, rows)
    assert index.blob(0, 9) == b"a\n"


def test_index_of_many_tokens_of_all_sizes(kernel: ModuleType) -> None:
    """Lengths around every border of the hash, of a page of the arena, and of what a place can hold."""
    sizes = [*range(40), 2**19 - 2, 2**19 - 1, 2**19, 2**20 - 2, 2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20, 1, 2]
    tokens = [bytes([97 + i % 26]) * size for i, size in enumerate(sizes)] + [b"%d" % i for i in range(5000)]
    tokens = list(dict.fromkeys(tokens))
    index = kernel.TokenIndex(3)
    assert [index.add(token) for token in tokens] == list(range(len(tokens)))
    assert [index.get(token) for token in tokens] == list(range(len(tokens)))
    assert [index.token(id) for id in range(len(tokens))] == tokens
    assert index.blob(0, len(tokens)) == b"\n".join(tokens) + b"\n"
    assert index.nbytes == len(index.blob(0, len(tokens)))
    view = kernel.TokenIndex.over(index.blob(0, len(tokens)))
    assert [view.get(token) for token in tokens] == list(range(len(tokens)))


def test_tokens_that_differ_in_one_byte_differ(kernel: ModuleType) -> None:
    index = kernel.TokenIndex()
    for size in range(1, 36):
        base = bytearray(b"x" * size)
        for place in range(size):
            base[place] = ord("y")
            index.add(bytes(base))
            base[place] = ord("x")
    assert len(index) == sum(range(1, 36))


def test_states_of_rows(kernel: ModuleType) -> None:
    text = b"a 1\nb 1\na 2\n<pad> 3\n"
    index = kernel.TokenIndex()
    assert index.add(b"<pad>") == 0
    rows = scan(kernel, text, 1)
    assert rows.tally_state(State.UNDECIDED) == (4, 0)
    index.add_rows(text, rows)
    assert rows.rows_in_state(State.NEW) == [0, 1, 3]
    assert rows.rows_in_state(State.SEEN) == [2]
    assert rows.tally_state(State.SEEN) == (1, 2)
    assert rows.below(99) == [(0, 1), (1, 2), (2, 1), (3, 0)]
    assert rows.below(2) == [(0, 1), (2, 1), (3, 0)]
    assert [index.met(id) for id in range(3)] == [True, True, True]
    assert index.unmet(0) == []


def test_a_row_at_fault_puts_no_token_in(kernel: ModuleType) -> None:
    text = b"a\nb 1\na 2\nb\n"
    index = kernel.TokenIndex()
    rows = scan(kernel, text, 1)
    rows.set_tokens([b"a", b"b", b"a", b"b"])
    index.add_rows(text, rows)
    assert index.blob(0, 9) == b"b\na\n"
    assert rows.rows_in_state(State.FAULTY) == [0]
    assert rows.rows_in_state(State.NEW) == [1, 2]
    assert rows.rows_in_state(State.SEEN) == [3]


def test_find_rows_puts_nothing_in(kernel: ModuleType) -> None:
    text = b"a 1\nb 2\na 3\nc 4\nd\nd 5\n"
    index = kernel.TokenIndex()
    for token in (b"a", b"c", b"d"):
        index.add(token)
    rows = scan(kernel, text, 1)
    rows.set_tokens([b"a", b"b", b"a", b"c", b"d", b"d"])
    index.find_rows(text, rows)
    assert rows.rows_in_state(State.NEW) == [0, 3, 5]
    assert rows.rows_in_state(State.ABSENT) == [1]
    assert rows.rows_in_state(State.SEEN) == [2]
    assert rows.rows_in_state(State.FAULTY) == [4]
    assert len(index) == 3


def test_asked_only_leaves_rows_that_nobody_asked_for(kernel: ModuleType) -> None:
    text = b"a 1\nb 2\nc\nd 4\n"
    wanted, ids = kernel.TokenIndex(), kernel.TokenIndex()
    for token in (b"d", b"c", b"a"):
        wanted.add(token)
    rows = scan(kernel, text, 1)
    rows.set_tokens([b"a", b"b", b"c", b"d"])
    wanted.find_rows(text, rows)
    ids.add_rows(text, rows, True)
    assert ids.blob(0, 9) == b"a\nd\n"
    assert rows.rows_in_state(State.NEW) == [0, 3]
    assert rows.rows_in_state(State.ABSENT) == [1]
    assert rows.rows_in_state(State.FAULTY) == [2]


def test_keep_drop_and_runs(kernel: ModuleType) -> None:
    text = b"".join(token + b" 1\n" for token in (b"c", b"d", b"c", b"e", b"a", b"b", b"x"))
    index = kernel.TokenIndex()
    for token in (b"a", b"b", b"c", b"d", b"e"):
        index.add(token)
    rows = scan(kernel, text, 1)
    index.find_rows(text, rows)
    assert rows.keep(True) == 6
    assert rows.runs(0, 6) == [(0, 2, 2), (2, 2, 1), (3, 4, 1), (4, 0, 2)]
    assert rows.keep(False) == 5
    assert rows.runs(0, 5) == [(0, 2, 3), (3, 0, 2)]
    assert rows.runs(1, 4) == [(1, 3, 2), (3, 0, 1)]
    assert rows.runs(2, 2) == []
    rows.drop(1)
    assert list(rows.kept) == [0, 3, 4, 5]
    assert rows.runs(0, 4) == [(0, 2, 1), (1, 4, 1), (2, 0, 2)]
    with pytest.raises(ValueError, match=r"not (in list|kept)"):
        rows.drop(1)
    with pytest.raises(IndexError):
        rows.runs(0, 5)


def test_scatter_puts_each_vector_where_its_id_says(kernel: ModuleType) -> None:
    text = b"c 1 2\nx 9 9\na 3 4\nd 5 6\n"
    index = kernel.TokenIndex()
    for token in (b"a", b"b", b"c", b"d"):
        index.add(token)
    rows = scan(kernel, text, 2)
    index.find_rows(text, rows)
    assert rows.keep(False) == 3
    vectors = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
    table = bytearray(b"?" * 32)
    rows.scatter(0, 3, vectors, table, 2)
    assert table == struct.pack("<2f", 3, 4) + b"?" * 8 + struct.pack("<4f", 1, 2, 5, 6)
    table = bytearray(b"?" * 32)
    rows.scatter(1, 2, vectors[8:16], table, 2)
    assert table == struct.pack("<2f", 3, 4) + b"?" * 24
    rows.scatter(2, 2, b"", table, 2)
    with pytest.raises(IndexError, match="the table has no row 3"):
        rows.scatter(0, 3, vectors, bytearray(31), 2)
    for start, stop, there in ((0, 4, bytes(32)), (-1, 2, vectors), (2, 1, vectors), (0, 3, vectors[:-1])):
        with pytest.raises(ValueError, match="the rows asked for do not fit"):
            rows.scatter(start, stop, there, table, 2)
    with pytest.raises(ValueError, match="dim"):
        rows.scatter(0, 0, b"", table, 0)


def test_keep_by_hand(kernel: ModuleType) -> None:
    text = b"a 1\nb 2\nc 3\n"
    block = kept_block(kernel, text, 1)
    rows = block.rows
    assert rows.keep_these([0, 2]) == 2
    assert [rows.kept_row(0), rows.kept_row(1)] == [0, 2]
    assert [rows.id_of(0), rows.id_of(2)] == [0, 2]
    with pytest.raises(IndexError):
        rows.kept_row(2)
    with pytest.raises(IndexError):
        rows.id_of(3)
    for wrong in ([1, 1], [2, 0], [3], [-1]):
        with pytest.raises(ValueError, match="each after the one before"):
            rows.keep_these(wrong)
    out = np.empty(2, np.float32)
    assert kernel.fill(block, 0, 2, out, kernel.Policy()) == -1
    assert out.tolist() == [1, 3]
    assert rows.keep_these([]) == 0


def test_faults_and_notes_from_outside(kernel: ModuleType) -> None:
    rows = scan(kernel, b"cat 1\ndog\n", 1)
    rows.blame(0, Fault.INVALID_UTF8)
    rows.blame(1, Fault.INVALID_UTF8)  # has one already, which stays
    assert faults(rows) == [(Fault.INVALID_UTF8, 0, 3), (Fault.TOO_FEW_VALUES, 6, 9)]
    rows.remark(1, Note.RECODED)
    rows.remark(1, Note.CR_IN_TOKEN)
    assert rows.tally(Note.RECODED) == rows.tally(Note.CR_IN_TOKEN) == (1, 1)
    with pytest.raises(IndexError):
        rows.blame(2, Fault.INVALID_UTF8)
    with pytest.raises(IndexError):
        rows.remark(2, Note.RECODED)
    with pytest.raises(ValueError, match="99"):
        scan(kernel, b"a 1\n", 1).blame(0, 99)


def test_tally_of_kept_rows_only(kernel: ModuleType) -> None:
    text = b"a  1\nb 1\nc  1\n"
    rows = scan(kernel, text, 1)
    index = kernel.TokenIndex()
    index.add(b"c")
    index.find_rows(text, rows)
    rows.keep(False)
    assert rows.tally(Note.EXCESS_SEPARATORS) == (2, 0)
    assert rows.tally(Note.EXCESS_SEPARATORS | Note.NONFINITE, True) == (1, 2)


def test_set_tokens_wants_one_a_row(kernel: ModuleType) -> None:
    text = b"A 1\nB 2\n"
    block = kept_block(kernel, text, 1)
    rows = block.rows
    with pytest.raises(ValueError, match="1 tokens for 2 rows"):
        rows.set_tokens([b"a"])
    rows.set_tokens([b"a", b"b\xc3\xa9"])
    assert (rows.tokens(text), rows.token(text, 1)) == ([b"a", b"b\xc3\xa9"], b"b\xc3\xa9")
    rows.truncate(1)
    assert rows.tokens(text) == [b"a"]
    kernel.scan_text(block, kernel.Policy())
    assert rows.tokens(text) == [b"A", b"B"]


def test_rows_know_no_row_beyond_them(kernel: ModuleType) -> None:
    rows = scan(kernel, b"a 1\n", 1)
    for ask in (rows.place, rows.fault_of, lambda row: rows.token(b"a 1\n", row)):
        with pytest.raises(IndexError):
            ask(1)


def test_over_finds_the_first_duplicate(kernel: ModuleType) -> None:
    index = kernel.TokenIndex.over(b"??a\nb\n\nc\nb\na\n", 2)
    assert len(index) == 6
    assert index.first_duplicate == (1, 4)
    assert [index.get(token) for token in (b"a", b"b", b"", b"c", b"??a")] == [0, 1, 2, 3, -1]
    assert index.token(4) == b"b"
    assert (index.nbytes, index.blob(1, 4)) == (11, b"b\n\nc\n")
    assert index.unmet(4) == [4, 5]


def test_over_takes_tokens_in_afterwards(kernel: ModuleType) -> None:
    index = kernel.TokenIndex.over(b"a\nb\n")
    assert (index.add(b"b"), index.add(b"c")) == (1, 2)
    assert (index.blob(0, 3), index.nbytes, index.first_duplicate) == (b"a\nb\nc\n", 6, None)


def test_over_refuses_half_a_line(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="LF"):
        kernel.TokenIndex.over(b"a\nb")
    assert len(kernel.TokenIndex.over(b"")) == 0
    assert len(kernel.TokenIndex.over(b"abc", 3)) == 0


def test_over_works_on_a_mapped_file_and_lets_go_of_it(kernel: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(b"a\nb\n")
    with (tmp_path / "vocab.txt").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    index = kernel.TokenIndex.over(mapped)
    if kernel is not reference:
        with pytest.raises(BufferError):
            mapped.close()  # still looked at
    assert index.get(b"b") == 1
    del index
    mapped.close()


def test_find_writes_ids(kernel: ModuleType) -> None:
    index = kernel.TokenIndex.over("a\né\n\n".encode())
    for tokens in (["é", "a", "x", "", "\ud800"], ("é", "a", "x", "", "\ud800")):
        out = np.full(5, 77, np.int64)
        assert index.find(tokens, out, -5) == 2
        assert out.tolist() == [1, 0, -5, 2, -5]
    assert index.find(["a"], bytearray(8), -1) == -1
    assert index.find([], bytearray(), -1) == -1
    with pytest.raises(ValueError, match="fit"):
        index.find(["a", "a"], bytearray(8), -1)


@pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel was not built")
def test_native_find_wants_strings() -> None:
    index = engine("native-best").TokenIndex()
    with pytest.raises(TypeError, match="str"):
        index.find([b"a"], bytearray(8), -1)
    with pytest.raises(TypeError, match="sequence"):
        index.find(7, bytearray(8), -1)


# Sums and casts.


def test_sums_are_numpys_to_the_bit(kernel: ModuleType) -> None:
    generator = np.random.default_rng(1)
    for dim in (1, 3, 50):
        table = (generator.standard_normal((101, dim)) * 10.0 ** generator.integers(-20, 20, (101, dim))).astype("f4")
        sums = np.zeros(dim)
        assert kernel.add_rows(sums, table[:40], dim) + kernel.add_rows(sums, table[40:], dim) == 101
        means = sums / 101
        assert means.tobytes() == table.mean(axis=0, dtype=np.float64).tobytes()
        squares = np.zeros(dim)
        assert kernel.add_square_deviations(squares, means, table, dim) == 101
        expected = np.zeros(dim)
        for row in table:
            expected += (row - means) ** 2
        assert squares.tobytes() == expected.tobytes()


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_rows_that_are_not_finite_are_left_out_of_sums(kernel: ModuleType, odd: float) -> None:
    table = np.array([[1, 2, 3], [4, 5, odd], [7, 8, 9]], np.float32)
    sums, squares = np.zeros(3), np.zeros(3)
    assert kernel.add_rows(sums, table, 3) == 2
    assert sums.tolist() == [8, 10, 12]
    assert kernel.add_square_deviations(squares, sums / 2, table, 3) == 2
    assert squares.tolist() == [18, 18, 18]


def test_sums_refuse_what_is_no_table(kernel: ModuleType) -> None:
    for sums, table, dim in ((8, 12, 2), (16, 12, 2), (16, 16, 0)):
        with pytest.raises(ValueError, match=r"float32|dim"):
            kernel.add_rows(bytearray(sums), bytes(table), dim)
        with pytest.raises(ValueError, match=r"float32|dim"):
            kernel.add_square_deviations(bytearray(sums), bytes(16), bytes(table), dim)


def test_cast_to_float16_is_numpys(kernel: ModuleType) -> None:
    """All halves, the points half-way between them, and the floats next to those."""
    halves = np.arange(0x7C01, dtype=np.uint16).view(np.float16).astype(np.float64)
    halves[-1] = 65536  # the half that would come next
    middles = ((halves[1:] + halves[:-1]) / 2).astype(np.float32)
    edges = [middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(np.inf))]
    odd = np.array([0, 1e-45, 3e38, np.inf, np.nan], np.float32)
    values = np.concatenate([halves.astype(np.float32), *edges, odd])
    if kernel is reference:
        values = values[::7]
    values = np.concatenate([values, -values])
    out = np.empty(len(values), np.uint16)
    kernel.cast_rows(values, out, Cast.FLOAT16)
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).view(np.uint16)
    assert np.array_equal(out, expected)


BFLOAT16 = [
    # float32 bits, bfloat16 bits
    (0x3F800000, 0x3F80), (0x3F808000, 0x3F80), (0x3F808001, 0x3F81), (0x3F818000, 0x3F82), (0x3F80FFFF, 0x3F81),
    (0xBF808001, 0xBF81), (0x00000000, 0x0000), (0x80000000, 0x8000), (0x00000001, 0x0000), (0x00008001, 0x0001),
    (0x7F7FFFFF, 0x7F80), (0x7F7F7FFF, 0x7F7F), (0x7F800000, 0x7F80), (0xFF800000, 0xFF80), (0x7FC00000, 0x7FC0),
    (0xFFC00000, 0xFFC0), (0x7FFFFFFF, 0x7FFF),
]  # fmt: skip


def test_cast_to_bfloat16(kernel: ModuleType) -> None:
    source = np.array([pair[0] for pair in BFLOAT16], np.uint32).view(np.float32)
    out = np.empty(len(BFLOAT16), np.uint16)
    kernel.cast_rows(source, out, Cast.BFLOAT16)
    assert out.tolist() == [pair[1] for pair in BFLOAT16]


def test_cast_refuses_what_does_not_fit(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="fit"):
        kernel.cast_rows(bytes(8), bytearray(2), Cast.FLOAT16)


# Random blocks: whatever they hold, the native kernel does what the reference does.

PIECES = [
    b" ", b" ", b" ", b"\t", b"\n", b"\n", b"\r", b"\0", b".", b"-", b"+", b"e", b"E", b"0", b"1", b"9", b"a", b"the",
    b"nan", b"-inf", b"1e39", b"1e-50", b"1_0", b"\xc3\xa9", b"\xe3\x80\x80", b"\xff", b"-0.44251", b"0.18785", b"-3",
    b"1.25e-05", b"123456.7890123", b"0.123456789012345678", b"abcdefghijklmnopqrs",
]  # fmt: skip
TOKENS = [b"a", b"b", b"the", b"\xc3\xa9t\xc3\xa9", b". . .", b" ", b"at 5", b"incomprehensibilities", b"c\rd", b""]
VALUES = [b"-0.44251", b"0.18785", b"1", b"-0", b".5", b"5.", b"+1", b"7e-05", b"0.1234567890123456789", b"nan", b"x",
          b"12345678901234567", b"3.4028236e38", b"1e400"]  # fmt: skip
ENDS = [b"\n", b"\n", b"\n", b" \n", b"\r\n", b" \t\r\n", b"\n\n"]

plain_values = st.floats(-10, 10).map(lambda value: b"%.*f" % (int(abs(value) * 1e6) % 9, value))


@st.composite
def blocks(draw: st.DrawFn) -> tuple[bytes, int]:
    """(bytes that end with LF, dim): rows that are nearly right, or pieces in any order."""
    dim = draw(st.integers(1, 5))
    if draw(st.booleans()):
        text = b"".join(draw(st.lists(st.sampled_from(PIECES), max_size=60)))
    else:
        value = st.one_of(plain_values, plain_values, plain_values, st.sampled_from(VALUES))
        text = b""
        for _ in range(draw(st.integers(0, 12))):
            values = draw(st.lists(value, min_size=dim, max_size=dim))
            separator = draw(st.sampled_from([b" ", b" ", b" ", b"\t", b"  "]))
            text += separator.join([draw(st.sampled_from(TOKENS)), *values]) + draw(st.sampled_from(ENDS))
        for _ in range(draw(st.integers(0, 2))):
            at = draw(st.integers(0, len(text)))
            text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + draw(st.integers(0, 1)) :]
    return (text if text.endswith(b"\n") or not text else text + b"\n"), dim


policies = st.sampled_from([int(policy) for policy in Nonfinite])
limits = st.sampled_from([NO_LIMIT, FLOAT32_MAX, 65504.0, 1.0, 0.1])


@pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel was not built")
@settings(max_examples=700, deadline=None)
@given(block=blocks(), utf8=st.booleans(), policy=policies, unit_norm=st.booleans(), limit=limits, seen=st.booleans())
def test_random_text_is_the_same_story_in_both_kernels(
    block: tuple[bytes, int], utf8: bool, policy: int, unit_norm: bool, limit: float, seen: bool
) -> None:
    options = (*block, utf8, policy, unit_norm, limit, seen)
    expected = text_story(reference, *options)
    for name in ("native-portable", "native-best"):
        assert text_story(engine(name), *options) == expected


@pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel was not built")
@settings(max_examples=300, deadline=None)
@given(
    tokens=st.lists(st.sampled_from([*TOKENS[:4], b"\n", b"\n\n", b"x\0", b"\xff", b""]), max_size=6),
    noise=st.binary(max_size=40), dim=st.integers(1, 4), width=st.sampled_from([2, 4, 8]), big=st.booleans(),
    cut=st.integers(0, 200), policy=policies, unit_norm=st.booleans(), limit=limits,
)  # fmt: skip
def test_random_records_are_the_same_story_in_both_kernels(
    tokens: list[bytes], noise: bytes, dim: int, width: int, big: bool, cut: int, policy: int, unit_norm: bool,
    limit: float,
) -> None:  # fmt: skip
    mixed = (noise or b"\0") * (dim * width)
    data = b"".join(token + b" " + mixed[i : i + dim * width] for i, token in enumerate(tokens))
    data = data[: max(0, len(data) - cut % 9)]
    options = (data, dim, width, big, True, policy, unit_norm, limit)
    assert record_story(engine("native-best"), *options) == record_story(reference, *options)


@pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel was not built")
@settings(max_examples=300, deadline=None)
@given(value=st.one_of(st.floats(allow_nan=False, allow_infinity=False, width=32), st.floats(-1e3, 1e3)),
       style=st.sampled_from(["%.5f", "%.6g", "%.9g", "%.17g", "%.18e", "%r", "%.25f"]))  # fmt: skip
def test_random_numbers_are_numpys_to_the_bit(value: float, style: str) -> None:
    text = (style % value).encode()
    block = b"a " + text + b" " + text + b"\nb 1 " + text + b"\nfill " + b"0" * 60 + b" 0\n"
    with np.errstate(over="ignore"):
        expected = np.float32(float(text))
    for name in ENGINES:
        answer, out, _ = fill(engine(name), block, 2)
        if np.isinf(expected):
            assert answer == 0
        else:
            assert (answer, bits(out)) == (-1, bits([expected, expected, 1, expected, 0, 0]))


@pytest.mark.parametrize("low", [0.0, 1e-45, 1.1754942e-38, 0.1, 1.0, 1.0000001, 3.4028235e38])
def test_numbers_at_the_point_where_the_result_changes(kernel: ModuleType, low: float) -> None:
    """Between the float64 in the middle of two float32 and its neighbours: just below half-way, there, and above."""
    first = np.float32(low)
    after = float(np.nextafter(first, np.float32(np.inf))) if low < 3e38 else 2.0**128
    middle = (float(first) + after) / 2
    texts = []
    for neighbour in (math.nextafter(middle, 0), math.nextafter(middle, math.inf)):
        exact = (Fraction(middle) + Fraction(neighbour)) / 2
        digits = str(int(exact * 10**250))  # all of them: the last bit of the smallest counts 2^-204
        places = [digits + "0", str(int(digits) * 10 - 1), digits + "1", digits + "0" * 300 + "1"]
        texts += [f"{place}e{len(digits) - len(place) - 250}" for place in places]
    for text in texts:
        with np.errstate(over="ignore"):
            expected = np.float32(float(text))
        answer, out, _ = fill(kernel, b"a " + text.encode() + b"\nfill " + b"0" * 60 + b"\n", 1)
        if np.isinf(expected):
            assert answer == 0
        else:
            assert (answer, bits(out)[:1]) == (-1, bits([expected])), text


@pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel was not built")
@pytest.mark.parametrize("name", ["native-portable", "native-best"])
def test_bytes_behind_the_buffer_are_not_looked_at(name: str) -> None:
    """The last row ends where readable memory ends: at the end of a mapping with a page that is not there behind it."""
    kernel = engine(name)
    page = mmap.PAGESIZE
    for tail in (b"a 1\n", b"b 0.25 \r\n", b"c -0.12345678901234\n", b"d 1e5\n", b"e nan\n"):
        text = b"z 9\n" * ((page - len(tail)) // 4)
        text = b"\n" * (page - len(tail) - len(text)) + text + tail
        with mmap.mmap(-1, page) as mapped:
            mapped.write(text)
            block = kernel.Block(1, buffer=mapped)
            rows = block.rows
            kernel.scan_text(block, kernel.Policy())
            index = kernel.TokenIndex()
            index.add_rows(mapped, rows)
            assert rows.keep(True) == rows.count
            out = bytearray(4 * rows.count)
            kernel.fill(block, 0, rows.count, out, kernel.Policy(Nonfinite.KEEP))
            assert struct.unpack_from("f", out)[0] == 9
            assert index.token(len(index) - 1) == tail[:1]


@pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel was not built")
def test_threads_take_turns() -> None:
    """Many threads at one index and one set of rows: nothing is lost, and nothing breaks."""
    from concurrent.futures import ThreadPoolExecutor

    native = engine("native-best")
    index = native.TokenIndex()
    texts = [b"".join(b"%d 1\n" % (i + shift) for i in range(2000)) for shift in range(0, 8000, 500)]
    policy = native.Policy()
    shared = native.Block(1, buffer=texts[0])

    def work(text: bytes) -> None:
        block = native.Block(1, buffer=text)
        for _ in range(5):
            native.scan_text(block, policy)
            index.add_rows(text, block.rows)
            native.scan_text(shared, policy)
            shared.rows.tokens(texts[0])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, texts))
    assert len(index) == 9500
    assert sorted(index.blob(0, 9500).split()) == sorted(b"%d" % i for i in range(9500))
