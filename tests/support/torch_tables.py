"""Tables of each kind with the same rows, and nn.Embedding as the oracle of each; what tests of vec2emb.torch share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vec2emb.torch import PartlyFrozenEmbedding, TextEmbedding
from vec2emb.torch.text import PositionTable

V, D, PAD = 12, 4, 2
TRAIN = [3, 7, 8, 11]
FROZEN = [row for row in range(V) if row not in TRAIN]
IDS = torch.tensor([[0, 3, 2, 7, 3], [11, 8, 5, 2, 7]])
OURS = ("whole", "partly", "text")


def start() -> Tensor:
    """float[V, D]: the rows that each table has at first."""
    weight = torch.randn(V, D, generator=torch.Generator().manual_seed(1))
    weight[PAD] = 0
    return weight


def make(kind: str, *, sparse: bool = False, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A table: nn.Embedding itself, the same as `load_embedding` makes it, partly frozen, or with (zero) positions."""
    weight = start().to(dtype)
    if kind in ("plain", "whole"):
        return nn.Embedding.from_pretrained(weight, freeze=False, padding_idx=PAD, sparse=sparse)  # type: ignore[no-untyped-call,no-any-return]
    words = PartlyFrozenEmbedding(weight, TRAIN, padding_idx=PAD, sparse=sparse)
    return words if kind == "partly" else TextEmbedding(words, PositionTable(torch.zeros(5, D, dtype=dtype)))


def partly_of(module: nn.Module) -> PartlyFrozenEmbedding:
    """The partly frozen table of a module."""
    found = [part for part in module.modules() if isinstance(part, PartlyFrozenEmbedding)]
    assert len(found) == 1
    return found[0]


def rows_of(module: nn.Module) -> Tensor:
    """float[V, D]: the rows of a module, put together row by row."""
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            return part.weight.detach().clone()
        if isinstance(part, PartlyFrozenEmbedding):
            rows = [
                part.trained[TRAIN.index(row)] if row in TRAIN else part.frozen[FROZEN.index(row)] for row in range(V)
            ]
            return torch.stack(rows).detach()
    raise AssertionError("there is no table")


class Oracle(nn.Module):
    """What a table should do, with nn.Embedding alone: one with `weight`, and for some rows one with these alone."""

    def __init__(self, kind: str, *, sparse: bool = False) -> None:
        super().__init__()
        self.rows = TRAIN if kind in ("partly", "text") else list(range(V))
        padding = PAD if PAD in self.rows else None
        self.table = nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
            start()[self.rows], freeze=False, padding_idx=padding, sparse=sparse
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors of the ids that it has, [n, D]."""
        known = [self.rows.index(int(id)) for id in ids.flatten() if int(id) in self.rows]
        result: Tensor = self.table(torch.tensor(known, dtype=torch.int64))
        return result

    def all_rows(self) -> Tensor:
        """float[V, D]: those that train as they are now, the others as they were."""
        rows = start()
        rows[self.rows] = self.table.weight.detach()
        return rows


def loss_of(vectors: Tensor) -> Tensor:
    """A loss that is not linear, with another weight for each number."""
    scale = torch.linspace(-1, 2, vectors.numel()).reshape(vectors.shape)
    return ((vectors.float() - 0.3).square() * scale.square() + vectors.float() * scale).sum()


def loss(module: nn.Module, ids: Tensor = IDS) -> Tensor:
    """The loss over the ids whose rows train."""
    vectors = module(ids)
    if isinstance(module, Oracle):
        return loss_of(vectors)
    trains = TRAIN if any(isinstance(part, PartlyFrozenEmbedding) for part in module.modules()) else list(range(V))
    return loss_of(vectors[torch.isin(ids, torch.tensor(trains))])


def step(module: nn.Module, optimizer: torch.optim.Optimizer, ids: Tensor = IDS) -> None:
    """One step; the loss is computed in a closure, as LBFGS wants it."""

    def closure() -> Any:
        optimizer.zero_grad()
        value = loss(module, ids)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(closure)


def same(a: Tensor, b: Tensor) -> bool:
    """Equal to the bit; -0 and 0 differ."""
    fits = (a.dtype, a.shape) == (b.dtype, b.shape)
    a, b = a.detach().reshape(-1), b.detach().reshape(-1)
    return fits and torch.equal(a.view(torch.uint8), b.view(torch.uint8))
