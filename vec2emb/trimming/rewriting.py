"""The files of a trimmed model: those that name ids, rewritten, and which others are copied or left out."""

from __future__ import annotations

import fnmatch
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..editing.checkpoint_files import CONFIG, read_json
from ..editing.checkpoints import other_files
from ..errors import InputError
from ..safetensors_files.header import TensorInfo, pieces, reading
from ..typed import Json, ModelSettings
from .families import DEFAULT_IDS, model_type
from .folders import MAPPING, RECORD, TOKENIZER, ModelFolder
from .id_fields import IdChange, Sizes, named_ids, named_tokens, with_new_ids
from .tokenizer_json import TokenizerJson

ADDED, VOCAB_JSON, VOCAB_TXT, MERGES_TXT = "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt"

# Vocabularies in formats that are not rewritten; transformers does not read them beside a tokenizer.json.
_OTHER_VOCABULARIES = ("*.model", "*.spm", "*.tiktoken", "tekken.json", "encoder.json", "vocab.bpe")
_PARTS = 10_000  # of JSON, joined at a time
_DIMENSIONS = {"embedding_dimension", "word_embedding_dimension"}  # as SPLADE's pooling was configured over time
_OTHER_WEIGHTS = ("*.gguf", "*.tflite", "openvino_model*", "*.pt", "*.pth", "*.ckpt")


class NewIds(NamedTuple):
    """Old and new ids.

    Attributes:
        rows: int64[new rows], the old row of each new one; first the tokens in the order of their old ids, then rows
            without a token that the configuration names, then those that fill up the table.
        by_old: {old id: new id}.
        sizes: of the table and of the tokenizer.
    """

    rows: NDArray[np.int64]
    by_old: dict[int, int]
    sizes: Sizes


class Change(NamedTuple):
    """A value of a JSON file that changed; `field` is its dotted path."""

    file: str
    field: str
    before: Json
    after: Json


class Rewritten(NamedTuple):
    """Files as they will be, by name relative to the folder.

    Attributes:
        contents: what to write: JSON, or bytes.
        changes: what changed in JSON files of settings.
        copied: files that stay as they are.
        notes: one sentence for each file that was left out, and for each that stays behind.
    """

    contents: ModelSettings
    changes: list[Change]
    copied: list[str]
    notes: list[str]


def required_ids(model: ModelFolder) -> set[int]:
    """Return the ids that the model's files of settings name, as ids or as tokens, or take without naming them."""
    found = {id for content in model.documents.values() for id in named_ids(content, model.vocabulary.size)}
    tokens = {token for content in model.documents.values() for token in named_tokens(content)}
    found |= {model.tokenizer.ids[token] for token in tokens if token in model.tokenizer.ids}
    for _, defaults in _unsaid(model.documents.get(CONFIG, {})):
        found |= {id for id in defaults.values() if id < model.vocabulary.size}
    return found


def new_ids_of(model: ModelFolder, kept: NDArray[np.int64], multiple: int, filler: int) -> NewIds:
    """Number the kept tokens anew.

    Args:
        kept: int64[tokens], old ids in ascending order.
        multiple: the number of rows is rounded up to it.
        filler: old id whose row fills up the table.
    """
    tokens = model.tokenizer.tokens
    without_token = [id for id in sorted(required_ids(model)) if id >= len(tokens) or tokens[id] is None]
    ids = [*kept.tolist(), *without_token]
    by_old = {old: new for new, old in enumerate(ids)}
    rows = np.array(ids + [filler] * (-len(ids) % multiple), np.int64)
    before = sum(token is not None for token in tokens)
    return NewIds(rows, by_old, Sizes((model.vocabulary.size, len(rows)), (before, len(kept))))


def rewrite(model: ModelFolder, ids: NewIds) -> Rewritten:
    """Prepare all files but the tensors.

    Raises:
        InputError: a file cannot be read.
    """
    result = Rewritten({}, [], [], [])
    _rewrite_settings(model, ids, result)
    result.contents[model.relative(TOKENIZER)] = model.tokenizer.cut(ids.by_old)
    for name, follow in _VOCABULARIES.items():
        if os.path.isfile(model.path(name)):
            cut = follow(model.path(name), model.tokenizer, ids.by_old)
            if cut is None:
                result.notes.append(f"{model.relative(name)} was left out: it is not the vocabulary of {TOKENIZER}")
            else:
                result.contents[model.relative(name)] = cut
    if model.checkpoint.index_name is not None:
        result.contents[model.relative(model.checkpoint.index_name)] = _index(model, ids)
    _sort_others(model, result)
    return result


def _rewrite_settings(model: ModelFolder, ids: NewIds, result: Rewritten) -> None:
    for name, content in model.documents.items():
        changes: list[IdChange] = []
        after = with_new_ids(content, ids.by_old, ids.sizes, changes)
        if name == CONFIG:
            _write_unsaid(after, ids, changes)
        if changes:
            result.contents[model.relative(name)] = after
            result.changes.extend(Change(model.relative(name), *change) for change in changes)
    before, now = ids.sizes.table
    for file in model.scored:
        content = read_json(os.path.join(model.root, file)) or {}
        for name in _DIMENSIONS & content.keys():
            if content[name] == before != now:
                content[name] = now
                result.contents[file] = content
                result.changes.append(Change(file, name, before, now))


def _sort_others(model: ModelFolder, result: Rewritten) -> None:
    """Copy the files that are not written anew, or leave them out with a note."""
    shards = {model.relative(name) for name in model.checkpoint.shards}
    done = set(map(model.relative, _VOCABULARIES)) | {*result.contents, *shards, *model.others, RECORD, MAPPING}
    result.notes.extend(f"{file} was left out: it has the old table" for file in model.others)
    for file in other_files(model.root, done, result.notes):
        name = os.path.basename(file)
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in _OTHER_WEIGHTS):
            result.notes.append(f"{file} was left out: it has the old table")
        elif file == model.relative(name) and any(fnmatch.fnmatchcase(name, one) for one in _OTHER_VOCABULARIES):
            result.notes.append(f"{file} was left out: it has the old vocabulary, and {TOKENIZER} is read instead")
        else:
            result.copied.append(file)


def encoded(content: object) -> Iterator[bytes]:
    """Yield the bytes of a file: JSON, unless it is bytes already."""
    if isinstance(content, bytes):
        yield content
        return
    # A tokenizer of 250,000 tokens has millions of parts, which are not collected as `json.dumps` does.
    parts = json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(content)
    while batch := "".join(islice(parts, _PARTS)):
        yield batch.encode()
    yield b"\n"


def _unsaid(config: ModelSettings) -> list[tuple[str, dict[str, int]]]:
    """The parts of a configuration, by name, with the ids that their family takes because they have none."""
    return [
        (name, {field: id for field, id in DEFAULT_IDS.get(model_type(part), {}).items() if field not in part})
        for name, part in (("", config), ("text_config", config.get("text_config")))
        if isinstance(part, dict)
    ]


def _write_unsaid(config: ModelSettings, ids: NewIds, changes: list[IdChange]) -> None:
    """Write the settings that were left to the defaults of the family and are others now."""
    for name, defaults in _unsaid(config):
        for field, id in defaults.items():
            if ids.by_old.get(id, id) != id:
                _set(config, name, field, ids.by_old[id], changes)
    name = "text_config" if isinstance(config.get("text_config"), dict) else ""
    if "vocab_size" not in config and "vocab_size" not in (config[name] if name else {}):
        _set(config, name, "vocab_size", ids.sizes.table[1], changes)


def _set(config: ModelSettings, part: str, field: str, value: int, changes: list[IdChange]) -> None:
    (config[part] if part else config)[field] = value
    changes.append(IdChange(f"{part}.{field}".removeprefix("."), None, value))


def _index(model: ModelFolder, ids: NewIds) -> ModelSettings:
    """The index of shards with the new totals."""
    index: ModelSettings = read_json(model.path(model.checkpoint.index_name or "")) or {}
    totals = index.get("metadata")
    if isinstance(totals, dict):
        gone, values = 0, 0
        for key, at in model.checkpoint.names():
            if key in model.vocabulary.axes:
                info: TensorInfo = model.checkpoint.shards[at].header.tensors[key]
                width = (info.stop - info.start) // max(1, model.vocabulary.size)
                fewer = model.vocabulary.size - len(ids.rows)
                gone += width * fewer
                values += fewer * math.prod(info.shape) // max(1, model.vocabulary.size)
        for name, difference in (("total_size", gone), ("total_parameters", values)):
            if type(totals.get(name)) is int:
                totals[name] -= difference
    return index


def _bytes_of(path: str) -> bytes:
    with reading(path) as descriptor:
        return b"".join(pieces(descriptor, 0, os.fstat(descriptor).st_size, path=path))


def _text_of(path: str) -> str:
    try:
        return _bytes_of(path).decode()
    except UnicodeDecodeError as error:
        raise InputError("invalid-utf8", "the text is not UTF-8", path=path, offset=error.start) from None


def _follow_json(path: str, tokenizer: TokenizerJson, new_ids: Mapping[int, int]) -> Any:
    """vocab.json and added_tokens.json: {token: id}; None if it is not about the ids of the tokenizer."""
    content = read_json(path) or {}
    if any(tokenizer.ids.get(token, id) != id or token not in tokenizer.ids for token, id in content.items()):
        return None
    return {token: new_ids[id] for token, id in content.items() if id in new_ids}


def _follow_lines(path: str, tokenizer: TokenizerJson, new_ids: Mapping[int, int]) -> bytes | None:
    """vocab.txt: line i is the token of id i."""
    lines = [line.removesuffix("\r") for line in _text_of(path).removesuffix("\n").split("\n")]
    if lines != tokenizer.tokens[: len(lines)]:
        return None
    return "".join(f"{line}\n" for id, line in enumerate(lines) if id in new_ids).encode()


def _follow_merges(path: str, tokenizer: TokenizerJson, new_ids: Mapping[int, int]) -> bytes | None:
    """merges.txt: a pair per line, after a line with the version."""
    lines = [line for line in _text_of(path).split("\n") if line]
    head = [line for line in lines[:1] if line.startswith("#version")]
    if lines[len(head) :] != [" ".join(pair) for pair in tokenizer.merges(range(len(tokenizer.tokens)))]:
        return None
    return "".join(f"{line}\n" for line in [*head, *map(" ".join, tokenizer.merges(new_ids))]).encode()


_VOCABULARIES: dict[str, Callable[[str, TokenizerJson, Mapping[int, int]], Any]] = {
    ADDED: _follow_json,
    VOCAB_JSON: _follow_json,
    VOCAB_TXT: _follow_lines,
    MERGES_TXT: _follow_merges,
}
"""The files of slow tokenizers that follow, with what cuts them."""
