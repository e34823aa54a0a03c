"""Trained modules back to bundles."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor, nn

from ..bundle.table import Table, load
from ..bundle.training import ranges_of
from ..errors import UsageError
from ..options.commands import SAVE_EMBEDDING
from ..options.definition import check
from ..words.vocabulary import Vocabulary
from .loading import BundleLike, Origin
from .partly_frozen import PartlyFrozenEmbedding
from .text import PositionTable, TextEmbedding

_DTYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}


def save_embedding(
    module: nn.Module,
    output: str | os.PathLike[str],
    *,
    like: BundleLike | Vocabulary | None = None,
    if_exists: str = "error",
) -> None:
    """Write a module as a bundle, with the vocabulary and the settings of the bundle that it was loaded from.

    The bundle records that it was trained, which rows train, and the dtype that the module has (float32 for any other
    than float16 and bfloat16). A LayerNorm is not part of a bundle.

    Args:
        module: what `load_embedding`, `load_text_embedding` or `embedding_bag` made, or any `nn.Embedding`; it may be
            compiled or wrapped for parallel training.
        output: a folder, or NAME.safetensors; it may be the bundle itself with if_exists="replace".
        like: the bundle, table or vocabulary whose rows these are, for a module that was not loaded from one.
        if_exists: as in `convert`.

    Raises:
        UsageError: the module is no embedding, or it is not known whose rows it has.
        InputError: a value is not finite, the padding row is not zero, or there are not as many rows as tokens.
        OutputError: the bundle cannot be written.
    """
    check(SAVE_EMBEDDING, locals())
    bare = _bare(module)
    words = bare.words if isinstance(bare, TextEmbedding) else bare
    if not isinstance(words, nn.Embedding | nn.EmbeddingBag | PartlyFrozenEmbedding):
        raise UsageError("no-embedding", "the module is no embedding", found=type(bare).__name__)
    origin = _origin(bare, like)
    config = {**origin.config, **_training(words, origin.config), "trained": True}
    config["dtype"] = _DTYPES.get(words.weight.dtype, "float32")
    positions = origin.positions
    if isinstance(bare, TextEmbedding):
        config |= {"scale": _scale(bare, origin.config), "positions": None}
        config["key"] = bare.keys["words.weight"][0]
        positions = None
        if bare.positions is not None:
            keys = list(bare.keys["positions.weight"])
            config["positions"] = {**_positions(bare.positions, origin.config), "keys": keys}
            positions = _plain(bare.positions.weight).numpy()
    table = Table.of_arrays(origin.vocab, _plain(words.weight))
    Table(origin.vocab, table.vectors, config, positions).save(output, if_exists=if_exists)


def _bare(module: nn.Module) -> nn.Module:
    """The module itself, without what compiles it or trains it in parallel."""
    while not isinstance(module, nn.Embedding | nn.EmbeddingBag | PartlyFrozenEmbedding | TextEmbedding):
        inner = getattr(module, "_orig_mod", None) or getattr(module, "module", None)
        if not isinstance(inner, nn.Module):
            break
        module = inner
    return module


def _origin(module: nn.Module, like: BundleLike | Vocabulary | None) -> Origin:
    if isinstance(like, Vocabulary):
        return Origin(like, {}, None)
    if like is not None:
        return Origin.of(like if isinstance(like, Table) else load(like))
    if "part" in vars(module):
        first, stop = vars(module)["part"]
        raise UsageError(
            "part-of-a-table", "the module is a part of a table", found=f"rows {first} to {stop - 1}",
            hint="put the parts together, or pass like=Vocabulary(..) with the tokens of these rows",
        )  # fmt: skip
    origin = vars(module).get("origin")
    if origin is None:
        raise UsageError(
            "whose-rows", "the module was not loaded from a bundle, so it is not known whose rows it has",
            hint="pass like=BUNDLE, or like=vocab",
        )  # fmt: skip
    return origin  # type: ignore[no-any-return]


def _training(words: nn.Embedding | nn.EmbeddingBag | PartlyFrozenEmbedding, config: dict[str, Any]) -> dict[str, Any]:
    """Which rows train; their name is kept if they are still the same."""
    if not isinstance(words, PartlyFrozenEmbedding):
        return {"train": "all" if words.weight.requires_grad else "none", "train_rows": None}
    ranges = ranges_of(words.rows.tolist())
    return {"train": config["train"] if config.get("train_rows") == ranges else "rows", "train_rows": ranges}


def _scale(module: TextEmbedding, config: dict[str, Any]) -> dict[str, Any] | None:
    recorded: dict[str, Any] | None = config.get("scale")
    if module.scale == (recorded or {}).get("factor", 1.0):
        return recorded
    return {"kind": "factor", "factor": module.scale}


def _positions(table: PositionTable, config: dict[str, Any]) -> dict[str, Any]:
    """What is recorded of a position table; one that no bundle records is a learned one."""
    recorded = config.get("positions") or {"kind": "learned", "preset": None}
    now = {"num": table.num, "offset": table.offset, "padding_idx": table.padding_idx, "trains": table.trains}
    return {**recorded, **now}


def _plain(weight: Tensor) -> Tensor:
    return weight.detach().cpu().float()
