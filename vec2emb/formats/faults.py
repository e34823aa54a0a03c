"""What is wrong with one row, in words: where, what was expected, what was found, what to do."""

from __future__ import annotations

import re
from typing import Any

from .._kernel.codes import Fault
from ..errors import RowError, shown
from .other import explain_row

CODES = {
    Fault.TOO_FEW_VALUES: "row-width",
    Fault.EMPTY_TOKEN: "empty-token",
    Fault.NUL_IN_TOKEN: "nul-byte",
    Fault.INVALID_UTF8: "invalid-utf8",
    Fault.NOT_A_NUMERAL: "not-a-numeral",
    Fault.OUT_OF_RANGE: "out-of-range",
    Fault.NONFINITE_VALUE: "non-finite",
}
_TWO_INTEGERS = rb"[0-9]+[ \t]+[0-9]+"


def row_error(
    fault: int,
    row: bytes,
    detail: bytes,
    *,
    dim: int,
    path: str,
    line: int,
    offset: int,
    dtype: str,
    dim_from: str,
    encoding: str = "utf-8",
) -> RowError:
    """The error for a row of text; `row` is the row without its end, `detail` the part that is at fault."""
    place: dict[str, Any] = {"path": path, "line": line, "offset": offset}
    code = CODES[Fault(fault)]
    known = explain_row(row)
    hint = f"these look like {known[1]}: {known[2]}" if known else None
    if fault == Fault.TOO_FEW_VALUES:
        return _too_few(row, dim, dim_from, hint, place)
    if fault == Fault.EMPTY_TOKEN:
        hint = "a token that held a line feed breaks its row in two; --bad-rows skip leaves such rows out"
        return RowError(
            code, "the row starts with its separator", expected="a token", found="nothing", hint=hint, **place
        )
    if fault == Fault.NUL_IN_TOKEN:
        hint = "is this a binary file? --bad-rows skip leaves such rows out"
        return RowError(code, "the token holds a NUL byte", found=shown(detail), hint=hint, **place)
    if fault == Fault.INVALID_UTF8:
        return RowError(
            code,
            f"the token is not {encoding.upper()}",
            found=f"the bytes {detail[:40].hex(' ')} ({shown(detail[:40])})",
            hint=_ENCODING_HINT,
            **place,
        )
    if fault == Fault.NOT_A_NUMERAL:
        hint = hint or "--bad-rows skip leaves such rows out"
        return RowError(
            code, "a value is not a number", expected=f"{dim} numbers", found=shown(detail), hint=hint, **place
        )
    if fault == Fault.OUT_OF_RANGE:
        hint = "--bad-rows skip leaves such rows out"
        return RowError(code, f"a value does not fit {dtype}", found=shown(detail), hint=hint, **place)
    hint = "--nonfinite keep takes them as they are, --nonfinite zero writes 0, --bad-rows skip leaves the row out"
    return RowError(code, "a value is not finite", expected="finite numbers", found=shown(detail), hint=hint, **place)


_ENCODING_HINT = (
    "--encoding NAME reads another encoding, --encoding-errors replace or escape takes the token all the same, "
    "--bad-rows skip leaves such rows out"
)


def _too_few(row: bytes, dim: int, dim_from: str, hint: str | None, place: dict[str, Any]) -> RowError:
    fields = row.replace(b"\t", b" ").split(b" ")
    count = sum(1 for field in fields if field)
    leading = row[:1] in (b" ", b"\t")
    found = f"{count if leading else count - 1} in {shown(row)}"
    if re.fullmatch(_TWO_INTEGERS, row.strip()) and dim > 1:
        if place["line"] == 1:
            return RowError(
                "header-in-glove",
                "the first row looks like a Word2Vec header",
                expected=f"a token and {dim} values ({dim_from})",
                found=shown(row),
                hint="use --format word2vec",
                **place,
            )
        return RowError(
            "second-header",
            "the row looks like a header",
            expected=f"a token and {dim} values ({dim_from})",
            found=shown(row),
            hint="a header stands on line 1 only: split files that were joined, or remove it; --bad-rows skip does",
            **place,
        )
    return RowError(
        "row-width",
        "the row has too few values",
        expected=f"{dim} after the token ({dim_from})",
        found=found,
        hint=hint or "--bad-rows skip leaves such rows out",
        **place,
    )
