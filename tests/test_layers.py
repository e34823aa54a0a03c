"""Who imports whom: down only, and nothing heavy before it is used."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from helpers import ROOT

import vec2emb

PACKAGE = ROOT / "vec2emb"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}

# What the rooms at the bottom may know of, besides themselves; everything else may import these.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "_kernel": set(),
    "compression": {"errors"},
    "archives": {"compression", "errors"},
    "sources": {"archives", "compression", "errors"},
    "formats": {"_kernel", "errors", "sources"},
    "vocab_text": {"errors"},
    "vocab_tokens": {"errors"},
    "vocabulary": {"_kernel", "errors", "vocab_text", "vocab_tokens"},
    "special": {"errors"},
    "selection": {"_kernel", "errors", "special"},
    "initialize": {"_kernel", "errors"},
    "keys": {"errors"},
    "positions": {"errors", "keys"},
    "filesystem": {"errors"},
    "writeback": set(),
    "publishing": {"errors", "filesystem"},
    "tensorfile": {"errors"},
    "engine": {"_kernel", "errors", "formats", "selection"},
    "progress": set(),
    "corpus": {"_kernel", "compression", "errors", "filesystem", "progress", "publishing", "sources", "special"}
    | {"vocab_text", "vocabulary", "wordlist"},
}


@functools.cache
def imports(name: str, *, top_only: bool = False) -> frozenset[str]:
    """What a module of the package imports, absolute; not what only type checkers see."""
    path = MODULES[name]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        or (top_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        for inner in ast.walk(node)
    }
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parts, node.module] if node.module else parts)
            found |= {f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names}
    return frozenset(found - {name})


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("name", ROOMS)
def test_down_only(name: str) -> None:
    above = {}
    for module in [module for module in MODULES if room(module) == name]:
        used = {room(other) for other in imports(module) if other.split(".")[0] == "vec2emb" and room(other)}
        if used - ROOMS[name] - {name}:
            above[module] = used - ROOMS[name] - {name}
    assert above == {}


def test_no_cycles() -> None:
    graph = {name: imports(name, top_only=True) & MODULES.keys() for name in MODULES}
    order = list(TopologicalSorter(graph).static_order())
    assert set(order) == set(MODULES)


def test_only_the_command_line_knows_click() -> None:
    users = {name for name in MODULES if {m.split(".")[0] for m in imports(name)} & {"click"}}
    assert users
    assert {room(name) for name in users} == {"cli"}
    assert {name for name in MODULES if "vec2emb.cli" in {m[:11] for m in imports(name)} and room(name) != "cli"} == {
        "vec2emb.__main__"
    }


def test_the_command_line_knows_no_numpy() -> None:
    for name in MODULES:
        if room(name) == "cli":
            assert not {m.split(".")[0] for m in imports(name)} & {"numpy", "torch", "gensim", "safetensors"}


def test_only_one_room_knows_torch() -> None:
    users = {name for name in MODULES if "torch" in {m.split(".")[0] for m in imports(name)}}
    assert {room(name) for name in users} <= {"torch"}


def loaded_by(code: str, *arguments: str) -> set[str]:
    """The modules that a fresh interpreter has after running a program."""
    program = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, check=True, text=True)
    return set(done.stderr.split())


HEAVY = {"numpy", "torch", "gensim", "safetensors", "tqdm", "matplotlib", "pandas", "pyarrow", "scipy", "transformers"}


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("import vec2emb", []),
        ("import vec2emb; dir(vec2emb)", []),
        ("from vec2emb.cli import main; main()", ["--help"]),
        ("from vec2emb.cli import main; main()", ["--version"]),
        ("from vec2emb.cli import main; main()", ["convert", "--help"]),
        ("from vec2emb.cli import main; main()", ["inspect", "--help"]),
    ],
)
def test_nothing_heavy_is_loaded(code: str, arguments: list[str]) -> None:
    assert not loaded_by(code, *arguments) & HEAVY


def test_importing_loads_no_other_module() -> None:
    assert {name for name in loaded_by("import vec2emb") if name.startswith("vec2emb")} == {"vec2emb"}


def test_converting_loads_no_torch(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("the 1 2\nof 3 4\n")
    loaded = loaded_by(
        "from vec2emb.cli import main; main()", "convert", str(tmp_path / "v.txt"), "-o", str(tmp_path / "o"), "--quiet"
    )
    assert (tmp_path / "o" / "model.safetensors").exists()
    assert not loaded & {"torch", "gensim", "tqdm", "safetensors"}


# The public names.


def test_all() -> None:
    assert sorted(vec2emb.__all__) == sorted(dir(vec2emb)) == sorted(set(vec2emb.__all__))
    for name in vec2emb.__all__:
        assert getattr(vec2emb, name) is not None
    namespace: dict[str, object] = {}
    exec("from vec2emb import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(vec2emb.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        vec2emb.nothing  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(MODULES["vec2emb"].read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(vec2emb.__all__) - {"__version__"}


def test_no_module_has_the_name_of_a_public_one() -> None:
    """With names looked up late, importing such a module would put it in the place of the function."""
    top = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert not top & set(vec2emb.__all__)


def test_functions_stay_functions(tmp_path: Path) -> None:
    source = tmp_path / "v.txt"
    source.write_text("the 1 2\nof 3 4\n")
    for i in range(2):
        assert vec2emb.convert(source, tmp_path / f"out{i}").rows == 4
        assert vec2emb.inspect(tmp_path / f"out{i}").ok
        assert len(vec2emb.load(tmp_path / f"out{i}")) == 4
