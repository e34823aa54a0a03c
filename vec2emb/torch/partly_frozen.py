"""An embedding some of whose rows train, and the others cannot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import UsageError


class PartlyFrozenEmbedding(nn.Module):
    """The same lookup as `nn.Embedding`, with frozen rows in a buffer and training rows in a parameter.

    No optimiser ever sees a frozen row, so neither momentum nor weight decay can move one. A mask on the gradient does
    not do that: decay shrinks a parameter whatever its gradient is. The state dict has the one key `weight`, [V, D], as
    that of `nn.Embedding`, and each loads what the other saved.

    With DistributedDataParallel pass `broadcast_buffers=False` (`forward_sync_buffers=False` in newer torch), or the
    frozen rows are sent around at every step.

    Args:
        weight: float[V, D]; it is copied.
        rows: ids of the rows that train. The padding row never does.
        padding_idx: the padding row, or None.
        sparse: whether the gradient of the training rows is a sparse tensor.

    Attributes:
        num_embeddings, embedding_dim: V and D.
        frozen: float[F, D], a buffer.
        trained: float[V - F, D], a parameter.
        place: int64[V], where each row stands in the two, one after the other; not part of the state dict.

    Raises:
        UsageError: `weight` is no table, a row is none of it, or all or none of the rows are to train.
    """

    frozen: Tensor
    place: Tensor

    def __init__(
        self, weight: Tensor, rows: Iterable[int] | Tensor, *, padding_idx: int | None = None, sparse: bool = False
    ) -> None:
        super().__init__()
        if weight.ndim != 2 or not weight.is_floating_point():
            raise UsageError("weight-shape", "this is no table", expected="float[V, D]", found=str(list(weight.shape)))
        self.num_embeddings, self.embedding_dim = weight.shape
        self.padding_idx, self.sparse = padding_idx, sparse
        trains = self._mask(rows, weight.device)
        count = int(trains.sum())
        if count in (0, len(trains)):
            which = "all rows are" if count else "no row is"
            raise UsageError(
                "rows-not-some", f"{which} to train", expected="some of them",
                hint=f"use nn.Embedding.from_pretrained(weight, freeze={not count})",
            )  # fmt: skip
        self.register_buffer("frozen", weight.detach()[~trains])
        self.trained = nn.Parameter(weight.detach()[trains])
        behind = trains.cumsum(0) - 1 + len(self.frozen)
        self.register_buffer("place", torch.where(trains, behind, (~trains).cumsum(0) - 1), persistent=False)

    def _mask(self, rows: Iterable[int] | Tensor, device: torch.device) -> Tensor:
        ids = torch.as_tensor(rows if isinstance(rows, Tensor) else list(rows), dtype=torch.int64, device=device)
        outside = ids[(ids < 0) | (ids >= self.num_embeddings)]
        if len(outside):
            expected = f"0 .. {self.num_embeddings - 1}"
            raise UsageError("train-rows", "a row to train is none", expected=expected, found=str(int(outside[0])))
        mask = torch.zeros(self.num_embeddings, dtype=torch.bool, device=device)
        mask[ids] = True
        if self.padding_idx is not None:
            mask[self.padding_idx] = False
        return mask

    def forward(self, ids: Tensor) -> Tensor:
        """Rows of ids: int64[..] or int32[..] -> float[.., D]."""
        # Not `place[ids]`, which takes negative ids for rows from the end.
        place = self.place.index_select(0, ids.reshape(-1)).reshape(ids.shape)
        first = len(self.frozen)
        frozen = functional.embedding(place.clamp(max=first - 1), self.frozen)
        trained = functional.embedding((place - first).clamp(min=0), self.trained, sparse=self.sparse)
        return torch.where((place >= first).unsqueeze(-1), trained, frozen)

    @property
    def weight(self) -> Tensor:
        """float[V, D], a copy without a gradient: all rows in their order."""
        return torch.cat([self.frozen, self.trained.detach()])[self.place]

    @property
    def rows(self) -> Tensor:
        """int64[V - F]: ids of the rows that train, rising."""
        return torch.nonzero(self.place >= len(self.frozen)).reshape(-1)

    def extra_repr(self) -> str:
        """What `repr` shows beside the name."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}, {len(self.trained)} rows train"

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        destination[f"{prefix}weight"] = self.weight

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        key, shape = f"{prefix}weight", (self.num_embeddings, self.embedding_dim)
        unexpected_keys += [name for name in state_dict if name.startswith(prefix) and name != key]
        weight = state_dict.get(key)
        if weight is None:
            missing_keys.append(key)
        elif tuple(weight.shape) != shape:
            error_msgs.append(
                f"size mismatch for {key}: {tuple(weight.shape)} in the state dict, {shape} in the module"
            )
        else:
            parts = weight[self.place.argsort().to(weight.device)].split([len(self.frozen), len(self.trained)])
            own = {f"{prefix}frozen": parts[0], f"{prefix}trained": parts[1]}
            super()._load_from_state_dict(own, prefix, local_metadata, strict, missing_keys, [], error_msgs)
