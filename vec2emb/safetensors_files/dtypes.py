"""Types of safetensors as NumPy has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FLOATS = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2"}
"""NumPy's name of each float type; NumPy has no bfloat16, so these are the integers of its bits."""


def widen_bfloat16(bits: NDArray[Any]) -> NDArray[np.float32]:
    """float32 of the bits of bfloat16, uint16 of the same shape: a bfloat16 is the upper half of a float32."""
    import numpy as np

    return (bits.astype(np.uint32) << 16).view(np.float32)
