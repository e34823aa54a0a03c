"""A folder as model2vec itself writes it, which old versions of it load as well.

    model.safetensors      embeddings: float32 or float16 [V, D]
    tokenizer.json         the words, and how a text is cut into them
    tokenizer_config.json  class and special tokens, for transformers
    modules.json           StaticEmbedding, and Normalize if asked for, for sentence-transformers
    config.json            model type, width, whether texts are scaled to length 1

sentence-transformers loads it, too: it knows the key.
"""

from __future__ import annotations

from ..typed import Json
from .model_folder import Folder, modules


def _settings(dim: int, dtype: str, normalize: bool) -> dict[str, Json]:
    config: Json = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": dim,
        "seq_length": 1_000_000,
        "normalize": normalize,
        "embedding_dtype": dtype,
    }
    return {"modules.json": modules(normalize), "config.json": config}


MODEL2VEC = Folder("model2vec", "embeddings", _settings, "loads in model2vec and sentence-transformers")
