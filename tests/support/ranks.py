"""One rank of several: `python ranks.py RANK RANKS FOLDER`, with shards in FOLDER/shards and their table in table.npy.

Loads its part of the table twice, as a row-sharded DTensor by PyTorch's distributed checkpoint and by `load_embedding`,
compares both to the bit, and looks words up across all ranks.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, zeros
from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module

from vec2emb.torch import load_embedding


def main(rank: int, ranks: int, folder: Path) -> None:
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=ranks,
        timeout=datetime.timedelta(seconds=60),
    )  # fmt: skip
    mesh = init_device_mesh("cpu", (ranks,))
    expected = torch.from_numpy(np.load(folder / "table.npy"))
    count = len(expected)

    state = {"weight": zeros(expected.shape, device_mesh=mesh, placements=[Shard(0)])}
    load(state, storage_reader=HuggingFaceStorageReader(str(folder / "shards")))
    weight = state["weight"]
    assert weight.placements == (Shard(0),)
    each = -(-count // ranks)  # how Shard(0) deals rows out, as torch.chunk does
    first, stop = min(rank * each, count), min((rank + 1) * each, count)
    assert torch.equal(weight.to_local().view(torch.int32), expected[first:stop].view(torch.int32))
    assert torch.equal(weight.full_tensor().view(torch.int32), expected.view(torch.int32))

    part = load_embedding(folder / "shards", rows=(first, stop))
    assert torch.equal(part.weight.view(torch.int32), expected[first:stop].view(torch.int32))
    assert part.padding_idx == (0 if rank == 0 else None)
    whole = DTensor.from_local(part.weight.detach(), mesh, [Shard(0)], shape=expected.shape, stride=expected.stride())
    assert torch.equal(whole.full_tensor(), expected)

    ids = torch.arange(0, count, 7)
    embedding: Any = parallelize_module(
        torch.nn.Embedding(count, expected.shape[1]), mesh, RowwiseParallel(input_layouts=Replicate())
    )
    with torch.no_grad():
        embedding.weight.copy_(weight)
    assert torch.equal(embedding(ids), expected[ids])
    assert torch.equal(distribute_tensor(expected, mesh, [Shard(0)]).to_local(), weight.to_local())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    print("exact")
