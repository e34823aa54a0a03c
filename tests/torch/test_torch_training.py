"""What training does to an nn.Embedding it does to ours: optimisers, averages, types, copies, compiled and exported."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils._python_dispatch import TorchDispatchMode
from torch_tables import FROZEN, IDS, OURS, PAD, TRAIN, D, Oracle, V, loss, make, partly_of, rows_of, same, start, step

from vec2emb.errors import UsageError
from vec2emb.torch import PartlyFrozenEmbedding, full_state_dict

# Optimisers. A second batch leaves out rows that the first one had, so that momentum and decay have something to move.

OPTIMISERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {}),
    "sgd-momentum": ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
    "sgd-nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"weight_decay": 0.1}),
    "adam-amsgrad": ("Adam", {"amsgrad": True}),
    "adamw": ("AdamW", {"weight_decay": 0.1}),
    "adamw-single": ("AdamW", {"weight_decay": 0.1, "foreach": False}),
    "adamw-fused": ("AdamW", {"weight_decay": 0.1, "fused": True}),
    "adamax": ("Adamax", {"weight_decay": 0.1}),
    "nadam": ("NAdam", {"weight_decay": 0.1}),
    "radam": ("RAdam", {"weight_decay": 0.1}),
    "adadelta": ("Adadelta", {"weight_decay": 0.1}),
    "adagrad": ("Adagrad", {}),
    "rmsprop": ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}),
    "rprop": ("Rprop", {}),
    "asgd": ("ASGD", {"weight_decay": 0.1}),
    "lbfgs": ("LBFGS", {"max_iter": 3}),
    "adafactor": ("Adafactor", {"weight_decay": 0.1}),
    "muon": ("Muon", {"weight_decay": 0.1}),
    "sparse-adam": ("SparseAdam", {}),
}
BATCHES = (IDS, torch.tensor([[5, 3, 2], [0, 3, 8]]), torch.tensor([[0, 1, 2]]))


def steps(module: nn.Module, name: str, options: dict[str, Any]) -> str:
    """Train on the batches; the type of the error if there is one."""
    optimizer = getattr(torch.optim, name)(list(module.parameters()), lr=0.05, **options)
    try:
        for ids in BATCHES:
            step(module, optimizer, ids)
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("kind", OURS)
def test_an_optimiser_moves_the_rows_that_train_as_those_of_nn_embedding(
    kind: str, optimiser: str, sparse: bool
) -> None:
    name, options = OPTIMISERS[optimiser]
    if not hasattr(torch.optim, name):  # torch before 2.9 has no Muon
        name, options = "SGD", {}
    oracle, module = Oracle(kind, sparse=sparse), make(kind, sparse=sparse)
    expected = steps(oracle, name, options)
    assert steps(module, name, options) == expected
    if not expected:
        assert same(rows_of(module), oracle.all_rows())
        assert not same(rows_of(module), start())


@pytest.mark.parametrize("optimiser", ["sgd-momentum", "adamw", "rmsprop"])
def test_a_loss_of_all_ids_moves_no_frozen_row(optimiser: str) -> None:
    """Against a table of which all rows train, whose other rows do move."""
    name, options = OPTIMISERS[optimiser]
    rows = {}
    for kind in ("plain", "partly"):
        module = make(kind)
        optimizer = getattr(torch.optim, name)(module.parameters(), lr=0.05, **options)
        for ids in BATCHES:
            optimizer.zero_grad()
            (module(ids) - 0.3).square().sum().backward()
            optimizer.step()
        rows[kind] = rows_of(module)
    assert same(rows["partly"][TRAIN], rows["plain"][TRAIN])
    assert same(rows["partly"][FROZEN], start()[FROZEN])
    assert not same(rows["plain"][FROZEN], start()[FROZEN])


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("clip", [nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_])
def test_clipping(kind: str, clip: Callable[..., Any]) -> None:
    oracle, module = Oracle(kind), make(kind)
    for each in (oracle, module):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        loss(each).backward()  # type: ignore[no-untyped-call]
        clip(each.parameters(), 0.5)
        optimizer.step()
    assert same(rows_of(module), oracle.all_rows())


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_sparse_gradients_leave_a_row_that_was_not_looked_up() -> None:
    module = make("partly", sparse=True)
    optimizer = torch.optim.SparseAdam(list(module.parameters()), lr=0.1)
    step(module, optimizer, torch.tensor([0, 1, 8]))
    moved = [row for row in range(V) if not same(rows_of(module)[row], start()[row])]
    assert moved == [8]


def test_many_ranges_are_found_as_few_are() -> None:
    weight = torch.randn(1000, 3)
    rows = [row for row in range(1000) if row % 3 != 1]  # 334 ranges
    module = PartlyFrozenEmbedding(weight, rows, padding_idx=0)
    ids = torch.randint(0, 1000, (7, 50))
    assert same(module(ids), weight[ids])
    assert same(module.weight, weight)
    assert module.rows.tolist() == rows[1:]
    for wrong in (-1, 1000):
        with pytest.raises(IndexError):
            module(torch.tensor([wrong]))
    assert same(pickle.loads(pickle.dumps(module))(ids), weight[ids])
    assert same(module(ids.int().T), weight[ids.T])


def test_frozen_rows_that_are_set_to_train_are_refused() -> None:
    module = make("text").requires_grad_(True)
    with pytest.raises(UsageError, match=r"set module.frozen.requires_grad_\(False\)") as caught:
        module(IDS)
    assert caught.value.code == "frozen-requires-grad"
    partly_of(module).frozen.requires_grad_(False)
    loss(module).backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("ids", [torch.tensor([0.5]), torch.tensor([True]), torch.tensor([1], dtype=torch.uint8)])
def test_ids_are_integers(ids: Tensor) -> None:
    with pytest.raises(RuntimeError):
        make("plain")(ids)
    with pytest.raises(UsageError, match="ids must be int64 or int32") as caught:
        make("partly")(ids)
    assert caught.value.code == "ids-type"


@pytest.mark.parametrize("rows", [torch.tensor([True] * V), torch.tensor([1.0]), [1.5], [True], ["a"]])
def test_rows_to_train_are_ids(rows: Any) -> None:
    with pytest.raises(UsageError, match="rows to train must be integer ids"):
        PartlyFrozenEmbedding(start(), rows)


# Moving averages of weights, in three ways, over steps that move the weights.


def averaged(module: nn.Module, **options: Any) -> Tensor:
    average = AveragedModel(module, **options)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        step(module, optimizer)
        average.update_parameters(module)
    return rows_of(average)


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("ema", [False, True])
@pytest.mark.parametrize("kind", OURS)
def test_an_averaged_model(kind: str, ema: bool, use_buffers: bool) -> None:
    options: dict[str, Any] = {"multi_avg_fn": get_ema_multi_avg_fn(0.9)} if ema else {}  # type: ignore[no-untyped-call]
    oracle = Oracle(kind)
    average = AveragedModel(oracle, use_buffers=use_buffers, **options)
    optimizer = torch.optim.SGD(oracle.parameters(), lr=0.1)
    for _ in range(3):
        step(oracle, optimizer)
        average.update_parameters(oracle)
    frozen = nn.Embedding.from_pretrained(start(), freeze=True)  # type: ignore[no-untyped-call]
    of_frozen = AveragedModel(frozen, use_buffers=use_buffers, **options)
    for _ in range(3):
        of_frozen.update_parameters(frozen)
    expected = rows_of(of_frozen)
    inner = average.module
    assert isinstance(inner, Oracle)
    expected[inner.rows] = inner.table.weight.detach()
    assert same(averaged(make(kind), use_buffers=use_buffers, **options), expected)


@pytest.mark.parametrize("kind", OURS)
def test_an_average_written_into_the_state_dict(kind: str) -> None:
    """As many scripts have it: shadow tensors, averaged and copied into the values of `state_dict()`."""
    oracle, module = Oracle(kind), make(kind)
    for each in (oracle, module):
        shadow = {name: tensor.clone() for name, tensor in each.state_dict().items()}
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        for _ in range(2):
            step(each, optimizer)
            for name, tensor in each.state_dict().items():
                shadow[name].lerp_(tensor, 0.5)
        for name, tensor in each.state_dict().items():
            tensor.copy_(shadow[name])
    expected = oracle.all_rows()
    expected[FROZEN] = start()[FROZEN] if kind != "whole" else expected[FROZEN]
    assert same(rows_of(module), expected)


# Devices, types, copies and files.


def emptied(module: nn.Module) -> nn.Module:
    empty = module.to("meta").to_empty(device="cpu")
    for tensor in empty.state_dict().values():
        tensor.fill_(torch.nan)
    return empty


LOADS: dict[str, Callable[[nn.Module, dict[str, Tensor]], Any]] = {
    "meta-assign": lambda module, state: module.to("meta").load_state_dict(state, assign=True),
    "to-empty": lambda module, state: emptied(module).load_state_dict(state),
    "copy": lambda module, state: module.load_state_dict(state),
    "assign": lambda module, state: module.load_state_dict(state, assign=True),
}


@pytest.mark.parametrize("form", ["own", "full"])
@pytest.mark.parametrize("way", LOADS)
@pytest.mark.parametrize("kind", OURS)
def test_a_state_dict_is_loaded(kind: str, way: str, form: str) -> None:
    module = make(kind)
    step(module, torch.optim.SGD(module.parameters(), lr=0.1))
    file = io.BytesIO()
    torch.save(module.state_dict() if form == "own" else full_state_dict(module), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    other = make(kind)
    assert str(LOADS[way](other, state)) == "<All keys matched successfully>"
    assert same(rows_of(other), rows_of(module))
    assert same(other(IDS), module(IDS))
    grads = {name: parameter.requires_grad for name, parameter in module.named_parameters()}
    assert {name: parameter.requires_grad for name, parameter in other.named_parameters()} == grads
    if kind != "text":
        plain = nn.Embedding(V, D, padding_idx=PAD)
        plain.load_state_dict(full_state_dict(module))
        assert same(plain(IDS), module(IDS))


@pytest.mark.parametrize("kind", OURS)
def test_a_module_on_meta_from_the_start(kind: str) -> None:
    with torch.device("meta"):
        module = make(kind)
    assert module(IDS.to("meta")).shape == (*IDS.shape, D)
    module.to_empty(device="cpu")
    module.load_state_dict(make(kind).state_dict())
    assert same(module(IDS), start()[IDS])


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module)), lambda module: through_torch(module)],
    ids=["deepcopy", "pickle", "torch.save"],
)
@pytest.mark.parametrize("kind", OURS)
def test_a_copy_has_rows_of_its_own(kind: str, copied: Callable[[nn.Module], nn.Module]) -> None:
    module = make(kind)
    other = copied(module)
    step(other, torch.optim.SGD(other.parameters(), lr=0.1))
    oracle = Oracle(kind)
    step(oracle, torch.optim.SGD(oracle.parameters(), lr=0.1))
    assert same(rows_of(module), start())
    assert same(rows_of(other), oracle.all_rows())


def through_torch(module: nn.Module) -> Any:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):  # a module is code; so it is for nn.Embedding
        torch.load(file, weights_only=True)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("kind", OURS)
def test_types(kind: str, dtype: torch.dtype) -> None:
    plain, module = make("plain").to(dtype), make(kind).to(dtype)
    assert same(module(IDS), plain(IDS))
    assert same(rows_of(module), start().to(dtype))
    step(module, torch.optim.SGD(module.parameters(), lr=0.1))
    oracle = Oracle(kind).to(dtype)
    step(oracle, torch.optim.SGD(oracle.parameters(), lr=0.1))
    expected = start().to(dtype)
    expected[oracle.rows] = oracle.table.weight.detach()
    assert same(rows_of(module), expected)


@pytest.mark.parametrize("kind", OURS)
def test_autocast(kind: str) -> None:
    module, layer = make(kind), nn.Linear(D, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vectors = module(IDS)
        hidden = layer(vectors)
    assert vectors.dtype == torch.float32  # as nn.Embedding, which autocast leaves alone
    assert hidden.dtype == torch.bfloat16
    hidden.float().square().sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters() if parameter.requires_grad)


# Compiled and exported.


@pytest.mark.parametrize("kind", OURS)
def test_compiled(kind: str) -> None:
    oracle, module = Oracle(kind), make(kind)
    compiled: Any = torch.compile(module, backend="aot_eager", fullgraph=True)
    assert same(compiled(IDS), start()[IDS])
    for each in (oracle, compiled):
        step(each, torch.optim.AdamW(each.parameters(), lr=0.1))
    assert same(rows_of(module), oracle.all_rows())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", OURS)
def test_compiled_by_inductor(kind: str) -> None:
    module = make(kind)
    compiled: Any = torch.compile(module, fullgraph=True)
    assert same(compiled(IDS), start()[IDS])
    loss(compiled).backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", OURS)
def test_exported(kind: str, strict: bool) -> None:
    exported = torch.export.export(make(kind).eval(), (IDS,), strict=strict)
    assert same(exported.module()(IDS), start()[IDS])
    other = torch.tensor([[1, 11, 7, 0, 4], [2, 2, 8, 9, 10]])
    assert same(exported.module()(other), start()[other])


@pytest.mark.parametrize("kind", OURS)
def test_onnx(kind: str) -> None:
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of its own parts
        program = torch.onnx.export(make(kind).eval(), (IDS,), dynamo=True, verbose=False)
    assert program is not None
    model = program.model_proto
    found: Any = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: IDS.numpy()})
    assert same(torch.from_numpy(found[0]), start()[IDS])


# Calls with other parameters.


@pytest.mark.parametrize("kind", OURS)
def test_functional_calls(kind: str) -> None:
    module = make(kind)
    own = {name: tensor.detach().clone() for name, tensor in module.named_parameters()}
    doubled = {name: tensor * 2 for name, tensor in own.items()}
    assert same(functional_call(module, doubled, IDS), start()[IDS] * 2)
    assert same(vmap(lambda ids: functional_call(module, own, ids))(IDS), start()[IDS])
    name = next(name for name, parameter in module.named_parameters() if parameter.requires_grad)

    def of(trained: Tensor, ids: Tensor) -> Tensor:
        result: Tensor = functional_call(module, {**own, name: trained}, ids)
        return result.square().sum()

    each = vmap(grad(of), in_dims=(None, 0))(own[name], IDS)  # of each text by itself
    loss_all = module(IDS).square().sum()
    loss_all.backward()
    expected = dict(module.named_parameters())[name].grad
    assert expected is not None
    torch.testing.assert_close(each.sum(0), expected)
    if kind != "whole":
        with pytest.raises(UsageError, match="functional_call takes `frozen` and `trained`"):
            functional_call(partly_of(module), {"weight": start()}, IDS)


class Doubled(nn.Module):
    def forward(self, tensor: Tensor) -> Tensor:
        return tensor * 2


@pytest.mark.parametrize("kind", OURS)
def test_parametrizations(kind: str) -> None:
    module = make(kind)
    part = partly_of(module) if kind != "whole" else module
    if kind != "whole":
        with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element"):
            nn.utils.parametrize.register_parametrization(part, "weight", Doubled())
    nn.utils.parametrize.register_parametrization(part, "weight" if kind == "whole" else "trained", Doubled())
    expected = start()
    expected[TRAIN if kind != "whole" else slice(None)] *= 2
    assert same(module(IDS), expected[IDS])
    module(IDS).sum().backward()


# What it costs.


class Allocated(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the numbers in all results that have memory of their own, those of the backward pass among them."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            given = [item.data_ptr() for item in args if isinstance(item, Tensor)]
            self.numbers += result.numel() if result.data_ptr() not in given else 0
        return result


@pytest.mark.parametrize("many", [False, True], ids=["ranges", "table"])
def test_a_step_costs_what_trains_and_not_what_there_is(many: bool) -> None:
    spent = []
    for rows in (2_000, 64_000):
        module = PartlyFrozenEmbedding(torch.zeros(rows, 8), range(0, 400, 2 if many else 1))
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.1)
        module(torch.arange(600)).sum().backward()
        allocated = Allocated()  # type: ignore[no-untyped-call]
        with allocated:
            optimizer.zero_grad()
            module(torch.arange(600)).sum().backward()
            optimizer.step()
        spent.append(allocated.numbers)
    assert spent[0] == spent[1]


@pytest.mark.parametrize("rows", [range(2000), range(0, 4000, 2)], ids=["ranges", "table"])
def test_the_memory_of_a_table(rows: range) -> None:
    """At most 2 % over V x D floats, whichever rows train: no copy of the table, and no index of its own width."""
    count, dim = 20_000, 100
    module = PartlyFrozenEmbedding(torch.zeros(count, dim), rows)
    module(torch.arange(5))
    tensors = [*module.parameters(), *module.buffers(), *(part for on in module.plan._on.values() for part in on)]
    held = sum(tensor.untyped_storage().nbytes() for tensor in tensors) + module.plan._edges.nbytes
    assert held <= 1.02 * 4 * count * dim
