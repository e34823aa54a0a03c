"""The files of a safetensors checkpoint and the headers in them: a folder, one file, or shards with their index.

folder = config.json model.safetensors ..                     or, if it is sharded,
         config.json model.safetensors.index.json SHARD ..
index  = {"metadata": {"total_size": BYTES}, "weight_map": {"KEY": "SHARD", ..}}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import InputError, UsageError, shown
from ..io.filesystem import Identity, identity
from ..safetensors_files.header import Header, pieces, read_header, reading

MODEL, CONFIG, BUNDLE = "model.safetensors", "config.json", "vec2emb.json"
INDEX = ".safetensors.index.json"


class Shard(NamedTuple):
    """One file: its path, its header, and what tells that it has not changed since the header was read."""

    path: str
    header: Header
    identity: Identity


class Checkpoint(NamedTuple):
    """A checkpoint.

    Attributes:
        label: as the caller gave it.
        folder: where it is, or None for a single file.
        index_name: the base name of the index, or None.
        shards: its files by base name.
        config: its configuration; of a single file, the one beside it; empty where there is none.
    """

    label: str
    folder: str | None
    index_name: str | None
    shards: dict[str, Shard]
    config: dict[str, Any]

    def names(self) -> Iterator[tuple[str, str]]:
        """Each key with the file it is in."""
        return ((key, at) for at, shard in self.shards.items() for key in shard.header.tensors)


def open_checkpoint(label: str) -> Checkpoint:
    """Read all headers of a folder, a file, or the shards of an index.

    Raises:
        InputError: a file is missing or damaged, or the files and their index contradict each other.
        UsageError: it is a bundle, whose other files would no longer belong to it.
    """
    is_index = label.endswith(INDEX)
    folder = label if os.path.isdir(label) else os.path.dirname(label) or os.curdir if is_index else None
    companion = f"{label.removesuffix('.safetensors')}.{BUNDLE}" if folder is None else os.path.join(folder, BUNDLE)
    if os.path.isfile(companion):
        raise UsageError("is-a-bundle", "this is a bundle, whose files belong together", path=label)
    index_name: str | None = None
    weight_map: dict[str, str] = {}
    if folder is None:
        base, files = os.path.dirname(label), [os.path.basename(label)]
    else:
        base, entry = folder, os.path.basename(label) if is_index else _entry(folder)
        files = [entry]
        if entry.endswith(INDEX):
            index_name, weight_map = entry, _weight_map(os.path.join(folder, entry))
            files = sorted(set(weight_map.values()))
    shards = {}
    for file in files:
        path = os.path.join(base, file)
        with reading(path) as descriptor:
            shards[file] = Shard(path, read_header(descriptor, path=path), identity(descriptor))
    checkpoint = Checkpoint(label, folder, index_name, shards, read_json(os.path.join(base, CONFIG)) or {})
    _check_keys(checkpoint, weight_map)
    return checkpoint


def read_json(path: str) -> dict[str, Any] | None:
    """The object in a JSON file, or None where there is no file.

    Raises:
        InputError: it is not JSON, or no object.
    """
    if not os.path.isfile(path):
        return None
    with reading(path) as descriptor:
        data = bytearray().join(pieces(descriptor, 0, os.fstat(descriptor).st_size, path=path))
    try:
        text = data.decode("utf-8-sig")
        data.clear()  # a tokenizer.json has many megabytes, and takes a multiple of them as objects
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("json-invalid", f"this is not JSON ({shown(str(error), 100)})", path=path) from error
    if not isinstance(content, dict):
        raise InputError("json-invalid", "this is no JSON object", path=path, found=type(content).__name__)
    return content


def _entry(folder: str) -> str:
    """The file of a folder to start from: its model, its index, or its only safetensors file."""
    names = sorted(os.listdir(folder))
    if MODEL in names:
        return MODEL  # as `from_pretrained` prefers it
    indexes = [name for name in names if name.endswith(INDEX)]
    files = [name for name in names if name.endswith(".safetensors")]
    if len(indexes) == 1 or (len(files) == 1 and not indexes):
        return (indexes or files)[0]
    if not files:
        raise InputError("no-checkpoint", "there is no safetensors file", path=folder, expected=MODEL)
    raise InputError(
        "checkpoint-unclear",
        "it is not clear which file is meant",
        path=folder,
        expected=f"{MODEL}, or one index",
        found=", ".join((indexes or files)[:5]),
        hint="name the file",
    )


def _weight_map(path: str) -> dict[str, str]:
    """The keys of an index with their files, which have to be in its own folder."""
    weight_map = (read_json(path) or {}).get("weight_map")
    # A name with a slash would reach out of the folder, in reading and in writing.
    if (
        not isinstance(weight_map, dict)
        or not weight_map
        or not all(isinstance(file, str) and file and os.path.basename(file) == file for file in weight_map.values())
    ):
        raise InputError("index-invalid", "this is no index", path=path, expected="a weight_map of keys to file names")
    return weight_map


def _check_keys(checkpoint: Checkpoint, weight_map: dict[str, str]) -> None:
    """Every key is in one file only, and where the index says."""
    home: dict[str, str] = {}
    for key, at in checkpoint.names():
        if home.setdefault(key, at) != at:
            found = f"{home[key]} and {at}"
            raise InputError("tensor-twice", f"{shown(key)} is in two files", path=checkpoint.label, found=found)
    for key, at in weight_map.items():
        if home.get(key) != at:
            found = home.get(key, "nowhere")
            raise InputError(
                "tensor-missing",
                f"{shown(key)} is not where the index says",
                path=checkpoint.label,
                expected=at,
                found=found,
            )
