"""An embedding some of whose rows train, and the others cannot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import UsageError
from .callers import refuse_listing, refuse_resizing, tied_by_transformers
from .read_only import ReadOnlyWeight
from .row_plan import RowPlan


class PartlyFrozenEmbedding(nn.Module):
    """The same lookup as `nn.Embedding`, with frozen rows in one parameter and training rows in another.

    `frozen` requires no gradient, so no optimiser changes it: neither momentum nor weight decay can move one of its
    rows. A mask on the gradient does not do that: decay shrinks a parameter whatever its gradient is.

    The state dict has the two keys `frozen` and `trained`. `load_state_dict` also takes the one key `weight`, [V, D],
    of an `nn.Embedding`; `full_state_dict` gives it. Which rows train is part of the module, not of the state dict.

    Args:
        weight: float[V, D]; it is copied.
        rows: ids of the rows that train. The padding row never does.
        padding_idx: the padding row, or None.
        sparse: whether the gradient of the training rows is a sparse tensor.

    Attributes:
        num_embeddings: V.
        embedding_dim: D.
        frozen: float[V - T, D], a parameter without a gradient.
        trained: float[T, D], a parameter.

    Raises:
        UsageError: `weight` is not [V, D], a row id is out of range, or all or none of the rows would train.
    """

    def __init__(
        self, weight: Tensor, rows: Iterable[int] | Tensor, *, padding_idx: int | None = None, sparse: bool = False
    ) -> None:
        if weight.ndim != 2 or not weight.is_floating_point():
            raise UsageError(
                "weight-shape", "`weight` must be a table", expected="float[V, D]", found=str(list(weight.shape))
            )
        plan = RowPlan.of_rows(rows, len(weight), padding_idx)
        self._take(plan, *plan.split(weight.detach()), padding_idx, sparse)

    @classmethod
    def of_parts(
        cls, plan: RowPlan, frozen: Tensor, trained: Tensor, *, padding_idx: int | None, sparse: bool
    ) -> PartlyFrozenEmbedding:
        """The module of two tensors, which are not copied."""
        self = cls.__new__(cls)
        self._take(plan, frozen, trained, padding_idx, sparse)
        return self

    def _take(self, plan: RowPlan, frozen: Tensor, trained: Tensor, padding_idx: int | None, sparse: bool) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = plan.count, frozen.shape[1]
        self.padding_idx, self.sparse, self.plan = padding_idx, sparse, plan
        self.frozen = nn.Parameter(frozen, requires_grad=False)
        self.trained = nn.Parameter(trained)

    def forward(self, ids: Tensor) -> Tensor:
        """Rows of ids: int64[..] or int32[..] -> float[.., D]."""
        if self.sparse and torch.is_grad_enabled() and _inside_ddp():
            raise UsageError(
                "sparse-under-ddp", "DistributedDataParallel takes sparse gradients from nn.Embedding alone",
                hint="load the table with sparse=False: its gradient has only the rows that train",
            )  # fmt: skip
        return self._lookup(ids, self.sparse)

    def _lookup(self, ids: Tensor, sparse: bool) -> Tensor:
        if isinstance(self.frozen, nn.Parameter) and self.frozen.requires_grad:
            raise UsageError(
                "frozen-requires-grad", "the frozen rows were set to require a gradient",
                hint="set module.frozen.requires_grad_(False), or load the table with freeze=False to train all rows",
            )  # fmt: skip
        if ids.dtype not in (torch.int64, torch.int32):
            raise UsageError("ids-type", "ids must be int64 or int32", found=str(ids.dtype))
        place, trains = self.plan.locate(ids.long())
        frozen_place, frozen_rows = place.masked_fill(trains, 0), self.frozen.detach()
        # Under torch.func the parameters are other tensors, which writing in place does not know.
        if sparse or (ids.device.type == "cpu" and isinstance(self.trained, nn.Parameter)):
            where = _nonzero(trains.reshape(-1))
            if where is not None:
                # No second table of the batch's size: of its rows, only those that train are looked up twice.
                result = functional.embedding(frozen_place.reshape(-1), frozen_rows)
                rows = functional.embedding(place.reshape(-1)[where], self.trained, sparse=sparse)
                return result.index_copy_(0, where, rows).reshape(*ids.shape, self.embedding_dim)
        frozen = functional.embedding(frozen_place, frozen_rows)
        trained = functional.embedding(place.masked_fill(~trains, 0), self.trained, sparse=sparse)
        return torch.where(trains.unsqueeze(-1), trained, frozen)

    @property
    def weight(self) -> Tensor:
        """float[V, D], all rows in their order: a copy to read, whose use gives `trained` a gradient.

        Writing to it, or asking it for gradients, raises, as that would have no effect.

        Raises:
            UsageError: the parts are sharded by FSDP.
        """
        if torch.compiler.is_compiling():
            return self._joined()
        refuse_resizing()
        return self._joined().as_subclass(ReadOnlyWeight)

    def _joined(self) -> Tensor:
        if self.is_sharded:
            raise UsageError(
                "sharded-weight", "the table is sharded: this rank has a part of its rows",
                hint="call vec2emb.torch.full_state_dict(model) on all ranks",
            )  # fmt: skip
        return self._lookup(torch.arange(self.num_embeddings, device=self.frozen.device), sparse=False)

    @property
    def is_sharded(self) -> bool:
        """Whether this process holds only a part of the rows, as under FSDP outside of the forward pass."""
        parts = ((self.frozen, self.plan.num_frozen), (self.trained, self.plan.num_trained))
        return any(hasattr(part, "placements") or part.shape != (rows, self.embedding_dim) for part, rows in parts)

    def named_modules(self, *arguments: Any, **named: Any) -> Any:
        """As in `nn.Module`; raises for what cannot work with two parameters, see `callers`."""
        if not torch.compiler.is_compiling() and isinstance(self.frozen, nn.Parameter):
            refuse_listing(self.frozen)
        return super().named_modules(*arguments, **named)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "weight":
            if isinstance(value, ReadOnlyWeight):
                raise tied_by_transformers()
            raise UsageError(
                "weight-is-a-copy", "`weight` of a partly frozen table cannot be replaced",
                hint="load_state_dict({'weight': tensor}) sets values; functional_call takes `frozen` and `trained`",
            )  # fmt: skip
        super().__setattr__(name, value)

    @property
    def rows(self) -> Tensor:
        """int64[T], on the CPU: ids of the rows that train, rising."""
        return self.plan.rows(train=True)

    def extra_repr(self) -> str:
        """What `repr` shows beside the name."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}, {self.plan.num_trained} rows train"

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Take the one key `weight` for `frozen` and `trained`."""
        weight = state_dict.get(f"{prefix}weight")
        if isinstance(weight, Tensor) and not {f"{prefix}frozen", f"{prefix}trained"} & state_dict.keys():
            state_dict = dict(state_dict)
            del state_dict[f"{prefix}weight"]
            shape = (self.num_embeddings, self.embedding_dim)
            if hasattr(weight, "placements"):
                weight = weight.full_tensor()  # type: ignore[attr-defined]  # a DTensor
            if weight.shape == shape:
                parts = self.plan.split(weight.detach())
            else:
                arguments[-1].append(
                    f"size mismatch for {prefix}weight: {tuple(weight.shape)} in the state dict, {shape} in the module"
                )
                parts = self.frozen, self.trained
            state_dict |= zip((f"{prefix}frozen", f"{prefix}trained"), parts, strict=True)
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def _inside_ddp() -> bool:
    return getattr(nn.parallel.DistributedDataParallel, "_active_ddp_module", None) is not None


def _nonzero(mask: Tensor) -> Tensor | None:
    """int64: where a mask is true; None where shapes must not depend on values."""
    if torch.compiler.is_compiling():
        return None
    try:
        return mask.nonzero().squeeze(1)
    except RuntimeError:  # meta and fake tensors, vmap
        return None


def resize_embedding(
    embedding: PartlyFrozenEmbedding, num_embeddings: int, new_rows: Tensor | None = None
) -> PartlyFrozenEmbedding:
    """Return a partly frozen table with rows appended, which train, or cut off at the end.

    Give it to `model.set_input_embeddings` of transformers, set `model.config.vocab_size`, and replace a tied head by
    `tie_head` of the new table. To keep words and rows together, extend the bundle with `vec2emb extend` instead.

    Args:
        embedding: the table; it stays as it is.
        num_embeddings: rows of the new one.
        new_rows: float[num_embeddings - V, D]; by default each is the mean of the rows that there are.

    Raises:
        UsageError: `new_rows` has another shape, or all or none of the rows that are left train.
    """
    old, count = embedding._joined().detach(), embedding.num_embeddings
    added = max(0, num_embeddings - count)
    if new_rows is None:
        new_rows = old.mean(0, keepdim=True).expand(added, -1)
    if new_rows.shape != (added, embedding.embedding_dim):
        raise UsageError(
            "new-rows-shape", "the new rows do not fit",
            expected=f"float[{added}, {embedding.embedding_dim}]", found=str(list(new_rows.shape)),
        )  # fmt: skip
    weight = torch.cat([old, new_rows.detach().to(old)])[:num_embeddings]
    rows = torch.cat([embedding.rows, torch.arange(count, count + added)])
    padding_idx = embedding.padding_idx
    padding_idx = None if padding_idx is None or padding_idx >= num_embeddings else padding_idx
    result = PartlyFrozenEmbedding(
        weight, rows[rows < num_embeddings], padding_idx=padding_idx, sparse=embedding.sparse
    )
    return result.train(embedding.training)
