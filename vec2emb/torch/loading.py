"""Modules from bundles. Each has memory of its own: what it trains never reaches the file."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..bundle.manifest import Manifest
from ..bundle.ranges import NO_ROWS
from ..bundle.table import Table, load
from ..bundle.training import TrainLike, TrainRows
from ..errors import UsageError
from ..options.commands import EMBEDDING_BAG, LOAD_EMBEDDING, LOAD_TEXT_EMBEDDING
from ..options.definition import check
from ..words.vocabulary import Vocabulary
from .partly_frozen import PartlyFrozenEmbedding
from .text import PositionTable, TextEmbedding

BundleLike = str | os.PathLike[str] | Table
M = TypeVar("M", bound=nn.Module)


class Origin(NamedTuple):
    """What a module was loaded from, as far as saving it needs that: it can be copied and pickled with the module."""

    vocab: Vocabulary
    manifest: Manifest | None
    positions: NDArray[np.float32] | None

    @classmethod
    def of(cls, table: Table) -> Origin:
        """What there is to remember of a table."""
        positions = table.positions
        return cls(table.vocab, table.manifest, None if positions is None else positions.copy())


def load_embedding(
    bundle: BundleLike,
    *,
    rows: tuple[int, int] | None = None,
    freeze: bool | None = None,
    train_rows: TrainLike | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    sparse: bool = False,
    max_norm: float | None = None,
) -> nn.Embedding | PartlyFrozenEmbedding:
    """The word table as a module: `nn.Embedding`, or `PartlyFrozenEmbedding` if some rows train and others do not.

    Rows are those of the file; a recorded scale is applied by `load_text_embedding` alone.

    Args:
        bundle: a folder, NAME.safetensors, or a table.
        rows: only these, (first, one past the last), of which `first` gets id 0: one rank's part of a table that no
            rank could hold. No other row is read, and the vocabulary only if words are named.
        freeze: True if no row trains, False if all train. By default the bundle says which rows train.
        train_rows: `all`, `new` (special tokens that were set, and missing words), a file of words, words, or
            ids. The padding row never trains.
        dtype: by default the one that is stored.
        device: by default the CPU.
        sparse: whether the gradient is a sparse tensor.
        max_norm: as in `nn.Embedding`: each lookup shortens the rows that are longer, in place. Only where all rows
            train, as it would change frozen ones as well.

    Raises:
        InputError: there is no bundle, or it is damaged.
        UsageError: arguments exclude each other, or a row to train is none.
    """
    check(LOAD_EMBEDDING, locals())
    table = bundle if isinstance(bundle, Table) else load(bundle, lazy=rows is not None)
    start, stop = (0, len(table)) if rows is None else _pair(rows)
    weight = _own(table.stored(start, stop), dtype, device)
    table.release()
    plan, trained = _plan(table, freeze, train_rows, start, stop)
    padding_idx = table.padding_idx
    padding_idx = None if padding_idx is None or not start <= padding_idx < stop else padding_idx - start
    if max_norm is not None and plan != "all":
        raise UsageError(
            "max-norm-frozen", "max_norm rewrites rows, also frozen ones", hint="leave it out, or freeze=False"
        )
    module: nn.Embedding | PartlyFrozenEmbedding
    if plan == "some":
        module = PartlyFrozenEmbedding(weight, trained, padding_idx=padding_idx, sparse=sparse)
    else:
        module = nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
            weight, freeze=plan == "none", padding_idx=padding_idx, max_norm=max_norm, sparse=sparse
        )
    if rows is None:
        return _remember(module, table)
    vars(module)["part"] = (start, stop)
    return module


def load_text_embedding(
    bundle: BundleLike,
    *,
    freeze: bool | None = None,
    train_rows: TrainLike | None = None,
    train_positions: bool | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    sparse: bool = False,
    layer_norm: bool = False,
    eps: float = 1e-12,
    dropout: float = 0.0,
) -> TextEmbedding:
    """Words, times the recorded scale, plus positions, if the bundle has them.

    Args:
        bundle, freeze, train_rows, dtype, device, sparse: as in `load_embedding`, for the words.
        train_positions: by default the bundle says whether they train.
        layer_norm, eps, dropout: as in `TextEmbedding`.

    Raises:
        InputError: there is no bundle, or it is damaged.
        UsageError: arguments exclude each other, or a row to train is none.
    """
    check(LOAD_TEXT_EMBEDDING, locals())
    table = bundle if isinstance(bundle, Table) else load(bundle)
    words = load_embedding(table, freeze=freeze, train_rows=train_rows, dtype=dtype, device=device, sparse=sparse)
    manifest = table.manifest
    recorded = None if manifest is None else manifest.positions
    positions = None
    if table.positions is not None and recorded is not None:
        positions = PositionTable(
            _own(table.positions, words.weight.dtype, device),
            offset=recorded.offset,
            padding_idx=recorded.padding_idx,
            trains=recorded.trains if train_positions is None else train_positions,
        )
    elif train_positions is not None:
        raise UsageError("no-positions", "there are no positions to train or to freeze")
    module = TextEmbedding(
        words,
        positions,
        scale=1.0 if manifest is None else manifest.factor,
        word_key=None if manifest is None else manifest.key,
        position_keys=() if manifest is None else manifest.position_keys,
        layer_norm=layer_norm,
        eps=eps,
        dropout=dropout,
    )
    if module.norm is not None:
        module.norm.to(device=device, dtype=words.weight.dtype)
    return _remember(module, table)


def embedding_bag(
    bundle: BundleLike,
    *,
    mode: str = "mean",
    freeze: bool | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    sparse: bool = False,
) -> nn.EmbeddingBag:
    """The word table as `nn.EmbeddingBag`, whose sum, mean or maximum leaves padding out.

    Args:
        bundle, dtype, device, sparse: as in `load_embedding`.
        mode: `mean`, `sum` or `max`.
        freeze: by default the bundle says whether the table trains.

    Raises:
        InputError: there is no bundle, or it is damaged.
        UsageError: the bundle records that some rows train, which a bag cannot do.
    """
    check(EMBEDDING_BAG, locals())
    table = bundle if isinstance(bundle, Table) else load(bundle)
    plan, _ = _plan(table, freeze, None, 0, len(table))
    if plan == "some":
        raise UsageError("bag-of-some", "a bag trains all rows or none", hint="say which: freeze=True or freeze=False")
    weight = _own(table.stored(), dtype, device)
    bag = nn.EmbeddingBag.from_pretrained(
        weight, freeze=plan == "none", mode=mode, sparse=sparse, padding_idx=table.vocab.padding_idx
    )
    return _remember(bag, table)


def _plan(
    table: Table, freeze: bool | None, train_rows: TrainLike | None, start: int, stop: int
) -> tuple[str, list[int]]:
    """`all`, `none`, or `some` with the ids of these; of rows start .. stop-1, counted from `start`."""
    manifest = table.manifest
    plan = TrainRows.parse(train_rows, freeze)
    if plan is None:
        kind, ranges = ("all", None) if manifest is None else manifest.training
    else:
        new = NO_ROWS if manifest is None else manifest.provenance.new_rows()
        kind, ranges = plan.kind, plan.ranges(len(table), table.padding_idx, new, lambda word: _row(table.vocab, word))
    if kind in ("all", "none"):
        return kind, []
    rows = [row - start for first, end in ranges or NO_ROWS for row in range(max(first, start), min(end, stop))]
    # Nothing to freeze, or nothing to train, needs no module of its own.
    return ("none" if not rows else "all" if len(rows) == stop - start else "some"), rows


def _pair(rows: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(rows, tuple | list) or len(rows) != 2:
        raise UsageError("rows-range", "rows are a pair", expected="(first, one past the last)", found=repr(rows))
    return rows[0], rows[1]


def _row(vocab: Vocabulary, word: str) -> int | None:
    """The row of a word as it stands, whatever lookup the vocabulary has."""
    return vocab.get(word) if word in vocab.tokens else None


def _own(rows: NDArray[Any], dtype: torch.dtype | None, device: torch.device | str | None) -> Tensor:
    """A tensor with memory of its own, of float32, float16, or uint16 that holds the bits of bfloat16."""
    if dtype is not None and not dtype.is_floating_point:
        raise UsageError("dtype", "an embedding holds floating-point numbers", found=str(dtype))
    tensor = torch.from_numpy(rows if rows.flags.writeable else np.array(rows))  # shards were joined in memory of ours
    if tensor.dtype == torch.uint16:
        tensor = tensor.view(torch.bfloat16)
    return tensor.to(device=device, dtype=dtype)


def _remember(module: M, table: Table) -> M:
    vars(module)["origin"] = Origin.of(table)  # past nn.Module, which would look at it
    return module
