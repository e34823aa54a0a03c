"""`weight` of a partly frozen table is read as that of nn.Embedding; no write to it is lost without a word."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import prune
from torch_tables import FROZEN, IDS, PAD, TRAIN, D, V, make, partly_of, rows_of, same, start

from vec2emb.errors import UsageError
from vec2emb.torch import PartlyFrozenEmbedding, TiedHead, full_state_dict, resize_embedding, tie_head


def partly(**options: Any) -> PartlyFrozenEmbedding:
    return partly_of(make("partly", **options))


READS: dict[str, Callable[[Tensor], Any]] = {
    "rows": lambda weight: weight[IDS],
    "row": lambda weight: weight[3],
    "norm": lambda weight: weight.norm(dim=1),
    "product": lambda weight: torch.ones(2, D) @ weight.T,
    "linear": lambda weight: functional.linear(torch.ones(2, D), weight),
    "embedding": lambda weight: functional.embedding(IDS, weight),
    "detach": lambda weight: weight.detach(),
    "data": lambda weight: weight.data,
    "clone": lambda weight: weight.clone(),
    "double": lambda weight: weight.double(),
    "views": lambda weight: weight.view(-1).reshape(2, -1).T,
    "unbind": lambda weight: torch.stack(weight.unbind()),
    "sum": lambda weight: weight.sum(),
    "cpu": lambda weight: weight.to("cpu"),
    "stack": lambda weight: torch.stack([weight, weight]),
    "max": lambda weight: weight.max(0).values,
    "shape": lambda weight: (weight.shape, weight.size(0), len(weight), weight.dtype, weight.device, weight.ndim),
    "requires_grad": lambda weight: weight.requires_grad,
    "numpy": lambda weight: weight.detach().numpy().tolist(),
    "list": lambda weight: weight.tolist(),
    "array": lambda weight: np.asarray(weight.detach()).sum(),
}


@pytest.mark.parametrize("read", READS)
def test_reading(read: str) -> None:
    plain: Any = make("plain")
    found, expected = READS[read](partly().weight), READS[read](plain.weight)
    if isinstance(expected, Tensor):
        assert same(found.as_subclass(Tensor), expected)
        assert found.requires_grad == expected.requires_grad
    else:
        assert found == expected


def test_what_is_read_is_an_ordinary_tensor_once_it_is_a_copy() -> None:
    weight = partly().weight
    for own in (weight.clone(), weight * 2, weight[IDS], copy.deepcopy(weight), weight.detach().clone()):
        assert type(own) is Tensor
    file = io.BytesIO()
    torch.save({"weight": weight}, file)
    file.seek(0)
    assert type(torch.load(file, weights_only=True)["weight"]) is Tensor
    own = weight.detach().clone()
    own[3] = 0
    assert not own[3].any()


# Each of these changes an nn.Embedding, or what it gets as a gradient.
WRITES: dict[str, Callable[[Any], Any]] = {
    "item": lambda module: module.weight.__setitem__(3, 1.0),
    "data-item": lambda module: module.weight.data.__setitem__(3, 1.0),
    "data-copy": lambda module: module.weight.data.copy_(torch.zeros(V, D)),
    "set-data": lambda module: setattr(module.weight, "data", torch.zeros(V, D)),
    "detached-row": lambda module: module.weight.detach()[3].zero_(),
    "view": lambda module: module.weight.data.view(1, -1).T.fill_(1.0),
    "piece": lambda module: module.weight.data.split(3)[1].zero_(),
    "multiply": lambda module: module.weight.data.mul_(2),
    "in-place": lambda module: setattr(module, "weight", module.weight.data.__imul__(2)),
    "init": lambda module: nn.init.normal_(module.weight),
    "init-named": lambda module: nn.init.zeros_(tensor=module.weight),
    "foreach": lambda module: torch._foreach_add_([module.weight.data], 1.0),
    "out": lambda module: torch.add(torch.ones(V, D), 1, out=module.weight.data),
    "freeze": lambda module: setattr(module.weight, "requires_grad", False),
    "freeze-in-place": lambda module: module.weight.requires_grad_(False),
    "hook": lambda module: module.weight.register_hook(lambda gradient: gradient * 0),
    "late-hook": lambda module: module.weight.register_post_accumulate_grad_hook(lambda _: None),
    "gradient": lambda module: module.weight.grad,
    "optimiser": lambda module: torch.optim.SGD([module.weight], lr=0.1),
    "share": lambda module: setattr(nn.Linear(D, V, bias=False), "weight", module.weight),
    "parameter": lambda module: nn.Parameter(module.weight),
    "replace": lambda module: setattr(module, "weight", nn.Parameter(torch.zeros(V, D))),
    "prune": lambda module: prune.l1_unstructured(module, "weight", 0.5),  # type: ignore[no-untyped-call]
}


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("write", WRITES)
def test_writing(write: str, mode: Callable[[], Any]) -> None:
    module = partly()
    with mode(), pytest.raises(UsageError) as caught:
        WRITES[write](module)
    assert caught.value.code == "weight-is-a-copy"
    assert caught.value.hint
    assert same(rows_of(module), start())


def test_writing_through_numpy() -> None:
    with pytest.raises(ValueError, match="read-only"):
        partly().weight.detach().numpy()[3] = 0


def test_the_parts_are_written_in_place() -> None:
    module = partly()
    with torch.no_grad():
        module.trained[1] = 7
        module.frozen[0] = 8
    expected = start()
    expected[TRAIN[1]], expected[FROZEN[0]] = 7, 8
    assert same(module.weight, expected)
    assert same(module(IDS), expected[IDS])


# Heads that share the table.


def logits_of(kind: str, hidden: Tensor, module: nn.Module) -> Tensor:
    table: Any = module
    result: Tensor = functional.linear(hidden, table.weight) if kind == "weight" else tie_head(table)(hidden)
    return result


@pytest.mark.parametrize("kind", ["weight", "head", "compiled-weight", "compiled-head"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_head_gives_gradients_to_the_rows_that_train(kind: str, sparse: bool) -> None:
    hidden = torch.randn(3, 5, D, generator=torch.Generator().manual_seed(2))
    gradients = []
    for name in ("plain", "partly"):
        module, given = make(name, sparse=sparse and name == "partly"), hidden.clone().requires_grad_()
        call: Any = logits_of
        if kind.startswith("compiled"):
            torch.compiler.reset()
            call = torch.compile(logits_of, backend="aot_eager", fullgraph=True)
        logits = call(kind.removeprefix("compiled-") if name == "partly" else "weight", given, module)
        (logits.square().sum() + logits.log_softmax(-1)[..., 7].sum()).backward()
        parameter: Any = module.trained if isinstance(module, PartlyFrozenEmbedding) else module.weight
        gradients.append((logits, parameter.grad, given.grad))
    plain, ours = gradients
    torch.testing.assert_close(ours[0], plain[0])
    torch.testing.assert_close(ours[1], plain[1][TRAIN])
    torch.testing.assert_close(ours[2], plain[2])


def test_a_tied_head_is_part_of_a_model() -> None:
    table = partly()
    bias = nn.Parameter(torch.ones(V))
    model = nn.ModuleDict({"words": table, "head": tie_head(table, bias=bias)})
    assert "TiedHead(in_features=4, out_features=12, bias=True)" in str(model)
    assert list(model.state_dict()) == ["words.frozen", "words.trained", "head.bias"]
    full = full_state_dict(model)
    plain = nn.ModuleDict({"words": nn.Embedding(V, D), "head": nn.Linear(D, V)})
    assert str(plain.load_state_dict(full)) == "<All keys matched successfully>"
    torch.testing.assert_close(plain["head"](plain["words"](IDS)), model["head"](model["words"](IDS)))
    twin = copy.deepcopy(model).to(torch.float64)
    assert isinstance(twin["head"], TiedHead)
    assert twin["head"].table is twin["words"]
    assert twin["head"](twin["words"](IDS)).dtype == torch.float64
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        logits: Tensor = model["head"](model["words"](IDS))
        functional.cross_entropy(logits.flatten(0, 1), IDS.flatten()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    moved = [row for row in range(V) if not same(rows_of(table)[row], start()[row])]
    assert moved == TRAIN  # of the others, padding among them, no head moves any
    with pytest.raises(UsageError, match="replace the head"):
        model["head"].weight = nn.Parameter(torch.zeros(V, D))


def test_whole_tables_have_a_linear_layer_as_head() -> None:
    table: Any = make("plain")
    bias = nn.Parameter(torch.ones(V))
    head = tie_head(table, bias=bias)
    assert isinstance(head, nn.Linear)
    assert head.weight is table.weight
    assert head.bias is bias
    assert tie_head(table).bias is None


# More and fewer rows.


def test_resizing_appends_rows_that_train_and_cuts_off() -> None:
    table = partly(sparse=True)
    new = torch.randn(2, D)
    larger = resize_embedding(table, V + 2, new)
    assert same(larger.weight, torch.cat([start(), new]))
    assert larger.rows.tolist() == [*TRAIN, V, V + 1]
    assert (larger.padding_idx, larger.sparse) == (PAD, True)
    torch.testing.assert_close(resize_embedding(table, V + 1).weight[V].detach(), start().mean(0))
    smaller = resize_embedding(table, 9)
    assert same(smaller.weight, start()[:9])
    assert smaller.rows.tolist() == TRAIN[:3]
    assert same(rows_of(table), start())
    for count, rows, code in ((V + 1, new, "new-rows-shape"), (3, None, "rows-not-some")):
        with pytest.raises(UsageError) as caught:
            resize_embedding(table, count, rows)
        assert caught.value.code == code
