"""Modules from bundles. Each has memory of its own: what it trains never reaches the file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..bundle.ranges import NO_ROWS
from ..bundle.table import Table, load
from ..bundle.training import TrainLike, TrainRows
from ..errors import UsageError
from ..options.commands import EMBEDDING_BAG, LOAD_EMBEDDING, LOAD_TEXT_EMBEDDING
from ..options.definition import check
from .partly_frozen import PartlyFrozenEmbedding
from .record import BundleFacts, facts_of, planned_ranges, remember
from .row_plan import RowPlan
from .text import PositionTable, TextEmbedding

BundleLike = str | os.PathLike[str] | Table


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
        UsageError: arguments exclude each other, or a row to train is out of range.
    """
    check(LOAD_EMBEDDING, locals())
    table = bundle if isinstance(bundle, Table) else load(bundle, lazy=rows is not None)
    facts = facts_of(table)
    start, stop = (0, facts.rows) if rows is None else _pair(rows)
    kind, rows_to_train = _plan(table, facts, freeze, train_rows, start, stop)
    if max_norm is not None and kind != "all":
        raise UsageError(
            "max-norm-frozen", "max_norm rewrites rows, also frozen ones", hint="leave it out, or freeze=False"
        )
    padding_idx = facts.padding_idx
    padding_idx = None if padding_idx is None or not start <= padding_idx < stop else padding_idx - start
    stored = table.stored(start, stop)
    module: nn.Embedding | PartlyFrozenEmbedding
    if kind == "some":
        plan = RowPlan.of_rows(rows_to_train, stop - start, padding_idx)
        frozen, trained = (_own(stored[plan.rows(train=train).numpy()], dtype, device) for train in (False, True))
        module = PartlyFrozenEmbedding.of_parts(plan, frozen, trained, padding_idx=padding_idx, sparse=sparse)
    else:
        weight = _own(stored, dtype, device)
        module = nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
            weight, freeze=kind == "none", padding_idx=padding_idx, max_norm=max_norm, sparse=sparse
        )
    table.release()
    if rows is None:
        return remember(module, table, module)
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
        UsageError: arguments exclude each other, or a row to train is out of range.
    """
    check(LOAD_TEXT_EMBEDDING, locals())
    table = bundle if isinstance(bundle, Table) else load(bundle)
    words = load_embedding(table, freeze=freeze, train_rows=train_rows, dtype=dtype, device=device, sparse=sparse)
    facts, dtype = facts_of(table), next(words.parameters()).dtype
    positions = None
    if table.positions is not None and facts.positions is not None:
        positions = PositionTable(
            _own(table.positions, dtype, device),
            offset=facts.positions.offset,
            padding_idx=facts.positions.padding_idx,
            trains=facts.positions.trains if train_positions is None else train_positions,
        )
    elif train_positions is not None:
        raise UsageError("no-positions", "there are no positions to train or to freeze")
    module = TextEmbedding(
        words,
        positions,
        scale=facts.scale,
        word_key=facts.word_key,
        position_keys=() if facts.positions is None else facts.positions.keys,
        layer_norm=layer_norm,
        eps=eps,
        dropout=dropout,
    )
    if module.norm is not None:
        module.norm.to(device=device, dtype=dtype)
    return remember(module, table, module.words)


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
    facts = facts_of(table)
    kind, _ = _plan(table, facts, freeze, None, 0, facts.rows)
    if kind == "some":
        raise UsageError("bag-of-some", "a bag trains all rows or none", hint="say which: freeze=True or freeze=False")
    weight = _own(table.stored(), dtype, device)
    bag = nn.EmbeddingBag.from_pretrained(
        weight, freeze=kind == "none", mode=mode, sparse=sparse, padding_idx=facts.padding_idx
    )
    return remember(bag, table, bag)


def _plan(
    table: Table, facts: BundleFacts, freeze: bool | None, train_rows: TrainLike | None, start: int, stop: int
) -> tuple[str, NDArray[np.int64]]:
    """`all`, `none`, or `some` with the ids of these; of rows start .. stop-1, counted from `start`."""
    plan = TrainRows.parse(train_rows, freeze)
    kind, ranges = (facts.train, facts.ranges) if plan is None else (plan.kind, planned_ranges(table, plan) or NO_ROWS)
    empty = np.empty(0, np.int64)
    if kind in ("all", "none"):
        return kind, empty
    clipped = [(max(first, start), min(end, stop)) for first, end in ranges]
    rows = np.concatenate([empty, *(np.arange(first, end) for first, end in clipped if first < end)]) - start
    # Nothing to freeze, or nothing to train, needs no module of its own.
    return ("none" if not len(rows) else "all" if len(rows) == stop - start else "some"), rows


def _pair(rows: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(rows, tuple | list) or len(rows) != 2:
        raise UsageError("rows-range", "rows are a pair", expected="(first, one past the last)", found=repr(rows))
    return rows[0], rows[1]


def _own(rows: NDArray[Any], dtype: torch.dtype | None, device: torch.device | str | None) -> Tensor:
    """Return a tensor with memory of its own, of float32, float16, or the bits of bfloat16 in uint16."""
    if dtype is not None and not dtype.is_floating_point:
        raise UsageError("dtype", "`dtype` must be a floating-point type", found=str(dtype))
    tensor = torch.from_numpy(rows if rows.flags.writeable else np.array(rows))  # shards were joined in memory of ours
    if tensor.dtype == torch.uint16:
        tensor = tensor.view(torch.bfloat16)
    return tensor.to(device=device, dtype=dtype)
