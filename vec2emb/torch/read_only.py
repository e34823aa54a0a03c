"""A tensor to read: what would change it, or ask it for a gradient, raises instead of having no effect."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import UsageError

_IN_PLACE = {"__setitem__"} | {
    f"__i{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
}
_HOOKS = (Tensor.register_hook, Tensor.register_post_accumulate_grad_hook, Tensor.retain_grad)
_GRADIENT: tuple[Any, ...] = tuple(
    getattr(Tensor, name).__get__ for name in ("grad", "grad_fn", "is_leaf")
)  # what optimisers, parameters of modules and users ask


class ReadOnlyWeight(Tensor):
    """The joined rows of a partly frozen table, which are a copy.

    All that reads works, and gives `trained` its gradient. Views of it are read-only, too; results with memory of their
    own are ordinary tensors.
    """

    _is_param = True  # so that `head.weight = table.weight` comes as far as asking for `grad_fn`, which explains it

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call what reads, refuse what writes."""
        kwargs = kwargs or {}
        _refuse(func, args, kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
            memory = {_memory(item) for item in _tensors([*args, *kwargs.values()]) if isinstance(item, cls)}
            return _guarded(result, memory)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle an ordinary tensor."""
        return self._plain().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """An ordinary tensor with memory of its own."""
        return self._plain().clone()

    def _plain(self) -> Tensor:
        with torch._C.DisableTorchFunctionSubclass():
            return self.detach().as_subclass(Tensor)


def _refuse(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    name = getattr(func, "__name__", "")
    if name == "__set__" or func is Tensor.requires_grad_:
        raise _of_copy("setting an attribute of it", "freeze or train rows when you load: train_rows=..")
    if func in _HOOKS or func in _GRADIENT:
        raise _of_copy(
            "asking it for gradients, or sharing it as a parameter,",
            "use the parameter `trained` and its gradient; for an output head: vec2emb.torch.tie_head(table)",
        )
    out = kwargs.get("out")
    changed = _tensors([out] if out is not None else [])
    if name in _IN_PLACE or (name.endswith("_") and not name.endswith("__")):
        changed += _tensors([args[0] if args else kwargs.get("tensor")])
    if any(isinstance(item, ReadOnlyWeight) for item in changed):
        raise _of_copy("writing to it", "write to `trained` or `frozen`, or use load_state_dict({'weight': tensor})")


def _of_copy(what: str, hint: str) -> UsageError:
    return UsageError(
        "weight-is-a-copy", f"`weight` of a partly frozen table is a copy: {what} has no effect on the table", hint=hint
    )


def _tensors(values: Any) -> list[Tensor]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += _tensors(value)
    return found


def _memory(tensor: Tensor) -> int | None:
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else None


def _guarded(result: Any, memory: set[int | None]) -> Any:
    if isinstance(result, np.ndarray):
        result.flags.writeable = False
    elif isinstance(result, Tensor):
        if type(result) is Tensor and _memory(result) in memory:
            return result.as_subclass(ReadOnlyWeight)
    elif type(result) in (tuple, list):
        return type(result)(_guarded(item, memory) for item in result)
    return result
