"""Only outputs are overwritten: whatever an option names, nothing that somebody needs is lost."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from children import started
from helpers import FIXTURES

import vec2emb
from vec2emb import cli
from vec2emb.auditing import page
from vec2emb.io import interrupts

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with inputs, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interrupts, "install", lambda: None)
    monkeypatch.setattr(page, "html_page", lambda *_, **__: f"<html>{page.GENERATOR}")  # drawing one takes seconds
    Path("v.txt").write_bytes(b"".join(SAMPLE.read_bytes().splitlines(keepends=True)[:5]))
    os.mkdir("texts")
    Path("texts/a.txt").write_text("the of zyzzyva\n")
    Path("counts.tsv").write_text("the\t2\nzyzzyva\t1\n")
    Path("mine.txt").write_text("precious\n")
    vec2emb.convert("v.txt", "b", limit=3)
    vec2emb.convert("v.txt", "s.safetensors", limit=3)
    return tmp_path


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


class Case(NamedTuple):
    words: str
    code: str


AUDIT = "audit v.txt --quiet --corpus texts"
VOCAB = "vocab texts --quiet"
CASES = [
    # An input.
    Case(f"{AUDIT} --html v.txt", "output-is-input"),
    Case(f"{AUDIT} --html texts/a.txt", "output-is-input"),
    Case(f"{AUDIT} --missing-words ./v.txt", "output-is-input"),
    Case(f"{AUDIT} --missing-words texts/../texts/a.txt", "output-is-input"),
    Case("audit v.txt --quiet --counts counts.tsv --missing-words counts.tsv", "output-is-input"),
    Case("audit v.txt --quiet --corpus tex*/*.txt --html texts/a.txt", "output-is-input"),
    Case(f"{VOCAB} -o texts/a.txt", "output-is-input"),
    Case("vocab texts/a.txt mine.txt --quiet -o mine.txt", "output-is-input"),
    Case("vocab counts.tsv --quiet -o x.txt --save-counts counts.tsv", "output-is-input"),
    Case(f"{VOCAB} -o x.txt --save-counts texts/a.tsv --tokenizer hf:texts/a.tsv", "output-is-input"),
    # A part of a bundle.
    Case(f"{AUDIT} --html b/model.safetensors", "output-in-bundle"),
    Case(f"{AUDIT} --html b/vec2emb.json", "output-in-bundle"),
    Case(f"{AUDIT} --missing-words s.safetensors", "output-in-bundle"),
    Case(f"{AUDIT} --missing-words s.vocab.txt", "output-in-bundle"),
    Case(f"{VOCAB} -o b/vocab.txt", "output-in-bundle"),
    Case(f"{VOCAB} -o s.vec2emb.json", "output-in-bundle"),
    Case("export s.safetensors --to glove -o b/vocab.txt", "output-in-bundle"),
    Case("convert v.txt -o n --row-report s.vocab.txt", "output-in-bundle"),
    # Another output.
    Case(f"{AUDIT} --html x.out --missing-words ./x.out", "output-twice"),
    Case(f"{VOCAB} -o x.tsv --save-counts texts/../x.tsv", "output-twice"),
    # What is no regular file.
    *(
        Case(words.format(name), code)
        for name, code in (("link", "target-not-a-file"), ("pipe", "target-not-a-file"), ("dir", "target-is-a-folder"),
                           ("socket", "target-not-a-file"), ("/dev/null", "target-not-a-file"))
        for words in (f"{AUDIT} --html {{}}", f"{AUDIT} --missing-words {{}}", f"{VOCAB} -o {{}}",
                      "export b --to glove -o {}")
    ),
]  # fmt: skip


@pytest.fixture
def odd_files(place: Path) -> Iterator[None]:
    os.symlink("mine.txt", "link")
    os.mkfifo("pipe")
    os.mkdir("dir")
    Path("texts/a.tsv").write_text("x\t1\n")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        yield


@pytest.mark.usefixtures("odd_files")
@pytest.mark.parametrize("case", CASES, ids=[case.words.replace("/", ":") for case in CASES])
@pytest.mark.parametrize("asked", [False, True], ids=["", "replace"])
def test_what_no_output_replaces(place: Path, case: Case, asked: bool, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(place)
    words = [*case.words.split(), *(["--if-exists", "replace"] if asked else [])]
    code = cli.run(words)
    assert code == (2 if case.code == "output-twice" else 1)
    first = capsys.readouterr().err.splitlines()[0]
    exists = "error[target-exists]"  # without --if-exists replace some are refused because they are there
    assert first.startswith(f"error[{case.code}]") or (not asked and first.startswith(exists))
    assert contents(place) == before
    assert os.path.islink("link")
    assert not [name for name in os.listdir() if name.startswith(".")]


@pytest.mark.parametrize("option", ["--html", "--missing-words"])
def test_a_file_that_is_not_of_an_audit_needs_if_exists_replace(
    place: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*AUDIT.split(), option]
    for name in ("mine.txt", "page.html"):
        Path("page.html").write_text("<!doctype html>\n<html><head><title>mine</title></head></html>\n")
        before = Path(name).read_bytes()
        assert cli.run([*words, name]) == 1
        assert capsys.readouterr().err.startswith("error[target-exists]")
        assert Path(name).read_bytes() == before
        assert cli.run([*words, name, "--if-exists", "replace"]) == 0
        new = Path(name).read_bytes()
        assert new != before
        assert cli.run([*words, name]) == 0  # now it is one of ours
        assert Path(name).read_bytes() == new
    Path("empty").touch()
    assert cli.run([*words, "empty"]) == 0
    assert cli.run([*words, "empty", "--if-exists", "keep"]) == 2


def test_a_list_of_several_sources_is_known_again(place: Path) -> None:
    words = ["audit", "v.txt", "b", "--quiet", "--corpus", "texts", "--missing-words", "w.tsv"]
    for _ in range(2):
        assert cli.run(words) == 0


def test_an_audit_is_refused_before_it_begins(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it is read")

    monkeypatch.setattr("vec2emb.auditing.auditor.audit", never)
    assert cli.run([*AUDIT.split(), "--html", "mine.txt"]) == 1


def test_outputs_that_are_no_inputs(place: Path) -> None:
    """New files in the folder of the corpus, in a bundle's folder, and with names like a bundle's elsewhere."""
    assert cli.run([*VOCAB.split(), "-o", "texts/vocab.txt"]) == 0
    assert cli.run([*AUDIT.split(), "--html", "b/audit.html"]) == 0
    assert cli.run([*VOCAB.split(), "-o", "model.safetensors"]) == 0
    assert len(vec2emb.load("b")) == 5


def test_a_file_that_takes_the_place_meanwhile_is_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    def slow(*_: object, **__: object) -> str:
        Path("x.html").write_text("theirs")
        return "ours"

    monkeypatch.setattr(page, "html_page", slow)
    assert cli.run([*AUDIT.split(), "--html", "x.html"]) == 1
    assert capsys.readouterr().err.startswith("error[target-exists]")
    assert Path("x.html").read_text() == "theirs"


@pytest.mark.parametrize("write", [
    lambda: vec2emb.Vocabulary(["a"]).to_file("link", replace=True),
    lambda: vec2emb.TokenCounts.of({"a": 1}).save("link.tsv", replace=True),
    lambda: vec2emb.export("b", "vocab-json", "link", if_exists="replace"),
], ids=["vocabulary", "counts", "export"])  # fmt: skip
def test_links_from_python(place: Path, write: Callable[[], object]) -> None:
    os.symlink("mine.txt", "link")
    os.symlink("mine.txt", "link.tsv")
    with pytest.raises(vec2emb.Vec2embError) as caught:
        write()
    assert caught.value.code == "target-not-a-file"
    assert Path("mine.txt").read_text() == "precious\n"


def test_standard_output_is_no_file(tmp_path: Path) -> None:
    """A redirected /dev/stdout leads to a regular file, and is a link that must stay."""
    with open(tmp_path / "out", "wb") as out:
        words = ("vocab", SAMPLE, "-o", "/dev/stdout", "--if-exists", "replace", "--quiet")
        with started(*words, stdout=out) as process:
            _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err.startswith(b"error[target-not-a-file]")
    assert os.path.islink("/dev/stdout")
