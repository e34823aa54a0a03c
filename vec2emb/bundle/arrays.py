"""Arrays, tensors and embeddings of others as arrays in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..errors import InputError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def array_of(vectors: Any, label: str | None) -> NDArray[Any]:
    """The array that an array, a tensor or an `nn.Embedding` is.

    Raises:
        UsageError: it is none of these, or does not store each value: masked, sparse, quantized, sharded, meta.
        InputError: it has rows of different lengths.
    """
    import numpy as np

    weight = getattr(vectors, "weight", vectors)
    _refuse_partial(weight, label)
    if hasattr(weight, "detach"):  # torch's, perhaps on another device, perhaps in a type that numpy does not have
        weight = weight.detach().cpu()
        weight = weight.float() if "bfloat16" in str(weight.dtype) else weight
        weight = weight.numpy()
    if isinstance(weight, Iterable) and not isinstance(weight, str | bytes | np.ndarray):
        try:
            weight = np.asarray(weight)
        except ValueError as error:  # rows of different lengths
            raise InputError(
                "shape-mismatch", "the vectors are no table", path=label, expected="[V, D]", found=str(error)
            ) from None
    if not isinstance(weight, np.ndarray):
        raise UsageError(
            "source-type", "these are no vectors", expected="an array [V, D], a tensor or an nn.Embedding",
            found=type(vectors).__name__,
        )  # fmt: skip
    return np.asarray(weight)  # of a masked array without a mask, its data


def _refuse_partial(weight: Any, label: str | None) -> None:
    """Refuse arrays and tensors that do not have each of their values in memory, and say how to get them."""
    import numpy as np

    masked = int(np.ma.getmaskarray(weight).sum()) if isinstance(weight, np.ma.MaskedArray) else 0
    for holds, what, hint in (
        (masked > 0, f"masked: {masked} values are missing", "vectors.filled(0), or leave these rows out"),
        (hasattr(weight, "toarray"), "a sparse matrix", "vectors.toarray()"),
        (getattr(weight, "is_nested", False), "a nested tensor", "vectors.to_padded_tensor(0.0)"),
        ("strided" not in str(getattr(weight, "layout", "strided")), "a sparse tensor", "vectors.to_dense()"),
        (getattr(weight, "is_meta", False), "a meta tensor, which has no values", "load the weights first"),
        (getattr(weight, "is_quantized", False), "a quantized tensor", "vectors.dequantize()"),
        (hasattr(weight, "full_tensor"), "sharded over several processes", "vectors.full_tensor(), on all ranks"),
    ):
        if holds:
            raise UsageError(
                "vector-storage", f"the vectors are {what}", path=label, expected="each value of [V, D] in memory",
                hint=f"pass {hint}" if hint.startswith("vectors") else hint,
            )  # fmt: skip
