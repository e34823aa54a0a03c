"""The words that tokens of subword vocabularies stand for.

    wordpiece    the ##ing        ## marks the inside of a word; other tokens are words
    metaspace    ▁the ing         ▁ marks the beginning of a word; SentencePiece, T5, Llama
    byte-level   Ġthe ing         the same with the letter that stands for the byte of a space; GPT-2, RoBERTa

A byte-level token spells the UTF-8 bytes of its text, each as one letter: GPT-2's table (OpenAI, `bytes_to_unicode`)
maps printable bytes to themselves and the others to the letters from U+0100 on.

Where beginnings are marked, a token without mark is the inside of a word if it has letters or digits; punctuation, and
tokens in brackets such as <s>, stand for themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from .token_lookup import other_forms

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))


@functools.cache
def _bytes_of_letters() -> dict[str, int]:
    others = (byte for byte in range(256) if byte not in _PRINTABLE)
    return {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _read(token: str, style: str) -> str | None:
    """The text of a token, with a space where a word begins; None if its bytes are not UTF-8."""
    if style == "metaspace":
        return token.replace("▁", " ")
    table = _bytes_of_letters()
    try:
        return bytes(table[letter] for letter in token).decode()
    except (KeyError, UnicodeDecodeError):
        return None


def text_of(token: str, style: str) -> str:
    """The text of a token without its mark."""
    if style == "wordpiece":
        return token.removeprefix("##")
    text = _read(token, style)
    return token if text is None else text.strip(" ") or token


def word_of(token: str, style: str) -> str | None:
    """The word that a token stands for; None for a piece from the inside of a word, or of no word."""
    if style == "wordpiece":
        return None if token.startswith("##") and len(token) > 2 else token
    if (token[:1], token[-1:]) in (("<", ">"), ("[", "]")):
        return token
    text = _read(token, style)
    if text is None:
        return None
    if text.startswith(" "):
        return text[1:] if text[1:].strip() and " " not in text[1:] else None
    return text if text and not any(letter.isalnum() for letter in text) else None


def is_marked(token: str, style: str) -> bool:
    """Whether a token has the mark of a style."""
    return len(token) > 1 and token.startswith({"wordpiece": "##", "metaspace": "▁", "byte-level": "Ġ"}[style])


def speller(style: str, case_fallback: bool) -> Callable[[str], list[str]]:
    """Return what makes the spellings under which the row of a token may be found, the best first, none twice.

    Args:
        style: of pieces, or `none`.
        case_fallback: whether other cases are spellings, too.
    """
    forms = other_forms("case-fallback") if case_fallback else ()

    def spellings(token: str) -> list[str]:
        word = token if style == "none" else word_of(token, style)
        own = [token] if word is not None or is_marked(token, style) else []
        return list(dict.fromkeys([*own, *([] if word is None else [word, *(form(word) for form in forms)])]))

    return spellings
