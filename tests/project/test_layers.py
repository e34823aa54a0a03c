"""Who imports whom: down only, and nothing heavy before it is used."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from helpers import ROOT
from importlinter.cli import lint_imports

import vec2emb

PACKAGE = ROOT / "vec2emb"


def test_floors_and_what_only_one_room_may_know(capsys: pytest.CaptureFixture[str]) -> None:
    """The contracts stand in pyproject.toml."""
    code = lint_imports(str(ROOT / "pyproject.toml"), no_cache=True)
    assert code == 0, capsys.readouterr().out


def test_no_circles() -> None:
    """Not even of imports inside of functions, or for types alone."""
    graph = grimp.build_graph("vec2emb", cache_dir=None)
    front = {"vec2emb"}  # it only hands on names
    imports = {name: graph.find_modules_directly_imported_by(name) - front for name in graph.modules - front}
    order = list(TopologicalSorter(imports).static_order())
    assert len(order) == len(imports) > 100


def test_the_architecture_page_has_every_package_from_top_to_bottom() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layers] = [one["layers"] for one in settings["tool"]["importlinter"]["contracts"] if "layers" in one]
    order = [name for layer in layers for name in layer.split(" : ")]
    described = [
        name for line in re.findall(r"^\*\*`.*", page, re.MULTILINE) for name in re.findall(r"\*\*`(\w+)`\*\*", line)
    ]
    assert set(described) == set(order) - {"__main__"}
    assert described[:-3] == order[1 : len(described) - 2]


def test_the_architecture_page_names_places_that_exist() -> None:
    """Each place of the table "Where is ...?" is a module, or a function or class of one."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    places = re.findall(r"^\| Where .*\? \| `([\w.]+)` \|$", page, re.MULTILINE)
    assert len(places) >= 20
    for place in places:
        try:
            importlib.import_module(f"vec2emb.{place}")
        except ModuleNotFoundError:
            module, _, name = place.rpartition(".")
            assert hasattr(importlib.import_module(f"vec2emb.{module}"), name), place


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
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(vec2emb.__all__)


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
