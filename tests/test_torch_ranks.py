"""Tables trained on several ranks, by DDP and by FSDP in both forms, are those that nn.Embedding trains to on one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torch_tables import PAD, TRAIN, V, start

import vec2emb
from vec2emb.torch import PartlyFrozenEmbedding, TextEmbedding, save_embedding
from vec2emb.torch.text import PositionTable


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the rows of `torch_tables`, with positions that are zero and do not train."""
    import torch

    folder = tmp_path_factory.mktemp("ranks")
    tokens = [f"w{row}" for row in range(V)]
    vocab = vec2emb.Vocabulary(tokens, pad_token=tokens[PAD])
    words = PartlyFrozenEmbedding(start(), TRAIN, padding_idx=PAD)
    module = TextEmbedding(words, PositionTable(torch.zeros(5, start().shape[1])))
    save_embedding(module, folder / "bundle", like=vocab)
    return folder


def run(folder: Path, ranks: int) -> None:
    script = Path(__file__).with_name("torch_ranks.py")
    started = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(ranks), str(folder)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    printed = [rank.communicate(timeout=300)[0] for rank in started]
    assert [text.splitlines()[-1:] for text in printed] == [["right"]] * ranks, "\n".join(printed)


def test_on_two_ranks(folder: Path) -> None:
    run(folder, 2)


@pytest.mark.slow
def test_on_one_and_three_ranks_which_read_each_other(folder: Path) -> None:
    run(folder, 1)
    run(folder, 3)
