"""Output heads that share the embedding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import UsageError
from .partly_frozen import PartlyFrozenEmbedding
from .read_only import ReadOnlyWeight
from .text import TextEmbedding


class TiedHead(nn.Module):
    """The layer float[.., D] -> float[.., V] whose weight is a partly frozen table; made by `tie_head`.

    It has no parameters of its own, so that a state dict has each row once and nothing can untie the two. The table
    must be part of the same model. Under FSDP, shard the model as a whole, not the table by itself.

    Attributes:
        in_features, out_features: D and V.
    """

    bias = None

    def __init__(self, table: PartlyFrozenEmbedding) -> None:
        super().__init__()
        self.in_features, self.out_features = table.embedding_dim, table.num_embeddings
        self._table = (table,)  # not a submodule: the model has it already

    @property
    def table(self) -> PartlyFrozenEmbedding:
        """The table that it shares."""
        return self._table[0]

    @property
    def weight(self) -> Tensor:
        """float[V, D], to read: `weight` of the table."""
        return self.table.weight

    def forward(self, hidden: Tensor) -> Tensor:
        """The product of hidden states and each row: float[.., D] -> float[.., V]."""
        table = self.table
        if torch.compiler.is_compiling():
            return functional.linear(hidden, table.weight)
        if table.is_sharded:
            raise UsageError(
                "sharded-weight", "the table of a tied head is sharded by itself",
                hint="shard the model as a whole, as FSDP requires for shared parameters",
            )  # fmt: skip
        # Two products instead of one: no copy of the table, and no gradient of the frozen rows.
        frozen = functional.linear(hidden, table.frozen.detach())
        return table.plan.join(frozen, functional.linear(hidden, table.trained), dim=-1)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "weight":
            if isinstance(value, ReadOnlyWeight):  # tied again, as transformers does when it loads or saves
                return
            raise UsageError(
                "tied-head-weight", "the weight of a tied head is that of its table, and cannot be replaced",
                hint="replace the head",
            )  # fmt: skip
        super().__setattr__(name, value)

    def extra_repr(self) -> str:
        """What `repr` shows beside the name."""
        return f"in_features={self.in_features}, out_features={self.out_features}"


def tie_head(embedding: nn.Embedding | PartlyFrozenEmbedding | TextEmbedding) -> nn.Linear | TiedHead:
    """Return an output head, float[.., D] -> float[.., V], that shares the embedding.

    Rows that train get gradients from lookups and from the head, frozen rows from neither. For a whole table this is
    `tied_linear`. In a model of transformers: `model.set_output_embeddings(tie_head(model.get_input_embeddings()))`.
    """
    words = embedding.words if isinstance(embedding, TextEmbedding) else embedding
    return TiedHead(words) if isinstance(words, PartlyFrozenEmbedding) else tied_linear(words)


def tied_linear(embedding: nn.Embedding | PartlyFrozenEmbedding | TextEmbedding) -> nn.Linear:
    """Return the layer float[.., D] -> float[.., V] whose weight, [V, D], is that of the embedding: one parameter.

    It stays one through `to()`, training and saving. `nn.Linear` keeps a row per output, so that this is the
    embedding's own matrix and not its transpose. A head gives every row a gradient, that of padding too: `padding_idx`
    stops the gradient of lookups alone. So set the row to zero after each step, or leave its logit out of the loss.

    Raises:
        UsageError: only some rows of the embedding train: its weight is not one parameter. `tie_head` shares it.
    """
    words = embedding.words if isinstance(embedding, TextEmbedding) else embedding
    if isinstance(words, PartlyFrozenEmbedding):
        raise UsageError(
            "tied-partly-frozen", "a partly frozen embedding has no single parameter that nn.Linear could share",
            hint="use vec2emb.torch.tie_head(embedding), or load it with freeze=False",
        )  # fmt: skip
    head = nn.Linear(words.embedding_dim, words.num_embeddings, bias=False, device="meta")
    head.weight = words.weight
    return head
