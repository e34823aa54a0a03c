"""What the shells are told about commands, options, values and files."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from helpers import run


def completed(words: str, cwd: Path | None = None) -> list[tuple[str, str]]:
    """What bash is offered for the last of some words: kinds and values."""
    environment = {
        "_VEC2EMB_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)
    }  # fmt: skip
    script = str(Path(sysconfig.get_path("scripts")) / "vec2emb")
    done = subprocess.run(
        [script], env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True, cwd=cwd, timeout=60
    )
    assert done.stderr == ""
    return [(kind, value) for kind, _, value in (line.partition(",") for line in done.stdout.split())]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("vec2emb con", [("plain", "convert")]),
        ("vec2emb positions re", [("plain", "resize")]),
        ("vec2emb convert v.txt --shard", [("plain", "--shard-size")]),
        ("vec2emb export b --to sha", [("plain", "shards")]),
        ("vec2emb convert --dtype b", [("plain", "bfloat16")]),
        ("vec2emb convert gl", [("file", "gl")]),
        ("vec2emb convert v.txt --vocab w", [("file", "w")]),
        ("vec2emb convert v.txt -o o", [("file", "o")]),
        ("vec2emb similar glove", [("file", "glove")]),
        ("vec2emb convert v.txt --pad x", []),
        ("vec2emb similar glove th", []),
    ],
)
def test_what_is_offered(words: str, offered: list[tuple[str, str]]) -> None:
    assert completed(words) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    done = run(env={"_VEC2EMB_COMPLETE": f"{shell}_source"}, module=("vec2emb",))
    assert (done.returncode, done.stderr) == (0, b"")
    script = done.stdout.decode()
    assert f"_VEC2EMB_COMPLETE={shell}_complete" in script
    assert {"bash": "complete -o", "zsh": "compdef", "fish": "complete --no-files --command vec2emb"}[shell] in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, check=True)


def test_the_script_works_in_bash(tmp_path: Path) -> None:
    """As in the README: sourced, then asked for the rest of a word."""
    program = (
        'eval "$(_VEC2EMB_COMPLETE=bash_source vec2emb)"\n'
        "COMP_WORDS=(vec2emb expo) COMP_CWORD=1\n"
        "_vec2emb_completion vec2emb\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    path = f"{sysconfig.get_path('scripts')}:/usr/bin:/bin"
    done = subprocess.run(["bash", "-c", program], env={"PATH": path}, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("export\n", "")


def test_a_start_does_not_pay_for_it() -> None:
    code = "import sys; from vec2emb.cli import run; run(['--version']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "click.shell_completion" not in done.stderr.split()
