"""What would find tokens that a source lacks: another case, another spelling, another cut.

Each remedy of the text stands here once: what it makes of a token, and the line of Python that does it. A token is
found with a remedy if every piece is there that the remedy makes of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple


class TextRemedy(NamedTuple):
    """A change to those tokens of a text that are missing.

    Attributes:
        name, title: as in `results.Remedy`.
        code: Python that makes of `token` what `pieces` makes of it, a string or a list of them.
        pieces: the tokens that it makes of one.
        touches: finds the tokens that it may change at all; the others cost nothing.
    """

    name: str
    title: str
    code: str
    pieces: Callable[[str], list[str]]
    touches: re.Pattern[str]

    def of(self, tokens: list[str]) -> list[list[str]]:
        """The pieces of each token; of a token that it does not change, the token."""
        touches, pieces = self.touches.search, self.pieces
        return [pieces(token) if touches(token) else [token] for token in tokens]


class CaseRemedy(NamedTuple):
    """Another look at case.

    Attributes:
        name, title: as in `results.Remedy`.
        options: of `vec2emb convert`, for a file.
        code: for a bundle, which is made already: as in `TextRemedy`, with `vocab`, its vocabulary.
    """

    name: str
    title: str
    options: str
    code: str


def _without_accents(token: str) -> list[str]:
    return ["".join(c for c in unicodedata.normalize("NFD", token) if not unicodedata.combining(c))]


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_DIGIT = re.compile(r"\d")
_CURLY = re.compile("[’‘ʼ´`]")
_PIECES = re.compile(r"\w(?:.*\w)?|\W")
_ENDS = re.compile(r"^\W+|\W+$")
_POSSESSIVE = re.compile(r"(?=['’][sS]$)")
_HYPHEN = re.compile("[-‐‑–]")

# In the order in which they are done one after the other.
TEXTS = (
    TextRemedy(
        "nfc", "normalise to NFC",
        'unicodedata.normalize("NFC", token)', lambda token: [unicodedata.normalize("NFC", token)], _NOT_ASCII,
    ),
    TextRemedy(
        "nfkc", "normalise to NFKC",
        'unicodedata.normalize("NFKC", token)', lambda token: [unicodedata.normalize("NFKC", token)], _NOT_ASCII,
    ),
    TextRemedy(
        "straight-apostrophes", "apostrophes to '",
        're.sub("[’‘ʼ´`]", "\'", token)', lambda token: [_CURLY.sub("'", token)], _CURLY,
    ),
    TextRemedy(
        "punctuation", "split punctuation off",
        r're.findall(r"\w(?:.*\w)?|\W", token)', _PIECES.findall, re.compile(r"^\W|\W$"),
    ),
    TextRemedy(
        "bare", "drop punctuation at the ends",
        r're.sub(r"^\W+|\W+$", "", token)', lambda token: [_ENDS.sub("", token)], re.compile(r"^\W|\W$"),
    ),
    TextRemedy(
        "possessive", "split 's off",
        r"""re.split(r"(?=['’][sS]$)", token)""", _POSSESSIVE.split, re.compile(r".['’][sS]$"),
    ),
    TextRemedy(
        "hyphens", "split at hyphens",
        're.split("[-‐‑–]", token)', _HYPHEN.split, re.compile("[^-‐‑–][-‐‑–][^-‐‑–]"),
    ),
    TextRemedy(
        "accents", "strip accents",
        '"".join(c for c in unicodedata.normalize("NFD", token) if not unicodedata.combining(c))',
        _without_accents, _NOT_ASCII,
    ),
    TextRemedy(
        "curly-apostrophes", "apostrophes to ’",
        'token.replace("\'", "’")', lambda token: [token.replace("'", "’")], re.compile("'"),
    ),
    TextRemedy(
        "digits-to-0", "digits to 0", r're.sub(r"\d", "0", token)', lambda token: [_DIGIT.sub("0", token)], _DIGIT
    ),
    TextRemedy(
        "digits-to-hash", "digits to #", r're.sub(r"\d", "#", token)', lambda token: [_DIGIT.sub("#", token)], _DIGIT
    ),
)  # fmt: skip

LOWERCASE = CaseRemedy("lowercase", "lower-case all", "--lowercase", "token.lower()")
CASE_FALLBACK = CaseRemedy(
    "case-fallback", "try lower, capitalised, upper case", "--only words.txt --case-fallback",
    "next((t for t in (token.lower(), token.capitalize(), token.upper()) if t in vocab.tokens), token)",
)  # fmt: skip
