"""Tables trained on several ranks, by DDP and by FSDP in both forms, are those that nn.Embedding trains to on one."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torch_ranks
from torch.distributed.checkpoint.state_dict_loader import load as load_checkpoint
from torch_ranks import close, expected_rows
from torch_tables import OURS, PAD, TRAIN, V, make, rows_of, start

import vec2emb
from vec2emb.torch import PartlyFrozenEmbedding, TextEmbedding, save_embedding
from vec2emb.torch.text import PositionTable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bundle of the rows of `torch_tables`, with positions that are zero and do not train."""
    tokens = [f"w{row}" for row in range(V)]
    vocab = vec2emb.Vocabulary(tokens, pad_token=tokens[PAD])
    words = PartlyFrozenEmbedding(start(), TRAIN, padding_idx=PAD)
    module = TextEmbedding(words, PositionTable(torch.zeros(5, start().shape[1])))
    save_embedding(module, tmp_path / "bundle", like=vocab)
    return tmp_path


def run(folder: Path, ranks: int) -> None:
    script = Path(torch_ranks.__file__)
    started = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(ranks), str(folder)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    printed = [rank.communicate(timeout=300)[0] for rank in started]
    assert [text.splitlines()[-1:] for text in printed] == [["right"]] * ranks, "\n".join(printed)


def read_checkpoints(folder: Path, count: int) -> None:
    """Read the distributed checkpoints of all runs in this process, without ranks."""
    paths = sorted(folder.glob("dcp-*"))
    assert len(paths) == count
    for path in paths:
        kind = path.name.split("-")[1]
        module = make(kind)
        state = {"model": module.state_dict()}
        with warnings.catch_warnings():  # that there is one process, which is intended
            warnings.filterwarnings("ignore", "torch.distributed is disabled")
            load_checkpoint(state, checkpoint_id=path, no_dist=True)
        module.load_state_dict(state["model"])
        close(rows_of(module), expected_rows(kind))


def test_on_two_ranks(folder: Path) -> None:
    run(folder, 2)
    read_checkpoints(folder, len(OURS))


@pytest.mark.slow
def test_on_one_to_three_ranks_which_read_each_other(folder: Path) -> None:
    for ranks in (1, 3, 2):
        run(folder, ranks)
    read_checkpoints(folder, 3 * len(OURS))
