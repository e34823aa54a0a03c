"""Trained modules back to bundles."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn

from ..bundle.manifest import Manifest, PositionRecord, Scale, Training
from ..bundle.ranges import Ranges
from ..bundle.table import Table, load
from ..errors import UsageError
from ..options.commands import SAVE_EMBEDDING
from ..options.definition import check
from ..words.vocabulary import Vocabulary
from .loading import BundleLike, Origin
from .partly_frozen import PartlyFrozenEmbedding
from .text import PositionTable, TextEmbedding

Words = nn.Embedding | nn.EmbeddingBag | PartlyFrozenEmbedding

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
    manifest = _trained(origin, words, _DTYPES.get(words.weight.dtype, "float32"))
    positions = origin.positions
    if isinstance(bare, TextEmbedding):
        recorded, positions = None, None
        if bare.positions is not None:
            keys = tuple(bare.keys["positions.weight"])
            recorded = _positions(bare.positions, manifest.positions)._replace(keys=keys)
            positions = _plain(bare.positions.weight).numpy()
        manifest = manifest._replace(key=bare.keys["words.weight"][0], scale=_scale(bare, manifest), positions=recorded)
    table = Table.of_arrays(origin.vocab, _plain(words.weight))
    Table(origin.vocab, table.vectors, manifest, positions).save(output, if_exists=if_exists)


def _trained(origin: Origin, words: Words, dtype: str) -> Manifest:
    """The manifest of the origin, of which it is said that its rows were trained."""
    manifest = origin.manifest
    if manifest is None:
        manifest = Table.of_arrays(origin.vocab, words.weight).described(dtype)
    padding, before = manifest.padding_idx, manifest.provenance
    every = Ranges((0, before.size) if before.size else ())
    rows = every if padding is None else every - Ranges((padding, padding + 1))
    return manifest._replace(dtype=dtype, training=_training(words, manifest), provenance=before._replace(trained=rows))


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
        return Origin(like, None, None)
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


def _training(words: Words, manifest: Manifest) -> Training:
    """Which rows train; their name is kept if they are still the same."""
    if not isinstance(words, PartlyFrozenEmbedding):
        return Training("all" if words.weight.requires_grad else "none")
    rows, before = Ranges.of_rows(words.rows.tolist()), manifest.training
    return before if before.rows == rows else Training("rows", rows)


def _scale(module: TextEmbedding, manifest: Manifest) -> Scale | None:
    return manifest.scale if module.scale == manifest.factor else Scale("factor", module.scale)


def _positions(table: PositionTable, recorded: PositionRecord | None) -> PositionRecord:
    """What is recorded of a position table; one that no bundle records is a learned one."""
    if recorded is None:
        return PositionRecord((), "learned", table.num, table.offset, table.padding_idx, table.trains)
    return recorded._replace(num=table.num, offset=table.offset, padding_idx=table.padding_idx, trains=table.trains)


def _plain(weight: Tensor) -> Tensor:
    return weight.detach().cpu().float()
