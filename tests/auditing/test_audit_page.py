"""The page of an audit in a browser: whole, silent, searchable; what came from a file is text there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from helpers import FIXTURES, run
from test_audit_health import faulty, write

import vec2emb
from vec2emb.auditing import page
from vec2emb.auditing.outcome import Audit
from vec2emb.auditing.page import html_page
from vec2emb.auditing.writing import write_page
from vec2emb.errors import OutputError

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
EVIL = "<script>alert(1)</script>"
TEXT = f'the of {EVIL} {EVIL} \u202eevil "onload=alert(1) zyzzyva zyzzyva The a&b \x1b[31m'

needs_browser = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="chromium is not installed (apt-get install chromium)"
)


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    rows = [(EVIL + "2", [1, 2]), ("the", [2, 1]), ("&lt;b&gt;", [2, 2]), ("copy", [2, 1])]
    path = write(folder / "<img src=x onerror=alert(1)>.txt", rows)  # type: ignore[arg-type]
    bounds = {"coverage.tokens": 0.9}
    return vec2emb.audit(path, faulty(folder), corpus=folder / "text.txt", examples=1, min=bounds)


@pytest.fixture(scope="module")
def text(audit: Audit) -> str:
    return html_page(audit, command=f"vec2emb audit '{EVIL}'")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


class Outline(HTMLParser):
    """Tags, ids and addresses of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), "no handler stands in an attribute"
            if name == "id":
                self.ids.append(str(value))
            elif name in ("src", "href", "xlink:href", "action", "srcset"):
                self.addresses.append(str(value))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_for_nothing(text: str) -> None:
    outline = Outline(text)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert all(address.startswith(("#", "data:,")) for address in outline.addresses)
    assert {address[1:] for address in outline.addresses if address[0] == "#"} <= set(outline.ids)
    assert (outline.tags.count("script"), outline.tags.count("svg"), outline.tags.count("img")) == (1, 5, 0)


def test_the_page_is_the_same_in_two_processes(tmp_path: Path) -> None:
    pages = []
    for seed in ("1", "2"):
        words = ["audit", SAMPLE, "--html", tmp_path / "page.html", "--quiet"]
        assert run(*words, env={"PYTHONHASHSEED": seed, "MPLCONFIGDIR": str(tmp_path)}).returncode == 0
        pages.append((tmp_path / "page.html").read_bytes())
    assert pages[0] == pages[1]


def test_neither_time_nor_settings_of_the_user_change_it(
    audit: Audit, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    with matplotlib.rc_context({"lines.linewidth": 9, "svg.fonttype": "path", "font.size": 30}):
        assert html_page(audit, command=f"vec2emb audit '{EVIL}'") == text


def test_a_large_audit_is_a_small_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = write(tmp_path / "v.txt", [(f"w{i}", row) for i, row in enumerate(rng.normal(size=(20, 300)).round(3))])
    counts = {f"some-missing-word-{'x' * 40}{i}": 30_000 - i for i in range(4_000)}
    page = html_page(vec2emb.audit(path, path, counts=counts))
    assert len(page.encode()) < 700_000


def test_the_foot_says_what_was_read(audit: Audit, text: str) -> None:
    foot = text.partition("<footer>")[2]
    assert "vec2emb audit &#x27;&lt;script&gt;" in foot
    assert f"vec2emb {vec2emb.__version__}, Python " in foot
    for source in audit.sources:
        assert f"{source.files[0].bytes:,} bytes, sha256 <code>{source.files[0].sha256}</code>" in foot


@needs_browser
def test_the_page_in_a_browser(text: str, browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(text, encoding="utf-8")
    browser.look(width=1200)
    browser.open(page)
    assert browser.complaints == []
    assert browser.requests == []

    plots = browser.value(
        "[...document.querySelectorAll('figure svg')].map(s => [s.getBBox().width, s.querySelectorAll('text').length])"
    )
    assert len(plots) == 5
    assert all(width > 100 and texts > 3 for width, texts in plots)

    assert browser.value("document.scripts.length") == 1
    tokens = browser.value("[...document.querySelectorAll('#words-0 td.token')].map(cell => cell.firstChild.data)")
    assert tokens[:2] == [EVIL, "zyzzyva"]
    assert '"onload=alert(1)' in tokens
    assert "\\u202eevil" in tokens
    assert "\\x1b[31m" in tokens

    browser.value("document.querySelector('input[data-table=words-0]').focus()")
    browser.call("Input.insertText", text="ZYZ")
    rows = "[...document.querySelectorAll('#words-0 tbody tr')]"
    shown = f"{rows}.filter(row => row.offsetParent).map(row => row.cells[0].firstChild.data)"
    assert browser.value(shown) == ["zyzzyva"]
    assert browser.value("document.getElementById('words-0-told').textContent") == f"1 of {len(tokens)}"
    browser.call("Input.insertText", text="nothing of that kind")
    assert browser.value(shown) == []
    assert browser.complaints == []
    assert browser.requests == []


@needs_browser
def test_light_dark_narrow_and_printed(text: str, browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(text, encoding="utf-8")
    browser.look(width=1200)
    browser.open(page)
    ink = "getComputedStyle(document.querySelector('figure svg text')).fill"
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(ink), browser.value(paper)
    browser.look(width=1200, dark=True)
    dark = browser.value(ink), browser.value(paper)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    browser.look(width=360)
    assert browser.value("document.documentElement.scrollWidth") == 360, "only tables scroll sideways"
    browser.look(width=800, dark=True, printed=True)
    assert browser.value(ink) == light[0], "paper is white"
    assert browser.value("getComputedStyle(document.querySelector('.search')).display") == "none"
    for name, width, is_dark in (("light", 1200, False), ("dark", 1200, True), ("narrow", 390, False)):
        browser.look(width=width, dark=is_dark)
        browser.picture(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 20_000
    assert browser.complaints == []


def test_without_matplotlib_the_page_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')")
    (tmp_path / "rich.py").write_text("raise ImportError('not here')")
    environment = {"PYTHONPATH": str(tmp_path)}
    done = run("audit", SAMPLE, "--html", tmp_path / "page.html", env=environment)
    assert done.returncode == 1
    assert "pip install 'vec2emb[report]'" in done.stderr.decode()
    assert not (tmp_path / "page.html").exists()
    assert run("audit", SAMPLE, env=environment).returncode == 0


def test_a_real_page_is_known_again(audit: Audit, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "html_page", lambda *_, **__: text)  # drawn once is enough
    for _ in range(2):
        write_page(audit, tmp_path / "page.html")
    (tmp_path / "other.html").write_text("<!doctype html>")
    with pytest.raises(OutputError) as caught:
        write_page(audit, tmp_path / "other.html")
    assert caught.value.code == "target-exists"
    write_page(audit, tmp_path / "other.html", if_exists="replace")
    assert (tmp_path / "other.html").read_bytes() == (tmp_path / "page.html").read_bytes()
