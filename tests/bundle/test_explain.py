"""What is said of a word: its row and where that comes from, or which other spellings are there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, collected, run

import vec2emb
from vec2emb import Table

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"
UNKNOWN = "not in the table; encode() gives 1, the unknown token '<unk>'"


@pytest.fixture(scope="module")
def glove(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explain") / "glove"
    vec2emb.convert(GLOVE, path)
    return path


@pytest.fixture(scope="module")
def table(glove: Path) -> Table:
    return vec2emb.load(glove)


# The sample holds line i, counted from 0, in row i + 2. Rows are those lines of the file, looked up by hand.
FOUND = [
    ("the", 2, "file"),
    ("-0", 219, "file"),  # a word, not an option
    ("nan", 225, "file"),
    ("--", 67, "file"),
    ("ﬁrst", 240, "file"),  # with the ligature U+FB01
    ("€", 224, "file"),
    ("josé", 217, "file"),
    ("<pad>", 0, "special"),
    ("<unk>", 1, "special"),
]

MISSING = [
    # the word, and for each spelling that is there: kind, tokens, ids
    ("The", [("lower-case", ["the"], [2])]),
    ("JOSÉ", [("lower-case", ["josé"], [217])]),
    ("jose\N{COMBINING ACUTE ACCENT}", [("NFC", ["josé"], [217])]),
    ("Jose\N{COMBINING ACUTE ACCENT}", [("NFC, lower-case", ["josé"], [217])]),
    ("ﬁve", [("NFKC", ["five"], [176])]),
    ("ﬁ", []),  # NFKC makes it 'fi', which is not there either
    ("thé", [("accents off", ["the"], [2])]),
    ("naïve", []),
    ("time's", [("possessive", ["time", "'s"], [81, 11])]),
    ("time’s", [("possessive", ["time", "’s"], [81, 206])]),
    ("nʼt", [("apostrophe", ["n't"], [72])]),
    ("(time),", [("punctuation off", ["time"], [81])]),
    ("“Time”", [("punctuation off, lower-case", ["time"], [81])]),
    ("two-year", [("hyphen split", ["two", "year"], [57, 64])]),
    ("Two-Year", [("hyphen split, lower-case", ["two", "year"], [57, 64])]),
    ("two-zyzzyva", []),
    ("U.S.", [("lower-case", ["u.s."], [101])]),
    ("zyzzyva", []),
    ("", []),
    ("a b", []),
]


@pytest.mark.parametrize(("word", "id", "origin"), FOUND)
def test_a_word_that_is_there(table: Table, word: str, id: int, origin: str) -> None:
    found = table.explain(word)
    assert (found.found, found.id, found.token, found.origin) == (True, id, word, origin)
    assert found.spellings == []
    if origin == "file":
        assert GLOVE.read_bytes().split(b"\n")[id - 2].startswith(word.encode() + b" ")
        assert str(found) == f"'{word}': id {id}, the row of the file as it is"


@pytest.mark.parametrize(("word", "spellings"), MISSING)
def test_a_word_that_is_missing(table: Table, word: str, spellings: list[tuple[str, list[str], list[int]]]) -> None:
    found = table.explain(word)
    assert (found.found, found.id, found.token, found.origin, found.text) == (False, 1, "<unk>", "missing", UNKNOWN)
    assert [tuple(spelling)[:3] for spelling in found.spellings] == spellings
    for spelling in found.spellings:
        assert table.vocab.decode(spelling.ids) == spelling.tokens


def test_the_advice_for_case_works(table: Table, tmp_path: Path) -> None:
    found = table.explain("The")
    assert str(found).splitlines()[1] == (
        "  there is 'the' (id 2), lower-case: encode(tokens, lookup='lower'), which --lowercase makes the usual; "
        "or convert with --case-fallback, which gives the word a row of its own"
    )
    assert table.vocab.encode(["The"], lookup="lower").tolist() == [2]
    (tmp_path / "words").write_text("The\n")
    collected(lambda: vec2emb.convert(GLOVE, tmp_path / "own", vocab=tmp_path / "words", case_fallback=True))
    own = vec2emb.load(tmp_path / "own").explain("The")
    assert (own.id, own.origin) == (2, "fallback")
    vec2emb.convert(GLOVE, tmp_path / "lower", lowercase=True)
    lower = vec2emb.load(tmp_path / "lower").explain("The")
    assert (lower.id, lower.token) == (2, "the")


def test_code_in_the_advice_gives_the_spelling(table: Table) -> None:
    """What is said to do is Python, and does it."""
    names = ("re", "unicodedata")
    for word, kind, expected in (
        ("jose\N{COMBINING ACUTE ACCENT}", "NFC", "josé"),
        ("ﬁve", "NFKC", "five"),
        ("thé", "accents off", "the"),
        ("two-year", "hyphen split", ["two", "year"]),
    ):
        (spelling,) = (s for s in table.explain(word).spellings if s.kind == kind)
        code = re.search(r'(unicodedata\.|re\.|"")[^;]*$', spelling.advice)
        assert code is not None
        scope: dict[str, Any] = {name: __import__(name) for name in names}
        assert eval(code[0], {**scope, "text": word, "word": word}) == expected


def test_every_origin_has_its_words(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"Apple 1 2\nb 3 4\n<unk> 5 6\n")
    words = ["b", "apple", "zebra", "lion"]
    _, warned = collected(
        lambda: vec2emb.convert(
            tmp_path / "v.txt", tmp_path / "out", vocab=words, case_fallback=True, missing="uniform", seed=7,
            specials=[("<cls>", "token:b"), "<sep>"], unit_norm=True, dtype="float16",
        )
    )  # fmt: skip
    assert warned
    table = vec2emb.load(tmp_path / "out")
    treated = ", scaled to length 1, rounded to float16"
    told = {word: (table.explain(word).origin, table.explain(word).text) for word in table.vocab}
    assert told == {
        "<pad>": ("special", "the padding token; zeros"),
        "<unk>": ("special", f"the unknown token; the file's own row{treated}"),
        "<cls>": ("special", f"a special token; the row of 'b'{treated}"),
        "<sep>": ("special", "a special token; drawn from the normal distribution of the file's rows, seed 7"),
        "b": ("file", f"the row of the file{treated}"),
        "apple": ("fallback", f"the row of 'Apple', since the file lacks the word as it stands{treated}"),
        "zebra": ("initialised", "not in the file; drawn evenly over the spread of the file's rows, seed 7"),
        "lion": ("initialised", "not in the file; drawn evenly over the spread of the file's rows, seed 7"),
    }
    through = table.explain("BANANA")
    assert (through.found, through.id) == (False, 1)
    through = table.explain("B")
    assert (through.found, through.id, through.token) == (True, table.vocab.tokens.index("b"), "b")
    assert through.text == f"found as 'b' (lookup case-fallback); the row of the file{treated}"


def test_without_an_unknown_token_encode_raises(tmp_path: Path) -> None:
    vec2emb.convert(GLOVE, tmp_path / "out", pad=None, unk=None)
    table = vec2emb.load(tmp_path / "out")
    found = table.explain("zyzzyva")
    assert (found.id, found.token) == (None, None)
    assert str(found) == "'zyzzyva': not in the table; encode() raises an error, since there is no unknown token"
    with pytest.raises(KeyError):
        table.vocab.encode(["zyzzyva"])


def test_tables_that_come_from_no_bundle(tmp_path: Path) -> None:
    assert vec2emb.read_vectors(GLOVE).explain("the").origin == "file"
    vec2emb.save(tmp_path / "out", ["<pad>", "a"], np.zeros((2, 3)), pad_token="<pad>")
    saved = vec2emb.load(tmp_path / "out")
    assert saved.explain("a").text == "the row that was given when the bundle was saved"
    assert saved.explain("<pad>").text == "the padding token; the row that was given"


def test_tokens_are_shown_escaped(table: Table) -> None:
    assert str(table.explain("a\x1b[2J")).startswith("'a\\x1b[2J': not in the table")
    assert str(table.explain("a\nb")).startswith("'a\\nb': ")
    assert str(table.explain("\ud800")).startswith("'\\ud800': ")


def test_the_command(glove: Path) -> None:
    done = run("explain", glove, "the", "-0", "JOSÉ", "zyzzyva")
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "'the': id 2, the row of the file as it is"
    assert lines[1] == "'-0': id 219, the row of the file as it is"
    assert lines[2] == f"'JOSÉ': {UNKNOWN}"
    assert lines[3].startswith("  there is 'josé' (id 217), lower-case: ")
    assert lines[4:] == [f"'zyzzyva': {UNKNOWN}"]
    told = json.loads(run("explain", glove, "Two-Year", "--json").stdout)["words"][0]
    assert told["spellings"][0]["ids"] == [57, 64]
    assert (told["word"], told["id"], told["found"], told["origin"]) == ("Two-Year", 1, False, "missing")
    assert run("explain", glove).returncode == 2
    assert run("explain", "nowhere", "word").returncode == 1
