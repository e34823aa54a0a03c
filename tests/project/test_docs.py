"""Every page runs from top to bottom and prints what it says; translations say the same; the site builds."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import runpy
import subprocess
import sys
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import CHROMIUM, Browser
from helpers import FIXTURES, ROOT
from pages import RUN, SHOWN, Block, blocks, headings, main_in

PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")})
ORIGINALS = dict.fromkeys(ROOT.glob("README.*.md"), ROOT / "README.md") | {
    path: ROOT / "docs" / path.relative_to(ROOT / "docs" / "zh") for path in ROOT.glob("docs/zh/**/*.md")
}


needs_browser = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="chromium is not installed (apt-get install chromium)"
)


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


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Makes processes that have torch already, as loading it takes longer than most pages do."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    return context


def run_page(page: Path, folder: Path, processes: ForkServerContext) -> None:
    output = folder.with_suffix(".log")
    process = processes.Process(target=main_in, args=(folder, page, output))
    process.start()
    process.join(600)
    process.kill()  # if it has not ended
    assert process.exitcode == 0, output.read_text(encoding="utf-8")


# A translation has the blocks of its original, which is enough to run once.
TO_RUN = [page for page in PAGES if page not in ORIGINALS and any(map(runs, blocks(text(page))))]


@pytest.mark.parametrize("page", TO_RUN, ids=name)
def test_the_page_does_what_it_says(page: Path, folder: Path, processes: ForkServerContext) -> None:
    run_page(page, folder, processes)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(text(page)):
        assert block.title or block.language in RUN | SHOWN | {"run"}, f"line {block.line}"


def code(page: str) -> list[tuple[str, str, str]]:
    return [(block.language, block.code, block.title) for block in blocks(page) if block.language != "run"]


def levels(page: str) -> list[int]:
    return [heading.index(" ") for heading in headings(page)]


@pytest.mark.parametrize("page", ORIGINALS, ids=name)
def test_the_translation_has_what_the_original_has(page: Path) -> None:
    original = text(ORIGINALS[page])
    assert code(text(page)) == code(original)
    assert levels(text(page)) == levels(original)


def test_the_first_page_opens_as_the_readme_does() -> None:
    first, second = (blocks(text(page))[0].code for page in (ROOT / "README.md", ROOT / "docs" / "index.md"))
    assert first == second


def test_concepts_are_translated() -> None:
    assert {path.name for path in ROOT.glob("docs/concepts/*.md")} == {
        path.name for path in ROOT.glob("docs/zh/concepts/*.md")
    }


@pytest.mark.parametrize(
    ("file", "heading"), [("README.md", "## What it guarantees"), ("docs/security.md", "## Promises")]
)
def test_each_guarantee_names_a_test_that_exists(file: str, heading: str) -> None:
    page = text(ROOT / file).partition(heading)[2].partition("\n## ")[0]
    guarantees = re.findall(r"^\| \*\*.*$", page, re.MULTILINE)
    assert len(guarantees) >= 7
    for guarantee in guarantees:
        module, test = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", guarantee)[0]
        assert re.search(rf"^def {test}\(", text(ROOT / module), re.MULTILINE), guarantee


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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CI builds it: a page that is nowhere and a link that leads nowhere are errors."""
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@needs_browser
def test_the_site(site: Path, tmp_path: Path) -> None:
    """From files, without a server: wide, narrow, light and dark, silent, nothing from elsewhere, and searchable.

    One test, so that several workers do not build the site once each.
    """
    with Browser(tmp_path / "profile") as browser:
        for width, dark in itertools.product((1280, 390), (False, True)):
            browser.look(width=width, dark=dark)
            for page in ("index.html", "concepts/positions.html", "zh/concepts/freezing.html"):
                browser.open(site / page)
                check_page(browser, width, dark)
        browser.look(width=1280)
        for query, found in (("rotation", "concepts/positions"), ("位置编码", "zh/concepts/positions")):
            browser.open(site / "index.html")
            assert any(found in link for link in search(browser, query))
        assert not browser.complaints
        assert all(url.startswith(site.as_uri()) for url in browser.requests)
    for path in site.rglob("*.html"):
        assert not re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(https?:[^\" >]*)", text(path)), (
            path
        )


def check_page(browser: Browser, width: int, dark: bool) -> None:
    """Nothing is wider than the window, the colours are as the device prefers them, the pictures those for that."""
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.body.dataset.mdColorScheme") == ("slate" if dark else "default")
    assert browser.value("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    shown = "filter(image => getComputedStyle(image).display != 'none').map(image => image.src)"
    assert all(
        f"-{'dark' if dark else 'light'}.svg" in source for source in browser.value(f"[...document.images].{shown}")
    )


def search(browser: Browser, query: str) -> list[str]:
    """Where the hits of the page's own search lead."""
    browser.value("document.querySelector('.md-search__input').focus()")
    browser.call("Input.insertText", text=query)
    links: list[str] = []
    for _ in range(300):
        links = browser.value("[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)")
        if links:
            break
        time.sleep(0.1)
    return links


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == ROOT], ids=name)
def test_links_of_pages_that_are_not_in_the_site(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text(page)):
        assert (ROOT / target).exists(), target


def made(script: str) -> dict[str, Any]:
    """The names of a script of docs/make/."""
    return runpy.run_path(str(ROOT / "docs" / "make" / script))


def test_the_accuracy_table_is_that_of_the_program() -> None:
    """It is made by hand, as that takes a minute: has what it was made with changed since, and can it be so?"""
    accuracy = made("accuracy.py")
    page = text(accuracy["PAGE"])
    assert f"<!-- accuracy: of {accuracy['digest']()}," in page, "run docs/make/accuracy.py"
    rows = [[float(score) for score in re.findall(r"([\d.]+)% ±", line)] for line in page.splitlines() if "% ±" in line]
    assert len(rows) == len(accuracy["LABELS"])
    for by_labels in zip(*rows, strict=True):
        assert 24 < by_labels[0] < by_labels[1] < by_labels[2] < 95  # 24 is what guessing gives
    for random, tuned, frozen in rows:
        assert random + 8 < tuned <= frozen + 1
    assert rows[0][1] + 5 < rows[0][2], "few labels: frozen rows win"


def test_pictures_are_those_of_the_script(tmp_path: Path) -> None:
    script = made("pictures.py")
    script["draw"].__globals__["STEPS"] = 20
    names = {f"{picture}-{mode}.svg" for picture in script["PICTURES"] for mode in script["INK"]}
    assert names == {path.name for path in script["FOLDER"].iterdir()}
    del script["INK"]["dark"]
    for path in script["draw"](tmp_path):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    shown = "".join(map(text, PAGES))
    assert all(f"pictures/{name}#only-{name[:-4].rpartition('-')[2]})" in shown for name in names)
