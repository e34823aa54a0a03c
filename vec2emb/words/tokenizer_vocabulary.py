"""The vocabulary of a tokenizer: its tokens with their ids, and which of them are for padding and unknown words.

A tokenizer names these two in several places. The first that names a token of the vocabulary counts:

    tokenizer_config.json, then special_tokens_map.json, in the folder of the file
    padding and unk_token (Unigram: unk_id) in tokenizer.json; pad_token and unk_token of a `transformers` object
    the usual names: <pad>, [PAD]; <unk>, [UNK]

Other tokens that some tokenizers use for padding (</s>, <|endoftext|>) are not guessed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..errors import UsageError, VocabularyError, shown
from ..typed import ModelSettings

PAD_NAMES, UNK_NAMES = ("<pad>", "[PAD]"), ("<unk>", "[UNK]")
BESIDE = ("tokenizer_config.json", "special_tokens_map.json")


class TokenIds(NamedTuple):
    """Tokens with their ids, which are not checked yet, and the two that are named for padding and unknown words."""

    ids: ModelSettings
    pad: str | None = None
    unk: str | None = None

    def named_beside(self, path: str) -> TokenIds:
        """The same, with the names that the settings in the folder of a file give."""
        found = [_settings(os.path.join(os.path.dirname(path), name)) for name in BESIDE]
        return self._replace(
            pad=first_of((*(one.get("pad_token") for one in found), self.pad), self.ids),
            unk=first_of((*(one.get("unk_token") for one in found), self.unk), self.ids),
        )


def first_of(names: Iterable[Any], tokens: Any) -> str | None:
    """The first name that is one of the tokens; a name is text, or an object of JSON with its text as `content`."""
    texts = (name.get("content") if isinstance(name, dict) else name for name in names)
    return next((text for text in texts if isinstance(text, str) and text in tokens), None)


def _settings(path: str) -> ModelSettings:
    """The content of a settings file; empty if there is none that can be read."""
    try:
        with open(path, "rb") as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def of_json(content: ModelSettings, path: str | None, refuse: Callable[[Any], VocabularyError]) -> TokenIds:
    """Return the vocabulary of a tokenizer.json: its model's tokens, and the added tokens.

    Args:
        refuse: makes the error for a vocabulary of another form.

    Raises:
        VocabularyError: the vocabulary has another form, or holds a token twice.
    """
    model = content["model"]
    vocab = model.get("vocab")
    ids: ModelSettings = {}
    if isinstance(vocab, list):  # Unigram: pairs of token and score
        for id, pair in enumerate(vocab):
            if not (isinstance(pair, list) and pair and isinstance(pair[0], str)):
                raise refuse(vocab)
            if pair[0] in ids:
                raise VocabularyError("duplicate-token", f"the token {shown(pair[0])} stands twice", path=path)
            ids[pair[0]] = id
        unk_id = model.get("unk_id")
        unk = vocab[unk_id][0] if type(unk_id) is int and 0 <= unk_id < len(vocab) else None
    elif isinstance(vocab, dict):
        ids, unk = dict(vocab), model.get("unk_token")
    else:
        raise refuse(vocab)
    added_tokens = content.get("added_tokens")
    for added in added_tokens if isinstance(added_tokens, list) else []:
        if isinstance(added, dict) and isinstance(added.get("content"), str):
            ids.setdefault(added["content"], added.get("id"))
    padding = content.get("padding")
    pad = padding.get("pad_token") if isinstance(padding, dict) else None
    return TokenIds(ids, first_of([pad], ids), first_of([unk], ids))


def of_object(tokenizer: Any, refuse: Callable[[Any], VocabularyError]) -> TokenIds:
    """Return the vocabulary of a tokenizer of `transformers`, or of a `tokenizers.Tokenizer`.

    Raises:
        UsageError: its vocabulary is not a mapping of tokens to ids.
        VocabularyError: as in `of_json`.
    """
    if hasattr(tokenizer, "to_str"):
        return of_json(json.loads(tokenizer.to_str()), None, refuse)
    ids = tokenizer.get_vocab()
    if not isinstance(ids, dict):
        raise UsageError(
            "tokenizer-object", "the tokenizer's get_vocab() must return a dict of tokens and ids",
            found=type(ids).__name__, hint="pass the dict itself, or the path of a tokenizer.json",
        )  # fmt: skip
    pad, unk = (getattr(tokenizer, name, None) for name in ("pad_token", "unk_token"))
    return TokenIds(ids, first_of([pad], ids), first_of([unk], ids))
