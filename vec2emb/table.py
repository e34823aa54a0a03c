"""`Table`: a vocabulary and its vectors, row for row, in memory or mapped from a bundle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .errors import InputError, shown
from .publishing import Publication, Target
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .bundle import Bundle
    from .report import Report


class Table:
    """A vocabulary and its vectors; row i belongs to token i.

    Attributes:
        vocab: the `Vocabulary`, V tokens.
        vectors: float32[V, D], read-only. Of a float32 bundle they are mapped, and read only where they are used; of
            a float16 or bfloat16 one they are converted when they are first asked for.
        config: the content of the bundle's vec2emb.json; empty for a table in memory.
        report: what reading found, for a table made by `read_vectors`; else None.
    """

    def __init__(self, vocab: Vocabulary, vectors: NDArray[np.float32], config: dict[str, Any] | None = None) -> None:
        self.vocab = vocab
        self.config: dict[str, Any] = config or {}
        self.report: Report | None = None
        self._vectors: NDArray[np.float32] | None = vectors
        self._bundle: Bundle | None = None

    @classmethod
    def mapped(cls, bundle: Bundle, vocab: Vocabulary) -> Table:
        """The table of an opened bundle."""
        self = cls.__new__(cls)
        self.vocab, self.config, self.report = vocab, bundle.config, None
        self._bundle, self._vectors = bundle, None
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
            self._vectors = _map_vectors(self._bundle)
        view = self._vectors.view()
        view.flags.writeable = False
        return view

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

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Pairs of token and vector, in the order of the rows."""
        return zip(self.vocab, self.vectors, strict=True)

    def __repr__(self) -> str:
        return f"<Table {len(self)} tokens x {self.dim}>"

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: str | None = None,
        freeze: bool | None = None,
        if_exists: str = "error",
    ) -> None:
        """Write the table as a bundle; the arguments are those of `vec2emb.save`.

        A table that was loaded keeps the dtype and the freeze of its bundle, unless they are given.
        """
        from .bundle import BundleWriter, compare_with_existing, largest

        dtype = self.config.get("dtype", "float32") if dtype is None else dtype
        freeze = self.config.get("train") == "none" if freeze is None else freeze
        vectors, limit = self.vectors, largest(dtype)
        _refuse_values(vectors, limit, dtype, self.vocab)
        target = Target(path)
        with Publication(target, if_exists) as publication:
            with BundleWriter(publication, vectors.shape[1], dtype) as writer:
                step = max(1, (1 << 20) // (4 * vectors.shape[1]))
                for row in range(0, len(vectors), step):
                    writer.rows.write(row, vectors[row : row + step].tobytes())
                config = writer.finish(len(vectors), [bytes(self.vocab.blob)], *self._facts(freeze))
            if if_exists == "keep" and not target.is_free():
                compare_with_existing(target, config)
            else:
                publication.publish()

    def _facts(self, freeze: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        vocab = self.vocab
        facts = {
            "padding_idx": vocab.padding_idx,
            "positions": None,
            "train": "none" if freeze else "all",
            "unk_idx": vocab.unk_idx,
        }
        roles = ((vocab.padding_idx, "padding"), (vocab.unk_idx, "unknown"))
        specials = [
            {"token": vocab.tokens[id], "id": id, "role": role, "init": "given"} for id, role in roles if id is not None
        ]
        return facts, {"specials": specials, "source": None, "options": {"freeze": freeze}, "lookup": vocab.lookup}


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
                row = start + int(np.argmax(bad.any(axis=1)))
                token = shown(vocab.tokens[row])
                raise InputError(code, f"row {row}, {token}, has a value that {what}", found=str(vectors[row]))
    pad = vocab.padding_idx
    if pad is not None and vectors[pad].any():
        raise InputError(
            "padding-not-zero", f"the padding row {pad} is not zero", expected="zeros", found=str(vectors[pad]),
            hint="set it to zero first; nn.Embedding does not do that to weights it is given",
        )  # fmt: skip


def _map_vectors(bundle: Bundle) -> NDArray[np.float32]:
    import numpy as np

    tensor = bundle.tensor
    kinds: dict[str, Any] = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
    stored = np.frombuffer(
        bundle.data,
        dtype=kinds[tensor.dtype],
        count=tensor.shape[0] * tensor.shape[1],
        offset=bundle.header.data_start + tensor.start,
    )
    if tensor.dtype == "BF16":  # the upper half of a float32
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    table: Any = stored.astype(np.float32, copy=False).reshape(tensor.shape)
    return table  # type: ignore[no-any-return]
