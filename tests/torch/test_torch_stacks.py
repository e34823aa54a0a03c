"""What libraries around torch do to an nn.Embedding they do to ours, or are told what to do instead."""

from __future__ import annotations

import importlib
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import collected
from safetensors.torch import load_file, save_file
from tiny_models import VOCABULARY, WIDTH, tiny
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.utils.data import DataLoader
from torch_tables import FROZEN, IDS, OURS, PAD, TRAIN, D, Oracle, V, loss, make, partly_of, rows_of, same, start, step

import vec2emb
from vec2emb.errors import UsageError
from vec2emb.torch import (
    PartlyFrozenEmbedding,
    embedding_bag,
    full_state_dict,
    load_embedding,
    load_text_embedding,
    resize_embedding,
    save_embedding,
    tie_head,
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Padding, unknown, three words of a file and one that it lacks; BART's positions have two keys."""
    (tmp_path / "v.txt").write_text("".join(f"w{i} {i}.5 {i}.25 -1 0.125\n" for i in range(3)))
    options: dict[str, Any] = {"positions": "learned", "max_positions": 5, "key_style": "bart", "train_rows": "new"}
    path = tmp_path / "bundle"
    collected(lambda: vec2emb.convert(tmp_path / "v.txt", path, vocab=["w0", "w1", "w2", "new"], **options))
    return path


# Files of others.


def test_modules_carry_no_path(bundle: Path, tmp_path: Path) -> None:
    modules = {
        "embedding": load_embedding(bundle),
        "text": load_text_embedding(bundle),
        "whole": load_embedding(bundle, freeze=False),
        "bag": embedding_bag(bundle, freeze=True),
    }
    with torch.no_grad():
        modules["embedding"].get_parameter("trained").add_(1)
    for name, module in modules.items():
        torch.save(module, tmp_path / f"{name}.pt")
        assert str(tmp_path).encode() not in (tmp_path / f"{name}.pt").read_bytes()
    before = vec2emb.load(bundle)
    tokens, manifest = before.vocab.to_list(), before.manifest
    assert manifest is not None
    shutil.rmtree(bundle)
    for name, module in modules.items():
        again = torch.load(tmp_path / f"{name}.pt", weights_only=False)
        assert same(next(iter(full_state_dict(again).values())), next(iter(full_state_dict(module).values())))
        save_embedding(again, tmp_path / name)
        saved = vec2emb.load(tmp_path / name)
        assert saved.vocab.to_list() == tokens
        assert saved.vocab.padding_idx == 0
        assert saved.manifest is not None
        assert saved.manifest.specials == manifest.specials


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("train_rows", ["new", "all", []])
def test_a_bundle_on_meta_is_loaded_later(bundle: Path, train_rows: Any, assign: bool) -> None:
    state = load_file(bundle / "model.safetensors")
    for load, key in ((load_embedding, "weight"), (load_text_embedding, "shared.weight")):
        module: nn.Module = load(bundle, device="meta", train_rows=train_rows)
        assert all(tensor.is_meta for tensor in module.state_dict().values())
        given = {"weight": state["shared.weight"]} if key == "weight" else state
        module = module if assign else module.to_empty(device="cpu")
        assert str(module.load_state_dict(given, assign=assign)) == "<All keys matched successfully>"
        expected = load(bundle, train_rows=train_rows)
        ids = torch.tensor([[0, 1, 2], [3, 4, 5]])
        assert same(module(ids), expected(ids))
        grads = [parameter.requires_grad for parameter in module.parameters()]
        assert grads == [parameter.requires_grad for parameter in expected.parameters()]


def test_safetensors_of_a_state_dict(bundle: Path, tmp_path: Path) -> None:
    module = load_text_embedding(bundle)
    for name, state in (("own", module.state_dict()), ("full", full_state_dict(module))):
        save_file({key: tensor.contiguous() for key, tensor in state.items()}, tmp_path / f"{name}.safetensors")
        other = load_text_embedding(bundle)
        for tensor in other.state_dict().values():
            tensor.fill_(torch.nan)
        loaded = load_file(tmp_path / f"{name}.safetensors")
        assert str(other.load_state_dict(loaded)) == "<All keys matched successfully>"
        assert same(other(torch.tensor([[2, 5]])), module(torch.tensor([[2, 5]])))
    assert [key for key in loaded if "positions" in key] == [
        "decoder.embed_positions.weight", "encoder.embed_positions.weight",
    ]  # fmt: skip
    assert [key for key in module.state_dict() if "positions" in key] == ["positions.weight"]


@pytest.mark.parametrize("kind", OURS)
def test_state_dicts_of_distributed_checkpoints_in_one_process(kind: str) -> None:
    model = nn.ModuleDict({"text": make(kind), "layer": nn.Linear(D, 2)})
    state = get_model_state_dict(model)
    assert list(state) == list(model.state_dict())
    other = nn.ModuleDict({"text": make(kind), "layer": nn.Linear(D, 2)})
    for tensor in other.state_dict().values():
        tensor.zero_()
    set_model_state_dict(other, state)
    assert all(same(tensor, state[name]) for name, tensor in other.state_dict().items())  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_a_quantized_word_table_is_refused(bundle: Path, tmp_path: Path) -> None:
    from torch.ao.quantization import float_qparams_weight_only_qconfig, quantize_dynamic

    quantize: Any = quantize_dynamic
    module = load_text_embedding(bundle, freeze=False)
    quantized = quantize(module, {nn.Embedding: float_qparams_weight_only_qconfig})
    for call in (lambda: quantized(IDS[:, :3] % 4), lambda: save_embedding(quantized, tmp_path / "out")):
        with pytest.raises(UsageError, match="quantize the other layers only") as caught:
            call()
        assert caught.value.code == "quantized-words"
    with pytest.raises(UsageError) as caught:
        save_embedding(quantized.words, tmp_path / "out")
    assert caught.value.code == "quantized-words"
    head = quantize(nn.Sequential(module, nn.Linear(D, 3)), {nn.Linear})
    assert head(IDS[:, :3] % 4).shape == (2, 3, 3)
    save_embedding(head[0], tmp_path / "out")
    assert not (tmp_path / "never").exists()


# Vectors that are not in memory, value by value.


def odd_vectors() -> dict[str, Any]:
    import numpy as np

    sparse: Any = importlib.import_module("scipy.sparse")  # of gensim
    base = start().numpy()
    return {
        "masked": np.ma.masked_array(base, mask=base > 0),
        "coo": start().to_sparse(),
        "meta": start().to("meta"),
        "meta-module": nn.Embedding(V, D, device="meta"),
        "scipy": sparse.csr_matrix(base),
        "quantized": torch.quantize_per_tensor(start(), 0.1, 0, torch.quint8),
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["masked", "coo", "meta", "meta-module", "scipy", "quantized"])
def test_vectors_without_all_their_values_are_refused(name: str, tmp_path: Path) -> None:
    vectors, words = odd_vectors()[name], [f"w{row}" for row in range(V)]
    for call in (
        lambda: vec2emb.convert((vectors, words), tmp_path / "out"),
        lambda: vec2emb.read_vectors((vectors, words)),
        lambda: vec2emb.save(tmp_path / "out", words, vectors),
    ):
        with pytest.raises(UsageError, match=r"the vectors are .*expected each value of \[V, D\] in memory") as caught:
            call()
        assert caught.value.code == "vector-storage"
        assert caught.value.hint
    assert not (tmp_path / "out").exists()


def test_a_masked_array_without_a_mask_is_an_array(tmp_path: Path) -> None:
    import numpy as np

    words = [f"w{row}" for row in range(V)]
    vec2emb.save(tmp_path / "out", words, np.ma.masked_array(start().numpy()))
    assert same(torch.from_numpy(vec2emb.load(tmp_path / "out").vectors.copy()), start())
    vec2emb.save(tmp_path / "of-module", words, make("partly"))  # type: ignore[arg-type]
    assert same(torch.from_numpy(vec2emb.load(tmp_path / "of-module").vectors.copy()), start())


# transformers.


def table() -> PartlyFrozenEmbedding:
    weight = torch.randn(VOCABULARY, WIDTH, generator=torch.Generator().manual_seed(0))
    return PartlyFrozenEmbedding(weight, [3, 5, VOCABULARY - 1])


@pytest.mark.parametrize("name", ["BertForMaskedLM", "GPT2LMHeadModel"])
def test_transformers_is_told_how_to_resize_and_to_tie(name: str, tmp_path: Path) -> None:
    model = tiny(name)
    model.set_input_embeddings(table())
    ours = model.get_input_embeddings()
    assert same(ours.weight.clone(), table().weight)
    with pytest.raises(UsageError, match="resize_embedding"):
        model.resize_token_embeddings(60)
    with pytest.raises(UsageError, match="resize_embedding"):
        model.resize_token_embeddings(pad_to_multiple_of=64)
    with pytest.raises(UsageError, match="tie_head"):
        model.tie_weights()
    bias = model.get_output_embeddings().bias
    model.set_output_embeddings(tie_head(ours, bias=bias))
    model.config.tie_word_embeddings = False
    model.tie_weights()
    ids = torch.tensor([[3, 4, 5, 49]])
    model(input_ids=ids, labels=ids).loss.backward()
    assert ours.trained.grad.abs().sum() > 0
    assert ours.frozen.grad is None
    if bias is not None:
        assert bias.grad is not None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(tmp_path, state_dict=full_state_dict(model))
        plain = type(model).from_pretrained(tmp_path).eval()
    assert type(plain.get_input_embeddings()) is nn.Embedding
    torch.testing.assert_close(plain(input_ids=ids).logits, model.eval()(input_ids=ids).logits)

    if bias is None:
        larger = resize_embedding(ours, 60)
        model.set_input_embeddings(larger)
        model.set_output_embeddings(tie_head(larger))
        model.config.vocab_size = 60
        assert model(input_ids=torch.tensor([[59]])).logits.shape == (1, 1, 60)


class Texts(torch.utils.data.Dataset[dict[str, Tensor]]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        ids = (torch.arange(6) * 7 + index) % VOCABULARY
        return {"input_ids": ids, "labels": ids}


def trained_by_trainer(model: Any, folder: Path, steps: int, resume: str | None = None) -> Any:
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=2, save_steps=3, report_to=[],
        learning_rate=0.01, weight_decay=0.1, use_cpu=True, disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    trainer = Trainer(model=model, args=arguments, train_dataset=Texts())
    trainer.train(resume_from_checkpoint=resume)
    return model


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_transformers(tmp_path: Path) -> None:
    """Five steps, and three of them resumed from the checkpoint, beside nn.Embedding with the same rows."""
    results = {}
    for kind in ("plain", "partly"):
        model = tiny("GPT2LMHeadModel", tie_word_embeddings=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        ours = table()
        plain = nn.Embedding.from_pretrained(ours.weight.detach().clone(), freeze=False)  # type: ignore[no-untyped-call]
        model.set_input_embeddings(ours if kind == "partly" else plain)
        results[kind] = trained_by_trainer(model, tmp_path / kind, 5).get_input_embeddings().weight.detach().clone()
        fresh = tiny("GPT2LMHeadModel", tie_word_embeddings=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        fresh.set_input_embeddings(table() if kind == "partly" else nn.Embedding(VOCABULARY, WIDTH))
        resumed = trained_by_trainer(fresh, tmp_path / kind, 5, resume=str(tmp_path / kind / "checkpoint-3"))
        torch.testing.assert_close(resumed.get_input_embeddings().weight.detach().clone(), results[kind])
    others = [row for row in range(VOCABULARY) if row not in ours.rows.tolist()]
    assert same(results["partly"][others], table().weight[others].detach().clone())
    assert not torch.equal(results["partly"][ours.rows], table().weight[ours.rows])


# Lightning.


def lightning_module(kind: str) -> Any:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.table: nn.Module = Oracle(kind.removeprefix("oracle-")) if "-" in kind else make(kind)

        def training_step(self, ids: Tensor, _: int) -> Tensor:
            return loss(self.table, ids)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.table.parameters(), lr=0.1, weight_decay=0.1)

    return Module()


def fit(module: Any, folder: Path, epochs: int, resume: Path | None = None, **options: Any) -> Any:
    import lightning

    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=folder, enable_checkpointing=False, **options,
    )  # fmt: skip
    data: Any = [IDS, IDS.flip(0)]
    trainer.fit(module, DataLoader(data, batch_size=None), ckpt_path=resume, weights_only=False)
    return trainer


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", OURS)
def test_lightning(kind: str, tmp_path: Path) -> None:
    """Trained, saved, and resumed from what was saved; and averaged by Lightning's callback."""
    from lightning.pytorch.callbacks import EMAWeightAveraging

    oracle, module = lightning_module(f"oracle-{kind}"), lightning_module(kind)
    fit(oracle, tmp_path, 4)
    fit(module, tmp_path, 2).save_checkpoint(tmp_path / "half.ckpt")
    resumed = lightning_module(kind)
    fit(resumed, tmp_path, 4, resume=tmp_path / "half.ckpt")
    assert same(rows_of(resumed), oracle.table.all_rows())

    averages = []
    for each in (lightning_module(f"oracle-{kind}"), lightning_module(kind)):
        fit(each, tmp_path, 2, callbacks=[EMAWeightAveraging(decay=0.5)])
        averages.append(each.table)
    expected = averages[0].all_rows()
    assert same(rows_of(averages[1]), expected)
    if kind != "whole":
        assert same(rows_of(averages[1])[FROZEN], start()[FROZEN])


def test_the_padding_row_stays_zero() -> None:
    for kind in OURS:
        module = make(kind)
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.1)
        for _ in range(3):
            step(module, optimizer)
        assert same(rows_of(module)[PAD], torch.zeros(D))
        if kind != "whole":
            assert partly_of(module).rows.tolist() == TRAIN
