"""A tokenizer.json: its tokens, which of them must stay, and the same tokenizer with fewer tokens.

    file  = {"added_tokens": [{"id": ID, "content": TOKEN, ..}, ..], "model": MODEL, "post_processor": .., ..}
    MODEL = {"type": "WordPiece" | "WordLevel", "vocab": {TOKEN: ID, ..}, "unk_token": TOKEN, ..}
          | {"type": "BPE", "vocab": {TOKEN: ID, ..}, "merges": [[TOKEN, TOKEN], ..], ..}
          | {"type": "Unigram", "vocab": [[TOKEN, SCORE], ..], "unk_id": ID, ..}        the id is the index

A text whose encoding uses only tokens that stay is encoded as before:

- WordPiece takes the longest match at each place, which stays the longest.
- Unigram takes the path of the highest score, which stays the highest. The score of an unknown character derives from
  the lowest score of all tokens, so a token of that score stays, too.
- BPE joins pairs by rank. The tokens that are joined on the way to a token stay with it (see `merges`).

All tokens of one character stay in each of them, so that what was known as single characters is never unknown.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from ..errors import InputError, shown
from ..typed import ModelSettings
from .merges import Merges

KINDS = ("WordPiece", "Unigram", "BPE", "WordLevel")

_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")


class TokenizerJson:
    """A parsed tokenizer.json, which takes over the content: its list of merges is empty afterwards.

    Attributes:
        kind: one of `KINDS`.
        ids: of each token of the model and each added token.
        tokens: of each id; None for an id without a token.
        path: where the file is, for messages.
    """

    def __init__(self, content: ModelSettings, path: str) -> None:
        """Check a file's content.

        Raises:
            InputError: it is not a tokenizer.json, its model is of another kind, or two tokens have one id.
        """
        self.path = path
        self._content = content
        model = content.get("model")
        if not isinstance(model, dict):
            raise self._fault("there is no model in it")
        self._model = model
        self.kind = _kind(model)
        if self.kind not in KINDS:
            raise InputError(
                "tokenizer-kind",
                "the model of the tokenizer must be a known one",
                path=path,
                expected=", ".join(KINDS),
                found=shown(self.kind),
            )
        self._vocabulary = self._read_vocabulary(model.get("vocab"))
        self._added = self._read_added(content.get("added_tokens") or [])
        self.ids: Mapping[str, int] = {**self._vocabulary, **self._added}
        self.tokens: list[str | None] = [None] * (1 + max(self.ids.values(), default=-1))
        for token, id in self.ids.items():
            if self.tokens[id] is not None:
                raise self._fault(f"two tokens have id {id}", found=f"{shown(self.tokens[id] or '')}, {shown(token)}")
            self.tokens[id] = token
        self.prefix = str(model.get("continuing_subword_prefix") or "")
        self._suffix = str(model.get("end_of_word_suffix") or "")
        self._merges = self._read_merges()

    def always_kept(self) -> set[int]:
        """Return the ids of special, added, byte and single-character tokens, and of those the file refers to."""
        found = {id for token, id in self._vocabulary.items() if self._is_basic(token)} | set(self._added.values())
        found |= self._referred()
        unknown = self._model.get("unk_token")
        if isinstance(unknown, str) and unknown in self.ids:
            found.add(self.ids[unknown])
        if self.kind == "Unigram":
            scores = [score for _, score in self._model["vocab"]]
            found.add(scores.index(min(scores)))
        return found

    def needs(self, id: int) -> set[int]:
        """Return the ids of the tokens without which no text is encoded with this one."""
        token = self.tokens[id]
        if self._merges is None or token not in self._vocabulary:
            return set()
        return self._merges.ancestors(token)

    @property
    def unknown_id(self) -> int | None:
        """The id of the unknown token, or None."""
        if self.kind == "Unigram":
            id = self._model.get("unk_id")
            return id if type(id) is int else None
        return self.ids.get(str(self._model.get("unk_token")))

    def cut(self, new_ids: Mapping[int, int]) -> ModelSettings:
        """Return the content of the file with only the tokens of `new_ids`, {old id: new id}."""
        model = dict(self._model)
        if self.kind == "Unigram":
            model["vocab"] = [entry for id, entry in enumerate(model["vocab"]) if id in new_ids]
            if type(model.get("unk_id")) is int:
                model["unk_id"] = new_ids[model["unk_id"]]
        else:
            kept = {token: new_ids[id] for token, id in self._vocabulary.items() if id in new_ids}
            model["vocab"] = kept
            if self._merges is not None:
                model["merges"] = self._merges.written(self.merges(new_ids))
        content = {**self._content, "model": model}
        if self._added:
            content["added_tokens"] = [{**entry, "id": new_ids[entry["id"]]} for entry in content["added_tokens"]]
        if isinstance(content.get("post_processor"), dict):
            content["post_processor"] = _post_processor(content["post_processor"], new_ids)
        padding = content.get("padding")
        if isinstance(padding, dict) and type(padding.get("pad_id")) is int:
            content["padding"] = {**padding, "pad_id": new_ids.get(padding["pad_id"], padding["pad_id"])}
        return content

    def merges(self, kept: Container[int]) -> Iterator[tuple[str, str]]:
        """Yield the merges of a BPE model, by rank, whose tokens are all in `kept`."""
        if self._merges is not None:
            yield from self._merges.pairs(kept, self.tokens)

    def _is_basic(self, token: str) -> bool:
        """Whether a token is one character, apart from the marks of its place in a word, or one byte."""
        bare = token.removeprefix(self.prefix) or token
        if self._suffix:
            bare = bare.removesuffix(self._suffix) or bare
        return len(token) == 1 or len(bare) == 1 or _BYTE.fullmatch(token) is not None

    def _referred(self) -> set[int]:
        """The ids that the post-processor, the padding and the model name.

        Raises:
            InputError: the post-processor inserts an id that has no token.
        """
        found: set[int] = set()
        if isinstance(self._content.get("post_processor"), dict):
            _post_processor(self._content["post_processor"], _Recorder(found))
        known = {id for id in found if id < len(self.tokens) and self.tokens[id] is not None}
        if found - known:
            raise self._fault("the post-processor inserts an id that has no token", found=str(min(found - known)))
        padding = self._content.get("padding")
        named = [self._model.get("unk_id"), padding.get("pad_id") if isinstance(padding, dict) else None]
        tokens = self.tokens
        return found | {id for id in named if type(id) is int and 0 <= id < len(tokens) and tokens[id] is not None}

    def _read_vocabulary(self, vocabulary: Any) -> dict[str, int]:
        if self.kind == "Unigram":
            if not isinstance(vocabulary, list) or not all(map(_is_scored, vocabulary)) or not vocabulary:
                raise self._fault("the vocabulary of a Unigram model must be a list of [token, score]")
            found = {entry[0]: id for id, entry in enumerate(vocabulary)}
            if len(found) != len(vocabulary):
                raise self._fault("a token is in the vocabulary twice")
            unknown = self._model.get("unk_id")
            if unknown is not None and (type(unknown) is not int or not 0 <= unknown < len(vocabulary)):
                raise self._fault("unk_id must be an id of the vocabulary", found=shown(repr(unknown)))
            return found
        if not isinstance(vocabulary, dict) or not all(map(_is_id, vocabulary.values())):
            raise self._fault("the vocabulary must be an object of tokens with their ids")
        return vocabulary

    def _read_added(self, entries: Any) -> dict[str, int]:
        added: dict[str, int] = {}
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or not _is_id(entry.get("id")):
                raise self._fault("an added token must have an id and a content", found=shown(repr(entry)))
            token, id = entry["content"], entry["id"]
            if {added.get(token, id), self._vocabulary.get(token, id)} != {id}:
                raise self._fault(f"{shown(token)} has two ids")
            added[token] = id
        return added

    def _read_merges(self) -> Merges | None:
        if self.kind != "BPE":
            return None
        merges = self._model.get("merges")
        if not isinstance(merges, list):
            raise self._fault("the merges of a BPE model must be a list")
        return Merges(merges, self._vocabulary, prefix=self.prefix, suffix=self._suffix, path=self.path)

    def _fault(self, message: str, *, found: str | None = None) -> InputError:
        return InputError("tokenizer-invalid", message, path=self.path, found=found)


def close(tokenizer: TokenizerJson, ids: Iterable[int]) -> set[int]:
    """Return the ids with all that their tokens need."""
    found = set(ids)
    for id in list(found):
        found |= tokenizer.needs(id)
    return found


class _Recorder(dict[int, int]):
    """A mapping of ids to themselves that records which were asked for."""

    def __init__(self, asked: set[int]) -> None:
        super().__init__()
        self._asked = asked

    def __missing__(self, id: int) -> int:
        self._asked.add(id)
        return id


def _post_processor(content: ModelSettings, new_ids: Mapping[int, int]) -> ModelSettings:
    """A post-processor with other ids; each of its kinds names them in its own way."""
    result = dict(content)
    if isinstance(content.get("processors"), list):  # Sequence
        result["processors"] = [_post_processor(part, new_ids) for part in content["processors"]]
    for name in ("sep", "cls"):  # BertProcessing, RobertaProcessing: [token, id]
        pair = content.get(name)
        if isinstance(pair, list) and len(pair) == 2 and _is_id(pair[1]):
            result[name] = [pair[0], new_ids[pair[1]]]
    specials = content.get("special_tokens")
    if isinstance(specials, dict):  # TemplateProcessing: {token: {"id": token, "ids": [..], "tokens": [..]}}
        result["special_tokens"] = {
            token: {**entry, "ids": [new_ids[id] for id in entry["ids"]]} for token, entry in specials.items()
        }
    return result


def _kind(model: ModelSettings) -> str:
    """The kind of a model; files of old versions do not name it."""
    if "type" in model:
        return str(model["type"])
    if "merges" in model:
        return "BPE"
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    return "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def _is_scored(entry: object) -> bool:
    if not isinstance(entry, list) or len(entry) != 2:
        return False
    return isinstance(entry[0], str) and isinstance(entry[1], int | float)
