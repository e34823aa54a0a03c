"""Folders of sentence-transformers and model2vec whose model is a table of word vectors.

    model2vec               model.safetensors (`embeddings`; perhaps `mapping` and `weights`), tokenizer.json
    StaticEmbedding         modules.json; in its first module's folder model.safetensors (`embedding.weight` or
                            `embeddings`) and tokenizer.json
    WordEmbeddings          modules.json; in its first module's folder model.safetensors (`emb_layer.weight`) and
                            whitespacetokenizer_config.json

Any other model makes vectors of sentences in context, so that a word has none of its own. Tensors in pickles
(`pytorch_model.bin`) are not opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from ...errors import FormatError, InputError, shown
from ...io.filesystem import identity
from ...safetensors_files.dtypes import FLOATS, widen_bfloat16
from ...safetensors_files.header import TensorInfo, read_header
from ...typed import Json
from ...words.vocabulary import Vocabulary
from ...words.word_list import WordList, read_words
from .arrays import FileArray, Lines, pieces_of
from .source import MatrixSource, changed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MODEL, _TOKENIZER, _MODULES = "model.safetensors", "tokenizer.json", "modules.json"
_WORDS = "whitespacetokenizer_config.json"
_KEYS = ("embedding.weight", "embeddings", "emb_layer.weight")
_STATIC = {"StaticEmbedding": _TOKENIZER, "WordEmbeddings": _WORDS}  # module: where its words are
_TYPES = {**FLOATS, "I8": "|i1", "U8": "|u1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}


class _Parts(NamedTuple):
    """Which library's folder it is, and its two files."""

    format: str
    model: str
    words: str


class FolderSource(MatrixSource):
    """The table of a folder and the tokens of its tokenizer."""

    def __init__(self, path: str) -> None:
        parts = _find(path)
        words = _read(parts.words)
        try:
            self._descriptor = os.open(parts.model, os.O_RDONLY)
        except OSError as error:
            raise InputError(
                "cannot-open", f"the file cannot be opened ({error.strerror})", path=parts.model
            ) from error
        try:
            self._open(path, parts, words)
        except BaseException:
            os.close(self._descriptor)
            raise

    def _open(self, path: str, parts: _Parts, words: WordList) -> None:
        self._identity = identity(self._descriptor)
        header = read_header(self._descriptor, path=parts.model)
        self._start, self._model = header.data_start, parts.model
        key = next((key for key in _KEYS if key in header.tensors), None)
        tensor = header.tensors[key] if key is not None else None
        if tensor is None or len(tensor.shape) != 2 or tensor.dtype not in _TYPES or tensor.shape[1] < 1:
            listed = [f"{name} {one.dtype}{list(one.shape)}" for name, one in header.tensors.items()]
            raise FormatError(
                "folder-table", "there is no table of vectors", path=parts.model, expected=" or ".join(_KEYS),
                found=", ".join(listed) or "none",
            )  # fmt: skip
        mapping, weights = header.tensors.get("mapping"), header.tensors.get("weights")
        rows = next(iter((tensor if mapping is None else mapping).shape), 0)  # a scalar is refused as a column
        name = os.path.basename(os.path.abspath(path))
        super().__init__(path, name, parts.format, rows, tensor.shape[1], tensor.stop - tensor.start, "of the tensor")
        self._mapping = None if mapping is None else self._column(mapping, "mapping", "iu")
        self._weights = None if weights is None else self._column(weights, "weights", "f")
        if len(words.vocab) != rows:
            raise FormatError(
                "folder-words", f"words and rows differ in number, in {os.path.basename(parts.words)} and {_MODEL}",
                path=path, expected=f"{rows} words", found=str(len(words.vocab)),
            )  # fmt: skip
        self._bfloat16 = tensor.dtype == "BF16"
        self._table = self._array(tensor)
        if (
            self._mapping is not None
            and len(self._mapping)
            and not 0 <= self._mapping.min() <= self._mapping.max() < tensor.shape[0]
        ):
            raise FormatError("folder-table", "the mapping names rows that are not there", path=parts.model,
                              expected=f"0 .. {tensor.shape[0] - 1}")  # fmt: skip
        self.value_bytes = {"F16": 2, "F64": 8}.get(tensor.dtype, 4) if weights is None else 8
        self.pad, self.unk = words.own_specials() if words.has_ids else (words.pad, words.unk)
        self.keeps_padding = True
        self.facts = {"tensor": key, "dtype": tensor.dtype}
        self._lines = Lines(pieces_of(words.vocab.blob), parts.words)

    def words(self, count: int) -> list[bytes]:
        return self._lines.take(count)

    def block(self, first: int, count: int, wanted: Sequence[int], words: Sequence[bytes]) -> NDArray[np.generic]:
        import numpy as np

        if self._mapping is None:
            block = self._widened(self._table.block(first, count, wanted))
        else:
            block = np.empty((count, self.dim), np.float32 if self._bfloat16 else self._table.dtype)
            for row in wanted:
                place = int(self._mapping[first + row])
                block[row] = self._widened(self._table.block(place, 1, range(1)))[0]
        return block if self._weights is None else self._weighted(block, first, wanted, self._weights)

    def _weighted(
        self, block: NDArray[np.generic], first: int, wanted: Sequence[int], weights: NDArray[np.generic]
    ) -> NDArray[np.float64]:
        """The rows that are wanted, times their weights; whoever rounds them sees what float32 does not hold."""
        import numpy as np

        places = np.asarray(wanted, np.int64)
        with np.errstate(over="ignore", invalid="ignore"):  # such values are faults of their rows
            products = block[places].astype(np.float64) * weights[first + places, None].astype(np.float64)
        # What not even float64 holds is too large all the same, and none of the infinite values that a policy takes.
        beyond = np.isinf(products) & np.isfinite(block[places]) & np.isfinite(weights[first + places, None])
        products[beyond] = np.copysign(np.finfo(np.float64).max, products[beyond])
        weighted = np.empty(block.shape)
        weighted[places] = products
        return weighted

    def _widened(self, block: NDArray[np.generic]) -> NDArray[np.generic]:
        return widen_bfloat16(block) if self._bfloat16 else block

    def _array(self, tensor: TensorInfo) -> FileArray:
        import numpy as np

        rows, dim = tensor.shape if len(tensor.shape) == 2 else (1, tensor.shape[0])
        return FileArray(
            self._descriptor, self._start + tensor.start, rows, dim, np.dtype(_TYPES[tensor.dtype]), self._model
        )

    def _column(self, tensor: TensorInfo, name: str, kinds: str) -> NDArray[np.generic]:
        """A small tensor of one value a word."""
        import numpy as np

        if tensor.shape != (self.rows,) or np.dtype(_TYPES.get(tensor.dtype, "O")).kind not in kinds:
            raise FormatError(
                "folder-table", f"{name} is not one number a word", path=self._model, expected=f"[{self.rows}]",
                found=f"{tensor.dtype}{list(tensor.shape)}",
            )  # fmt: skip
        if not self.rows:
            return np.empty(0, np.int64)
        column: NDArray[np.generic] = self._array(tensor).block(0, 1, range(1))[0]
        return column

    def check_unchanged(self) -> None:
        if identity(self._descriptor) != self._identity:
            raise changed(self._model)

    def close(self) -> None:
        os.close(self._descriptor)


def _find(path: str) -> _Parts:
    """The files of a folder.

    Raises:
        InputError: it is none of those known, or a part is missing.
    """
    try:
        listed = set(os.listdir(path))
    except OSError as error:
        raise InputError("cannot-open", f"the folder cannot be opened ({error.strerror})", path=path) from error
    if _MODULES in listed:
        module, folder = _first_module(os.path.join(path, _MODULES))
        kind = module.rpartition(".")[2]
        if kind not in _STATIC:
            raise FormatError(
                "is-contextual", "the model makes vectors of text in context: no word has one of its own", path=path,
                expected=" or ".join(_STATIC), found=shown(module),
            )  # fmt: skip
        parts = _Parts(
            "sentence-transformers", os.path.join(path, folder, _MODEL), os.path.join(path, folder, _STATIC[kind])
        )
    elif _MODEL in listed or _TOKENIZER in listed:
        parts = _Parts("model2vec", os.path.join(path, _MODEL), os.path.join(path, _TOKENIZER))
    else:
        raise InputError(
            "is-a-folder", "this is a folder, not a file of vectors", path=path,
            hint="a bundle, or a folder of sentence-transformers or model2vec, would do",
        )  # fmt: skip
    for part in parts[1:]:
        if not os.path.isfile(part):
            pickled = part == parts.model and os.path.exists(os.path.join(os.path.dirname(part), "pytorch_model.bin"))
            raise InputError(
                "folder-incomplete", "a part of the folder is missing", path=path,
                expected=os.path.relpath(part, path), found="pytorch_model.bin, a pickle" if pickled else None,
                hint="load the model and save it again as safetensors" if pickled else "get all of it again",
            )  # fmt: skip
    return parts


def _first_module(path: str) -> tuple[str, str]:
    """Type and folder of the first module of a modules.json."""
    modules = _json(path)
    first = modules[0] if isinstance(modules, list) and modules else None
    kind, folder = (first.get("type"), first.get("path")) if isinstance(first, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(folder, str):
        raise FormatError(
            "folder-modules", "the first module is not described", path=path, expected='"type" and "path"'
        )
    if os.path.isabs(folder) or ".." in folder.split("/"):
        raise FormatError(
            "folder-modules", "the first module lies outside of the folder", path=path, found=shown(folder)
        )
    return kind, folder


def _read(path: str) -> WordList:
    if os.path.basename(path) == _TOKENIZER:
        return read_words(path)
    content = _json(path)
    words = content.get("vocab") if isinstance(content, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise FormatError("folder-words", "there is no list of words", path=path, expected='"vocab": ["word", ..]')
    # The first row of what sentence-transformers makes of a file of vectors is padding.
    pad = "PADDING_TOKEN" if words[:1] == ["PADDING_TOKEN"] else None
    return WordList(Vocabulary(cast("list[str]", words)), os.path.basename(path), pad)


def _json(path: str) -> Json:
    try:
        with open(path, "rb") as file:
            content: Json = json.loads(file.read())
            return content
    except OSError as error:
        raise InputError("cannot-open", f"the file cannot be opened ({error.strerror})", path=path) from error
    except (ValueError, RecursionError) as error:
        raise FormatError("folder-modules", f"the file is no JSON ({shown(str(error), 100)})", path=path) from error
