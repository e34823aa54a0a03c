"""Ids of tokens in the JSON files of a model, by the names of the fields that have them.

    .._token, additional_special_tokens, ..                tokens themselves, which stay
    a field .._token_id, .._token_ids, .._token_index     an id, or lists of ids, which stay
    forced_decoder_ids                                     [[POSITION, id], ..], which stay
    lang_to_id, task_to_id                                 {NAME: id}, which stay
    suppress_tokens, begin_suppress_tokens                 ids, less those that are gone
    bad_words_ids, force_words_ids                         lists of ids, less those with one that is gone
    sequence_bias                                          [[ids, BIAS], ..], less those with one that is gone
    vocab_size                                             the size of the table
    added_tokens_decoder                                   {"id": .., ..}, which stay

An object inside of another one that has a `vocab_size` of its own, other than that of the model, is about another
vocabulary and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..typed import Json, ModelSettings

_ID = re.compile(r"(.+_)?token_(id|ids|index)|forced_decoder_ids|lang_to_id|task_to_id")
_SPECIAL_LISTS = ("additional_special_tokens", "extra_special_tokens")
_FILTERED = ("suppress_tokens", "begin_suppress_tokens")
_SEQUENCES = ("bad_words_ids", "force_words_ids", "sequence_bias")


class IdChange(NamedTuple):
    """A value of a JSON file that changed; `field` is its dotted path."""

    field: str
    before: Json
    after: Json


class Sizes(NamedTuple):
    """The size of the table and that of the tokenizer, before and after."""

    table: tuple[int, int]
    tokens: tuple[int, int]


def named_ids(content: ModelSettings, size: int) -> set[int]:
    """Return the ids below `size` that a file names and that must stay."""
    found: set[int] = set()
    for name, value in content.items():
        if name == "added_tokens_decoder" and isinstance(value, dict):
            found |= {int(id) for id in value if id.isdecimal() and int(id) < size}
        elif _ID.fullmatch(name):
            found |= {id for id in _ids(name, value) if 0 <= id < size}
        elif isinstance(value, dict) and not _is_other(value, size):
            found |= named_ids(value, size)
    return found


def named_tokens(content: ModelSettings) -> set[str]:
    """Return the tokens that a file of settings names as special ones; the tokenizer.json may not list all of them."""
    fields = [name for name in content if name in _SPECIAL_LISTS or name.endswith("_token")]
    return {token for name in fields for token in _strings(content[name])}


def with_new_ids(
    content: ModelSettings, new_ids: Mapping[int, int], sizes: Sizes, changes: list[IdChange], path: str = ""
) -> ModelSettings:
    """Return the content of a file with the new ids; what changed is appended to `changes`.

    Ids that are not in `new_ids` stay where the field keeps all of them: negative ones, and those beyond the table.
    """
    result: ModelSettings = {}
    for name, value in content.items():
        field = f"{path}.{name}" if path else name
        after = value
        if name == "added_tokens_decoder" and isinstance(value, dict):
            after = {str(new_ids.get(int(id), int(id))) if id.isdecimal() else id: one for id, one in value.items()}
        elif name == "vocab_size" and type(value) is int:
            after = dict((sizes.tokens, sizes.table)).get(value, value)
        elif _ID.fullmatch(name):
            after = _mapped(name, value, new_ids)
        elif name in _FILTERED and isinstance(value, list):
            after = [new_ids.get(id, id) for id in value if id in new_ids or id < 0]
        elif name in _SEQUENCES and isinstance(value, list):
            after = [one for one in (_sequence(name, entry, new_ids) for entry in value) if one is not None]
        elif isinstance(value, dict) and not _is_other(value, sizes.table[0]):
            result[name] = with_new_ids(value, new_ids, sizes, changes, field)
            continue
        if after != value:
            changes.append(IdChange(field, value, after))
        result[name] = after
    return result


def _is_other(content: ModelSettings, size: int) -> bool:
    return type(content.get("vocab_size")) is int and content["vocab_size"] != size


def _strings(value: object) -> list[str]:
    """The tokens of a field: TOKEN, {"content": TOKEN, ..}, a list of these, or {NAME: one of these}."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [value["content"]] if "content" in value else list(value.values())
    return [token for part in value for token in _strings(part)] if isinstance(value, list) else []


def _ids(name: str, value: object) -> set[int]:
    if type(value) is int:
        return {value}
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return set()
    if name == "forced_decoder_ids":
        value = [pair[1:] for pair in value if isinstance(pair, list)]
    return {id for part in value for id in _ids("", part)}


def _mapped(name: str, value: Any, new_ids: Mapping[int, int]) -> Any:
    if type(value) is int:
        return new_ids.get(value, value)
    if isinstance(value, dict):
        return {key: _mapped("", part, new_ids) for key, part in value.items()}
    if not isinstance(value, list):
        return value
    if name == "forced_decoder_ids":
        return [[*pair[:1], *_mapped("", pair[1:], new_ids)] if isinstance(pair, list) else pair for pair in value]
    return [_mapped("", part, new_ids) for part in value]


def _sequence(name: str, entry: Any, new_ids: Mapping[int, int]) -> Any:
    """An entry of a field of `_SEQUENCES`: ids, lists of ids, or [ids, bias]; None if an id is gone."""
    if type(entry) is int:
        return new_ids.get(entry)
    if not isinstance(entry, list):
        return entry
    bias = entry[1:] if name == "sequence_bias" else []
    parts = [_sequence("", part, new_ids) for part in entry[: len(entry) - len(bias)]]
    return None if None in parts else [*parts, *bias]
