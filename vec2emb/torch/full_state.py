"""State dicts of whole tables, put together from all ranks where they are sharded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, distributed, nn

from ..errors import UsageError
from .partly_frozen import PartlyFrozenEmbedding
from .text import TextEmbedding
from .tying import TiedHead

_WRAPPED = ("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module")


def full_state_dict(module: nn.Module, *, rank0_only: bool = False) -> dict[str, Tensor]:
    """Return the state dict in the form that modules of torch and transformers load.

    A partly frozen table has the one key `weight`, [V, D], a head tied to it a copy of that, and a `TextEmbedding` the
    keys of its bundle's file.
    Names are those of the bare model, without wrappers for DDP, FSDP and torch.compile. If the module is sharded by
    FSDP, all ranks must call this.

    Args:
        module: any module.
        rank0_only: of a sharded module, rank 0 alone gets the tensors, in CPU memory; the others get an empty dict.

    Raises:
        UsageError: the module is inside of one that is wrapped by `FullyShardedDataParallel`, and sharded with it.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    sharded = is_sharded(module)
    if not sharded and any(name.endswith("_flat_param") for name, _ in module.named_parameters()):
        raise _sharded_with_another("")
    # Offloading what is in CPU memory already ends in a crash of FullyShardedDataParallel (torch 2.13).
    offload = sharded and rank0_only and any(parameter.device.type != "cpu" for parameter in module.parameters())
    options = StateDictOptions(full_state_dict=sharded, cpu_offload=offload)
    state: dict[str, Any] = dict(get_model_state_dict(module, options=options))
    if sharded and rank0_only and distributed.get_rank() != 0:
        return {}
    for prefix, part in named_parts(module):
        if isinstance(part, nn.Embedding | nn.EmbeddingBag):
            weight = state.get(f"{prefix}weight")
            if weight is None or weight.ndim != 2:
                raise _sharded_with_another(prefix)
        elif isinstance(part, PartlyFrozenEmbedding):
            state = _joined(state, prefix, part)
    for prefix, part in named_parts(module):
        if isinstance(part, TextEmbedding):
            state = _with_keys_of_file(state, prefix, part)
        elif isinstance(part, TiedHead):
            state[f"{prefix}weight"] = _weight_of(module, state, part)
    return state


def is_sharded(module: nn.Module) -> bool:
    """Whether no process has the whole module: FSDP, in its first or its second form."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return False
    from torch.distributed.fsdp import FullyShardedDataParallel

    if any(isinstance(part, FullyShardedDataParallel) for part in module.modules()):
        return True
    return any(hasattr(parameter, "placements") for parameter in module.parameters())


def named_parts(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Modules with the prefixes that their tensors have in the state dict of the bare model."""
    yield prefix, module
    is_ddp = isinstance(module, nn.parallel.DistributedDataParallel)
    for name, child in module.named_children():
        yield from named_parts(child, prefix if is_ddp or name in _WRAPPED else f"{prefix}{name}.")


def _joined(state: dict[str, Tensor], prefix: str, part: PartlyFrozenEmbedding) -> dict[str, Tensor]:
    frozen, trained = (state.get(prefix + name) for name in ("frozen", "trained"))
    if (
        frozen is None
        or trained is None
        or (len(frozen), len(trained)) != (part.plan.num_frozen, part.plan.num_trained)
    ):
        raise _sharded_with_another(prefix)
    weight = part.plan.join(frozen, trained)
    names = {prefix + "frozen": prefix + "weight"}
    dropped = prefix + "trained"
    return {
        names.get(name, name): weight if name in names else tensor for name, tensor in state.items() if name != dropped
    }


def _with_keys_of_file(state: dict[str, Tensor], prefix: str, part: TextEmbedding) -> dict[str, Tensor]:
    """The state dict with the names of the file; a table with two of them is there twice, as in the file."""
    result: dict[str, Tensor] = {}
    keys = {prefix + own: names for own, names in part.keys.items()}
    for name, tensor in state.items():
        first, *others = keys.get(name) or [name.removeprefix(prefix)]
        result[prefix + first if name.startswith(prefix) else name] = tensor
        result |= {prefix + other: tensor.clone() for other in others}
    return result


def _weight_of(module: nn.Module, state: dict[str, Tensor], head: TiedHead) -> Tensor:
    for prefix, part in named_parts(module):
        if part is head.table:
            return state[f"{prefix}weight"].clone()  # safetensors refuses shared memory
    return head.table.weight.detach().clone()


def _sharded_with_another(prefix: str) -> UsageError:
    return UsageError(
        "sharded-with-another", f"the table {prefix.rstrip('.') or 'itself'} is sharded with the model around it",
        hint="call this with the module that FSDP wraps, or within FullyShardedDataParallel.summon_full_params(model)",
    )  # fmt: skip
