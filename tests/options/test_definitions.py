"""Options are defined once: signatures, command lines, checks and records are what the definitions say."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from helpers import ROOT, run

import vec2emb
from vec2emb.cli import group
from vec2emb.errors import UsageError
from vec2emb.options import commands
from vec2emb.options.commands import FUNCTIONS
from vec2emb.options.conversion import CONVERT
from vec2emb.options.definition import REQUIRED, Option, check

COMMANDS: dict[str, tuple[Option, ...]] = {
    "audit": (*commands.AUDIT, commands.SCHEMA),
    "convert": CONVERT,
    "evaluate": commands.EVALUATE,
    "explain": commands.EXPLAIN,
    "export": commands.EXPORT,
    "extend": commands.EXTEND,
    "inspect": commands.INSPECT,
    "positions attach": commands.ATTACH,
    "positions resize": commands.RESIZE,
    "positions show": commands.DESCRIBE,
    "similar": commands.SIMILAR,
    "trim": commands.TRIM,
    "verify": commands.VERIFY,
    "vocab": commands.VOCAB,
}
KINDS = {
    "positional": inspect.Parameter.POSITIONAL_OR_KEYWORD,
    "keyword": inspect.Parameter.KEYWORD_ONLY,
    "variadic": inspect.Parameter.VAR_POSITIONAL,
}
SOURCES = {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "vec2emb").rglob("*.py"))}


def function_at(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(f"vec2emb.{module}"), name)
    return found


def test_every_public_function_that_takes_options_is_listed() -> None:
    public = [getattr(vec2emb, name) for name in vec2emb.__all__]
    functions = {one.__name__ for one in public if inspect.isfunction(one)}
    torch_functions = {place.rpartition(".")[2] for place in FUNCTIONS if place.startswith("torch.")}
    assert {place.rpartition(".")[2] for place in FUNCTIONS} - torch_functions == functions


@pytest.mark.parametrize("place", FUNCTIONS)
def test_a_signature_is_what_the_definitions_say(place: str) -> None:
    parameters = [
        (one.name, one.annotation, REQUIRED if one.default is one.empty else one.default, one.kind)
        for one in inspect.signature(function_at(place)).parameters.values()
        if one.kind is not one.VAR_KEYWORD
    ]
    assert parameters == [
        (one.name, one.type.annotation, one.default, KINDS[one.kind]) for one in FUNCTIONS[place] if one.only != "cli"
    ]


@pytest.mark.parametrize("place", FUNCTIONS)
def test_every_function_checks_its_arguments(place: str) -> None:
    """What no type of an argument fits is refused by name, before anything is looked at."""
    options = [one for one in FUNCTIONS[place] if one.only != "cli"]
    required = [one for one in options if one.kind != "variadic" and one.default is REQUIRED]
    for option in options:
        if not option.type.expected or option.kind == "variadic":
            continue  # the function looks at it itself
        given: dict[str, Any] = {one.name: "x" for one in required}
        given |= {one.name: one.choices[0] for one in required if one.choices}
        given |= {one.name: 1 for one in required if one.type.parse == "int"}
        with pytest.raises(UsageError) as caught:
            function_at(place)(**{**given, option.name: object()})
        assert caught.value.message == f"{option.name} cannot be so"


def test_values_are_compared_with_types_ranges_and_choices() -> None:
    for name, value, code, expected in (
        ("format", 5, "argument-type", "a string"),
        ("format", "csv", "unknown-format", "auto or word2vec or glove or word2vec-binary"),
        ("dim", 0, "dim-range", "1 to 4,194,304"),
        ("dim", True, "dim-range", "1 to 4,194,304"),
        ("seed", 0.5, "seed-range", "a whole number"),
        ("positions", "round", "positions-kind", "none or learned or sinusoidal"),
        ("vocab", b"x", "argument-type", "a string or a path or a list or a tokenizer or None"),
    ):
        with pytest.raises(UsageError) as caught:
            check(CONVERT, {name: value})
        assert (caught.value.code, caught.value.expected, caught.value.found) == (code, expected, repr(value))


def leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from leaves(found, f"{name} {child}".strip())
    else:
        yield name, command


def test_every_command_has_the_options_of_its_definitions() -> None:
    found = dict(leaves(group))
    assert sorted(found) == sorted(COMMANDS)
    for name, command in found.items():
        shown = {one.name: one for one in command.params if isinstance(one, click.Option)}
        defined = {one.name: one for one in COMMANDS[name] if one.only != "python"}
        assert sorted(shown) == sorted(defined)
        for option in defined.values():
            assert shown[option.name].required == (option.default is REQUIRED)
            assert (shown[option.name].help or "").startswith(option.help)
            kind = shown[option.name].type
            assert (tuple(kind.choices) if isinstance(kind, click.Choice) else None) == option.choices


def test_options_have_help_and_a_code_where_they_have_values_to_refuse() -> None:
    for place, options in (*FUNCTIONS.items(), *COMMANDS.items()):
        names = [one.name for one in options]
        assert len(set(names)) == len(names), place
        for option in options:
            on_a_command_line = place in COMMANDS and option.only != "python"
            assert not on_a_command_line or (option.help.endswith((".", "]")) and option.heading), option
            assert option.code or not (option.choices or option.type.parse == "int"), option


def test_what_is_recorded_is_what_the_definitions_say(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"a 1 2\nb 3 4\n")
    vec2emb.convert(tmp_path / "v.txt", tmp_path / "bundle")
    replay = json.loads((tmp_path / "bundle" / "vec2emb.json").read_text("utf-8"))["replay"]
    named = {one.recorded for one in CONVERT if one.recorded}
    assert {*replay["options"], "specials", "vocab", "only"} == named


def test_no_class_of_options_is_built_from_a_list_of_values() -> None:
    """Of two values of the same type, nothing would notice that they are in the wrong order."""
    classes = {"ReadOptions", "WordOptions", "PositionPlan"}
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes:
                assert not node.args, f"{path.name}:{node.lineno}"


def test_only_public_functions_have_ten_parameters_or_more() -> None:
    public = {place.rpartition(".")[2] for place in FUNCTIONS} | {"sinusoidal"}
    calls_of_kernel = {"fill_binary", "row_error"}  # as the native kernel has them
    many = set()
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                arguments = [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
                if len([one for one in arguments if one and one.arg not in ("self", "cls")]) >= 10:
                    many.add(node.name)
    assert many - public <= calls_of_kernel


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["convert", "v.txt", "-o", "b", "--force"], "--if-exists replace"),
        (["convert", "v.txt", "-o", "b", "--train-rows", "none"], "--freeze"),
        (["convert", "v.txt", "-o", "b", "--preset", "xlm"], "--position-preset"),
        (["extend", "b", "-o", "c", "--special", "x", "--train-rows", "none"], "--freeze"),
        (["positions", "attach", "b", "--kind=learned", "--max-positions=3", "--preset", "x"], "--position-preset"),
    ],
)  # fmt: skip
def test_a_spelling_that_was_removed_names_the_one_to_use(words: list[str], instead: str, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"a 1 2\nb 3 4\n")
    vec2emb.convert(tmp_path / "v.txt", tmp_path / "b")
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run(*(tmp_path / word if word in ("v.txt", "b", "c") else word for word in words), "--quiet")
    assert (done.returncode, done.stdout) == (2, b"")
    message = done.stderr.decode()
    assert message.startswith("error[option-replaced]: ")
    assert f"use {instead}\n" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == before
