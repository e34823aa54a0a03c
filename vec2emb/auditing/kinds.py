"""What kind of thing a token is, told by its characters alone.

control        holds a control or format character (ESC, U+202E ..), or one that Unicode does not know
white_space    nothing but white space
mojibake       UTF-8 that somebody read as Latin-1 or Windows-1252 (`cafÃ©`), or U+FFFD
url            an address of the web or of mail
several_words  white space inside, or words joined by `_`
digits         digits, perhaps with punctuation: 1,000  3.14  10:30
punctuation    neither letters nor digits
word           letters, perhaps with punctuation; `script_of` says of which script
other          letters and digits together: 1990s  covid-19
"""

from __future__ import annotations

import re
import unicodedata

KINDS = (
    "word", "digits", "punctuation", "other", "several_words", "url", "white_space", "control", "mojibake",
    "invalid_utf8",
)  # fmt: skip

_JOINERS = "\u200c\u200d"  # invisible, but part of Persian and Indian words, and of emoji
_URL = re.compile(
    r"(?i)(?:https?|ftp)://|www\.\w|[\w.+-]+@[\w-]+\.[a-z]{2,}"
    r"|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|info|html?)(?:/|$)"
)
_JOINED = re.compile(r"[^\W_]+(?:_[^\W_]+)+")
# The first byte of a sequence of two to four bytes, and a second one, as Latin-1 and Windows-1252 show them.
_MISREAD = re.compile("[\u00c2-\u00f4][\u0080-\u00bfŒœŠšŸŽžƒˆ˜\u2013-\u203a€™]")
# Where the first word of a letter's name is not its script.
_NAMES = {
    "CJK": "Han", "KANGXI": "Han", "FULLWIDTH": "Latin", "FEMININE": "Latin", "MASCULINE": "Latin",
    "MATHEMATICAL": "Latin", "MICRO": "Greek", "MODIFIER": "",
}  # fmt: skip


class _Shapes(dict[int, str | None]):
    """Of a character one letter: L letters and marks, N digits, P punctuation, Z white space, C all that is odd."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        category = unicodedata.category(character)
        shape: str | None = {"M": "L", "S": "P"}.get(category[0], category[0])
        if character in _JOINERS:
            shape = None  # dropped
        elif character.isspace():
            shape = "Z"
        self[code] = shape
        return shape


class _Scripts(dict[str, str]):
    """Of a character the script, as the first word of its name has it; empty for what belongs to none."""

    def __missing__(self, character: str) -> str:
        script = ""
        if unicodedata.category(character)[0] == "L":
            name = unicodedata.name(character, "").split(" ")[0].split("-")[0]
            script = _NAMES.get(name, name.capitalize())
        self[character] = script
        return script


_SHAPES, _SCRIPTS = _Shapes(), _Scripts()
_JAPANESE = {"Han", "Hiragana", "Katakana", "Halfwidth"}


def kind_of(token: str) -> str:
    """One of KINDS."""
    if token.isascii() and token.isalpha():
        return "word"
    shape = token.translate(_SHAPES)
    if "C" in shape:
        return "control"
    if not shape.strip("Z"):
        return "white_space"
    if not token.isascii() and _is_mojibake(token):
        return "mojibake"
    if ("." in token or ":" in token) and _URL.match(token):
        return "url"
    if "Z" in shape or _JOINED.fullmatch(token):
        return "several_words"
    if "N" in shape:
        return "other" if "L" in shape else "digits"
    return "word" if "L" in shape else "punctuation"


def script_of(token: str) -> str:
    """The script of a word's letters: `Latin`, `Cyrillic`, `Han`, ..; `Mixed` if there are several."""
    if token.isascii():
        return "Latin"
    scripts = {_SCRIPTS[character] for character in token} - {""}
    if len(scripts) > 1:
        return "Japanese" if scripts <= _JAPANESE else "Mixed"
    return scripts.pop() if scripts else "Other"


def _is_mojibake(token: str) -> bool:
    """Whether the token's bytes in Latin-1 or Windows-1252 are UTF-8 of something shorter."""
    if "\ufffd" in token:
        return True
    if not _MISREAD.search(token):
        return False
    for encoding in ("cp1252", "latin-1"):
        try:
            return len(token.encode(encoding).decode()) < len(token)
        except UnicodeError:
            continue
    return False
