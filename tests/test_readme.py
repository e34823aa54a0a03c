"""The README's examples run, and print what it says they print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(arguments: list[str], folder: Path) -> str:
    """The standard output of a program that ends well, started as if in the root of the repository."""
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_seconds(text: str) -> str:
    return re.sub(r"\b\d+\.\d\d s\b", "N s", text)


def test_python_blocks_print_what_their_comments_say(tmp_path: Path) -> None:
    code = "\n".join(blocks("python"))  # in one process: later blocks use the bundle of the first
    expected = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    printed = run([sys.executable, "-W", "error", "-c", code], tmp_path).splitlines()
    assert expected
    assert printed == expected


def test_commands_print_what_the_readme_shows(tmp_path: Path) -> None:
    shown = "".join(blocks("console"))
    script = os.path.join(sysconfig.get_path("scripts"), "vec2emb")
    again = ""
    for command in re.findall(r"^\$ (.*)$", shown, re.MULTILINE):
        name, *arguments = shlex.split(command)
        assert name == "vec2emb"
        again += f"$ {command}\n" + run([script, *arguments], tmp_path)
        (tmp_path / "fixtures").unlink()
    assert without_seconds(again) == without_seconds(shown)


@pytest.mark.parametrize("number", [0, 1])
def test_set_up_is_two_commands(number: int) -> None:
    """CI takes these two blocks and runs them; each must stand for itself, on a machine that has only Python."""
    commands = blocks("sh")
    assert len(commands) == 2
    steps = [step.strip() for step in commands[number].replace("\\\n", "").split("&&")]
    assert re.fullmatch(r"python3 -m venv (\.venv[a-z-]*)", steps[0])
    folder = steps[0].split()[-1]
    assert all(step.startswith(f"{folder}/bin/") for step in steps[1:])
