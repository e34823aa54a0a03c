"""A folder that sentence-transformers, model2vec (0.8 and newer) and transformers' AutoTokenizer all load.

    model.safetensors                  embedding.weight: float32 or float16 [V, D]
    tokenizer.json                     the words, and how a text is cut into them
    tokenizer_config.json              class and special tokens, for transformers
    modules.json                       StaticEmbedding, and Normalize if asked for
    config_sentence_transformers.json  versions, prompts, similarity

There must be no config.json: model2vec would take the folder for one of its own and look for another key.
"""

from __future__ import annotations

from ..typed import Json
from .model_folder import Folder, modules


def _settings(dim: int, dtype: str, normalize: bool) -> dict[str, Json]:
    config: dict[str, Json] = {
        "__version__": {"sentence_transformers": "3.2.0"},  # the first with StaticEmbedding
        "prompts": {},
        "default_prompt_name": None,
        "similarity_fn_name": "cosine",
    }
    if normalize:
        config["normalize"] = True  # for model2vec, so that both give the same
    return {"modules.json": modules(normalize), "config_sentence_transformers.json": config}


HUGGINGFACE = Folder(
    "huggingface",
    "embedding.weight",
    _settings,
    "loads in sentence-transformers, model2vec (0.8 and newer) and transformers' AutoTokenizer",
)
