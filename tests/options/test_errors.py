"""Errors and warnings: what they carry, what they say, and that they survive other processes."""

from __future__ import annotations

import copy
import io
import json
import pickle
import re
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from error_codes import kinds, read_codes
from helpers import ROOT

import vec2emb
from vec2emb import errors
from vec2emb.errors import MissingPackageError, Vec2embError, Vec2embWarning, printable, shown

PLACE = {
    "path": "v.txt", "line": 3, "offset": 17, "record": 2, "expected": "3 values", "found": "2", "hint": "look",
}  # fmt: skip


KINDS = [kind for kind in kinds() if kind.__module__ == "vec2emb.errors"]


def test_the_tree_of_the_docstring() -> None:
    """Every class stands in the drawing, under its parent; nothing else does."""
    drawing = (errors.__doc__ or "").split("UserWarning")[0]
    drawn: list[tuple[int, str, str | None]] = []
    for line in drawing.splitlines():
        if match := re.match(r"( +[│ ]*)[├└]─ (\w+Error)(?: \((\w+)\))?", line):
            drawn.append((len(match[1]), match[2], match[3]))
    assert {name for _, name, _ in drawn} == {kind.__name__ for kind in KINDS}
    for i, (indent, name, builtin) in enumerate(drawn):
        kind = getattr(errors, name)
        above = next((n for d, n, _ in reversed(drawn[:i]) if d < indent), "Exception")
        assert kind.__bases__[0].__name__ == above
        if builtin:
            assert builtin in [base.__name__ for base in kind.__mro__]


@pytest.mark.parametrize("kind", KINDS)
def test_pickles(kind: type[Vec2embError]) -> None:
    error = kind("some-code", "it is wrong", **PLACE)  # type: ignore[arg-type]
    for copied in (*(pickle.loads(pickle.dumps(error, p)) for p in range(6)), copy.copy(error), copy.deepcopy(error)):
        assert type(copied) is kind
        assert (copied.code, copied.message, copied.args) == ("some-code", "it is wrong", ("it is wrong",))
        assert {name: getattr(copied, name) for name in PLACE} == PLACE
        assert str(copied) == str(error)
        assert copied.to_dict() == error.to_dict()


def _fail() -> None:
    vec2emb.read_vectors(io.BytesIO(b"the 1 2\nof 1\n"), dim=2)


def test_raised_in_another_process() -> None:
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        pytest.raises(errors.RowError, match="<stream>, line 2: the row has too few values") as caught,
    ):
        pool.submit(_fail).result()
    assert (caught.value.code, caught.value.line, caught.value.offset) == ("row-width", 2, 8)


@pytest.mark.parametrize(
    ("kind", "code", "builtin"),
    [
        (errors.InputError, 1, ValueError),
        (errors.FormatError, 1, ValueError),
        (errors.HeaderError, 1, ValueError),
        (errors.RowError, 1, ValueError),
        (errors.SourceError, 1, ValueError),
        (errors.VocabularyError, 1, ValueError),
        (errors.BundleError, 1, ValueError),
        (errors.OutputError, 1, ValueError),
        (errors.UsageError, 2, ValueError),
        (errors.CheckError, 3, ValueError),
        (errors.TryAgainError, 4, Exception),
        (errors.MissingPackageError, 1, ImportError),
    ],
)
def test_exit_codes(kind: type[Vec2embError], code: int, builtin: type[Exception]) -> None:
    assert kind("a", "b").exit_code == code
    assert issubclass(kind, builtin)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "it is wrong"),
        ({"path": "v.txt"}, "v.txt: it is wrong"),
        ({"path": "v.txt", "line": 3}, "v.txt, line 3: it is wrong"),
        ({"path": "v.txt", "line": 3, "offset": 9}, "v.txt, line 3: it is wrong"),
        ({"path": "v.bin", "record": 2, "offset": 9}, "v.bin, record 2, byte 9: it is wrong"),
        ({"path": "v.txt", "offset": 0}, "v.txt, byte 0: it is wrong"),
        ({"expected": "a"}, "it is wrong: expected a"),
        ({"found": "b"}, "it is wrong: found b"),
        ({"expected": "a", "found": "b"}, "it is wrong: expected a, found b"),
        ({"hint": "look"}, "it is wrong; look"),
        (PLACE, "v.txt, line 3, record 2: it is wrong: expected 3 values, found 2; look"),
    ],
)
def test_text(place: dict[str, object], text: str) -> None:
    error = Vec2embError("some-code", "it is wrong", **place)  # type: ignore[arg-type]
    assert str(error) == text
    assert error.to_dict()["message"] == text
    assert json.loads(json.dumps(error.to_dict()))["code"] == "some-code"


def test_a_missing_package_names_the_command() -> None:
    error = MissingPackageError.of("zstandard", "fast", "reading .zst")
    assert str(error) == "reading .zst needs zstandard; install it with: pip install 'vec2emb[fast]'"
    assert isinstance(error, ImportError)


def test_warnings_pickle_and_speak() -> None:
    warning = Vec2embWarning("some-code", "odd \x1b[31m thing", count=3, path="v.txt", line=7)
    copied = pickle.loads(pickle.dumps(warning))
    assert type(copied) is Vec2embWarning
    assert vars(copied) == vars(warning)
    assert str(copied) == r"odd \x1b[31m thing"
    assert copied.to_dict() == {"code": "some-code", "message": r"odd \x1b[31m thing", "count": 3, "line": 7}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("plain é 中 ”", "plain é 中 ”"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\rb\tc\0", r"a\rb\tc\x00"),
        ("\u00a0\u3000\u2028\u0085", r"\xa0\u3000\u2028\x85"),
        ("\u202eright to left\u2066", r"\u202eright to left\u2066"),
        ("\udcff lone", r"\udcff lone"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_nothing_reaches_a_terminal_raw(text: str, printed: str) -> None:
    assert printable(text) == printed
    assert str(Vec2embError("code", text)) == printed
    assert shown(text) == f"'{printed}'".replace("\n", r"\n")


def test_shown_cuts() -> None:
    assert shown(b"x" * 100) == f"'{'x' * 60}…'"
    assert shown(b"caf\xe9 \xd0\xb9") == r"'caf\xe9 й'"
    assert shown("x" * 10, 5) == "'xxxxx…'"


# Codes.

GUIDE = ROOT / errors.GUIDE


def test_a_warning_is_of_the_line_that_called(tmp_path: Path) -> None:
    source, words, bundle = tmp_path / "v.txt", tmp_path / "words.txt", tmp_path / "b"
    source.write_bytes(b"a 1 2\na 3 4\nb 5 6\n")
    words.write_bytes(b"a\nb")
    for call in (
        lambda: vec2emb.read_vectors(source),
        lambda: list(vec2emb.iter_vectors(source)),
        lambda: vec2emb.convert(source, bundle),
        lambda: vec2emb.convert(source, tmp_path / "c", only=words, dry_run=True),
        lambda: vec2emb.inspect(source, count=True),
        lambda: vec2emb.extend(bundle, tmp_path / "e", vocab=words, missing="zeros"),
    ):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        assert {warning.filename for warning in seen} == {__file__}


def test_no_code_is_hidden() -> None:
    """The reader of codes understands each place that raises, so that what follows is about all of them."""
    codes, unclear = read_codes()
    assert len(codes) > 300
    assert unclear == []


def test_codes_are_slugs() -> None:
    assert [code for code in read_codes()[0] if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)] == []


def test_every_code_has_an_entry_in_the_guide() -> None:
    """Write one under `### the-code` in the section it belongs to: why it happens, and what to do."""
    text = re.sub(r"^```.*?^```$", "", GUIDE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    entries = [entry.partition("\n") for entry in re.split(r"^##+ ", text, flags=re.MULTILINE)]
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert sorted(headings) == sorted(read_codes()[0])
    assert [heading for heading, _, body in entries if heading in headings and not body.strip()] == []


def test_a_code_has_one_meaning() -> None:
    """Used with one class of errors, or with classes of which one is the general form of the others."""
    contradicting = {}
    for code, names in read_codes()[0].items():
        used = [getattr(errors, name) for name in names & set(dir(errors)) if name != "Vec2embWarning"]
        general = [kind for kind in used if all(issubclass(other, kind) for other in used)]
        if used and not general:
            contradicting[code] = sorted(kind.__name__ for kind in used)
    assert contradicting == {
        "dim-mismatch": ["FormatError", "HeaderError"],  # of a member of an archive, which may have no header
        "duplicate-token": ["RowError", "VocabularyError"],  # in the file, in a word list
    }


def test_codes_of_warnings_are_not_those_of_errors() -> None:
    """But where the same oddity is an error elsewhere."""
    warned = {"Vec2embWarning", "warn"}
    both = {code for code, names in read_codes()[0].items() if names & warned and names - warned}
    assert both == {"missing-last-lf", "missing-words"}


def test_no_file_of_the_project_is_named_in_a_message(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError) as caught:
        vec2emb.read_vectors(tmp_path / "none")
    assert "site-packages" not in str(caught.value)
    assert str(caught.value) == f"{tmp_path / 'none'}: there is no such file"
