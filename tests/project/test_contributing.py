"""The format that CONTRIBUTING.md adds as an example: applied to a copy of the package, it keeps the contract."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import ROOT
from pages import Block, blocks

from vec2emb import _kernel

BLOCKS = [block for block in blocks((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")) if block.title]

# Starts pytest on the copy, past the hook of an editable installation, which would find the package in its own place.
START = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "vec2emb" not in vars(finder).get("known_source_files", {})]
sys.path.insert(0, sys.argv[1])
import vec2emb
assert vec2emb.__file__.startswith(sys.argv[1]), vec2emb.__file__
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and of what its tests need."""
    for folder in ("vec2emb", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    if _kernel.NAME == "native":
        from vec2emb._kernel import _native

        shutil.copy(str(_native.__file__), tmp_path / "vec2emb" / "_kernel")
    return tmp_path


def sides(block: Block) -> Iterator[str]:
    """What a change finds, and what it leaves."""
    for away in "+-":
        yield "".join(f"{line[1:]}\n" for line in block.code.splitlines() if not line.startswith(away))


def apply(block: Block, folder: Path) -> None:
    """Write a file, or change the one place that a change fits."""
    if block.language != "diff":
        (folder / block.title).write_text(block.code, encoding="utf-8")
        return
    path = folder / block.title.removesuffix(".diff")
    text = path.read_text(encoding="utf-8")
    before, after = sides(block)
    assert text.count(before) == 1, f"CONTRIBUTING.md:{block.line}: fits {text.count(before)} places of {path.name}"
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_the_example_is_short() -> None:
    added = sum(
        block.code.count("\n") if block.language == "python" else block.code.count("\n+") + block.code.startswith("+")
        for block in BLOCKS
    )
    assert 30 < added < 60


def test_the_example_keeps_the_contract_of_formats(copy: Path) -> None:
    for block in BLOCKS:
        apply(block, copy)
    arguments = ["-q", "-p", "no:cacheprovider", "-k", "commas or sample", "tests/formats/test_format_contract.py"]
    command = [sys.executable, "-c", START, str(copy), *arguments]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n9 passed" in done.stdout  # that each format has a sample, and what is asked of this one
