"""`Table`: a vocabulary and its vectors, row for row, in memory or mapped from a bundle."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import BundleError, InputError, UsageError, shown
from ..options.commands import LOAD, SAVE
from ..options.definition import check
from ..safetensors_files.dtypes import FLOATS, widen_bfloat16
from ..safetensors_files.header import PIECE
from ..words.vocabulary import Vocabulary
from .reader import Bundle, largest, open_vocabulary, publish_or_keep
from .target import target_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from ..safetensors_files.tables import Stretch
    from .explanation import Explanation
    from .manifest import Manifest


class Table:
    """A vocabulary and its vectors; row i belongs to token i.

    Attributes:
        vocab: the `Vocabulary`, V tokens.
        vectors: float32[V, D], read-only. Of a float32 bundle they are mapped, and read only where they are used; of
            a float16, bfloat16 or sharded one they are put in memory when they are first asked for.
        positions: float32[P, D], read-only, the reserved rows in front included; None for a table without positions.
        manifest: what the bundle's vec2emb.json records; None for a table in memory.
    """

    _from_file = False  # whether every row was read from a file

    def __init__(
        self,
        vocab: Vocabulary,
        vectors: NDArray[np.float32],
        manifest: Manifest | None = None,
        positions: NDArray[np.float32] | None = None,
    ) -> None:
        self._vocab: Vocabulary | None = vocab
        self.manifest = manifest
        self._positions = positions
        self._vectors: NDArray[np.float32] | None = vectors
        self._bundle: Bundle | None = None

    @classmethod
    def mapped(cls, bundle: Bundle, vocab: Vocabulary | None) -> Table:
        """The table of an opened bundle; without a vocabulary, it is opened when it is first asked for."""
        self = cls.__new__(cls)
        self._vocab, self.manifest = vocab, bundle.manifest
        self._bundle, self._vectors = bundle, None
        self._positions = stored_positions(bundle)
        return self

    @classmethod
    def of_arrays(cls, vocab: Vocabulary, vectors: Any) -> Table:
        """A table of an array in memory, made float32 and contiguous.

        Raises:
            InputError: the array is no [V, D] of real numbers that float32 holds.
            UsageError: it does not store each value: masked, sparse, quantized, sharded, meta.
        """
        import numpy as np

        from .arrays import array_of

        array = array_of(vectors, None)
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
    def vocab(self) -> Vocabulary:
        """V tokens."""
        if self._vocab is None:
            if self._bundle is None:
                raise AssertionError("a table has a vocabulary or a bundle")
            self._vocab = open_vocabulary(self._bundle)
        return self._vocab

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

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """float32[stop - start, D], read-only: rows start .. stop-1, and no other row is read.

        Rows of a float32 bundle that stand in one file are mapped; others are copied.

        Raises:
            UsageError: there are no such rows.
        """
        self._check_rows(start, stop)
        if self._vectors is not None or self._bundle is None:
            return self.vectors[start:stop]
        return _read_only(stored_rows(self._bundle, start, stop))

    def stored(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Rows, all by default, in the stored type: float32, float16, or uint16 that holds the bits of bfloat16."""
        stop = len(self) if stop is None else stop
        self._check_rows(start, stop)
        return self.vectors[start:stop] if self._bundle is None else raw_rows(self._bundle, start, stop)

    def release(self) -> None:
        """Give back the memory of rows that were mapped and copied; what is used again is mapped again."""
        if self._bundle is not None:
            self._bundle.release()

    def _check_rows(self, start: int, stop: int) -> None:
        fits = all(isinstance(row, int) and not isinstance(row, bool) for row in (start, stop))
        if not fits or not 0 <= start <= stop <= len(self):
            raise UsageError(
                "rows-range", "there are no such rows", expected=f"0 <= first <= end <= {len(self)}",
                found=f"{start!r}, {stop!r}",
            )  # fmt: skip

    @property
    def dim(self) -> int:
        """D."""
        return int(self.vectors.shape[1] if self._bundle is None else self._bundle.tensor.shape[1])

    @property
    def padding_idx(self) -> int | None:
        """The row of padding; known without the vocabulary."""
        return self.vocab.padding_idx if self._bundle is None else self._bundle.manifest.padding_idx

    def __len__(self) -> int:
        return len(self.vocab) if self._bundle is None else self._bundle.tensor.shape[0]

    def __contains__(self, token: object) -> bool:
        return token in self.vocab

    def __getitem__(self, token: str) -> NDArray[np.float32]:
        """float32[D], a copy: the vector of a token, or the unknown's for a missing one.

        Raises:
            KeyError: the token is missing and there is no unknown token.
        """
        id = self.vocab[token]
        row: NDArray[np.float32] = self.rows(id, id + 1)[0].copy()
        return row

    def explain(self, word: str) -> Explanation:
        """Where the row of a word comes from; for a word that has none, which other spellings are there."""
        from .explanation import explain_word

        return explain_word(word, self.vocab, self.manifest, from_file=self._from_file)

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Pairs of token and vector, in the order of the rows."""
        return zip(self.vocab, (row for start, stop in self._pieces() for row in self.rows(start, stop)), strict=True)

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """The rows, about 1 MiB at a time; those before stay in memory only where somebody holds them."""
        step = max(1, PIECE // (4 * self.dim))
        for start in range(0, len(self), step):
            yield start, min(start + step, len(self))
            self.release()

    def __repr__(self) -> str:
        return f"<Table {len(self)} tokens x {self.dim}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A table of a bundle is pickled as its path and opened again; any other one, whole."""
        if self._bundle is None:
            return super().__reduce_ex__(protocol)
        where = self._bundle.location or self._bundle.target.path
        return _reopen, (where, self._bundle.manifest.self_sha256, self._vocab is None)

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
        from .writer import BundleWriter

        if self._bundle is not None:
            self._bundle.check_sum()
        if dtype is None:
            dtype = "float32" if self.manifest is None else self.manifest.dtype
        self._refuse_values(largest(dtype), dtype)
        with target_of(path).publication(if_exists) as publication:
            with BundleWriter(publication, self.dim, dtype) as writer:
                for start, stop in self._pieces():
                    writer.rows.write(start, self.rows(start, stop).tobytes())
                writer.write_vocabulary([bytes(self.vocab.blob)])
                written = writer.finish(self.described(dtype, freeze), self._positions)
            publish_or_keep(publication, written)

    def _refuse_values(self, limit: float, dtype: str) -> None:
        import numpy as np

        for start, stop in self._pieces():
            block = self.rows(start, stop)
            for bad, code, what in (
                (~np.isfinite(block), "non-finite", "is not finite"),
                (np.abs(block) > limit, "out-of-range", f"does not fit {dtype}"),
            ):
                if bad.any():
                    row, column = divmod(int(np.argmax(bad)), self.dim)
                    token, value = shown(self.vocab.tokens[start + row]), block[row, column]
                    raise InputError(
                        code,
                        f"row {start + row}, {token}, has a value that {what}",
                        found=f"{value} in column {column}",
                    )
        pad = self.vocab.padding_idx
        padding = None if pad is None else self.rows(pad, pad + 1)[0]
        is_zero = self.manifest is None or self.manifest.provenance.zeroes_padding
        if is_zero and padding is not None and padding.any():
            column = int(np.argmax(padding != 0))
            raise InputError(
                "padding-not-zero", f"the padding row {pad} is not zero", expected="zeros",
                found=f"{padding[column]} in column {column}",
                hint="set it to zero first; nn.Embedding does not do that to weights it is given",
            )  # fmt: skip

    def described(self, dtype: str, freeze: bool | None = None) -> Manifest:
        """What a bundle of this table records; a loaded table keeps the record of where each row came from."""
        from .manifest import Manifest, Training
        from .provenance import Provenance, SpecialToken
        from .ranges import Ranges

        vocab, manifest = self.vocab, self.manifest
        if manifest is None:
            roles = ((vocab.padding_idx, "padding"), (vocab.unk_idx, "unknown"))
            specials = tuple(SpecialToken(vocab.tokens[id], id, role, "given") for id, role in roles if id is not None)
            count = len(self)
            given = Ranges((0, count) if count else ())
            manifest = Manifest(Provenance(count, specials, given=given), self.dim, dtype, lookup=vocab.lookup)
        if freeze is not None:
            manifest = manifest._replace(training=Training("none" if freeze else "all"))
        return manifest._replace(dtype=dtype)


def _reopen(path: str, self_sha256: str, lazy: bool) -> Table:
    table = load(path, lazy=lazy)
    if table.manifest is None or table.manifest.self_sha256 != self_sha256:
        raise BundleError("bundle-changed", "this is another bundle than the one that was pickled", path=path)
    return table


def _read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    view = array.view()
    view.flags.writeable = False
    return view


def raw_rows(bundle: Bundle, start: int = 0, stop: int | None = None) -> NDArray[Any]:
    """[stop - start, D]: rows as they are stored: float32, float16, or uint16 that holds the bits of bfloat16.

    They are mapped if they stand in one file, and copied if they stand in several.
    """
    import numpy as np

    rows, dim = bundle.tensor.shape
    stop = rows if stop is None else stop
    joined, at = None, 0
    for stretch in bundle.stretches(start, stop):
        part = _mapped(stretch, dim, bundle.tensor.dtype)
        if len(part) == stop - start:
            return part
        if joined is None:
            joined = np.empty((stop - start, dim), part.dtype)
        joined[at : at + len(part)] = part
        at += len(part)
    if joined is None or at != len(joined):
        raise AssertionError(f"{at} of {stop - start} rows")
    return joined


def stored_rows(bundle: Bundle, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
    """float32[stop - start, D]: rows of a bundle, all by default; mapped where that is what one of its files stores."""
    return _widened(raw_rows(bundle, start, stop), bundle.tensor.dtype)


def rows_of_source(bundle: Bundle) -> Iterator[bytes]:
    """float32[n, D]: the rows of a bundle that some file of vectors gave, piece by piece; no other stays in memory."""
    step = max(1, PIECE // (4 * bundle.tensor.shape[1]))
    for start, stop in bundle.manifest.provenance.rows_of_file():
        for at in range(start, stop, step):
            yield stored_rows(bundle, at, min(at + step, stop)).tobytes()
            bundle.release()


def stored_positions(bundle: Bundle) -> NDArray[np.float32] | None:
    """float32[P, D]: the position table of a bundle, the reserved rows in front included; None if it has none."""
    stretch = bundle.position_stretch()
    if stretch is None:
        return None
    return _widened(_mapped(stretch, bundle.tensor.shape[1], bundle.tensor.dtype), bundle.tensor.dtype)


def _mapped(stretch: Stretch, dim: int, dtype: str) -> NDArray[Any]:
    import numpy as np

    data, offset, rows = stretch
    return np.frombuffer(data, FLOATS[dtype], rows * dim, offset).reshape(rows, dim)


def _widened(stored: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    import numpy as np

    if dtype == "BF16":
        stored = widen_bfloat16(stored)
    table: Any = stored.astype(np.float32, copy=False)
    return table  # type: ignore[no-any-return]


def load(bundle: str | os.PathLike[str], *, lazy: bool = False) -> Table:
    """Open a bundle: its vocabulary is indexed, its vectors are mapped and read only where they are used.

    Args:
        bundle: a folder, or the `.safetensors` file of a bundle under one stem. One behind a URL is downloaded, once,
            into the user's folder for caches, and compared with its checksums.
        lazy: index the vocabulary, and compare it with its checksum, only when it is first asked for: however large
            the table is, it opens in milliseconds, for whoever wants rows by number.

    Raises:
        InputError: there is no bundle.
        BundleError: its files are damaged or do not belong together.
        TryAgainError: the network fails.
    """
    check(LOAD, locals())
    opened = Bundle(bundle)
    return Table.mapped(opened, None if lazy else open_vocabulary(opened))


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
    check(SAVE, locals())
    if isinstance(tokens, Vocabulary) and pad_token is None and unk_token is None:
        vocab = tokens
    else:
        vocab = Vocabulary(tokens, pad_token=pad_token, unk_token=unk_token)
    Table.of_arrays(vocab, vectors).save(path, dtype=dtype, freeze=freeze, if_exists=if_exists)
