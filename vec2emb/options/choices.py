"""What options may be, as data: the library checks it, the command line lists it. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from ..errors import UsageError

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
SPECIALS_AT = ("start", "end")
MISSING = ("normal", "mean", "zeros", "uniform", "subword", "error")
NEW_MISSING = tuple(policy for policy in MISSING if policy != "subword")  # of words that a bundle gains
IF_EXISTS = ("error", "replace", "keep")  # of a bundle
REPLACE = ("error", "replace")  # of any other output


def check_choice(code: str, value: object, choices: Iterable[str], what: str = "no such policy") -> None:
    """Refuse a value that is none of the choices.

    Raises:
        UsageError: it is none, with the code given.
    """
    choices = tuple(choices)
    if value not in choices:
        raise UsageError(code, what, expected=" or ".join(choices), found=repr(value))
