"""Models with fewer tokens: the tokenizer, the tables over the vocabulary, and every file that names ids.

    tokenizer.json -> tokenizer_json, merges    tokens, what must stay with them, the same tokenizer with fewer
    corpus -> counts -> selection               which tokens stay
    config.json, .. -> rewriting, id_fields     files that name ids
    model.safetensors -> families, tables       tensors with an axis over the vocabulary
    both tokenizers -> proof                    a sample of the corpus, encoded with each

`trimmer` puts them together. What loads a tokenizer runs in a process of its own (`worker`).
"""

from .result import Trimmed
from .trimmer import trim

__all__ = ["Trimmed", "trim"]
