"""The kernel's stub says what the kernel takes and gives, and so does the twin."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
from helpers import ROOT

from vec2emb._kernel import reference

_native = pytest.importorskip("vec2emb._kernel._native", exc_type=ImportError)
STUB = ast.parse((ROOT / "vec2emb" / "_kernel" / "_native.pyi").read_text(encoding="utf-8"))
OF_TESTS = {"simd", "set_simd"}  # which the twin has no use for


def stubs() -> dict[str, ast.FunctionDef]:
    """Functions and methods of the stub, by dotted name; properties among them, but not attributes to be set."""
    found = {}
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}": inner for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def is_property(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in function.decorator_list)


FUNCTIONS = {name: stub for name, stub in stubs().items() if not is_property(stub)}
ATTRIBUTES = {
    f"{node.name}.{inner.target.id}"
    for node in STUB.body if isinstance(node, ast.ClassDef)
    for inner in node.body if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name)
}  # fmt: skip
PROPERTIES = (stubs().keys() - FUNCTIONS.keys()) | ATTRIBUTES
CLASSES = [node.name for node in STUB.body if isinstance(node, ast.ClassDef)]


def found_in(home: Any, name: str) -> Any:
    for part in name.split("."):
        home = getattr(home, part)
    return home


def signature(function: ast.FunctionDef, defaults: list[Any]) -> tuple[list[str], list[Any]]:
    return [argument.arg for argument in function.args.args if argument.arg != "self"], defaults


def test_the_stub_names_all_there_is() -> None:
    public = {name for name in vars(_native) if not name.startswith("_")}
    assert public == {name.split(".")[0] for name in stubs()}
    assert public - OF_TESTS == set(reference.__all__)
    for kind in CLASSES:
        has = {name for name in vars(getattr(_native, kind)) if not name.startswith("_")}
        assert has == {
            name.partition(".")[2] for name in stubs().keys() | ATTRIBUTES if name.startswith(f"{kind}.")
        } - {
            "__init__",
            "__len__",
        }


@pytest.mark.parametrize(
    "name", sorted(FUNCTIONS.keys() - {"Rows.__len__", "TokenIndex.__len__", "TokenCounter.__len__"})
)
def test_arguments_defaults_and_results(name: str) -> None:
    """As nanobind keeps them, who calls any object that gives bytes `object`."""
    stub = FUNCTIONS[name]
    [(text, _, defaults)] = found_in(_native, name).__nb_signature__
    native = ast.parse(text.replace("\\", "d") + ": ...").body[0]
    assert isinstance(native, ast.FunctionDef)
    written = [ast.literal_eval(default) for default in stub.args.defaults]
    assert signature(stub, written) == signature(native, list(defaults or ()))
    for ours, theirs in zip(stub.args.args, native.args.args, strict=True):
        if ours.arg != "self" and ours.annotation is not None and theirs.annotation is not None:
            assert plain(ours.annotation) in (plain(theirs.annotation), "object"), ours.arg
    assert stub.returns is not None
    assert native.returns is not None
    assert plain(stub.returns).startswith(plain(native.returns))  # which may leave out of what a list is


def plain(annotation: ast.expr) -> str:
    """An annotation as both sides may spell it."""
    text = ast.unparse(annotation).replace("vec2emb._kernel._native.", "").replace("collections.abc.", "")
    for ours, theirs in (("Buffer", "object"), ("Sequence[str]", "object"), ("Sequence[bytes]", "object")):
        text = text.replace(ours, theirs)
    return "str" if text.startswith("Literal") else text


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - OF_TESTS))
def test_the_twin_takes_the_same(name: str) -> None:
    stub, twin = FUNCTIONS[name], inspect.signature(found_in(reference, name))
    parameters = [parameter for parameter in twin.parameters.values() if parameter.name != "self"]
    defaults = [parameter.default for parameter in parameters if parameter.default is not inspect.Parameter.empty]
    written = [ast.literal_eval(default) for default in stub.args.defaults]
    assert signature(stub, written) == ([parameter.name for parameter in parameters], defaults)


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_properties_are_on_both_sides(name: str) -> None:
    for home in (_native, reference):
        kind, _, attribute = name.partition(".")
        made = home.Block(1) if kind == "Block" else getattr(home, kind)()
        assert hasattr(made, attribute)
