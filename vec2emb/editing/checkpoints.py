"""Learned position tables of safetensors checkpoints made longer or shorter; all other tensors copied byte for byte.

A checkpoint is a folder with its `config.json`, one safetensors file, or shards with their `*.index.json`. Only the
position tables are ever in memory, so its size does not matter. The result stands complete at its place or not at all.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, OutputError, UsageError, Vec2embError, shown
from ..io.atomic import AtomicOutput, new_file, place_of
from ..io.filesystem import writing
from ..positions import Float64, Matrix, facts, key_styles, resize
from ..safetensors_files.dtypes import FLOATS, widen_bfloat16
from ..safetensors_files.header import BITS, TensorInfo, encode_header, pieces, reading
from ..typed import JsonReport, ModelSettings
from .checkpoint_files import Checkpoint, Shard, open_checkpoint, read_json

CONFIG, TOKENIZER = "config.json", "tokenizer_config.json"

Fresh = dict[str, tuple[TensorInfo, Iterable[bytes]]]

_NO_LIMIT = 10**12  # tokenizers without a limit say 10^30
_LEFT_OUT_FOLDERS = (".git", ".cache")
# The same weights in other formats: with the old table they would contradict the new configuration.
_OTHER_WEIGHTS = (
    "pytorch_model*.bin*",
    "tf_model*.h5*",
    "flax_model*.msgpack*",
    "rust_model.ot",
    "*.onnx",
    "*.onnx_data",
)


class ResizedTable(NamedTuple):
    """One table: its key, the file it is in, its type, the rows in front, and its usable positions before and after."""

    key: str
    file: str
    dtype: str
    offset: int
    before: int
    after: int


class Change(NamedTuple):
    """One value of a JSON file."""

    file: str
    field: str
    before: int
    after: int


class Resized(NamedTuple):
    """What `resize_positions` did.

    Attributes:
        tables: what was resized.
        dropped: tensors that were not copied.
        changes: settings that follow from the new length.
        copied: files that are the same in both.
        notes: what a reader should know, one sentence each.
    """

    checkpoint: str
    out: str
    method: str | None
    tables: tuple[ResizedTable, ...]
    dropped: tuple[str, ...]
    changes: tuple[Change, ...]
    copied: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        tables, changes = ([one._asdict() for one in items] for items in (self.tables, self.changes))
        return {**self._asdict(), "tables": tables, "changes": changes}


class _Length(NamedTuple):
    """A maximum length in a configuration: its dotted name, the part that has it, its name in there."""

    field: str
    part: ModelSettings
    name: str


def resize_positions(
    checkpoint: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    to: int,
    method: str | None = None,
    key: str | None = None,
    offset: int | None = None,
    replace: bool = False,
    **details: Any,
) -> Resized:
    """Write a checkpoint whose learned position tables have `to` usable positions.

    All tables with a known name are resized (BART has two), or the one called `key`. Stored `position_ids` are dropped,
    and the maximum length is updated in `config.json` and `tokenizer_config.json`.

    Args:
        checkpoint: a folder, a safetensors file, or the index of a sharded one.
        out: a folder where the checkpoint is one, else a file.
        offset: rows in front of the first position; by default what the configuration says, or else the names.
        method, details: as in `positions.resize`.
        replace: whether an earlier checkpoint at `out` may be replaced.

    Raises:
        InputError: the checkpoint is damaged, has no such table, or contradicts its configuration.
        UsageError: the method cannot give this length, or the checkpoint is a bundle.
        OutputError: `out` is taken or cannot be written.
        TryAgainError: another run is writing to `out`.
    """
    source = open_checkpoint(os.fspath(checkpoint))
    target = place_of(out) if source.folder is None else os.path.realpath(out)
    notes: list[str] = []
    tables: list[ResizedTable] = []
    fresh: Fresh = {}
    for name, at in find_tables(source, key):
        info, table = load_table(source.shards[at], name)
        front = reserved_rows(source, name, table, notes) if offset is None else offset
        try:
            new = resize(table, to, method=method, offset=front, **details)
            data = _encode(new, info.dtype)
        except (InputError, UsageError) as error:
            error.path, error.message = source.shards[at].path, f"{name}: {error.message}"
            raise
        fresh[name] = TensorInfo(info.dtype, new.shape, 0, len(data)), [data]
        tables.append(ResizedTable(name, at, info.dtype, front, len(table) - front, to))
        if presets := facts(table).presets:
            notes.append(f"{name} is a sinusoidal table ({presets[0]}): its formula gives any length without resizing")
    dropped = tuple(name for name, _ in source.names() if key_styles.is_position_ids(name))
    notes += [f"{name} was left out: models make it themselves" for name in dropped]

    edits = _Edits()
    _edit_config(edits, source, tables, notes)
    if source.folder is None:
        notes += [f"{change.field} of the model's {CONFIG} has to become {change.after}" for change in edits.changes]
        edits = _Edits()
    else:
        _edit_tokenizer(edits, source.folder, to)
        if source.index_name is not None:
            _edit_index(edits, source, os.path.join(source.folder, source.index_name), fresh, dropped)
    rewritten = [at for at, shard in source.shards.items() if {*fresh, *dropped} & shard.header.tensors.keys()]
    copied = other_files(source.folder, {*rewritten, *edits.texts}, notes)
    produced = {*rewritten, *edits.texts, *copied}

    def check() -> None:
        check_target(source.folder, target, produced, replace)

    label = os.fspath(out)
    files = {rewritten[0]: target} if source.folder is None else None
    with AtomicOutput(target, label, check, files=files) as output, writing(label):
        for at in rewritten:
            write_shard(source.shards[at], fresh, dropped, output.path(at))
        for file, content in edits.texts.items():
            with new_file(output.path(file)) as stream:
                stream.write(json.dumps(content, indent=2).encode() + b"\n")
        for file in copied:
            copy_file(os.path.join(source.folder or "", file), output.path(file))
        output.publish()
    done = tuple(tables), dropped, tuple(edits.changes), tuple(copied), tuple(notes)
    return Resized(source.label, label, method, *done)


def find_tables(source: Checkpoint, key: str | None) -> list[tuple[str, str]]:
    """The keys of the tables to resize, with their files."""
    known = [
        (name, at)
        for name, at in source.names()
        if key_styles.is_position_table(name) and len(source.shards[at].header.tensors[name].shape) == 2
    ]
    found = known if key is None else [(name, at) for name, at in source.names() if name == key]
    if not found:
        like = [name for name, _ in known] or [name for name, _ in source.names() if "pos" in name or "wpe" in name][:5]
        raise InputError(
            "no-position-table",
            "there is no position table with a known name" if key is None else f"there is no tensor {shown(key)}",
            path=source.label,
            hint=f"--key names one; perhaps {', '.join(map(shown, like))}" if like else "--key names one",
        )
    return found


def load_table(shard: Shard, key: str) -> tuple[TensorInfo, Matrix]:
    """A table: float64[rows, dim] where it is bfloat16, else of its own type."""
    info = shard.header.tensors[key]
    if info.dtype not in FLOATS or len(info.shape) != 2:
        raise InputError(
            "not-a-table",
            f"{shown(key)} is no position table",
            path=shard.path,
            expected=f"{', '.join(FLOATS)} of shape [rows, dim]",
            found=f"{info.dtype} of shape {list(info.shape)}",
        )
    start = shard.header.data_start
    with reading(shard.path, shard.identity) as descriptor:
        data = b"".join(pieces(descriptor, start + info.start, start + info.stop, path=shard.path))
    table: Matrix = np.frombuffer(data, FLOATS[info.dtype]).reshape(info.shape)
    if info.dtype == "BF16":
        table = widen_bfloat16(table).astype(np.float64)
    return info, table


def _encode(table: Matrix, dtype: str) -> bytes:
    """The bytes of a table, which has the type already unless that is bfloat16."""
    if dtype != "BF16":
        return table.astype(FLOATS[dtype], copy=False).tobytes()
    return bfloat16_bits(table.astype(np.float64)).tobytes()


def bfloat16_bits(values: Float64) -> NDArray[np.uint16]:
    """The nearest bfloat16 of float64 values, ties to even: `uint16` of the same shape.

    The step through float32 rounds to odd, so that the value is rounded but once (Boldo and Melquiond, 2008).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(np.float32)
        bits = single.view(np.uint32).copy()
        bits -= np.abs(single) > np.abs(values)  # back to the neighbour nearer zero
        bits |= (single != values) & ~np.isnan(values)
    bits += ((bits >> 16) & 1) + np.uint32(0x7FFF)
    result = (bits >> 16).astype("<u2")
    result[np.isnan(values)] = 0x7FC0
    return result


def reserved_rows(source: Checkpoint, key: str, table: Matrix, notes: list[str]) -> int:
    """The rows in front of the first position, from the best evidence there is."""
    lengths = _lengths(source.config, key)
    part = lengths[0].part if lengths else source.config
    if part.get("model_type") in key_styles.PADDED_TYPES:
        last = part.get("pad_token_id")
        return (last if type(last) is int and last >= 0 else key_styles.PADDED_DEFAULT) + 1
    if lengths:
        front = len(table) - int(part[lengths[0].name])
        # All rows are positions, or two more are there (BART, OPT): nothing else is known.
        if front in (0, 2):
            return front
        raise InputError(
            "length-mismatch",
            f"{key} and the configuration disagree on {lengths[0].field}",
            path=source.label,
            expected=f"{part[lengths[0].name]} rows, or 2 more",
            found=str(len(table)),
            hint="--offset says how many rows stand in front of the first position",
        )
    metadata = next(shard.header.metadata for shard in source.shards.values() if key in shard.header.tensors)
    suffix = key_styles.known_suffix(key)
    padding = metadata.get("padding_idx", "")
    if padding.isdecimal() and len(padding) < 10:
        front, why = int(padding) + 1, "as its metadata say"
    elif not key_styles.PADDED_PREFIXES.isdisjoint(name.split(".")[0] for name, _ in source.names()):
        front, why = key_styles.PADDED_DEFAULT + 1, "as its keys suggest"
    elif len(table) > 2 and table[0].any() and not table[key_styles.PADDED_DEFAULT].any():
        front, why = key_styles.PADDED_DEFAULT + 1, "because row 1 is zero"
    else:
        front, why = key_styles.KNOWN_POSITIONS[suffix] if suffix else 0, "as models with this key have it"
    notes.append(
        f"{key}: without a configuration, {front} rows in front of the first position, {why}; --offset overrides"
    )
    return front


def _lengths(config: ModelSettings, key: str) -> list[_Length]:
    """The settings that have to follow the length of a table."""
    parts = key.split(".")
    name = "text_config" if "text_model" in parts else parts[0] if parts[0] in ("encoder", "decoder") else ""
    part = config.get(name)
    if not isinstance(part, dict):
        name, part = "", config
    for side, names in key_styles.LENGTH_FIELDS.items():
        fields = [field for field in names if type(part.get(field)) is int]
        if fields and (not side or side in parts):
            same = [field for field in fields if part[field] == part[fields[0]]]
            return [_Length(f"{name}.{field}".removeprefix("."), part, field) for field in same]
    return []


class _Edits:
    """JSON files that change, as they will be, and a record of every change."""

    def __init__(self) -> None:
        self.texts: dict[str, ModelSettings] = {}
        self.changes: list[Change] = []

    def put(self, file: str, content: ModelSettings, part: ModelSettings, field: str, after: int) -> None:
        """Set the last name of the dotted `field` in `part` of the file's content."""
        name = field.split(".")[-1]
        if part[name] != after:
            self.changes.append(Change(file, field, part[name], after))
            part[name] = after
            self.texts[file] = content


def _edit_config(edits: _Edits, source: Checkpoint, tables: Sequence[ResizedTable], notes: list[str]) -> None:
    done: set[str] = set()
    for table in tables:
        for field, part, name in _lengths(source.config, table.key):
            if field not in done:
                done.add(field)
                # Whether it counts the rows in front or not, it grows by as many as the table.
                edits.put(CONFIG, source.config, part, field, int(part[name]) + table.after - table.before)
    for key, _ in source.names():
        others = key_styles.is_position_table(key) and key not in {table.key for table in tables}
        if others and any(length.field in done for length in _lengths(source.config, key)):
            notes.append(f"{key} keeps its length, though {CONFIG} has one number for both")


def _edit_tokenizer(edits: _Edits, folder: str, to: int) -> None:
    tokenizer = read_json(os.path.join(folder, TOKENIZER)) or {}
    limit = tokenizer.get("model_max_length")
    if type(limit) is int and limit < _NO_LIMIT:
        edits.put(TOKENIZER, tokenizer, tokenizer, "model_max_length", to)


def _edit_index(edits: _Edits, source: Checkpoint, path: str, fresh: Fresh, dropped: Sequence[str]) -> None:
    file = os.path.basename(path)
    index = read_json(path) or {}
    old = {key: source.shards[at].header.tensors[key] for key, at in source.names()}
    more_bytes = sum(info.stop - (old[key].stop - old[key].start) for key, (info, _) in fresh.items())
    more = {
        "total_size": more_bytes - sum(old[key].stop - old[key].start for key in dropped),
        "total_parameters": sum(math.prod(info.shape) - math.prod(old[key].shape) for key, (info, _) in fresh.items()),
    }
    totals: Any = index.get("metadata")
    for name in more:
        if isinstance(totals, dict) and type(totals.get(name)) is int:
            edits.put(file, index, totals, f"metadata.{name}", totals[name] + more[name])
    for key in dropped:
        if index["weight_map"].pop(key, None) is not None:
            edits.texts[file] = index


def other_files(folder: str | None, rewritten: set[str], notes: list[str]) -> list[str]:
    """The files of a folder that are copied as they are, relative to it."""
    if folder is None:
        return []
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT_FOLDERS)
        for name in sorted(names):
            path = os.path.join(root, name)
            file = os.path.relpath(path, folder)
            if file in rewritten:
                continue
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in _OTHER_WEIGHTS):
                notes.append(f"{file} was left out: it has the old table")
            elif not os.path.isfile(path):
                notes.append(f"{file} was left out: it is no file")
            else:
                found.append(file)
    return found


def check_target(
    folder: str | None,
    target: str,
    produced: set[str],
    replace: bool,
    opens: Callable[[str], object] = open_checkpoint,
) -> None:
    """Refuse a target that is taken, unless it is an earlier checkpoint all of whose files come anew.

    `folder` is that of the source, or None for a file; `opens` raises if the target is not an earlier checkpoint.
    """
    if folder is not None and target.startswith(os.path.join(os.path.realpath(folder), "")):
        raise UsageError(
            "output-inside", "the output is inside the checkpoint", path=target, hint="choose another place"
        )
    is_folder = os.path.isdir(target)
    if not os.path.lexists(target) or (is_folder and folder is not None and not os.listdir(target)):
        return
    if not replace:
        raise OutputError("target-exists", "something is there already", path=target, hint="choose another name")
    there = {os.path.relpath(os.path.join(root, name), target) for root, _, names in os.walk(target) for name in names}
    kept = sorted(there - produced)
    if is_folder != (folder is None) and not kept:
        with contextlib.suppress(Vec2embError):
            opens(target)
            return
    raise OutputError(
        "target-not-replaceable",
        "only a checkpoint can be replaced, and only if no other file would be lost",
        path=target,
        found=f"{shown(kept[0])} there" if kept else None,
        hint="choose another name",
    )


def write_shard(shard: Shard, fresh: Fresh, dropped: Sequence[str], path: str) -> None:
    """Write a file anew: some tensors from memory, some not at all, the others copied."""
    old = {name: info for name, info in shard.header.tensors.items() if name not in dropped}
    # Wide types first, as other writers have it, so that every tensor stays aligned whatever changed before it.
    order = sorted(old, key=lambda name: (-BITS[old[name].dtype], old[name].start))
    tensors: dict[str, TensorInfo] = {}
    end = 0
    for name in order:
        info = fresh[name][0] if name in fresh else old[name]
        tensors[name] = TensorInfo(info.dtype, info.shape, end, end := end + info.stop - info.start)
    with reading(shard.path, shard.identity) as descriptor, new_file(path) as stream:
        stream.write(encode_header(tensors, shard.header.metadata))
        for name in order:
            if name in fresh:
                stream.writelines(fresh[name][1])
            else:
                start = shard.header.data_start
                stream.writelines(pieces(descriptor, start + old[name].start, start + old[name].stop, path=shard.path))


def copy_file(source: str, path: str) -> None:
    with reading(source) as descriptor, new_file(path) as stream:
        stream.writelines(pieces(descriptor, 0, os.fstat(descriptor).st_size, path=source))
