"""What docs/corpus.md shows runs, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from helpers import FIXTURES, ROOT

PAGE = (ROOT / "docs" / "corpus.md").read_text("utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fixtures").symlink_to(FIXTURES)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("The time of the people\nand of the state of the art\n")
    (tmp_path / "vectors").mkdir()
    rows = (FIXTURES / "glove.6B.50d.sample.txt").read_bytes().splitlines(keepends=True)
    for name, part in (("even", rows[::2]), ("odd", rows[1::2])):
        (tmp_path / "vectors" / f"{name}.txt").write_bytes(b"".join(part))
    return tmp_path


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path) -> str:
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_machine(folder: Path) -> None:
    run(["bash", "-euc", blocks("sh")[0]], folder)
    assert (folder / "words.txt").read_text().split() == ["of", "the"]
    assert (folder / "glove" / "vocab.txt").read_text().split() == ["<pad>", "<unk>", "of", "the"]


def test_python_and_many_files(folder: Path) -> None:
    printed = run([sys.executable, "-c", "\n".join(blocks("python"))], folder).splitlines()
    assert printed[:2] == re.findall(r"^print\(.*\)  # (.*)$", PAGE, re.MULTILINE)
    # 12 tokens. The sample's rows 1 and 93 (the, 3 times, and state) are in one file, 4, 6, 70 and 80 (of, 3 times,
    # and, people, time) in the other; `The` and `art` are in neither. Each bundle has two special rows.
    assert printed[2:] == ["even: 4 rows, 33% of the corpus", "odd: 6 rows, 50% of the corpus"]
    bundles = {path: (path / "model.safetensors").stat().st_mtime_ns for path in (folder / "bundles").iterdir()}
    run([sys.executable, "-c", "\n".join(blocks("python"))], folder)  # tasks are safe to repeat
    assert bundles == {path: (path / "model.safetensors").stat().st_mtime_ns for path in (folder / "bundles").iterdir()}
