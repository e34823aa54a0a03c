"""The hot loops: bytes in, arrays out. They know no file, no thread and no vocabulary.

`VEC2EMB_KERNEL=native|reference` picks one of the two kernels; otherwise the native one is taken where it was
built. `NAME` says which is in use, `WHY_SLOW` why it is the slow one (None if it is not).
"""

import os

WHY_SLOW: str | None = None
_wanted = os.environ.get("VEC2EMB_KERNEL", "")

if _wanted not in ("", "native", "reference"):
    raise ImportError(f"VEC2EMB_KERNEL is {_wanted!r}, expected 'native' or 'reference'")
if _wanted == "reference":
    WHY_SLOW = "VEC2EMB_KERNEL=reference asks for it"
else:
    try:
        from . import _native as _native_kernel
    except ImportError as error:
        if _wanted == "native":
            raise ImportError(
                f"VEC2EMB_KERNEL=native, but the native kernel cannot be loaded ({error}); "
                "install a C++ compiler, then: pip install --force-reinstall --no-deps vec2emb"
            ) from error
        WHY_SLOW = f"the native kernel is not there ({error}); with a C++ compiler at hand, install vec2emb again"

if WHY_SLOW is None:
    from ._native import (
        Rows,
        TokenIndex,
        add_rows,
        add_square_deviations,
        cast_rows,
        check_binary,
        check_text,
        fill_binary,
        fill_text,
        profile_text,
        scan_binary,
        scan_text,
    )

    NAME = "native"
else:
    from .reference import (  # type: ignore[assignment]
        Rows,
        TokenIndex,
        add_rows,
        add_square_deviations,
        cast_rows,
        check_binary,
        check_text,
        fill_binary,
        fill_text,
        profile_text,
        scan_binary,
        scan_text,
    )

    NAME = "reference"

__all__ = [
    "NAME",
    "WHY_SLOW",
    "Rows",
    "TokenIndex",
    "add_rows",
    "add_square_deviations",
    "cast_rows",
    "check_binary",
    "check_text",
    "fill_binary",
    "fill_text",
    "profile_text",
    "scan_binary",
    "scan_text",
]
