"""The examples of CONTRIBUTING.md, applied to a copy of the package: a format keeps the contract, options work."""

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

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
OPTIONS_FROM = GUIDE[: GUIDE.index("## An option, as an example")].count("\n")
TITLED = [block for block in blocks(GUIDE) if block.title]
BLOCKS = [block for block in TITLED if block.line < OPTIONS_FROM]
READING_OPTION, WORD_OPTION = (
    [block for block in TITLED if block.line > OPTIONS_FROM and block.title.endswith(names)]
    for names in (("/reading.py.diff", "/reading_pass.py.diff"), ("/words.py.diff", "/planning.py.diff"))
)

# Starts pytest on the copy, past the hook of an editable installation, which would find the package in its own place.
START = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "vec2emb" not in vars(finder).get("known_source_files", {})]
sys.path.insert(0, sys.argv[1])
import vec2emb
assert vec2emb.__file__.startswith(sys.argv[1]), vec2emb.__file__
"""
PYTEST = START + "import pytest; sys.exit(pytest.main(sys.argv[2:]))"
SIGNATURES = START + "import runpy; runpy.run_path('docs/make/signatures.py', run_name='__main__')"
COMMAND = START + "from vec2emb.cli import main; main(sys.argv[2:])"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and of what its tests need."""
    for folder in ("vec2emb", "tests", "docs/make"):
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
    command = [sys.executable, "-c", PYTEST, str(copy), *arguments]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n9 passed" in done.stdout  # that each format has a sample, and what is asked of this one


@pytest.mark.parametrize(
    ("example", "most", "options", "code"),
    [
        (READING_OPTION, 3, ["--min-rows", "3"], "too-few-rows"),
        (WORD_OPTION, 2, ["--vocab", "words.txt", "--missing", "error", "--max-words", "2"], None),
    ],
    ids=["a reading option", "a word option"],
)
def test_an_option_touches_few_sources(
    copy: Path, example: list[Block], most: int, options: list[str], code: str | None
) -> None:
    """Both functions and commands have it; what docs/make/signatures.py writes is generated and not counted."""
    sources = {block.title for block in example if block.title.startswith("vec2emb/")}
    assert 0 < len(sources) <= most
    for block in example:
        apply(block, copy)
    subprocess.run([sys.executable, "-c", SIGNATURES, str(copy)], cwd=copy, check=True, timeout=60)
    (copy / "v.txt").write_bytes(b"the 1 2\nof 3 4\n")
    (copy / "words.txt").write_bytes(b"of\nthe\nzyzzyva\n")

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", COMMAND, str(copy), *words]
        return subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=60)

    name = options[-2]
    assert f"  {name} N " in start("convert", "--help").stdout
    assert start("convert", "v.txt", "-o", "a", name, "0").returncode == 2
    done = start("convert", "v.txt", "-o", "b", *options)
    if code is not None:
        assert done.stderr.startswith(f"error[{code}]: v.txt: ")
        done = start("convert", "v.txt", "-o", "b", *options[:-1], "2")
    assert done.returncode == 0, done.stderr
    assert start("verify", "b", "--rebuild", "v.txt").returncode == 0
    arguments = ["-q", "-p", "no:cacheprovider", "-k", "(signature or command or recorded) and not torch"]
    command = [sys.executable, "-c", PYTEST, str(copy), *arguments, "tests/options/test_definitions.py"]
    checked = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300)
    assert checked.returncode == 0, checked.stdout + checked.stderr
