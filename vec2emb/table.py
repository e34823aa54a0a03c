"""`Table`: a vocabulary and its vectors, row for row, in memory or mapped from a bundle."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .bundle import KEY, Bundle, compare_with_existing, largest, open_bundle
from .errors import BundleError, InputError, shown
from .matrices.recognition import kind_of
from .targets import target_of
from .urls import is_url, name_of, plain
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from .bundlewriter import Tensors
    from .explaining import Explanation
    from .report import Report
    from .tensorfile import TensorInfo


# What vec2emb.json says of the files themselves, and is written anew with them.
OF_FILES = ("vec2emb_version", "format_version", "key", "rows", "dim", "dtype", "files", "self_sha256")


class Table:
    """A vocabulary and its vectors; row i belongs to token i.

    Attributes:
        vocab: the `Vocabulary`, V tokens.
        vectors: float32[V, D], read-only. Of a float32 bundle they are mapped, and read only where they are used; of
            a float16 or bfloat16 one they are converted when they are first asked for.
        positions: float32[P, D], read-only, the reserved rows in front included; None for a table without positions.
        config: the content of the bundle's vec2emb.json; empty for a table in memory.
        report: what reading found, for a table made by `read_vectors`; else None.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        vectors: NDArray[np.float32],
        config: dict[str, Any] | None = None,
        positions: NDArray[np.float32] | None = None,
    ) -> None:
        self.vocab = vocab
        self.config: dict[str, Any] = config or {}
        self._positions = positions
        self.report: Report | None = None
        self._vectors: NDArray[np.float32] | None = vectors
        self._bundle: Bundle | None = None

    @classmethod
    def mapped(cls, bundle: Bundle, vocab: Vocabulary) -> Table:
        """The table of an opened bundle."""
        self = cls.__new__(cls)
        self.vocab, self.config, self.report = vocab, bundle.config, None
        self._bundle, self._vectors = bundle, None
        self._positions = None if bundle.positions is None else stored_rows(bundle, tensor=bundle.positions)
        return self

    @classmethod
    def of_arrays(cls, vocab: Vocabulary, vectors: Any) -> Table:
        """A table of an array in memory, made float32 and contiguous.

        Raises:
            InputError: the array is no [V, D] of real numbers that float32 holds.
        """
        import numpy as np

        if hasattr(vectors, "detach"):  # a torch tensor, perhaps one that requires a gradient
            vectors = vectors.detach().cpu()
            vectors = vectors.float() if "bfloat16" in str(vectors.dtype) else vectors
        try:
            array = np.asarray(vectors)
        except ValueError as error:  # rows of different lengths
            raise InputError(
                "shape-mismatch", "the vectors are no table", expected="[V, D]", found=str(error)
            ) from None
        if array.ndim != 2 or array.shape[0] != len(vocab) or array.shape[1] < 1:
            raise InputError(
                "shape-mismatch", "tokens and vectors do not fit each other", expected=f"[{len(vocab)}, D]",
                found=str(list(array.shape)), hint="one row a token",
            )  # fmt: skip
        if array.dtype.kind not in "fiu":
            raise InputError("vector-type", "the vectors are no real numbers", found=str(array.dtype))
        with np.errstate(over="ignore"):
            table = np.ascontiguousarray(array, dtype=np.float32)
        lost = np.isfinite(array) & ~np.isfinite(table) if array.dtype.kind == "f" else None
        if lost is not None and lost.any():
            row = int(np.argmax(lost.any(axis=1)))
            raise InputError(
                "out-of-range", f"row {row}, {shown(vocab.tokens[row])}, has a value that does not fit float32"
            )
        return cls(vocab, table)

    @property
    def vectors(self) -> NDArray[np.float32]:
        """float32[V, D], read-only."""
        if self._vectors is None:
            if self._bundle is None:
                raise AssertionError("a table has vectors or a bundle")
            self._vectors = stored_rows(self._bundle)
        return _read_only(self._vectors)

    @property
    def positions(self) -> NDArray[np.float32] | None:
        """float32[P, D], read-only, or None."""
        return None if self._positions is None else _read_only(self._positions)

    def stored(self) -> NDArray[Any]:
        """[V, D] in the stored type: float32, float16, or uint16 that holds the bits of bfloat16; read-only."""
        return self.vectors if self._bundle is None else raw_rows(self._bundle)

    @property
    def dim(self) -> int:
        """D."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.vocab)

    def __contains__(self, token: object) -> bool:
        return token in self.vocab

    def __getitem__(self, token: str) -> NDArray[np.float32]:
        """float32[D], a copy: the vector of a token, or the unknown's for a missing one.

        Raises:
            KeyError: the token is missing and there is no unknown token.
        """
        row: NDArray[np.float32] = self.vectors[self.vocab[token]].copy()
        return row

    def explain(self, word: str) -> Explanation:
        """Where the row of a word comes from; for a word that has none, which other spellings are there."""
        from .explaining import explain_word

        return explain_word(word, self.vocab, self.config, from_file=self.report is not None)

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Pairs of token and vector, in the order of the rows."""
        return zip(self.vocab, self.vectors, strict=True)

    def __repr__(self) -> str:
        return f"<Table {len(self)} tokens x {self.dim}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A table of a bundle is pickled as its path and opened again; any other one, whole."""
        if self._bundle is None:
            return super().__reduce_ex__(protocol)
        return _reopen, (self._bundle.location or self._bundle.target.path, self.config.get("self_sha256"))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: str | None = None,
        freeze: bool | None = None,
        if_exists: str = "error",
    ) -> None:
        """Write the table as a bundle; the arguments are those of `vec2emb.save`.

        A table that was loaded keeps what its bundle records: positions, scale, names, rows that train, where each row
        came from; dtype and freeze can be given anew.
        """
        from .bundlewriter import BundleWriter

        dtype = self.config.get("dtype", "float32") if dtype is None else dtype
        vectors, limit = self.vectors, largest(dtype)
        _refuse_values(vectors, limit, dtype, self.vocab)
        target = target_of(path)
        with target.publication(if_exists) as publication:
            with BundleWriter(publication, vectors.shape[1], dtype) as writer:
                step = max(1, (1 << 20) // (4 * vectors.shape[1]))
                for row in range(0, len(vectors), step):
                    writer.rows.write(row, vectors[row : row + step].tobytes())
                config = writer.finish(len(vectors), [bytes(self.vocab.blob)], *self._facts(freeze), self._tensors())
            if if_exists == "keep" and not target.is_free():
                compare_with_existing(target, config)
            else:
                publication.publish()

    def _tensors(self) -> Tensors:
        from .bundlewriter import Tensors

        keys = (self.config.get("positions") or {}).get("keys", ())
        return Tensors(self.config.get("key", KEY), tuple(keys), self._positions)

    def _facts(self, freeze: bool | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the tensors' metadata hold, and what vec2emb.json holds beside it."""
        from .positionplan import PositionPlan

        vocab, known = self.vocab, self.config
        positions = known.get("positions")
        train = known.get("train", "all") if freeze is None else "none" if freeze else "all"
        facts = {
            "padding_idx": vocab.padding_idx,
            "positions": None if positions is None else PositionPlan.of_recorded(positions).facts(),
            "scale": known.get("scale"),
            "train": train,
            "unk_idx": vocab.unk_idx,
        }
        details: dict[str, Any] = {
            "key_style": known.get("key_style", "plain"),
            "tied_head": known.get("tied_head"),
            "positions": positions,
            "train_rows": known.get("train_rows") if freeze is None else None,
        }
        roles = ((vocab.padding_idx, "padding"), (vocab.unk_idx, "unknown"))
        specials = [
            {"token": vocab.tokens[id], "id": id, "role": role, "init": "given"} for id, role in roles if id is not None
        ]
        details |= {"specials": specials, "source": None, "options": {}, "lookup": vocab.lookup}
        # Of a table that was loaded, the record of where each row came from is kept.
        kept = {name: known[name] for name in known if name not in {*facts, "train_rows", *OF_FILES}}
        return facts, {**details, **kept}


def _reopen(path: str, self_sha256: str | None) -> Table:
    table = load(path)
    if table.config.get("self_sha256") != self_sha256:
        raise BundleError("bundle-changed", "this is another bundle than the one that was pickled", path=path)
    return table


def _refuse_values(vectors: NDArray[np.float32], limit: float, dtype: str, vocab: Vocabulary) -> None:
    import numpy as np

    step = max(1, (1 << 22) // (4 * vectors.shape[1]))
    for start in range(0, len(vectors), step):
        block = vectors[start : start + step]
        for bad, code, what in (
            (~np.isfinite(block), "non-finite", "is not finite"),
            (np.abs(block) > limit, "out-of-range", f"does not fit {dtype}"),
        ):
            if bad.any():
                row, column = divmod(int(np.argmax(bad)), block.shape[1])
                token, value = shown(vocab.tokens[start + row]), block[row, column]
                raise InputError(
                    code, f"row {start + row}, {token}, has a value that {what}", found=f"{value} in column {column}"
                )
    pad = vocab.padding_idx
    if pad is not None and vectors[pad].any():
        column = int(np.argmax(vectors[pad] != 0))
        raise InputError(
            "padding-not-zero", f"the padding row {pad} is not zero", expected="zeros",
            found=f"{vectors[pad, column]} in column {column}",
            hint="set it to zero first; nn.Embedding does not do that to weights it is given",
        )  # fmt: skip


def _read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    view = array.view()
    view.flags.writeable = False
    return view


def raw_rows(bundle: Bundle, start: int = 0, stop: int | None = None, tensor: TensorInfo | None = None) -> NDArray[Any]:
    """Rows of a bundle as they are stored, mapped: float32, float16, or uint16 that holds the bits of bfloat16."""
    import numpy as np

    tensor = tensor or bundle.tensor
    rows, dim = tensor.shape
    count = (rows if stop is None else stop) - start
    kinds: dict[str, Any] = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
    kind = np.dtype(kinds[tensor.dtype])
    stored = np.frombuffer(
        bundle.data,
        dtype=kind,
        count=count * dim,
        offset=bundle.header.data_start + tensor.start + start * dim * kind.itemsize,
    )
    return stored.reshape(count, dim)


def stored_rows(
    bundle: Bundle, start: int = 0, stop: int | None = None, tensor: TensorInfo | None = None
) -> NDArray[np.float32]:
    """float32[stop - start, D]: rows of a bundle, all by default; mapped where float32 is what it stores.

    `tensor` is the word table, unless the position table is given.
    """
    import numpy as np

    tensor = tensor or bundle.tensor
    stored = raw_rows(bundle, start, stop, tensor)
    if tensor.dtype == "BF16":  # the upper half of a float32
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    table: Any = stored.astype(np.float32, copy=False)
    return table  # type: ignore[no-any-return]


def is_bundle(source: object) -> bool:
    """Whether a source is to be opened as a bundle: a folder of one, or a file of tensors."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = plain(os.fsdecode(source))
    if not is_url(path):
        kind = kind_of(path)
        return kind == "bundle" or (kind is None and path.endswith(".safetensors"))
    if name_of(path).endswith(".safetensors"):
        return True
    from .remote import is_folder

    return is_folder(path)


def load(bundle: str | os.PathLike[str]) -> Table:
    """Open a bundle: its vocabulary is indexed, its vectors are mapped and read only where they are used.

    Args:
        bundle: a folder, or the `.safetensors` file of a bundle under one stem. One behind a URL is downloaded, once,
            into the user's folder for caches, and compared with its checksums.

    Raises:
        InputError: there is no bundle.
        BundleError: its files are damaged or do not belong together.
        TryAgainError: the network fails.
    """
    return Table.mapped(*open_bundle(bundle))


def save(
    path: str | os.PathLike[str],
    tokens: Iterable[str],
    vectors: ArrayLike | np.ndarray[Any, Any],
    *,
    pad_token: str | None = None,
    unk_token: str | None = None,
    dtype: str = "float32",
    freeze: bool = False,
    if_exists: str = "error",
) -> None:
    """Write tokens and vectors that are in memory as a bundle; no row is added.

    Args:
        path: a folder, or NAME.safetensors.
        tokens: V different tokens, row by row, or a `Vocabulary`.
        vectors: [V, D], any strides, any real dtype whose values float32 holds in range.
        pad_token: which of the tokens is for padding; its row must be zero.
        unk_token: which of the tokens stands for unknown ones.
        dtype: `float32`, `float16` or `bfloat16`.
        freeze: record that the table is not to be trained.
        if_exists: `error` or `replace`; `keep` leaves a bundle that holds the same.

    Raises:
        VocabularyError: the tokens are not unique or not text.
        InputError: tokens and vectors differ in number, or values are not finite or out of range.
        OutputError: the target exists or cannot be written.
    """
    if isinstance(tokens, Vocabulary) and pad_token is None and unk_token is None:
        vocab = tokens
    else:
        vocab = Vocabulary(tokens, pad_token=pad_token, unk_token=unk_token)
    Table.of_arrays(vocab, vectors).save(path, dtype=dtype, freeze=freeze, if_exists=if_exists)
