"""An output head that shares the embedding."""

from __future__ import annotations

from torch import nn

from ..errors import UsageError
from .partly_frozen import PartlyFrozenEmbedding
from .text import TextEmbedding


def tied_linear(embedding: nn.Embedding | PartlyFrozenEmbedding | TextEmbedding) -> nn.Linear:
    """The layer float[.., D] -> float[.., V] whose weight, [V, D], is that of the embedding: one parameter.

    It stays one through `to()`, training and saving. `nn.Linear` keeps a row per output, so that this is the
    embedding's own matrix and not its transpose. A head gives every row a gradient, that of padding too: `padding_idx`
    stops the gradient of lookups alone. So set the row to zero after each step, or leave its logit out of the loss.

    Raises:
        UsageError: only some rows of the embedding train: its weight is not one parameter.
    """
    words = embedding.words if isinstance(embedding, TextEmbedding) else embedding
    if isinstance(words, PartlyFrozenEmbedding):
        raise UsageError(
            "tied-partly-frozen", "a partly frozen embedding has no weight that a head could share",
            hint="compute the logits with functional.linear(hidden, embedding.weight), or load it with freeze=False",
        )  # fmt: skip
    head = nn.Linear(words.embedding_dim, words.num_embeddings, bias=False, device="meta")
    head.weight = words.weight
    return head
