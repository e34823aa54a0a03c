"""What is said about the package in several places is the same in all of them, and what it installs works."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib import import_module, metadata, resources
from pathlib import Path

import pytest

import vec2emb
from vec2emb import _kernel
from vec2emb.errors import MissingPackageError

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"].keys()
SCRIPT = os.path.join(sysconfig.get_path("scripts"), "vec2emb")


def requirement_name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def test_version_is_the_same_everywhere() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    assert newest is not None
    assert vec2emb.__version__ == PROJECT["version"] == metadata.version("vec2emb") == newest[1]


@pytest.mark.parametrize("command", [[SCRIPT], [sys.executable, "-m", "vec2emb"]], ids=["script", "module"])
def test_version_names_the_kernel_in_use(command: list[str], tmp_path: Path) -> None:
    done = subprocess.run([*command, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"vec2emb {vec2emb.__version__}, {_kernel.NAME} kernel\n")
    assert done.stderr == ("" if _kernel.WHY_SLOW is None else f"slow: {_kernel.WHY_SLOW}\n")


def test_the_package_is_typed() -> None:
    assert resources.files("vec2emb").joinpath("py.typed").is_file()


def test_every_extra_that_is_named_exists() -> None:
    """In the hints of errors, the README and the docs."""
    named: set[str] = set()
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "vec2emb").rglob("*.py")]
    for tree in map(ast.parse, sources):
        handed_on = {node for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == "needed"
                     for node in ast.walk(one)}  # fmt: skip
        for node in set(ast.walk(tree)) - handed_on:
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("MissingPackageError.of", "needed"):
                extra = next((word.value for word in node.keywords if word.arg == "extra"), None) or node.args[1]
                assert isinstance(extra, ast.Constant), f"line {node.lineno}: an extra is named by a literal"
                named.add(str(extra.value))
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))]
    for text in [*sources, *pages]:
        for extras in re.findall(r"vec2emb\[([a-z,]+)\]", text):
            named.update(extras.split(","))
    assert "torch" in named
    assert named <= EXTRAS


def test_missing_package_error_names_the_command() -> None:
    error = MissingPackageError.of("torch", "torch", "load_embedding")
    assert str(error) == "load_embedding needs torch; install it with: pip install 'vec2emb[torch]'"


def test_no_pin_reaches_those_who_install() -> None:
    """Pins are for our own tests: they stand in constraints.txt, and each is of something we ask for."""
    asked = [*PROJECT["dependencies"], *(line for lines in PROJECT["optional-dependencies"].values() for line in lines)]
    assert not [requirement for requirement in asked if "==" in requirement.split(";")[0]]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    beneath = {"aiobotocore", "boto3", "botocore"}  # of the clients of S3, which find no set that fits without a hint
    assert {requirement_name(line) for line in pinned} <= {requirement_name(line) for line in asked} | beneath
    assert "torch" in map(requirement_name, pinned)


def test_the_command_and_the_function_have_the_same_defaults() -> None:
    """But for flags, which stand for a value of another option, and for what only one of the two has."""
    command = import_module("vec2emb.cli.convert").convert
    function = inspect.signature(vec2emb.convert).parameters
    flags = {"extra", "no_pad", "no_unk", "with_json", "quiet"}
    values = {
        name: value
        for name, value in command.make_context("convert", ["v.txt"], help_option_names=["-h", "--help"]).params.items()
        if name not in flags
    }
    assert function.keys() - values.keys() == {"progress"}
    assert values.keys() <= function.keys()
    for name in values.keys() - {"source", "output"}:
        default = function[name].default  # of `...` the command line has no spelling: it is the option left out
        assert (values[name] or None) == (None if default is ... else default or None), name
