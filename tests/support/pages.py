"""Pages of Markdown as programs: what their blocks are, and a runner that executes a page from top to bottom.

A block of code runs by its language. Statements of `python` share one process for the whole page; what one prints is
the comment behind it, or the comment lines directly below it. `sh` runs and must end well. `console` shows commands
behind `$ ` and all that they print; a command that fails is followed by `$ echo $?`. With `title="NAME"` a block of any
language is a file of that name, which later blocks use. Other languages (`text`, `json` ..) are only shown.

Remarks in HTML, which no reader sees, stand in a line of their own before a block or between blocks:

    <!-- shown: WHY -->           the next block is not run, for this reason
    <!-- run
    mkdir texts                   shell that prepares what a reader has already, or checks what a block has done
    -->

`python tests/support/pages.py PAGE` runs a page in the current folder.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import vec2emb

RUN = {"python", "sh", "console"}
SHOWN = {"text", "json", "toml", "yaml", "ini", "make", "dockerfile", "cpp", "xml"}

_FENCE = re.compile(r"(?P<indent> *)```(?P<language>[\w-]*)(?P<rest>.*)")
_TITLE = re.compile(r'title="([^"]+)"')
_TIMES = (
    (re.compile(r"\b\d+(\.\d+)? m?s\b"), "N s"),
    (re.compile(r"\b[0-9,.]+ (MB|GB|rows)/s\b"), r"N \1/s"),
)


@dataclass(frozen=True)
class Block:
    """A block of code, or shell in a remark (language `run`); `line` is that of its first line, from 1."""

    language: str
    code: str
    line: int
    title: str = ""
    shown: str = ""


def blocks(text: str) -> list[Block]:
    """The blocks of a page, in order."""
    lines = text.splitlines()
    found: list[Block] = []
    shown = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if match := re.fullmatch(r" *<!-- shown: (.+) -->", line):
            shown = match[1]
        elif line.strip() == "<!-- run":
            end = lines.index("-->", at)
            found.append(Block("run", "\n".join(lines[at:end]) + "\n", at + 1))
            at = end + 1
        elif match := _FENCE.fullmatch(line):
            indent = match["indent"]
            assert indent + "```" in lines[at:], f"line {at}: the block does not end"
            end = lines.index(indent + "```", at)
            code = "".join(line.removeprefix(indent) + "\n" for line in lines[at:end])
            title = _TITLE.search(match["rest"])
            found.append(Block(match["language"], code, at + 1, title[1] if title else "", shown))
            shown, at = "", end + 1
    assert not shown, f"no block follows the remark: {shown}"
    return found


def headings(text: str) -> list[str]:
    """The headings of a page, in order, with their marks; what stands in a block of code is none."""
    outside = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#+ .*$", outside, re.MULTILINE)


def run_page(path: Path) -> None:
    """Run the blocks of a page in the current folder.

    Raises:
        AssertionError: at the first that fails or prints something else than the page says, with page and line.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        place = f"{path}:{block.line}"
        if block.shown:
            continue
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            _python(block, str(path), names)
        elif block.language in ("sh", "run"):
            done = _shell(block.code)
            assert done.returncode == 0, f"{place}: exit code {done.returncode}\n{done.stdout}"
        elif block.language == "console":
            _same(_session(block.code, place), block.code, place)
        else:
            assert block.language in SHOWN, f"{place}: is a block of {block.language or 'no language'} run or shown?"


def _python(block: Block, path: str, names: dict[str, object]) -> None:
    source = "\n" * (block.line - 1) + block.code  # so that a traceback names the line of the page
    lines = source.splitlines()
    statements = ast.parse(source, path).body
    for statement, following in zip(statements, [*statements[1:], None], strict=True):
        last = statement.end_lineno or statement.lineno
        limit = following.lineno - 1 if following else len(lines)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module([statement], []), path, "exec"), names)
        if printed.getvalue():
            expected = _comments(lines[last - 1 : limit])
            _same(printed.getvalue(), "".join(f"{line}\n" for line in expected), f"{path}:{last}")


def _comments(lines: list[str]) -> list[str]:
    """The comment behind the first line or, if it has none, the comment lines directly below."""
    if match := re.search(r"  # (.*)$", lines[0]):
        return [match[1]]
    found = []
    for line in lines[1:]:
        if not line.startswith("#"):
            break
        found.append(line[1:].removeprefix(" "))
    return found


def _shell(code: str) -> subprocess.CompletedProcess[str]:
    scripts = os.pathsep.join([sysconfig.get_path("scripts"), os.path.dirname(sys.executable)])
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    return subprocess.run(
        ["bash", "-euc", code], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, encoding="utf-8", timeout=300,
    )  # fmt: skip


def _session(shown: str, place: str) -> str:
    """What a session in a terminal looks like whose commands are those of a block."""
    commands: list[str] = re.findall(r"^\$ (.*(?:(?<=\\)\n> .*)*)$", shown, re.MULTILINE)
    assert commands, f"{place}: no line starts with `$ `"
    script = "set +e\n"
    for command in commands:
        script += command.replace("\\\n> ", "\\\n") + "\ncode=$?; printf '\\036%d\\036' $code; (exit $code)\n"
    pieces = _shell(script).stdout.split("\x1e")
    printed, codes = pieces[:-1:2], pieces[1::2]
    assert len(printed) == len(commands), f"{place}: {pieces}"
    for command, text, code, after in zip(commands, printed, codes, [*commands[1:], ""], strict=True):
        assert code == "0" or after == "echo $?", f"{place}: exit code {code} of {command}\n{text}"
    return "".join(f"$ {command}\n{text}" for command, text in zip(commands, printed, strict=True))


def _same(printed: str, expected: str, place: str) -> None:
    printed, expected = _without_times(printed), _without_times(expected)
    assert printed == expected, f"{place}: printed\n{printed}\nbut the page says\n{expected}"


def _without_times(text: str) -> str:
    """Times and rates become one word, and spaces at line ends go."""
    for pattern, word in _TIMES:
        text = pattern.sub(word, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def main(page: Path) -> None:
    """Run a page in this process, which is for nothing else."""
    warnings.simplefilter("error")
    warnings.filterwarnings("default", category=vec2emb.Vec2embWarning)  # ours are part of what a page shows
    run_page(page)


def main_in(folder: Path, page: Path, output: Path) -> None:
    """The same in a folder, with what is said in a file; the process ends with 1 if the page is wrong."""
    os.chdir(folder)
    with output.open("wb") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    try:
        main(page)
    except BaseException:
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
