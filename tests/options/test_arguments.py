"""Whatever a caller hands over: it is taken, or refused by name; never a TypeError from somewhere within."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vec2emb
from vec2emb.errors import UsageError, Vec2embError

ROWS = b"the 1 2 3\nof 4 5 6\nat 7 8 9\n"
WRONG = [None, 5, -1, 1.5, True, "x", "\0", b"x", [], [5], [("a",)], {5: 5}, (1, 2), object()]

pytestmark = pytest.mark.filterwarnings("ignore::vec2emb.Vec2embWarning")


def convert(**options: Any) -> object:
    return vec2emb.convert(**{"output": "out", "dry_run": True, **options})


def iterate(**options: Any) -> object:
    return list(vec2emb.iter_vectors(**options))


@pytest.mark.parametrize(
    ("call", "function"),
    [(convert, vec2emb.convert), (vec2emb.read_vectors, vec2emb.read_vectors), (iterate, vec2emb.iter_vectors)],
    ids=["convert", "read_vectors", "iter_vectors"],
)
def test_no_argument_ends_in_an_error_of_pythons(
    call: Callable[..., Any], function: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("vectors.txt").write_bytes(ROWS)
    raised = {}
    for name in inspect.signature(function).parameters:
        for value in WRONG:
            try:
                call(**{"source": "vectors.txt", name: value})
            except Vec2embError:
                pass
            except Exception as error:
                raised[name, repr(value)] = repr(error)
    assert raised == {}


REFUSED = [
    (
        {"vocab": 5},
        "argument-type",
        "vocab cannot be so: expected a string or a path or a list or a tokenizer or None, found 5",
    ),
    ({"specials": None}, "argument-type", "specials cannot be so: expected a list, found None"),
    ({"encoding": None}, "argument-type", "encoding cannot be so: expected a string, found None"),
    ({"unit_norm": "no"}, "argument-type", "unit_norm cannot be so: expected True or False, found 'no'"),
    ({"limit": 1.5}, "limit-range", "limit cannot be so: expected a whole number from 1, found 1.5"),
    ({"progress": "yes"}, "argument-type", "progress cannot be so: expected True or False or a function, found 'yes'"),
    ({"corpus": [5]}, "corpus-type", "a corpus is files, folders, patterns or URLs: found 5"),
    (
        {"vocab": {5: 5}},
        "ids-with-gaps",
        "the ids of the mapping are not 0, 1, 2, ..: expected id 0, found id 5 of '5'",
    ),
    ({"vocab": {"a": None, "b": 1}}, "token-type", "the ids of the mapping are whole numbers: found"),
]


@pytest.mark.parametrize(("options", "code", "text"), REFUSED, ids=[code for _, code, _ in REFUSED])
def test_what_is_said(options: dict[str, Any], code: str, text: str, tmp_path: Path) -> None:
    source = tmp_path / "vectors.txt"
    source.write_bytes(ROWS)
    with pytest.raises(Vec2embError) as caught:
        vec2emb.convert(source, tmp_path / "out", **options)
    assert caught.value.code == code
    assert str(caught.value).startswith(text)
    assert not (tmp_path / "out").exists()


def test_the_length_of_a_batch_is_a_whole_number() -> None:
    vocab = vec2emb.Vocabulary(["<pad>", "a"])
    with pytest.raises(UsageError, match=r"expected 0 or more tokens, found 1\.5"):
        vocab.encode_batch([["a"]], max_length=1.5)  # type: ignore[arg-type]
