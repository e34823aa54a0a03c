"""Shards as PyTorch's own distributed checkpoint reads them, and parts of a table as modules."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import FIXTURES, ROOT, collected
from safetensors.torch import load_file
from torch import nn
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.checkpoint.state_dict_loader import load

import vec2emb
from vec2emb import Vocabulary
from vec2emb.errors import InputError, UsageError
from vec2emb.torch import PartlyFrozenEmbedding, load_embedding, load_text_embedding, save_embedding

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"  # 250 rows x 50, of Stanford's own file


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample in one file and in shards of 79, 79, 79 and 15 rows."""
    folder = tmp_path_factory.mktemp("shards")
    vec2emb.convert(SAMPLE, folder / "one")
    vec2emb.export(folder / "one", "shards", folder / "shards", shard_size=4096 + 79 * 200)
    return folder


def weight_of(path: Path, key: str = "weight") -> torch.Tensor:
    return load_file(path / "model.safetensors")[key]


def loaded_by_torch(shards: Path, like: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What the distributed checkpoint's reader makes of a folder, in one process."""
    state = {name: torch.full_like(tensor, torch.nan) for name, tensor in like.items()}
    with warnings.catch_warnings():  # that there is one process, which is what is meant
        warnings.filterwarnings("ignore", "torch.distributed is disabled")
        load(state, storage_reader=HuggingFaceStorageReader(str(shards)), no_dist=True)
    return state


def consolidated(shards: Path, output: Path, keys: list[str]) -> dict[str, torch.Tensor]:
    """What torch's own tool joins shards to."""
    from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files

    output.mkdir()
    consolidate_safetensors_files(str(shards), str(output), dict.fromkeys(keys, 1))
    return dict(load_file(output / "model-00001-of-00001.safetensors"))


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    kind = {2: torch.int16, 4: torch.int32}[one.element_size()]
    return one.dtype == other.dtype and torch.equal(one.contiguous().view(kind), other.contiguous().view(kind))


def test_in_one_process(bundles: Path) -> None:
    expected = weight_of(bundles / "one")
    assert same(loaded_by_torch(bundles / "shards", {"weight": expected})["weight"], expected)


def test_consolidated(bundles: Path, tmp_path: Path) -> None:
    joined = consolidated(bundles / "shards", tmp_path / "joined", ["weight"])
    assert joined.keys() == {"weight"}
    assert same(joined["weight"], weight_of(bundles / "one"))


def test_no_row(tmp_path: Path) -> None:
    vec2emb.save(tmp_path / "none", [], np.zeros((0, 50)))
    vec2emb.export(tmp_path / "none", "shards", tmp_path / "shards")
    expected = torch.empty(0, 50)
    assert same(loaded_by_torch(tmp_path / "shards", {"weight": expected})["weight"], expected)
    assert same(consolidated(tmp_path / "shards", tmp_path / "joined", ["weight"])["weight"], expected)
    assert load_embedding(tmp_path / "shards").weight.shape == (0, 50)


def run_ranks(folder: Path, count: int) -> None:
    """Run `count` ranks, each a process, on the shards in a folder."""
    script = ROOT / "tests" / "support" / "ranks.py"
    ranks = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(count), str(folder)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(count)
    ]  # fmt: skip
    printed = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [text.splitlines()[-1:] for text in printed] == [["exact"]] * count, "\n".join(printed)


def test_on_two_ranks_as_a_sharded_tensor(bundles: Path, tmp_path: Path) -> None:
    (tmp_path / "shards").symlink_to(bundles / "shards")
    np.save(tmp_path / "table.npy", weight_of(bundles / "one").numpy())
    run_ranks(tmp_path, 2)


@pytest.mark.slow
def test_the_whole_of_glove(tmp_path: Path) -> None:
    source = os.environ.get("VEC2EMB_GLOVE50")
    if not source:
        pytest.skip("VEC2EMB_GLOVE50 does not name glove.6B.50d.txt")
    vec2emb.convert(source, tmp_path / "one")
    vec2emb.convert(source, tmp_path / "shards", shard_size="17MB")
    expected = weight_of(tmp_path / "one")
    assert len(list((tmp_path / "shards").glob("shard-*"))) == 5
    assert same(loaded_by_torch(tmp_path / "shards", {"weight": expected})["weight"], expected)
    assert same(consolidated(tmp_path / "shards", tmp_path / "joined", ["weight"])["weight"], expected)
    np.save(tmp_path / "table.npy", expected.numpy())
    run_ranks(tmp_path, 2)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("style", ["bert", "bart"])  # the second has positions under two keys
def test_types_names_and_positions(tmp_path: Path, dtype: str, style: str) -> None:
    options: dict[str, Any] = {
        "dtype": dtype, "key_style": style, "positions": "sinusoidal", "max_positions": 16,
        "scale": "match-positions",
    }  # fmt: skip
    one = vec2emb.convert(SAMPLE, tmp_path / "one", **options)
    many = vec2emb.convert(SAMPLE, tmp_path / "many", shard_size=4096 + 100 * 50 * 4, **options)
    expected = load_file(tmp_path / "one" / "model.safetensors")
    assert set(expected) == set(one.keys) == set(many.keys)
    read = loaded_by_torch(tmp_path / "many", expected)
    joined = consolidated(tmp_path / "many", tmp_path / "joined", list(expected))
    assert joined.keys() == expected.keys()
    for key, tensor in expected.items():
        assert same(read[key], tensor)
        assert same(joined[key], tensor)
    text, other = (load_text_embedding(tmp_path / name) for name in ("one", "many"))
    ids = torch.tensor([[2, 5, 251, 0], [100, 101, 0, 0]])
    assert torch.equal(text(ids), other(ids))


# Parts of a table as modules.


def test_parts_are_the_rows(bundles: Path) -> None:
    expected = weight_of(bundles / "one")
    for name, (start, stop) in itertools.product(
        ("one", "shards"), [(0, 252), (0, 1), (70, 240), (79, 158), (252, 252)]
    ):
        part = load_embedding(bundles / name, rows=(start, stop))
        assert isinstance(part, nn.Embedding)
        assert same(part.weight.detach(), expected[start:stop])
        assert part.padding_idx == (0 if start == 0 else None)
        assert part.weight.requires_grad
        with torch.no_grad():
            part.weight.zero_()  # its own memory: the file stays as it is
    whole = load_embedding(bundles / "shards")
    assert same(whole.weight.detach(), expected)
    assert vec2emb.load(bundles / "shards").vectors.tolist() == expected.tolist()


def test_a_part_has_the_padding_and_the_rows_that_train(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("".join(f"w{i} {i}.5 {i}.25\n" for i in range(8)))
    (tmp_path / "words.txt").write_text("w1\nnew1\nw3\nw4\nnew2\nw7\n")
    options: dict[str, Any] = {"vocab": tmp_path / "words.txt", "train_rows": "new", "specials_at": "end"}
    _, found = collected(
        lambda: vec2emb.convert(tmp_path / "v.txt", tmp_path / "b", shard_size=4096 + 3 * 8, **options)
    )
    assert [warning.code for warning in found] == ["missing-words"]
    # Rows: w1 new1 w3 | w4 new2 w7 | <pad> <unk>; new are 1, 4 and 7.
    table = vec2emb.load(tmp_path / "b")
    assert table.vocab.tokens == ["w1", "new1", "w3", "w4", "new2", "w7", "<pad>", "<unk>"]
    part = load_embedding(tmp_path / "b", rows=(2, 7))
    assert isinstance(part, PartlyFrozenEmbedding)
    assert (part.rows.tolist(), part.padding_idx, part.num_embeddings) == ([2], 4, 5)
    assert part(torch.tensor([0, 1, 3, 4])).tolist() == [[3.5, 3.25], [4.5, 4.25], [7.5, 7.25], [0, 0]]
    for rows, trains in (((2, 4), False), ((1, 2), True)):
        part = load_embedding(tmp_path / "b", rows=rows)
        assert isinstance(part, nn.Embedding)
        assert part.weight.requires_grad is trains
    part = load_embedding(table, rows=(2, 6), train_rows=["w4", "w1"])
    assert isinstance(part, PartlyFrozenEmbedding)
    assert part.rows.tolist() == [1]
    assert not load_embedding(tmp_path / "b", rows=(0, 8), freeze=True).weight.requires_grad


def test_what_cannot_be_a_part(bundles: Path, tmp_path: Path) -> None:
    rows: Any
    for rows, said in (
        ((0, 253), r"there are no such rows: expected 0 <= first <= end <= 252, found 0, 253"),
        ((-1, 5), "found -1, 5"),
        ((5, 4), "found 5, 4"),
        ((0.0, 4), r"found 0\.0, 4"),
        ((True, 4), "found True, 4"),
        (7, r"rows are a pair: expected \(first, one past the last\), found 7"),
        ((1, 2, 3), r"found \(1, 2, 3\)"),
    ):
        with pytest.raises(UsageError, match=said) as caught:
            load_embedding(bundles / "shards", rows=rows)
        assert caught.value.code == "rows-range"
    part = load_embedding(bundles / "shards", rows=(10, 20))
    with pytest.raises(
        UsageError, match="the module is a part of a table: found rows 10 to 19; put the parts"
    ) as caught:
        save_embedding(part, tmp_path / "part")
    assert caught.value.code == "part-of-a-table"
    tokens = vec2emb.load(bundles / "shards").vocab.tokens[10:20]
    save_embedding(part, tmp_path / "part", like=Vocabulary(tokens))
    saved = vec2emb.load(tmp_path / "part")
    assert saved.vocab.tokens == tokens
    assert same(torch.from_numpy(saved.vectors.copy()), weight_of(bundles / "one")[10:20])
    with pytest.raises(InputError, match="tokens and vectors do not fit each other"):
        save_embedding(part, tmp_path / "other", like=bundles / "shards")


def test_a_part_needs_no_vocabulary(bundles: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(bundles / "shards", tmp_path / "b")
    words = bytearray((tmp_path / "b" / "vocab.txt").read_bytes())
    words[:5] = b"<xxx>"
    (tmp_path / "b" / "vocab.txt").write_bytes(words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part = load_embedding(tmp_path / "b", rows=(0, 10))
    assert same(part.weight.detach(), weight_of(bundles / "one")[:10])
    with pytest.raises(InputError, match="sha256"):  # asked for a word, it is read and refused
        load_embedding(tmp_path / "b", rows=(0, 10), train_rows=["the"])
    with pytest.raises(InputError, match="sha256"):
        load_embedding(tmp_path / "b")
