"""What a token is. Only white space is split in the kernel; the rest is done by the `tokenizers` package.

- `whitespace`: what ASCII white space separates (blank, tab, LF, VT, FF, CR), byte by byte.
- `bert`: the same, split further at Unicode white space and around each punctuation character. A piece between white
  space is split alike wherever it stands, so it is split once, however often it comes.
- `regex:PATTERN`: the matches of an Oniguruma pattern in each text.
- `hf:FILE`: what a tokenizer.json makes of each text, special tokens not added, nothing cut off.
- `ids`: the same, each token as its id in decimal digits. Only other packages of vec2emb count ids.
- `lines`: each text as one token. Only other packages of vec2emb read texts.

A *text* is a line of a text file, without its LF or CR LF, or one value of a field.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..errors import InputError, UsageError, needed
from .settings import Settings


class Splitter(NamedTuple):
    """How texts become tokens. With neither function white space alone separates.

    Attributes:
        spread: the tokens of one piece between ASCII white space.
        split: the tokens of whole texts.
    """

    spread: Callable[[str], list[str]] | None = None
    split: Callable[[list[str]], Iterable[str]] | None = None


@functools.lru_cache(maxsize=8)
def splitter_of(settings: Settings) -> Splitter:
    """The splitter of a tokenizer; each process makes its own.

    Raises:
        MissingPackageError: the `tokenizers` package is not there.
        UsageError: the pattern is none.
        InputError: the file is no tokenizer.json.
    """
    kind, _, rest = settings.tokenizer.partition(":")
    if kind == "whitespace":
        return Splitter()
    if kind == "lines":
        return Splitter(split=lambda texts: texts)
    with needed("tokenizers", "corpus", f"the tokenizer {kind}"):
        import tokenizers
    if kind == "bert":
        return Splitter(spread=_pieces_of(tokenizers.pre_tokenizers.BertPreTokenizer()))
    if kind == "regex":
        try:
            pattern = tokenizers.Regex(rest)
        except Exception as error:  # the package raises nothing narrower
            raise UsageError("bad-pattern", f"the pattern is none ({error})", found=repr(rest)) from None
        pieces = _pieces_of(tokenizers.pre_tokenizers.Split(pattern, "removed", invert=True))
        return Splitter(split=lambda texts: (token for text in texts for token in pieces(text)))
    whole = tokenizer_of(settings.content, rest)

    def split(texts: list[str]) -> Iterable[str]:
        for encoding in whole.encode_batch(texts, add_special_tokens=False):
            yield from map(str, encoding.ids) if kind == "ids" else encoding.tokens

    return Splitter(split=split)


def tokenizer_of(content: str, path: str) -> Any:
    """The tokenizer of the `tokenizers` package for a tokenizer.json, which neither cuts nor pads.

    Raises:
        InputError: the content is not a tokenizer.json.
    """
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_str(content)
    except Exception as error:  # the package raises nothing narrower
        raise InputError("bad-tokenizer", f"the file is no tokenizer.json ({error})", path=path) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _pieces_of(pre_tokenizer: object) -> Callable[[str], list[str]]:
    split: Callable[[str], list[tuple[str, tuple[int, int]]]] = pre_tokenizer.pre_tokenize_str  # type: ignore[attr-defined]
    return lambda text: [piece for piece, _ in split(text)]
