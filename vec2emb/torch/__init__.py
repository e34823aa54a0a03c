"""From a bundle to a running model: embeddings with frozen and training rows, positions, batches of ids.

The only room that imports torch.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    from ..errors import MissingPackageError

    if error.name != "torch":  # an installation of torch that is broken says so itself
        raise
    raise MissingPackageError.of("torch", "torch", "vec2emb.torch") from error

from .batches import Collate
from .full_state import full_state_dict
from .loading import embedding_bag, load_embedding, load_text_embedding
from .partly_frozen import PartlyFrozenEmbedding, resize_embedding
from .saving import save_embedding
from .text import TextEmbedding
from .tying import TiedHead, tie_head, tied_linear

__all__ = [
    "Collate",
    "PartlyFrozenEmbedding",
    "TextEmbedding",
    "TiedHead",
    "embedding_bag",
    "full_state_dict",
    "load_embedding",
    "load_text_embedding",
    "resize_embedding",
    "save_embedding",
    "tie_head",
    "tied_linear",
]
