"""Every page runs from top to bottom and prints what it says; translations say the same; the site builds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import FIXTURES, ROOT
from pages import RUN, Block, blocks, headings

PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")})
ORIGINALS = dict.fromkeys(ROOT.glob("README.*.md"), ROOT / "README.md") | {
    path: ROOT / "docs" / path.relative_to(ROOT / "docs" / "zh") for path in ROOT.glob("docs/zh/**/*.md")
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a reader has: an empty folder with the fixtures in it."""
    (tmp_path / "fixtures").symlink_to(FIXTURES)
    return tmp_path


def runs(block: Block) -> bool:
    return block.language in RUN and not block.shown


def run_page(page: Path, folder: Path) -> None:
    command = [sys.executable, str(ROOT / "tests" / "pages.py"), str(page)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr


# A translation has the blocks of its original, which is enough to run once.
TO_RUN = [page for page in PAGES if page not in ORIGINALS and any(map(runs, blocks(text(page))))]


@pytest.mark.parametrize("page", TO_RUN, ids=name)
def test_the_page_does_what_it_says(page: Path, folder: Path) -> None:
    run_page(page, folder)


def code(page: str) -> list[tuple[str, str, str]]:
    return [(block.language, block.code, block.title) for block in blocks(page) if block.language != "run"]


def levels(page: str) -> list[int]:
    return [heading.index(" ") for heading in headings(page)]


@pytest.mark.parametrize("page", ORIGINALS, ids=name)
def test_the_translation_has_what_the_original_has(page: Path) -> None:
    original = text(ORIGINALS[page])
    assert code(text(page)) == code(original)
    assert levels(text(page)) == levels(original)


@pytest.mark.parametrize("number", [0, 1])
def test_set_up_is_two_commands(number: int) -> None:
    """CI takes these two blocks and runs them; each must stand for itself, on a machine that has only Python."""
    commands = [block.code for block in blocks(text(ROOT / "README.md")) if block.language == "sh"]
    assert len(commands) == 2
    steps = [step.strip() for step in commands[number].replace("\\\n", "").split("&&")]
    assert re.fullmatch(r"python3 -m venv (\.venv[a-z-]*)", steps[0])
    folder = steps[0].split()[-1]
    assert all(step.startswith(f"{folder}/bin/") for step in steps[1:])


def test_the_reference_is_that_of_the_code() -> None:
    pytest.importorskip("griffe")
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make" / "reference.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"run docs/make/reference.py\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CI builds it: a page that is nowhere and a link that leads nowhere are errors."""
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_asks_nobody_for_anything(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(https?:[^\" >]*)", text(page))
        assert not loaded, page


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == ROOT], ids=name)
def test_links_of_pages_that_are_not_in_the_site(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text(page)):
        assert (ROOT / target).exists(), target
