"""One rank of several: `python torch_ranks.py RANK RANKS FOLDER`; each table is trained, saved and compared.

FOLDER has `start.npy`, the rows of all tables at first, and `bundle`, which holds them and records which of them train.
What a rank of this number wrote as a distributed checkpoint is read by runs of other numbers of ranks.
"""

from __future__ import annotations

import contextlib
import datetime
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.checkpoint.state_dict_loader import load as load_checkpoint
from torch.distributed.checkpoint.state_dict_saver import save as save_checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch_tables import IDS, OURS, TRAIN, Oracle, loss_of, make, partly_of, rows_of, same, start, step

import vec2emb
from vec2emb.errors import InputError, OutputError, UsageError, Vec2embError
from vec2emb.torch import (
    PartlyFrozenEmbedding,
    full_state_dict,
    load_embedding,
    load_text_embedding,
    save_embedding,
    tie_head,
)

CPU = torch.device("cpu")


def fsdp1(module: nn.Module, use_orig_params: bool = True) -> nn.Module:
    return FullyShardedDataParallel(module, device_id=CPU, use_orig_params=use_orig_params)


def fsdp2(module: nn.Module) -> nn.Module:
    fully_shard(module, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    return module


WRAPS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "ddp": nn.parallel.DistributedDataParallel,
    "fsdp1": fsdp1,
    "fsdp2": fsdp2,
}


def optimizer_of(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.1)


def load(kind: str, bundle: Path) -> nn.Module:
    """A table of the bundle, whose rows are those of `make(kind)`."""
    if kind == "text":
        return load_text_embedding(bundle)
    return load_embedding(bundle, **({"freeze": False} if kind == "whole" else {}))  # type: ignore[arg-type]


def expected_rows(kind: str) -> Tensor:
    oracle = Oracle(kind)
    optimizer = optimizer_of(oracle)
    for _ in range(2):
        step(oracle, optimizer)
    return oracle.all_rows()


def train(module: nn.Module, kind: str) -> None:
    optimizer = optimizer_of(module)
    for _ in range(2):
        train_one(module, optimizer, kind)


def train_one(module: nn.Module, optimizer: torch.optim.Optimizer, kind: str) -> None:
    """A step on the loss that the oracle has; all ranks have one batch, so that means of gradients are those of one."""
    optimizer.zero_grad()
    vectors = module(IDS)
    value = loss_of(vectors if kind == "whole" else vectors[torch.isin(IDS, torch.tensor(TRAIN))])
    value.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


@contextlib.contextmanager
def refused(kind: type[Vec2embError], code: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    assert caught.value.code == code, caught.value


def trained_plan(bundle: Path) -> str:
    manifest = vec2emb.load(bundle).manifest
    assert manifest is not None
    return manifest.training.kind


def close(found: Tensor, expected: Tensor) -> None:
    """To the bit where rows are frozen; means over 3 ranks round."""
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def check(wrap: str, kind: str, folder: Path) -> None:
    """Train a wrapped table, then take all that can be taken of it."""
    module = load(kind, folder / "bundle")
    wrapped, before, expected = WRAPS[wrap](module), start(), expected_rows(kind)
    train(wrapped, kind)
    key = "word_embeddings.weight" if kind == "text" else "weight"
    full = full_state_dict(wrapped)
    close(full[key], expected)
    frozen = [row for row in range(len(before)) if row not in TRAIN] if kind != "whole" else []
    assert same(full[key][frozen], before[frozen])
    state = get_model_state_dict(wrapped, options=StateDictOptions(full_state_dict=True))
    assert set(state) == set(make(kind).state_dict())
    assert len(wrapped.state_dict()) == len(state)
    other = make(kind)
    other.load_state_dict(state)
    assert same(rows_of(other), full[key])

    output = folder / f"{wrap}-{kind}"
    if wrap != "ddp" or dist.get_rank() == 0:
        save_embedding(wrapped, output)
    dist.barrier()
    saved = vec2emb.load(output)
    assert same(torch.from_numpy(saved.vectors.copy()), full[key])
    assert trained_plan(output) == ("all" if kind == "whole" else "rows")
    assert list(full_state_dict(wrapped, rank0_only=True)) == (
        list(full) if wrap == "ddp" or dist.get_rank() == 0 else []
    )
    if wrap == "ddp":
        return
    with refused(OutputError, "target-exists"):  # on each rank, though rank 0 alone has found it
        save_embedding(wrapped, output)
    with refused(InputError, "shape-mismatch"):
        save_embedding(wrapped, folder / "never", like=vec2emb.Vocabulary(["a"]))
    is_part = wrap == "fsdp2" or dist.get_world_size() > 1  # alone, FSDP in its first form keeps tables whole
    if kind != "whole":
        with refused(UsageError, "sharded-weight") if is_part else contextlib.nullcontext():
            _ = partly_of(module).weight
        assert "4 rows train" in repr(wrapped)
    if wrap == "fsdp1":
        with refused(UsageError, "sharded-with-another") if is_part else contextlib.nullcontext():
            save_embedding(module, folder / f"inner-{kind}")
        with FullyShardedDataParallel.summon_full_params(wrapped):
            assert same(full_state_dict(module)[key], full[key])
    else:
        again = fsdp2(make(kind))
        set_model_state_dict(again, state, options=StateDictOptions(full_state_dict=True))
        assert same(full_state_dict(again)[key], full[key])
        set_model_state_dict(again, get_model_state_dict(wrapped))
        assert same(full_state_dict(again)[key], full[key])


def check_checkpoints(folder: Path) -> None:
    """Write a distributed checkpoint of each kind, and read those that other numbers of ranks wrote."""
    for kind in OURS:
        module = fsdp2(load(kind, folder / "bundle"))
        train(module, kind)
        save_checkpoint(
            {"model": get_model_state_dict(module)}, checkpoint_id=folder / f"dcp-{kind}-{dist.get_world_size()}"
        )
        for path in sorted(folder.glob(f"dcp-{kind}-*")):
            other = fsdp2(make(kind))
            state = {"model": get_model_state_dict(other)}
            load_checkpoint(state, checkpoint_id=path)
            set_model_state_dict(other, state["model"])
            close(next(iter(full_state_dict(other).values())), expected_rows(kind))


def check_refusals(folder: Path) -> None:
    """Where nn.Embedding raises, ours does; what FSDP cannot do it says itself."""
    for kind in ("partly", "text"):
        with refused(UsageError, "fsdp-flattens"):
            fsdp1(load(kind, folder / "bundle"), use_orig_params=False)
        mixed = nn.ModuleDict({"table": make(kind), "layer": nn.Linear(2, 2)})
        FullyShardedDataParallel(mixed, device_id=CPU, ignored_modules=[mixed["table"]])
        assert same(mixed["table"](IDS), start()[IDS])
    sparse = nn.parallel.DistributedDataParallel(make("text", sparse=True))
    with refused(UsageError, "sparse-under-ddp"):
        sparse(IDS)
    with torch.no_grad():
        assert same(sparse(IDS), start()[IDS])
    whole = fsdp1(load("whole", folder / "bundle"), use_orig_params=False)
    train(whole, "whole")
    save_embedding(whole, folder / "flat")
    dist.barrier()
    assert trained_plan(folder / "flat") == "all"
    close(torch.from_numpy(vec2emb.load(folder / "flat").vectors.copy()), expected_rows("whole"))
    with refused(UsageError, "sharded-with-another"):
        inner: Any = whole.module
        save_embedding(inner, folder / "never")
    for wrap in (fsdp1, fsdp2):
        raised = []
        for kind in ("plain", "partly"):
            module = wrap(make(kind, sparse=True))
            try:
                train(module, "whole" if kind == "plain" else kind)
            except (RuntimeError, NotImplementedError, AttributeError) as error:
                raised.append(type(error))
            dist.barrier()
        assert len(raised) in (0, 2), raised


def check_heads() -> None:
    """A head that shares the table, inside one sharded model."""
    for wrap in (fsdp1, fsdp2):
        results = []
        for wrapped in (False, True):
            table = make("partly")
            assert isinstance(table, PartlyFrozenEmbedding)
            model: nn.Module = nn.Sequential(table, tie_head(table))
            model = wrap(model) if wrapped else model
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
            model(IDS).square().sum().backward()
            optimizer.step()
            results.append(full_state_dict(model)["0.weight"])
        close(results[1], results[0])


def main(rank: int, ranks: int, folder: Path) -> None:
    warnings.filterwarnings("ignore")  # torch's, of FSDP in its first form
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous-{ranks}", rank=rank, world_size=ranks,
        timeout=datetime.timedelta(seconds=60),
    )  # fmt: skip
    output = folder / f"on-{ranks}"
    if rank == 0:
        output.mkdir()
        (output / "bundle").symlink_to(folder / "bundle")
    dist.barrier()
    for kind in OURS:
        for wrap in WRAPS:
            check(wrap, kind, output)
    check_heads()
    check_refusals(output)
    check_checkpoints(folder)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    print("right")
