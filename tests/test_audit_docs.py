"""What docs/audit.md shows runs, and does what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from helpers import ROOT

PAGE = (ROOT / "docs" / "audit.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120
    )


def test_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("The time of the people and of the state\n" * 3)
    script = blocks("sh")[1]
    done = run(["bash", "-euc", script], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "gates  all 3 kept" in done.stdout
    (tmp_path / "texts" / "b.txt").write_text("zyzzyva " * 100)
    again = re.sub(
        "words.txt", "words2.txt", re.sub("counts.tsv", "counts2.tsv", re.sub(r"\bglove\b(?!\.)", "two", script))
    )
    done = run(["bash", "-euc", again], tmp_path)
    assert done.returncode == 3
    assert "missed: two: coverage.tokens is " in done.stderr


def test_the_python(tmp_path: Path) -> None:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    [code] = blocks("python")
    done = run([sys.executable, "-W", "error", "-c", code], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
