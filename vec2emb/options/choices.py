"""The values of options that can be listed. Nothing heavy is imported here."""

from __future__ import annotations

from types import MappingProxyType

EXPORTS = (
    "word2vec", "word2vec-binary", "glove", "fasttext-vec", "huggingface", "model2vec", "vocab-json", "npz", "shards",
)  # fmt: skip
FORMATS = ("auto", "word2vec", "glove", "word2vec-binary")
# Each with the name that Python has for it.
ENCODING_ERRORS = MappingProxyType({"error": "strict", "replace": "replace", "escape": "backslashreplace"})
BINARY_DTYPES = ("float16", "float32", "float64")
BYTE_ORDERS = ("little", "big")
DUPLICATES = ("first", "last", "error")
BAD_ROWS = ("error", "skip")
NONFINITE = ("error", "keep", "zero")
PIECES = ("none", "wordpiece", "metaspace", "byte-level")
SPECIALS_AT = ("start", "end")
MISSING = ("normal", "mean", "zeros", "uniform", "subword", "error")
NEW_MISSING = tuple(policy for policy in MISSING if policy != "subword")  # of words that a bundle gains
DTYPES = ("float32", "float16", "bfloat16")
ENGINES = ("local", "dask")
IF_EXISTS = ("error", "replace", "keep")  # of a bundle
REPLACE = ("error", "replace")  # of any other output

MAX_DIM = 4 << 20  # of a row of the longest length that is read
