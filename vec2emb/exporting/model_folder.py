"""What the folders of other libraries have in common, and the one writer of them; `huggingface` and `model2vec` have
what is their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..bundle.manifest import canonical
from ..bundle.reader import DTYPES
from ..errors import InputError, OutputError, Vec2embWarning
from ..io.atomic import new_file
from ..io.filesystem import write_file
from ..io.progress import Progress
from ..safetensors_files.header import TensorInfo, encode_header, read_header
from ..typed import Json
from . import words
from .model_card import card_of
from .part import Part
from .result import Export

MODEL, TOKENIZER = "model.safetensors", "tokenizer.json"
CARD = "README.md"
STAYING = (CARD, ".gitattributes")  # files of the user's in a folder that is replaced


class Folder(NamedTuple):
    """What a folder holds beside its tokenizer.

    Attributes:
        name: of the layout.
        key: name of the table.
        settings: the small JSON files, from (values a row, dtype, whether texts are scaled to length 1).
        loads_in: what loads it, for people.
    """

    name: str
    key: str
    settings: Callable[[int, str, bool], dict[str, Json]]
    loads_in: str


def modules(normalize: bool) -> Json:
    """modules.json of sentence-transformers: what a text passes through."""
    steps = [(".", "StaticEmbedding"), ("1_Normalize", "Normalize")][: 1 + normalize]
    return [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(steps)
    ]


# Whatever a folder of these may hold; it is replaced as a whole.
_OURS = {MODEL, TOKENIZER, "tokenizer_config.json", "modules.json", "config_sentence_transformers.json", "config.json"}


def check_part(part: Part, layout: Folder) -> None:
    """Raise OutputError if there is no unknown token: without one these libraries stop at the first unknown word."""
    if part.unk_idx is None:
        raise OutputError(
            "unknown-token-needed", f"{layout.name} needs an unknown token: without one, an unknown word is an error",
            path=part.label, hint="convert with one, or add one: vec2emb extend BUNDLE --unk '<unk>' -o NEW",
        )  # fmt: skip


def write_folder(
    part: Part, folder: str, layout: Folder, done: Export, *, normalize: bool, card: bool, show: Progress | None
) -> None:
    """Write all files into a folder that is there, and describe them in `done`."""
    found = words.look_at(part)
    lowercase = found.lowercase
    done.dtype = part.dtype
    settings = layout.settings(part.dim, part.dtype, normalize)
    settings["tokenizer_config.json"] = words.tokenizer_config(part)
    files: dict[str, Iterable[bytes]] = {name: [_json(content)] for name, content in settings.items()}
    files[TOKENIZER] = words.tokenizer_json(part, lowercase)
    if card:
        files[CARD] = [card_of(part, layout.name, os.path.basename(os.path.abspath(done.path)), lowercase, normalize)]
    _write_table(part, os.path.join(folder, MODEL), layout, show)
    for name, pieces in files.items():
        write_file(os.path.join(folder, name), iter(pieces))
    done.notes += _notes(part, layout, lowercase, normalize)
    done.warnings += _warnings(part, found, card, done.path)


def check_target(label: str, target: str, bundle_folder: str | None, if_exists: str) -> None:
    """Raise OutputError unless the folder may be written: it is free, or an earlier one of these to be replaced."""
    if target == bundle_folder:
        raise OutputError("target-is-the-bundle", "this is the folder of the bundle itself", path=label)
    if not os.path.lexists(target):
        return
    if not os.path.isdir(target):
        raise OutputError("target-not-a-folder", "no folder stands there, but something else", path=label)
    names = os.listdir(target)
    if not names:
        return
    foreign = sorted(set(names) - _OURS - {*STAYING})
    if foreign or not _is_ours(os.path.join(target, MODEL)):
        raise OutputError(
            "target-not-an-export", "the folder holds other files than an earlier export", path=label,
            found=", ".join(foreign[:5] or [MODEL if MODEL in names else f"no {MODEL}"]),
            hint="choose another name for the output",
        )  # fmt: skip
    if if_exists == "error":
        raise OutputError(
            "target-exists", "an export is there already", path=label, hint="--if-exists replace writes it anew"
        )


def _is_ours(path: str) -> bool:
    """Whether a table was written here; one that was trained since by another library is not replaced."""
    try:
        return "vec2emb" in read_header(path).metadata
    except InputError:
        return False


def _write_table(part: Part, path: str, layout: Folder, show: Progress | None) -> None:
    name, width, _ = DTYPES[part.dtype]
    size = part.rows * part.dim * width
    facts = {"layout": layout.name, "padding_idx": part.padding_idx, "unk_idx": part.unk_idx}
    metadata = {"format": "pt", "vec2emb": canonical(facts)}
    done = 0
    with new_file(path) as file:
        file.write(encode_header({layout.key: TensorInfo(name, (part.rows, part.dim), 0, size)}, metadata))
        for start, stop in part.pieces():
            block = part.stored(start, stop)
            file.write(block)
            done += len(block)
            if show is not None:
                show(done, size)


def _json(content: Json) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _notes(part: Part, layout: Folder, lowercase: bool, normalize: bool) -> list[str]:
    """What readers make of the folder that one should know."""
    notes = [
        layout.loads_in,
        "a text is split at white space"
        + (" and made lower-case" if lowercase else "; case counts")
        + ", and its vector is the mean of its words' rows"
        + (", scaled to length 1" if normalize else ""),
        "a word without a row: sentence-transformers takes the unknown token's row into the mean, model2vec leaves the "
        "word out",
        "model2vec reads no more than the first 512 words of a text, unless told otherwise: max_length=None",
    ]
    if part.padding_idx is None:
        notes.append("there is no padding token: transformers cannot pad a batch")
    if part.manifest.dtype == "bfloat16":
        notes.append("bfloat16 is written as the float32 that it stands for, as numpy, and so model2vec, has none")
    if part.lookup == "case-fallback" or (part.lookup == "lower" and not lowercase):
        notes.append(f"the bundle's lookup, {part.lookup}, is not part of it: a word is looked up as it stands")
    if part.manifest.positions is not None:
        notes.append("the bundle's positions are not part of it")
    if part.manifest.scale is not None:
        notes.append("the bundle's scale is not part of it")
    return notes


def _warnings(part: Part, found: words.Findings, card: bool, label: str) -> list[Vec2embWarning]:
    warned = []
    if found.unmatched:
        text = (
            f"{label}: {found.unmatched:,} token{'' if found.unmatched == 1 else 's'} that no text gives, as it is cut "
            f"at white space and at special tokens: {found.named()}"
        )
        warned.append(Vec2embWarning("unmatched-tokens", text, count=found.unmatched, path=label))
    if card and not (part.manifest.source and part.manifest.source.license):
        text = f"{label}: the model card names no licence, as the bundle records none; convert with --license SPDX"
        warned.append(Vec2embWarning("card-without-license", text, path=label))
    return warned
