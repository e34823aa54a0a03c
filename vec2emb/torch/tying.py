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

    It has no parameter but a bias, if one is given, so that a state dict has each row once and nothing can untie the
    two. The table must be part of the same model. Under FSDP, shard the model as a whole, not the table by itself.

    Attributes:
        in_features: D.
        out_features: V.
        bias: float[V], or None.
    """

    bias: nn.Parameter | None

    def __init__(self, table: PartlyFrozenEmbedding, bias: nn.Parameter | None = None) -> None:
        super().__init__()
        self.register_parameter("bias", bias)
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
            return functional.linear(hidden, table.weight, self.bias)
        if table.is_sharded:
            raise UsageError(
                "sharded-weight", "the table of a tied head is sharded by itself",
                hint="shard the model as a whole, as FSDP requires for shared parameters",
            )  # fmt: skip
        # Two products instead of one: no copy of the table, and no gradient of the frozen rows.
        frozen = functional.linear(hidden, table.frozen.detach())
        logits = table.plan.join(frozen, functional.linear(hidden, table.trained), dim=-1)
        return logits if self.bias is None else logits + self.bias

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
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def tie_head(
    embedding: nn.Embedding | PartlyFrozenEmbedding | TextEmbedding, bias: nn.Parameter | None = None
) -> nn.Linear | TiedHead:
    """Return an output head, float[.., D] -> float[.., V], that shares the embedding.

    Rows that train get gradients from lookups and from the head, frozen rows from neither. For a whole table the head
    is that of `tied_linear`. In a model of transformers:

        head = tie_head(model.get_input_embeddings(), bias=model.get_output_embeddings().bias)
        model.set_output_embeddings(head)
        model.config.tie_word_embeddings = False  # or transformers ties them again, in its way

    Args:
        embedding: the table.
        bias: float[V], added to the logits.
    """
    words = embedding.words if isinstance(embedding, TextEmbedding) else embedding
    if isinstance(words, PartlyFrozenEmbedding):
        return TiedHead(words, bias)
    head = tied_linear(words)
    head.register_parameter("bias", bias)
    return head


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
