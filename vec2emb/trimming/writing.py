"""Writes a trimmed model into a folder: tensors, files that name ids, copies, the mapping of ids, and the record."""

from __future__ import annotations

import json
import os

import numpy as np

from ..editing.checkpoint_files import read_json
from ..editing.checkpoints import Fresh, copy_file, write_shard
from ..io.atomic import new_file
from ..io.filesystem import sha256_of
from ..safetensors_files.header import reading
from ..typed import ModelSettings
from ..version import __version__
from .folders import MAPPING, RECORD, ModelFolder
from .rewriting import NewIds, Rewritten, encoded
from .selection import Counts
from .tables import cut_tensor

_LINES = 10_000  # of the mapping, written at a time


def write_model(model: ModelFolder, ids: NewIds, files: Rewritten, hidden: str) -> None:
    """Write everything but the mapping and the record into the folder `hidden`."""
    axes = model.vocabulary.axes
    for name, shard in model.checkpoint.shards.items():
        path = os.path.join(hidden, model.relative(name))
        fresh: Fresh = {key: cut_tensor(shard, key, axes[key], ids.rows) for key in shard.header.tensors if key in axes}
        if fresh:
            write_shard(shard, fresh, (), path)
        else:
            copy_file(shard.path, path)
    for name, content in files.contents.items():
        with new_file(os.path.join(hidden, name)) as stream:
            stream.writelines(encoded(content))
    for name in files.copied:
        copy_file(os.path.join(model.root, name), os.path.join(hidden, name))


def write_mapping(model: ModelFolder, ids: NewIds, counts: Counts, path: str) -> None:
    """Write a line per kept token, and per lost one that the corpus uses: old id, new id, count, token.

    A lost token has no new id. Tokens are JSON strings, as they may hold tabs and line feeds.
    """
    tokens = model.tokenizer.tokens
    shown = [id for id in np.flatnonzero(counts > 0).tolist() if id not in ids.by_old]
    order = sorted([*(id for id in ids.by_old if id < len(tokens)), *shown])
    with new_file(path) as stream:
        stream.write(b"old_id\tnew_id\tcount\ttoken\n")
        for start in range(0, len(order), _LINES):
            stream.write(
                "".join(
                    f"{id}\t{ids.by_old.get(id, '')}\t{counts[id]}\t{json.dumps(tokens[id], ensure_ascii=False)}\n"
                    for id in order[start : start + _LINES]
                ).encode()
            )


def write_record(model: ModelFolder, options: ModelSettings, figures: ModelSettings, path: str) -> None:
    """Write where the model comes from and how it was trimmed; nothing in it depends on machine or time."""
    before = read_json(os.path.join(model.root, RECORD)) or {}
    donor = {
        "name": os.path.basename(os.path.realpath(model.root)),
        "files": {name: _identity(os.path.join(model.root, name)) for name in _identified(model)},
    }
    earlier = before.get("donors")
    record = {
        "vec2emb": __version__,
        "donors": [donor, *(earlier if isinstance(earlier, list) else [])],
        "options": options,
        **figures,
        "mapping": MAPPING,
    }
    with new_file(path) as stream:
        stream.writelines(encoded(record))


def _identified(model: ModelFolder) -> list[str]:
    """The files that make the donor what it is: tensors, configuration and tokenizer."""
    return [*map(model.relative, sorted(model.checkpoint.shards)), model.relative("config.json"),
            model.relative("tokenizer.json")]  # fmt: skip


def _identity(path: str) -> ModelSettings:
    with reading(path) as descriptor:
        return {"bytes": os.fstat(descriptor).st_size, "sha256": sha256_of(descriptor)}
