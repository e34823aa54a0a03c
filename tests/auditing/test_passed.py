"""`audit --passed`: build tools run a missed gate again, and a passed one not."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import run

from vec2emb.cli import run as run_line
from vec2emb.errors import MissingPackageError

AUDIT = f"{sys.executable} -m vec2emb audit v.txt --corpus corpus.txt --min coverage.tokens=0.9 --quiet"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder in which half of the corpus is covered."""
    (tmp_path / "v.txt").write_bytes(b"the 1 2\nof 3 4\n")
    (tmp_path / "corpus.txt").write_bytes(b"the zebra\n")
    return tmp_path


def built(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def make_rule(folder: Path) -> list[str]:
    (folder / "Makefile").write_text(f"passed: v.txt corpus.txt\n\t{AUDIT} --passed $@\n")
    return ["make"]


def ninja_rule(folder: Path) -> list[str]:
    (folder / "build.ninja").write_text(
        f"rule gate\n  command = {AUDIT} --passed $out\nbuild passed: gate v.txt corpus.txt\n"
    )
    return ["ninja"]


@pytest.mark.parametrize("rule", [make_rule, ninja_rule])
def test_a_missed_gate_is_tried_again(project: Path, rule: object) -> None:
    assert callable(rule)
    command = rule(project)
    for _ in range(2):
        done = built(command, project)
        assert done.returncode != 0, done.stdout
        assert "missed" in done.stdout + done.stderr
        assert not (project / "passed").exists()
    (project / "v.txt").write_bytes(b"the 1 2\nzebra 3 4\n")
    assert built(command, project).returncode == 0
    again = built(command, project)
    assert again.returncode == 0
    assert "audit" not in again.stdout
    (project / "v.txt").write_bytes(b"of 1 2\nzebra 3 4\n")  # a gate that passed once and is missed now
    for _ in range(2):
        assert built(command, project).returncode != 0
        assert not (project / "passed").exists()


class Stage:
    """A stage as DVC has it: it is done again unless hashes of inputs and output are those of the last success."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock, self.runs = folder, "", 0

    def _state(self) -> str:
        files = [self.folder / name for name in ("v.txt", "corpus.txt", "passed")]
        return " ".join(hashlib.sha256(one.read_bytes()).hexdigest() if one.exists() else "-" for one in files)

    def reproduce(self) -> bool:
        if self.lock == self._state():
            return True
        self.runs += 1
        if built([*AUDIT.split(), "--passed", "passed"], self.folder).returncode:
            return False
        self.lock = self._state()
        return True


def test_stages_by_content(project: Path) -> None:
    stage = Stage(project)
    assert [stage.reproduce(), stage.reproduce(), stage.runs] == [False, False, 2]
    (project / "v.txt").write_bytes(b"the 1 2\nzebra 3 4\n")
    assert [stage.reproduce(), stage.reproduce(), stage.runs] == [True, True, 3]
    content = (project / "passed").read_bytes()
    (project / "corpus.txt").write_bytes(b"the zebra the\n")
    assert [stage.reproduce(), stage.runs] == [True, 4]
    assert (project / "passed").read_bytes() == content  # what depends on it need not run
    assert b"coverage.tokens=0.9" in content


def test_what_passed_leaves_alone(project: Path) -> None:
    notes = project / "notes"
    notes.write_text("mine")
    arguments = ["audit", str(project / "v.txt"), "--quiet", "--passed", str(notes)]
    done = run(*arguments, "--max", "health.faulty=0")
    assert (done.returncode, notes.read_text()) == (1, "mine")
    assert b"target-not-passed" in done.stderr
    done = run(*arguments)
    assert done.returncode == 2
    assert b"passed-alone" in done.stderr
    gone = project / "gone"
    good = ["audit", str(project / "v.txt"), "--quiet", "--max", "health.faulty=0", "--passed", str(gone)]
    assert run(*good).returncode == 0
    assert gone.exists()
    (project / "v.txt").write_bytes(b"")  # a run that fails leaves none either
    assert run(*good).returncode == 1
    assert not gone.exists()


@pytest.mark.parametrize("option", ["--passed", "--html", "--missing-words"])
@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_file_that_cannot_be_written_is_one_line_of_json(project: Path, option: str, folder: str) -> None:
    (project / "file").write_text("no folder")
    arguments = [
        "--max",
        "health.faulty=0",
        "--corpus",
        str(project / "corpus.txt"),
        option,
        str(project / folder / "f"),
    ]
    done = run("audit", str(project / "v.txt"), *arguments, "--json")
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["error"]["code"] == "cannot-write"


def test_a_page_that_fails_leaves_no_other_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> str:
        raise MissingPackageError.of("matplotlib", "report", "a page")

    monkeypatch.setattr("vec2emb.auditing.page.html_page", fails)
    monkeypatch.setattr("vec2emb.io.interrupts.install", lambda: None)  # pytest has handlers of its own
    files = {"--html": "page.html", "--missing-words": "words.tsv", "--passed": "passed"}
    words = ["audit", str(project / "v.txt"), "--corpus", str(project / "corpus.txt"), "--max", "health.faulty=0"]
    for option, name in files.items():
        words += [option, str(project / name)]
    assert run_line(words) != 0
    assert not [name for name in files.values() if (project / name).exists()]
