"""From a bundle to a running model: real models read it, frozen rows stay, and what was trained comes back."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import FIXTURES, collected, manifest_of
from safetensors.torch import load_file
from tiny_models import VOCABULARY, WIDTH, tiny
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

import vec2emb
from vec2emb.bundle.manifest import Training
from vec2emb.bundle.publication import CONFIG, MODEL
from vec2emb.bundle.ranges import Ranges
from vec2emb.errors import InputError, UsageError, VocabularyError
from vec2emb.positions.key_styles import STYLES
from vec2emb.torch import (
    Collate,
    PartlyFrozenEmbedding,
    TextEmbedding,
    embedding_bag,
    full_state_dict,
    load_embedding,
    load_text_embedding,
    save_embedding,
    tie_head,
    tied_linear,
)

WORDS = [f"w{i}" for i in range(VOCABULARY - 4)]
NEW = [1, VOCABULARY - 2, VOCABULARY - 1]  # the unknown token and the missing words
POSITIONS = 12
IDS = torch.tensor([[2, 3, 9, 1, 40], [7, 7, 49, 0, 0], [5, 0, 0, 0, 0]])  # padded with 0


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "vectors.txt"
    rows = np.random.default_rng(3).normal(size=(len(WORDS), WIDTH))
    path.write_text("".join(f"{w} {' '.join(f'{x:.6f}' for x in row)}\n" for w, row in zip(WORDS, rows, strict=True)))
    return path


@pytest.fixture(scope="module")
def make(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A bundle of 50 rows: padding, unknown, 46 words of the file, 2 that it lacks."""

    def convert(**options: Any) -> Path:
        path = tmp_path_factory.mktemp("bundles") / "bundle"
        collected(lambda: vec2emb.convert(source, path, vocab=[*WORDS, "new0", "new1"], **options))
        return path

    return convert


@pytest.fixture(scope="module")
def bundle(make: Callable[..., Path]) -> Path:
    return make(train_rows="new")


def same(a: Tensor, b: Tensor) -> bool:
    """Equal to the bit; -0 and 0 differ."""
    return a.dtype == b.dtype and torch.equal(a.detach().view(torch.uint8), b.detach().view(torch.uint8))


# Batches.


def test_collate(bundle: Path) -> None:
    vocab = vec2emb.load(bundle).vocab
    ids, lengths = Collate(vocab, max_length=3)([["w0", "w1", "w2", "w3"], ["absent"], []])
    assert ids.tolist() == [[2, 3, 4], [1, 0, 0], [0, 0, 0]]
    assert lengths.tolist() == [3, 1, 0]
    assert (ids.dtype, lengths.dtype) == (torch.int64, torch.int64)
    assert Collate(vocab, lookup="lower")([["W3"]])[0].tolist() == [[5]]
    with pytest.raises(VocabularyError, match="'absent'"):
        Collate(vec2emb.Vocabulary(["a"]))([["absent"]])


def test_collate_goes_to_workers(bundle: Path) -> None:
    collate = Collate(vec2emb.load(bundle).vocab, max_length=2)
    packed = pickle.dumps(collate)
    assert len(packed) < 1000  # the path of the vocabulary, not its tokens
    texts = [["w1", "w2", "w3"], ["w4"], ["w5"]]
    assert pickle.loads(packed)(texts)[0].equal(collate(texts)[0])
    items: Any = texts
    loader: DataLoader[Any] = DataLoader(
        items, batch_size=2, collate_fn=collate, num_workers=1, multiprocessing_context="fork"
    )
    assert [ids.tolist() for ids, _ in loader] == [[[3, 4], [6, 0]], [[7]]]


# The word table.


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_load_embedding_has_the_rows_of_the_file_and_memory_of_its_own(make: Callable[..., Path], dtype: str) -> None:
    path = make(dtype=dtype)
    stored = load_file(path / MODEL)["weight"]
    before = hashlib.sha256((path / MODEL).read_bytes()).digest()
    embedding = load_embedding(path)
    assert type(embedding) is nn.Embedding
    assert same(embedding.weight, stored)
    assert embedding.weight.dtype == getattr(torch, dtype)
    assert (embedding.padding_idx, embedding.weight.requires_grad) == (0, True)
    with torch.no_grad():
        embedding.weight.fill_(7)
    assert same(load_embedding(path).weight, stored)
    assert hashlib.sha256((path / MODEL).read_bytes()).digest() == before
    assert same(load_embedding(path, dtype=torch.float64).weight, stored.double())
    assert load_embedding(path, device="meta").weight.is_meta
    plain = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0, dtype=stored.dtype)
    assert str(plain.load_state_dict(load_file(path / MODEL))) == "<All keys matched successfully>"


def test_what_trains_is_what_the_bundle_says_unless_told_otherwise(make: Callable[..., Path], bundle: Path) -> None:
    frozen = make(freeze=True)
    assert not load_embedding(frozen).weight.requires_grad
    assert load_embedding(frozen, freeze=False).weight.requires_grad
    assert not load_embedding(bundle, freeze=True).weight.requires_grad
    some = load_embedding(bundle)
    assert isinstance(some, PartlyFrozenEmbedding)
    assert some.rows.tolist() == NEW
    for rows in (["w3", "w1"], [5, 3, 0], torch.tensor([3, 5]), iter([3, 5])):
        chosen = load_embedding(frozen, train_rows=rows)
        assert isinstance(chosen, PartlyFrozenEmbedding)
        assert chosen.rows.tolist() == [3, 5]  # the padding row never trains
    again = load_embedding(frozen, train_rows="new")
    assert isinstance(again, PartlyFrozenEmbedding)
    assert again.rows.tolist() == NEW
    assert not load_embedding(frozen, train_rows=[]).weight.requires_grad
    assert not load_embedding(vec2emb.load(frozen)).weight.requires_grad


def test_a_table_in_memory(source: Path) -> None:
    table = vec2emb.read_vectors(source)
    embedding = load_embedding(table)
    assert embedding.padding_idx is None
    assert embedding.weight.requires_grad
    np.testing.assert_array_equal(embedding.weight.detach().numpy(), table.vectors)
    assert not load_embedding(table, train_rows="new").weight.requires_grad  # nothing in it is new
    assert type(load_embedding(table, train_rows=range(len(table)))) is nn.Embedding


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"freeze": True, "train_rows": "all"}, "freeze-and-train"),
        ({"train_rows": [50]}, "train-rows"),
        ({"train_rows": ["absent"]}, "train-word-missing"),
        ({"max_norm": 1.0}, "max-norm-frozen"),
        ({"dtype": torch.int8}, "dtype"),
    ],
)
def test_load_embedding_refuses(bundle: Path, options: dict[str, Any], code: str) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        load_embedding(bundle, **options)
    assert caught.value.code == code


def test_max_norm_and_sparse_are_handed_on(bundle: Path) -> None:
    embedding = load_embedding(bundle, freeze=False, max_norm=0.5, sparse=True)
    assert isinstance(embedding, nn.Embedding)
    assert embedding(torch.tensor([3])).norm().item() == pytest.approx(0.5)
    embedding(torch.tensor([3, 4])).sum().backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.is_sparse


# Frozen rows stay, whatever the optimiser does.


def train(embedding: nn.Module, optimiser: type[torch.optim.Optimizer], steps: int = 200, **options: Any) -> None:
    """Steps on random batches, padding among them; a layer behind it gives every optimiser something to do."""
    generator = torch.Generator().manual_seed(0)
    layer = nn.Linear(WIDTH, 1)
    model = nn.Sequential(embedding, layer)
    steady = optimiser(model.parameters(), lr=0.05, weight_decay=0.1, **options)  # type: ignore[call-arg]
    for _ in range(steps):
        steady.zero_grad()
        ids = torch.randint(0, VOCABULARY, (4, 6), generator=generator)
        model(ids).square().mean().backward()
        steady.step()


@pytest.mark.parametrize(
    ("optimiser", "options"), [(torch.optim.AdamW, {}), (torch.optim.SGD, {"momentum": 0.9})], ids=["adamw", "sgd"]
)
@pytest.mark.parametrize("plan", ["none", "new", "all", "rows"])
def test_frozen_rows_stay_training_rows_move_and_padding_is_zero(
    bundle: Path, plan: str, optimiser: type[torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    rows = {"none": [], "new": NEW, "all": list(range(1, VOCABULARY)), "rows": [0, 5, 6]}[plan]
    asked: Any = {"none": {"freeze": True}, "rows": {"train_rows": rows}}.get(plan, {"train_rows": plan})
    embedding = load_embedding(bundle, **asked)
    before = embedding.weight.detach().clone()
    train(embedding, optimiser, **options)
    after = embedding.weight.detach()
    moved = [row for row in range(VOCABULARY) if not same(after[row], before[row])]
    assert moved == [row for row in rows if row != 0]
    assert same(after[0], torch.zeros(WIDTH))
    assert torch.isfinite(after).all()


def test_a_mask_on_the_gradient_does_not_freeze_a_row(bundle: Path) -> None:
    """Why there is `PartlyFrozenEmbedding`: decay moves what has a gradient of zero, by (1 - lr * decay) a step."""
    embedding = load_embedding(bundle, freeze=False)
    before = embedding.weight.detach().clone()
    mask = torch.zeros(VOCABULARY, 1)
    mask[NEW] = 1
    embedding.weight.register_hook(lambda gradient: gradient * mask)  # type: ignore[no-untyped-call]
    train(embedding, torch.optim.AdamW)
    words = slice(2, VOCABULARY - 2)
    assert (embedding.weight[words] != before[words]).all()
    torch.testing.assert_close(embedding.weight[words], before[words] * (1 - 0.05 * 0.1) ** 200)


# The partly frozen table is an `nn.Embedding` in all but name.


@pytest.fixture
def pair() -> tuple[nn.Embedding, PartlyFrozenEmbedding]:
    torch.manual_seed(1)
    plain = nn.Embedding(9, 4, padding_idx=2)
    return plain, PartlyFrozenEmbedding(plain.weight, [7, 0, 3], padding_idx=2)


IDS_OF_NINE = torch.tensor([[0, 1, 2, 3], [8, 7, 7, 0]])


def test_the_same_lookup_and_the_same_gradient(pair: tuple[nn.Embedding, PartlyFrozenEmbedding]) -> None:
    plain, partly = pair
    for ids in (IDS_OF_NINE, IDS_OF_NINE.int(), torch.tensor(5), torch.tensor([], dtype=torch.int64)):
        assert same(plain(ids), partly(ids))
    weights = torch.randn(2, 4, 4)
    for module in pair:
        (module(IDS_OF_NINE) * weights).sum().backward()
    assert plain.weight.grad is not None
    assert partly.trained.grad is not None
    torch.testing.assert_close(partly.trained.grad, plain.weight.grad[[0, 3, 7]], rtol=0, atol=0)
    assert {name: parameter.requires_grad for name, parameter in partly.named_parameters()} == {
        "frozen": False, "trained": True,
    }  # fmt: skip
    assert not list(partly.buffers())
    assert partly.frozen.grad is None
    assert (partly.num_embeddings, partly.embedding_dim, partly.padding_idx) == (9, 4, 2)
    assert same(partly.weight, plain.weight)
    assert "9, 4, padding_idx=2, 3 rows train" in repr(partly)
    for wrong in (-1, 9):
        with pytest.raises(IndexError):
            plain(torch.tensor([wrong]))
        with pytest.raises(IndexError):
            partly(torch.tensor([wrong]))


def test_each_loads_what_the_other_saved(pair: tuple[nn.Embedding, PartlyFrozenEmbedding]) -> None:
    plain, partly = pair
    other = PartlyFrozenEmbedding(torch.zeros(9, 4), [7, 0, 3], padding_idx=2)
    assert list(partly.state_dict()) == ["frozen", "trained"]
    for state in (plain.state_dict(), partly.state_dict(), full_state_dict(partly)):
        other.load_state_dict({key: torch.zeros_like(value) for key, value in other.state_dict().items()})
        assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
        assert same(other.weight, plain.weight)
    fresh = nn.Embedding(9, 4)
    fresh.load_state_dict(full_state_dict(partly))
    assert same(fresh.weight, plain.weight)
    model = nn.ModuleDict({"inner": other})
    assert list(model.state_dict()) == ["inner.frozen", "inner.trained"]
    assert list(full_state_dict(model)) == ["inner.weight"]
    model.load_state_dict({"inner.weight": nn.Parameter(torch.ones(9, 4))})
    assert (other.weight == 1).all()
    assert (other.frozen.requires_grad, other.trained.requires_grad) == (False, True)
    for wrong, message in (
        ({}, r'Missing key\(s\) in state_dict: "inner.frozen", "inner.trained"'),
        ({"inner.weight": torch.ones(9, 4), "inner.bias": torch.ones(1)}, 'Unexpected.*"inner.bias"'),
        ({**model.state_dict(), "inner.weight": torch.ones(9, 4)}, 'Unexpected.*"inner.weight"'),
        ({"inner.weight": torch.ones(8, 4)}, r"size mismatch for inner.weight: \(8, 4\) .* \(9, 4\) in the module"),
    ):
        with pytest.raises(RuntimeError, match=message):
            model.load_state_dict(wrong)
    assert (other.weight == 1).all()


@pytest.mark.parametrize(
    ("rows", "code", "message"),
    [
        ([], "rows-not-some", "no row would train"),
        (range(9), "rows-not-some", "all rows would train"),
        ([9], "train-rows", "0 .. 8, found 9"),
        ([-1], "train-rows", "found -1"),
    ],
)
def test_a_partly_frozen_table_has_rows_of_both_kinds(rows: Any, code: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        PartlyFrozenEmbedding(torch.zeros(9, 4), rows)
    assert caught.value.code == code


# Words plus positions, in our module and in real models.

MODELS: dict[str, tuple[str, dict[str, Any], Callable[[Any], nn.Module]]] = {
    "bert": ("BertModel", {"max_position_embeddings": POSITIONS}, lambda m: m.embeddings.LayerNorm),
    "roberta": ("RobertaModel", {"max_position_embeddings": POSITIONS + 1}, lambda m: m.embeddings.LayerNorm),
    "gpt2": ("GPT2Model", {"n_positions": POSITIONS}, lambda m: m.h[0].ln_1),
    "bart": (
        "BartModel",
        {"max_position_embeddings": POSITIONS, "scale_embedding": True},
        lambda m: m.encoder.layernorm_embedding,
    ),
}


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
@pytest.mark.parametrize("style", MODELS)
def test_real_models_read_the_file_and_add_what_we_add(make: Callable[..., Path], style: str, kind: str) -> None:
    name, settings, norm = MODELS[style]
    path = make(
        positions=kind, max_positions=POSITIONS, key_style=style, scale="sqrt-dim" if style == "bart" else "none"
    )
    model = tiny(name, pad_token_id=0, **settings)
    state = load_file(path / MODEL)
    result = model.load_state_dict(state, strict=False)
    assert not result.unexpected_keys
    loaded = model.state_dict()
    for key in (STYLES[style].word_key, *STYLES[style].position_keys):
        assert key not in result.missing_keys
        assert same(loaded[key], state[key])
    words = {loaded[key].data_ptr() for key in result.missing_keys if loaded[key].shape == (VOCABULARY, WIDTH)}
    assert words <= {loaded[STYLES[style].word_key].data_ptr()}  # BART's other names of the same memory

    caught: list[Tensor] = []
    handle = norm(model).register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
    with torch.no_grad():
        model(input_ids=IDS, attention_mask=(IDS != 0).long())
        ours = load_text_embedding(path)(IDS)
        if style in ("bert", "roberta"):
            ours = ours + model.embeddings.token_type_embeddings.weight[0]
    handle.remove()
    # They add the token types in between, so that the last bits may differ.
    torch.testing.assert_close(caught[0], ours, rtol=0, atol=2e-6 if style in ("bert", "roberta") else 0)


def test_the_full_state_dict_has_the_keys_of_the_file(make: Callable[..., Path]) -> None:
    for style in STYLES:
        for options in ({}, {"positions": "learned", "max_positions": 3}, {"train_rows": "new"}):
            path = make(key_style=style, **options)
            state, module = load_file(path / MODEL), load_text_embedding(path)
            full = full_state_dict(module)
            assert set(full) == set(state)
            assert all(same(value, state[key]) for key, value in full.items())
            other = load_text_embedding(path)
            for given in (state, full, module.state_dict()):
                for tensor in other.state_dict().values():
                    tensor.zero_()
                assert str(other.load_state_dict(given)) == "<All keys matched successfully>"
                assert same(other(IDS[:, :3]), module(IDS[:, :3]))
            model = nn.ModuleDict({"inner": other})
            assert set(full_state_dict(model)) == {f"inner.{key}" for key in state}
            model.load_state_dict(model.state_dict())
            model.load_state_dict(full_state_dict(model))


def test_a_state_dict_that_does_not_fit_is_refused(make: Callable[..., Path]) -> None:
    module = load_text_embedding(make(positions="learned", max_positions=3, key_style="bart"), layer_norm=True)
    words, first, second = "shared.weight", "encoder.embed_positions.weight", "decoder.embed_positions.weight"
    state = full_state_dict(module)
    assert set(state) == {words, first, second, "norm.weight", "norm.bias"}
    assert set(module.state_dict()) == {"words.weight", "positions.weight", "norm.weight", "norm.bias"}
    before = {key: value.clone() for key, value in state.items()}
    for wrong, message in (
        (
            {key: value for key, value in state.items() if key != words},
            r'Missing key\(s\) in state_dict: "words.weight"',
        ),
        ({key: value for key, value in state.items() if key not in (first, second)}, 'Missing .*"positions.weight"'),
        ({**state, "other": state[words]}, 'Unexpected .*"other"'),
        ({**state, second: state[first] + 1}, f"{first} and {second} differ"),
        ({**state, words: state[words][1:]}, "size mismatch for words.weight"),
    ):
        with pytest.raises(RuntimeError, match=message):
            module.load_state_dict(wrong)
    module.load_state_dict({key: value for key, value in before.items() if key != second})  # one of the two will do
    assert all(same(value, before[key]) for key, value in full_state_dict(module).items())


def test_positions_beyond_the_table_are_an_error(make: Callable[..., Path]) -> None:
    plain = load_text_embedding(make(positions="sinusoidal", max_positions=5))
    assert plain(torch.ones(2, 5, dtype=torch.int64)).shape == (2, 5, WIDTH)
    with pytest.raises(UsageError, match=r"at most 5 tokens, found 6; cut it with Collate\(vocab, max_length=5\)"):
        plain(torch.ones(2, 6, dtype=torch.int64))
    padded = load_text_embedding(make(positions="learned", max_positions=5, key_style="roberta"))
    long = torch.tensor([[3] * 5 + [0] * 4])
    rows = padded(long) - padded.words(long)
    assert padded.positions is not None
    torch.testing.assert_close(rows[0, :5], padded.positions.weight[1:], rtol=0, atol=1e-6)
    assert not rows[0, 5:].any()  # padding has its row of zeros, however far it reaches
    with pytest.raises(UsageError, match="at most 5 tokens, found 6"):
        padded(torch.tensor([[3] * 6]))
    assert padded(torch.ones(0, 6, dtype=torch.int64)).shape == (0, 6, WIDTH)


def test_positions_train_or_are_fixed_as_recorded(make: Callable[..., Path]) -> None:
    learned = make(positions="learned", max_positions=5, key_style="roberta")
    for path, trains in ((learned, True), (make(positions="sinusoidal", max_positions=5), False)):
        module = load_text_embedding(path)
        assert module.positions is not None
        assert module.positions.trains is trains
        opposite = load_text_embedding(path, train_positions=not trains)
        assert opposite.positions is not None
        assert opposite.positions.trains is not trains
    module = load_text_embedding(learned, freeze=True)
    assert module.positions is not None
    before = module.positions.weight.detach().clone()
    optimiser = torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], lr=0.1, weight_decay=0.1)
    for _ in range(5):
        optimiser.zero_grad()
        module(IDS).square().sum().backward()
        optimiser.step()
    assert same(module.positions.weight[0], torch.zeros(WIDTH))
    assert (module.positions.weight[1:] != before[1:]).all()
    with pytest.raises(UsageError, match="no positions to train"):
        load_text_embedding(make(), train_positions=True)


def test_scale_norm_and_dropout(make: Callable[..., Path]) -> None:
    path = make(positions="sinusoidal", max_positions=5, scale=2.5)
    module = load_text_embedding(path, layer_norm=True, eps=1e-5, dropout=0.5)
    assert module.positions is not None
    plain = load_embedding(path)(IDS) * 2.5 + module.positions.weight
    assert same(load_text_embedding(path)(IDS), plain)
    module.eval()
    torch.testing.assert_close(module(IDS), functional.layer_norm(plain, (WIDTH,), eps=1e-5))
    module.train()
    assert (module(IDS) == 0).float().mean() == pytest.approx(0.5, abs=0.2)
    half = load_text_embedding(path, dtype=torch.bfloat16, layer_norm=True)
    assert half(IDS).dtype == torch.bfloat16
    assert "scale=2.5" in repr(half)
    assert load_text_embedding(path, device="meta", layer_norm=True).state_dict()["norm.bias"].is_meta


@pytest.mark.parametrize("style", ["bert", "roberta"])
def test_a_text_embedding_compiles_copies_and_pickles(make: Callable[..., Path], style: str) -> None:
    module = load_text_embedding(
        make(positions="learned", max_positions=5, key_style=style, train_rows="new"), layer_norm=True
    )
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(IDS), module(IDS), rtol=0, atol=0)
    assert same(copy.deepcopy(module)(IDS), module(IDS))
    assert same(pickle.loads(pickle.dumps(module))(IDS), module(IDS))


# Facts about embeddings and linear layers.


def test_one_hot_times_the_table_is_the_lookup(bundle: Path) -> None:
    table = load_embedding(bundle).weight.detach().clone()
    table[3, 0] = -0.0
    ids = torch.arange(VOCABULARY)
    product = functional.one_hot(ids, VOCABULARY).float() @ table
    assert torch.equal(product, table[ids])  # as numbers: -0 becomes 0
    assert product[3, 0].signbit().item() is False


def test_the_weight_of_a_linear_layer_is_the_transpose(bundle: Path) -> None:
    table = load_embedding(bundle).weight.detach()
    layer = nn.Linear(VOCABULARY, WIDTH, bias=False)
    assert layer.weight.shape == table.T.shape
    with torch.no_grad():
        layer.weight.copy_(table.T)
    ids = torch.arange(VOCABULARY)
    assert torch.equal(layer(functional.one_hot(ids, VOCABULARY).float()), table[ids])


def test_a_tied_head_shares_its_storage_and_stays_tied(bundle: Path) -> None:
    embedding = load_embedding(bundle, freeze=False)
    head = tied_linear(embedding)
    assert isinstance(head, nn.Linear)
    assert str(head) == f"Linear(in_features={WIDTH}, out_features={VOCABULARY}, bias=False)"
    model = nn.ModuleDict({"embedding": embedding, "head": head})
    before = embedding.weight.detach().clone()
    torch.testing.assert_close(head(embedding(IDS)), embedding(IDS) @ before.T)
    model.to(torch.float64).to(torch.float32).to("cpu")
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.05)
    assert len(list(model.parameters())) == 1
    for _ in range(3):
        optimiser.zero_grad()
        loss = functional.cross_entropy(head(embedding(IDS)).flatten(0, 1), IDS.flatten(), ignore_index=0)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert head.weight is embedding.weight
    assert head.weight.data_ptr() == embedding.weight.data_ptr()
    assert (embedding.weight[9] != before[9]).any()
    assert embedding.weight[0].any()  # as the docstring warns: the head moves the padding row
    twin = copy.deepcopy(model)
    assert twin["head"].weight is twin["embedding"].weight
    text = load_text_embedding(bundle, freeze=False)
    assert tied_linear(text).weight is text.words.weight
    assert isinstance(tie_head(text), nn.Linear)
    with pytest.raises(UsageError, match=r"use vec2emb.torch.tie_head\(embedding\)"):
        tied_linear(load_embedding(bundle))


def test_embedding_bag(bundle: Path) -> None:
    table = embedding_bag(bundle, freeze=True).weight
    assert not table.requires_grad
    texts = [table[text[text != 0]] for text in IDS]  # padding is left out
    expected = {"mean": [t.mean(0) for t in texts], "sum": [t.sum(0) for t in texts], "max": [t.amax(0) for t in texts]}
    for mode, rows in expected.items():
        torch.testing.assert_close(embedding_bag(bundle, freeze=True, mode=mode)(IDS), torch.stack(rows))
    with pytest.raises(UsageError, match="trains all rows or none"):
        embedding_bag(bundle)
    with pytest.raises(UsageError, match="mean or sum or max"):
        embedding_bag(bundle, freeze=True, mode="median")


# Back to a bundle.


def test_what_was_trained_comes_back(make: Callable[..., Path], tmp_path: Path) -> None:
    path = make(train_rows="new", positions="learned", max_positions=5, key_style="bert", scale="sqrt-dim")
    module = load_text_embedding(path, layer_norm=True)
    assert isinstance(module.words, PartlyFrozenEmbedding)
    assert module.positions is not None
    with torch.no_grad():
        module.words.trained.add_(1)
        module.positions.weight.mul_(2)
    save_embedding(module, tmp_path / "out")
    before, after = vec2emb.load(path), vec2emb.load(tmp_path / "out")
    assert after.vocab == before.vocab
    changed = [row for row in range(VOCABULARY) if (after.vectors[row] != before.vectors[row]).any()]
    assert changed == NEW
    assert before.positions is not None
    np.testing.assert_array_equal(after.positions, before.positions * 2)
    assert before.manifest is not None
    assert after.manifest is not None
    trained = after.manifest.provenance.trained
    assert set(NEW) <= set(trained.rows())
    provenance = before.manifest.provenance._replace(trained=trained)
    for name in ("key", "positions", "scale", "training", "key_style"):
        assert getattr(after.manifest, name) == getattr(before.manifest, name)
    assert after.manifest.provenance == provenance
    assert vec2emb.verify(tmp_path / "out").ok
    with pytest.raises(UsageError, match="trained since"):
        vec2emb.verify(tmp_path / "out", rebuild=path)
    again = load_text_embedding(tmp_path / "out")
    assert set(full_state_dict(again)) == set(load_file(path / MODEL))
    save_embedding(load_text_embedding(tmp_path / "out"), tmp_path / "out", if_exists="replace")
    assert manifest_of(tmp_path / "out").positions == before.manifest.positions


def test_rows_that_were_trained_are_known(tmp_path: Path) -> None:
    """Of a partly frozen table the frozen rows are still the file's; the others say what they learned."""
    sample = FIXTURES / "glove.6B.50d.sample.txt"
    collected(lambda: vec2emb.convert(sample, tmp_path / "a", vocab=["the", "of", "qqq"], missing="zeros"))
    module = load_embedding(tmp_path / "a", train_rows=["of", "qqq"])
    assert isinstance(module, PartlyFrozenEmbedding)
    with torch.no_grad():
        module.trained.copy_(module.frozen[-1] * torch.tensor([[2.0], [3.0]]))
    save_embedding(module, tmp_path / "b")
    assert manifest_of(tmp_path / "b").provenance.trained == Ranges((3, 5))
    table = vec2emb.load(tmp_path / "b")
    assert [table.explain(word).text for word in ("the", "of", "qqq")] == [
        "the row of the file as it is",
        "the row of the file as it is; trained since",
        "not in the file; zeros; trained since",
    ]
    found = vec2emb.verify(tmp_path / "b", source=sample)
    assert found.ok, str(found)
    assert "2 rows were trained since, and not compared" in found.notes
    [near] = vec2emb.similar(tmp_path / "b", "the")
    assert {"of", "qqq"} <= {neighbour.token for neighbour in near.nearest}
    assert vec2emb.inspect(tmp_path / "b").facts["trained_rows"] == 2
    (tmp_path / "corpus.txt").write_text("the of qqq\n")
    audited = [
        vec2emb.audit(tmp_path / name, corpus=tmp_path / "corpus.txt").to_dict()["sources"][0]["coverage"]
        for name in "ab"
    ]
    assert [one["tokens"]["share"] if isinstance(one["tokens"], dict) else one["tokens"] for one in audited] == [
        pytest.approx(2 / 3), 1.0,
    ]  # fmt: skip
    # A module that never could train, and one that was frozen after it could.
    save_embedding(load_embedding(tmp_path / "a", freeze=True), tmp_path / "c")
    assert not manifest_of(tmp_path / "c").provenance.trained
    save_embedding(load_embedding(tmp_path / "a", freeze=False).requires_grad_(False), tmp_path / "d")
    assert manifest_of(tmp_path / "d").provenance.trained == Ranges((1, 5))
    assert manifest_of(tmp_path / "d").training.kind == "none"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_each_type_comes_back(bundle: Path, tmp_path: Path, dtype: torch.dtype) -> None:
    module = torch.compile(load_embedding(bundle, dtype=dtype, train_rows=[3, 4]), backend="eager")
    save_embedding(module, tmp_path / "out")  # type: ignore[arg-type]
    table = vec2emb.load(tmp_path / "out")
    name = "float32" if dtype == torch.float64 else str(dtype).removeprefix("torch.")
    assert table.manifest is not None
    assert (table.manifest.dtype, table.manifest.training) == (name, Training("rows", Ranges((3, 5))))
    stored = load_embedding(tmp_path / "out", freeze=True).weight
    assert torch.equal(stored.double(), load_embedding(bundle, freeze=True).weight.to(dtype).double())


def test_a_module_of_any_origin_needs_to_be_told_whose_rows_it_has(bundle: Path, tmp_path: Path) -> None:
    module = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
    with pytest.raises(UsageError, match="pass like=BUNDLE") as caught:
        save_embedding(module, tmp_path / "out")
    assert caught.value.code == "whose-rows"
    for like in (bundle, vec2emb.load(bundle), vec2emb.load(bundle).vocab):
        save_embedding(module, tmp_path / "out", like=like, if_exists="replace")
        table = vec2emb.load(tmp_path / "out")
        np.testing.assert_array_equal(table.vectors, module.weight.detach().numpy())
        assert (manifest_of(tmp_path / "out").training.kind, table.vocab.padding_idx) == ("all", 0)
    save_embedding(embedding_bag(bundle, freeze=True), tmp_path / "bag")
    assert manifest_of(tmp_path / "bag").training.kind == "none"
    hand_made = TextEmbedding(nn.Embedding(VOCABULARY, WIDTH, padding_idx=0), scale=3.0)
    save_embedding(hand_made, tmp_path / "text", like=bundle)
    assert manifest_of(tmp_path / "text").scale == ("factor", 3.0)


def test_what_cannot_be_saved(bundle: Path, tmp_path: Path) -> None:
    nan, tied, short = (load_embedding(bundle, freeze=False) for _ in range(3))
    with torch.no_grad():
        nan.weight[4, 2] = torch.nan
        tied.weight[0, 1] = 1
    assert isinstance(short, nn.Embedding)
    short.weight = nn.Parameter(torch.zeros(3, WIDTH))
    for module, code in ((nan, "non-finite"), (tied, "padding-not-zero"), (short, "shape-mismatch")):
        with pytest.raises(InputError) as caught:
            save_embedding(module, tmp_path / "out")
        assert caught.value.code == code
    with pytest.raises(UsageError, match="not an embedding: found Linear"):
        save_embedding(nn.Linear(2, 3), tmp_path / "out")
    assert not os.listdir(tmp_path)


# Without torch.


def test_without_torch_all_else_works_and_the_extra_is_named(source: Path, tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys
        from importlib.abc import MetaPathFinder

        class Blocked(MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("torch", "transformers"):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Blocked())
        import vec2emb
        from vec2emb import positions
        source, out = sys.argv[1:]
        vec2emb.convert(source, out, positions="sinusoidal", max_positions=9, key_style="bert", train_rows="new")
        vec2emb.attach_positions(out, "learned", 9, std=1.0)
        vec2emb.resize_positions(out, out, to=12, method="linear", if_exists="replace")
        assert vec2emb.load(out).positions.shape == (12, 16)
        assert vec2emb.describe_positions(out)[0].facts.kind == "learned"
        assert positions.sinusoidal(3, 4).shape == (3, 4)
        vec2emb.load(out).save(out, if_exists="replace")
        vec2emb.verify(out)
        try:
            import vec2emb.torch
        except vec2emb.errors.MissingPackageError as error:
            print(error)
        assert "torch" not in sys.modules
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(source), str(tmp_path / "out")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "vec2emb.torch needs torch; install it with: pip install 'vec2emb[torch]'\n"
    assert (tmp_path / "out" / CONFIG).is_file()
