"""The words of a table as JSON, one a line: `vocab.json`, and the `tokenizer.json` that cuts a text into them.

The tokenizer cuts at white space and looks each piece up as it stands, in lower case where the whole table is so: what
`vocab.encode(text.split())` does. Special tokens are found before that, where they stand by themselves. It has no
padding of its own: a batch is padded by whoever makes one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import IO, NamedTuple

from ..bundle.provenance import SpecialToken
from ..errors import shown
from ..typed import Json
from .part import Part

# What Unicode calls white space, at which the tokenizer cuts; Python's own `str.isspace` has four characters more.
_WHITE_SPACE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_FEW = 5
NO_LIMIT = int(1e30)  # what transformers writes where a text may have any length


class Findings(NamedTuple):
    """What the tokens of a table mean for a tokenizer.

    Attributes:
        lowercase: whether all tokens but the special ones are lower-case, so that text is to be made so.
        unmatched: tokens that no text can give, since they are cut; `first_unmatched` are a few of them.
    """

    lowercase: bool
    unmatched: int
    first_unmatched: tuple[str, ...]

    def named(self) -> str:
        """Some of the tokens that no text can give."""
        more = ", .." if self.unmatched > len(self.first_unmatched) else ""
        return ", ".join(map(shown, self.first_unmatched)) + more


def look_at(part: Part) -> Findings:
    """Pass over all tokens."""
    special = {special.token for special in part.specials}
    inside = [token for token in special if token]
    lowercase, unmatched = True, 0
    few: list[str] = []
    for token in part.all_tokens():
        if token in special:
            continue
        lowercase = lowercase and token == token.lower()
        if not token or _WHITE_SPACE.search(token) or any(name in token for name in inside):
            unmatched += 1
            if len(few) < _FEW:
                few.append(token)
    return Findings(lowercase, unmatched, tuple(few))


def vocab_json(tokens: Iterable[str]) -> Iterator[bytes]:
    """`{"token": id, ..}`, one token a line, in pieces."""
    yield b"{"
    yield from _entries(tokens)
    yield b"\n}\n"


def write_vocab_json(part: Part, stream: IO[bytes]) -> None:
    """Write vocab.json."""
    for piece in vocab_json(part.all_tokens()):  # `zstandard` has no `writelines`
        stream.write(piece)


def tokenizer_json(part: Part, lowercase: bool) -> Iterator[bytes]:
    """tokenizer.json, in pieces, the vocabulary last."""
    unknown = None if part.unk_idx is None else part.tokens(part.unk_idx, part.unk_idx + 1)[0]
    head = {
        "version": "1.0",
        "truncation": None,
        "padding": None,  # with one, model2vec before 0.9 averages padding in
        "added_tokens": [_added(special) for special in sorted(part.specials, key=attrgetter("id")) if special.token],
        "normalizer": {"type": "Lowercase"} if lowercase else None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
    }
    text = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    model = f',\n  "model": {{\n  "type": "WordLevel",\n  "unk_token": {_quoted(str(unknown))},\n  "vocab": {{'
    yield (text + model).encode()
    yield from _entries(part.all_tokens())
    yield b"\n  }\n  }\n}\n"


def tokenizer_config(part: Part) -> Json:
    """tokenizer_config.json, by which transformers finds the class and the special tokens."""
    roles: dict[str | None, str] = {"padding": "pad_token", "unknown": "unk_token"}
    named = {roles[special.role]: special.token for special in part.specials if special.role in roles}
    others = [special.token for special in sorted(part.specials, key=attrgetter("id")) if special.role not in roles]
    config: dict[str, Json] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": NO_LIMIT,
        "clean_up_tokenization_spaces": False,
        **{name: token for name, token in sorted(named.items()) if token},
    }
    return {**config, "additional_special_tokens": list[Json](others)} if others else config


def _added(special: SpecialToken) -> dict[str, object]:
    """A special token, found in text as it is written; not inside of a word, as `text.split()` would not find it."""
    how = {"single_word": True, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": special.id, "content": special.token, **how}


def _entries(tokens: Iterable[str]) -> Iterator[bytes]:
    comma = ""
    lines: list[str] = []
    for id, token in enumerate(tokens):
        lines.append(f"{comma}\n{_quoted(token)}: {id}")
        comma = ","
        if len(lines) == 1 << 14:
            yield "".join(lines).encode()
            lines.clear()
    yield "".join(lines).encode()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
