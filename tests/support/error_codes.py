"""Every code that the package can raise or warn with, read from its source."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from helpers import ROOT

from vec2emb import errors
from vec2emb.conversion import expectations
from vec2emb.formats import other
from vec2emb.formats.faults import CODES
from vec2emb.options.commands import FUNCTIONS

# Functions that make a code of their first argument, beside the classes and beside those that hand on a `code`.
MAKERS: dict[str, Callable[[str], str]] = {
    "count": lambda name: f"{name}-range",
    "demand": lambda name: f"{name.replace('_', '-')}-range",
    "parse_size": lambda name: f"{name.replace('_', '-').lower()}-range",
    "choice": lambda name: f"unknown-{name}",
    "size_of_environment": lambda name: f"{name.replace('_', '-').lower()}-range",
    "_stopped": lambda how: how,  # by a signal
}


def slugs() -> set[str]:
    """What a file can be that holds no vectors: the slugs of `formats/other.py` and `formats/lookalikes.py`."""
    formats = ROOT / "vec2emb" / "formats"
    trees = [ast.parse((formats / name).read_text(encoding="utf-8")) for name in ("other.py", "lookalikes.py")]
    found = {slug for _, slug, _, _ in other._MAGIC} | {other.PRINTED_ARRAY[0]}
    for function in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                found |= strings(node.value.elts[0], function) or set()
    return found


# Codes that are put together where they are raised, by the expression.
COMPOSED = {
    "f'is-{slug}'": lambda: {f"is-{slug}" for slug in slugs()},
    "f'expected-{key}'": lambda: {f"expected-{key}" for key in expectations._KEYS},
    "f'binary-{dtype}'": lambda: {"binary-float16", "binary-float64"},
    "f\"{name.replace('_', '-')}-range\"": lambda: {"min-count-range", "max-size-range"},  # corpus.counts
    "CODES[Fault(fault)]": lambda: set(CODES.values()),
    "own_code": lambda: (
        {"argument-type"} | {option.code for options in FUNCTIONS.values() for option in options if option.code}
    ),  # definition
    "error.code": lambda: set[str](),  # of an error that is there already
    "first.code": lambda: set[str](),
}


def strings(node: ast.expr, function: ast.FunctionDef | None) -> set[str] | None:
    """The strings that an expression may be; None if that cannot be told."""
    text = ast.unparse(node)
    if text in COMPOSED:
        return COMPOSED[text]()
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else None
    if isinstance(node, ast.IfExp):
        return _union(strings(part, function) for part in (node.body, node.orelse))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Dict):
        return _union(
            strings(part, function) for part in [*node.func.value.values, node.args[1]]
        )  # {..}.get(x, default)
    if isinstance(node, ast.Name) and function is not None:
        return _union(strings(value, function) for value in _values(node.id, function))
    return None


def _values(name: str, function: ast.FunctionDef) -> list[ast.expr]:
    """What a name of a function is set to: by assignments, and by loops over tuples that are written out."""
    found: list[ast.expr] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            found.append(node.value)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Tuple):
            names = [ast.unparse(target) for target in node.target.elts]
            rows = [row.elts for row in node.iter.elts if isinstance(row, ast.Tuple)]
            found += [row[names.index(name)] for row in rows if name in names]
    return found


def _union(parts: Iterable[set[str] | None]) -> set[str] | None:
    found = list(parts)
    return None if not found or None in found else set[str]().union(*(part for part in found if part))


def kinds(kind: type[errors.Vec2embError] = errors.Vec2embError) -> list[type[errors.Vec2embError]]:
    """An error and all that derive from it."""
    return [kind, *(found for below in kind.__subclasses__() for found in kinds(below))]


@functools.cache
def read_codes() -> tuple[dict[str, set[str]], list[str]]:
    """Each code with the classes and functions it is given to, and the places whose code cannot be told."""
    found: dict[str, set[str]] = defaultdict(set)
    unclear: list[str] = []
    for path in sorted((ROOT / "vec2emb").rglob("*.py")):
        _read_module(path, found, unclear)
    return dict(found), unclear


def _read_module(path: Path, found: dict[str, set[str]], unclear: list[str]) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = (
        {kind.__name__ for kind in kinds()} | {"Vec2embWarning"} | ({"cls"} if path.name == "errors.py" else set())
    )
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    handing = {function.name for function in functions if _hands_on(function, classes)}
    owner = {id(inner): function for function in functions for inner in ast.walk(function)}  # the innermost comes last
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if ast.unparse(node.func) == "warnings.warn":
            continue  # it takes a warning that is there already
        function = owner.get(id(node))
        if called in MAKERS and isinstance(node.func, ast.Name):
            if isinstance(node.args[0], ast.Constant):
                found[MAKERS[called](str(node.args[0].value))].add("UsageError")
        elif called in classes | handing:
            codes = strings(node.args[0], function)
            for code in codes or ():
                found[code].add(called)
            if codes is None and not (function and (function.name in handing or function.name in MAKERS)):
                unclear.append(f"{path.name}:{node.lineno}: {ast.unparse(node.args[0])}")


def _hands_on(function: ast.FunctionDef, classes: set[str]) -> bool:
    """Whether a function gives an argument named `code` to an error: then its callers say the code."""
    return "code" in [argument.arg for argument in function.args.args] and any(
        isinstance(node, ast.Call)
        and (node.func.id if isinstance(node.func, ast.Name) else "") in classes
        and node.args
        and ast.unparse(node.args[0]) == "code"
        for node in ast.walk(function)
    )
