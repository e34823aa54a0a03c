"""What the functions on position tables take, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import InputError, UsageError
from .key_styles import MAX_ROWS

Matrix = NDArray[np.floating]
Float64 = NDArray[np.float64]

MAX_NUMBERS = 1 << 28  # 1 GiB of float32: a table is made in memory


def offset_of(offset: int | None, padding_idx: int | None) -> int:
    """Rows in front of the first usable one. A padding row has to be among them, or a position would be zero."""
    if offset is None:
        offset = 0 if padding_idx is None else padding_idx + 1
    if padding_idx is not None:
        demand("padding_idx", padding_idx, padding_idx >= 0, "0 or more")
        demand("offset", offset, padding_idx < offset, f"over {padding_idx}, the padding row, which is no position")
    demand("offset", offset, 0 <= offset <= MAX_ROWS, f"0 to {MAX_ROWS:,}")
    return offset


def checked(table: Matrix) -> Matrix:
    table = np.asarray(table)
    if table.ndim != 2 or not table.size or table.dtype.kind != "f":
        found = f"{table.dtype}{list(table.shape)}"
        raise InputError("not-a-table", "this is no position table", expected="float[rows, dim]", found=found)
    return table


def count(name: str, value: int) -> int:
    demand(name, value, isinstance(value, int | np.integer) and 1 <= value <= MAX_ROWS, f"1 to {MAX_ROWS:,}")
    return int(value)


def check_size(rows: int, dim: int) -> None:
    """Refuse a table that would take the memory of a whole machine."""
    if rows * dim > MAX_NUMBERS:
        raise UsageError(
            "positions-too-large", "the position table would be too large", expected=f"at most {MAX_NUMBERS:,} numbers",
            found=f"{rows:,} rows of {dim:,}",
        )  # fmt: skip


def choice(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        one_of = f"one of {', '.join(choices)}"
        raise UsageError(f"unknown-{name}", f"there is no such {name}", expected=one_of, found=repr(value))
    return value


def demand(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        code = f"{name.replace('_', '-')}-range"
        raise UsageError(code, f"{name} is out of range", expected=expected, found=str(value))


def float_type(dtype: DTypeLike) -> np.dtype[np.generic]:
    kind = np.dtype(dtype)
    demand("dtype", kind, kind.kind == "f" and kind.itemsize <= 8, "float16, float32 or float64")
    return kind
