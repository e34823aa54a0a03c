"""Sizes in bytes, as people write them: `512MB`, `2GiB`, or a number."""

from __future__ import annotations

import os

from ..errors import UsageError

_UNITS = {
    "": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}  # fmt: skip


def parse_size(name: str, size: int | str) -> int:
    """Bytes, from a number or from text such as `512MB` or `2GiB`; `name` is for the message.

    Raises:
        UsageError: it is neither, or nothing.
    """
    text = str(size).strip().upper().replace(" ", "")
    number = text.rstrip("KMGTIB")
    unit = text[len(number) :]
    try:
        count = int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        count = 0
    if count < 1:
        code = f"{name.replace('_', '-').lower()}-range"
        raise UsageError(code, f"{name} cannot be so", expected="such as 512MB or 2GiB", found=repr(size))
    return count


def size_of_environment(name: str, default: int) -> int:
    """Bytes that an environment variable names; `default` if it is not set, or empty.

    Raises:
        UsageError: its value is no size.
    """
    given = os.environ.get(name)
    return parse_size(name, given) if given else default
