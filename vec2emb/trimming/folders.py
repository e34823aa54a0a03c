"""A model's folder: of transformers, or of sentence-transformers with one Transformer module.

folder = config.json model.safetensors tokenizer.json ..                    transformers
       | modules.json MODULE/ ..                                            sentence-transformers
MODULE = a folder of transformers, often the folder itself, or the files of another module
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from ..editing.checkpoint_files import CONFIG, Checkpoint, open_checkpoint, read_json
from ..errors import InputError, UsageError, shown
from ..safetensors_files.header import read_header
from ..typed import ModelSettings
from .families import Vocabulary, unlisted, vocabulary_of
from .tokenizer_json import TokenizerJson

TOKENIZER, MODULES = "tokenizer.json", "modules.json"
RECORD, MAPPING = "vec2emb_trim.json", "vec2emb_trim.tsv"

# Files whose fields may name ids.
DOCUMENTS = (
    CONFIG,
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "processor_config.json",
    "preprocessor_config.json",
)


class ModelFolder(NamedTuple):
    """A model that can be trimmed.

    Attributes:
        root: the folder that was given.
        inner: the folder of the transformers model in it, relative to it; empty if it is the same.
        checkpoint: the model's tensors.
        vocabulary: which of them are over the vocabulary.
        tokenizer: its tokenizer.json.
        documents: its JSON files that may name ids, by base name.
        scored: config.json of modules whose output has a value per token (SPLADE), relative to `root`.
        others: files of other formats beside it, relative to `root`, that have tensors over the vocabulary.
    """

    root: str
    inner: str
    checkpoint: Checkpoint
    vocabulary: Vocabulary
    tokenizer: TokenizerJson
    documents: dict[str, ModelSettings]
    scored: tuple[str, ...]
    others: tuple[str, ...]

    def path(self, name: str) -> str:
        """The path of a file of the transformers model."""
        return os.path.join(self.root, self.inner, name)

    def relative(self, name: str) -> str:
        """The same, relative to the folder."""
        return os.path.join(self.inner, name)


def open_model(folder: str) -> ModelFolder:
    """Read everything but the tensors.

    Raises:
        InputError: a file is missing, damaged, or not of a kind that can be trimmed.
        UsageError: it is not a folder.
    """
    if not os.path.isdir(folder):
        raise UsageError(
            "not-a-model-folder", "the model must be a folder with config.json and tokenizer.json", path=folder,
            found="a file" if os.path.exists(folder) else "nothing",
        )  # fmt: skip
    modules = _modules(os.path.join(folder, MODULES))
    inner = _transformer(modules, folder)
    checkpoint = open_checkpoint(os.path.join(folder, inner) if inner else folder)
    vocabulary = vocabulary_of(checkpoint)
    path = os.path.join(folder, inner, TOKENIZER)
    content = read_json(path)
    if content is None:
        raise InputError(
            "no-tokenizer-json",
            "the tokenizer must be a tokenizer.json",
            path=folder,
            hint="save it with transformers: AutoTokenizer.from_pretrained(..).save_pretrained(..)",
        )
    tokenizer = TokenizerJson(content, path)
    if len(tokenizer.tokens) > vocabulary.size:
        raise InputError(
            "vocabulary-sizes",
            "the tokenizer must not have ids beyond the embedding",
            path=path,
            expected=f"ids below {vocabulary.size}",
            found=str(len(tokenizer.tokens) - 1),
        )
    documents = {name: read_json(os.path.join(folder, inner, name)) for name in DOCUMENTS}
    _check_config(documents[CONFIG] or {}, vocabulary.size, os.path.join(folder, inner, CONFIG))
    files = {os.path.join(inner, name) for name in checkpoint.shards}
    others = _other_tensors(folder, inner, files, vocabulary.size, bool(modules))
    found = {name: content for name, content in documents.items() if content is not None}
    scored = tuple(os.path.join(one["path"], CONFIG) for one in modules if _kind(one) == "SpladePooling")
    return ModelFolder(folder, inner, checkpoint, vocabulary, tokenizer, found, scored, others)


def _modules(path: str) -> list[ModelSettings]:
    """The modules of sentence-transformers; none for a folder of transformers."""
    if not os.path.isfile(path):
        return []
    try:
        with open(path, "rb") as file:
            modules = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError("json-invalid", f"this is not JSON ({shown(str(error), 100)})", path=path) from error
    if not isinstance(modules, list) or not all(
        isinstance(one, dict) and isinstance(one.get("type"), str) and isinstance(one.get("path"), str)
        for one in modules
    ):
        raise InputError("json-invalid", "modules.json must be a list of modules with type and path", path=path)
    return modules


def _transformer(modules: list[ModelSettings], folder: str) -> str:
    """The folder of the module that is a transformers model, relative to the folder."""
    if not modules:
        return ""
    found = [one["path"] for one in modules if _kind(one) in ("Transformer", "MLMTransformer")]
    if len(found) != 1 or os.path.isabs(found[0]) or ".." in found[0].split("/"):
        raise InputError(
            "no-transformer-module",
            "exactly one module must be a Transformer inside the folder",
            path=os.path.join(folder, MODULES),
            found=", ".join(shown(one["type"]) for one in modules),
        )
    inner = os.path.normpath(found[0])
    return "" if inner == os.curdir else inner


def _kind(module: ModelSettings) -> str:
    """The class of a module, without its package."""
    return str(module["type"]).rpartition(".")[2]


def _check_config(config: ModelSettings, size: int, path: str) -> None:
    """Refuse a configuration whose vocabulary is not as long as the embedding."""
    part = config.get("text_config")
    for name, content in (("vocab_size", config), ("text_config.vocab_size", part if isinstance(part, dict) else {})):
        if content.get("vocab_size", size) != size:
            raise InputError(
                "vocabulary-sizes",
                f"{name} must be the number of rows of the embedding",
                path=path,
                expected=str(size),
                found=shown(repr(content["vocab_size"])),
            )


def _other_tensors(root: str, inner: str, known: set[str], size: int, has_modules: bool) -> tuple[str, ...]:
    """Other safetensors files of the folder that have an axis as long as the vocabulary.

    Raises:
        InputError: it is a file of another module, without which the model does not work.
    """
    found = []
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(folder, name)
            file = os.path.relpath(path, root)
            if not name.endswith(".safetensors") or file in known:
                continue
            for key, info in read_header(path).tensors.items():
                if size in info.shape:
                    if has_modules and os.path.dirname(file) != inner:
                        raise unlisted(path, key, info.shape, size)
                    found.append(file)
                    break
    return tuple(found)
