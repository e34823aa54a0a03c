"""Trained modules back to bundles."""

from __future__ import annotations

import os

from torch import Tensor, distributed, nn

from ..bundle.ranges import NO_ROWS, Ranges
from ..bundle.table import Table, load
from ..errors import UsageError
from ..options.commands import SAVE_EMBEDDING
from ..options.definition import check
from ..words.vocabulary import Vocabulary
from .full_state import full_state_dict, is_sharded, named_parts
from .loading import BundleLike
from .partly_frozen import PartlyFrozenEmbedding
from .record import Origin, PositionFacts, Trained, TrainedPositions, trained_table
from .text import PositionTable, TextEmbedding, is_quantized, quantized_words

Words = nn.Embedding | nn.EmbeddingBag | PartlyFrozenEmbedding


def save_embedding(
    module: nn.Module,
    output: str | os.PathLike[str],
    *,
    like: BundleLike | Vocabulary | None = None,
    if_exists: str = "error",
) -> None:
    """Write a module as a bundle, with the vocabulary and the settings of the bundle that it was loaded from.

    The bundle records which rows training may have changed: those that could train when the module was loaded or can
    train now, and of a module with `like` all. It records which rows train, and the dtype that the module has (float32
    for any other than float16 and bfloat16). A LayerNorm is not part of a bundle.

    If the module is sharded by FSDP, all ranks must call this: rank 0 writes, and an error of it is raised on all.

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
    words = _bare(bare.words) if isinstance(bare, TextEmbedding) else bare
    if is_quantized(words):
        raise quantized_words()
    if not isinstance(words, Words):
        raise UsageError("no-embedding", "the module is not an embedding", found=type(bare).__name__)
    if not is_sharded(module):
        _save(module, bare, words, full_state_dict(module), output, like, if_exists)
        return
    state = full_state_dict(module, rank0_only=True)
    error: Exception | None = None
    if distributed.get_rank() == 0:
        try:
            _save(module, bare, words, state, output, like, if_exists)
        except Exception as caught:
            error = caught
    outcome = [error]
    distributed.broadcast_object_list(outcome, src=0)
    if outcome[0] is not None:
        raise outcome[0]


def _save(
    module: nn.Module,
    bare: nn.Module,
    words: Words,
    state: dict[str, Tensor],
    output: str | os.PathLike[str],
    like: BundleLike | Vocabulary | None,
    if_exists: str,
) -> None:
    prefix = next(prefix for prefix, part in named_parts(module) if part is bare)
    key, text = "weight", None
    if isinstance(bare, TextEmbedding):
        key, positions = bare.keys["words.weight"][0], None
        if bare.positions is not None:
            table, keys = _bare(bare.positions), bare.keys["positions.weight"]
            if not isinstance(table, PositionTable):
                raise AssertionError("a text embedding has a position table")
            facts = PositionFacts(table.offset, table.padding_idx, table.is_parameter and _trains(table, module), keys)
            positions = TrainedPositions(table.num, facts, state[prefix + keys[0]])
        text = key, bare.scale, positions
    train: str | None = "all" if _trains(words, module) else "none"
    ranges = NO_ROWS
    if train == "all" and isinstance(words, PartlyFrozenEmbedding):
        train, ranges = None, Ranges(words.plan.bounds)
    trained = Trained(state[prefix + key], train, ranges, text)
    trained_table(_origin(bare, like), trained).save(output, if_exists=if_exists)


def _trains(part: nn.Module, module: nn.Module) -> bool:
    """Whether a table trains; if FullyShardedDataParallel took its parameter, as do all that it took."""
    parameters = list(part.parameters()) or list(module.parameters())
    return any(parameter.requires_grad for parameter in parameters)


def _bare(module: nn.Module) -> nn.Module:
    """The module itself, without what compiles it or trains it in parallel."""
    while not isinstance(module, Words | TextEmbedding | PositionTable):
        inner = getattr(module, "_orig_mod", None) or getattr(module, "module", None)
        if not isinstance(inner, nn.Module):
            break
        module = inner
    return module


def _origin(module: nn.Module, like: BundleLike | Vocabulary | None) -> Origin:
    if isinstance(like, Vocabulary):
        return Origin(like, None, None, None)
    if like is not None:
        return Origin.of(like if isinstance(like, Table) else load(like), None)
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
