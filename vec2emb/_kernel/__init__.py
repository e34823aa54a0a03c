"""The hot loops: bytes in, arrays out. They know no file, no thread and no vocabulary.

`VEC2EMB_KERNEL=native|reference` picks one of the two kernels; otherwise the native one is taken where it was
built. `NAME` says which is in use, `WHY_SLOW` why it is the slow one (None if it is not).
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

WHY_SLOW: str | None = None
_wanted = os.environ.get("VEC2EMB_KERNEL", "")

if _wanted not in ("", "native", "reference"):
    raise ImportError(f"VEC2EMB_KERNEL is {_wanted!r}, expected 'native' or 'reference'")
if _wanted == "reference":
    WHY_SLOW = "VEC2EMB_KERNEL=reference asks for it"
else:
    try:
        import_module("._native", __name__)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            WHY_SLOW = "the native kernel was not built; with a C++ compiler at hand, install vec2emb again"
        else:
            WHY_SLOW = f"the native kernel cannot be loaded ({error})"
        if _wanted == "native":
            raise ImportError(f"VEC2EMB_KERNEL=native, but {WHY_SLOW}") from error

NAME = "native" if WHY_SLOW is None else "reference"
if TYPE_CHECKING or WHY_SLOW is None:
    from ._native import *  # noqa: F403 - the names are listed in `reference`, and a test compares the two
else:
    from .reference import *  # noqa: F403
