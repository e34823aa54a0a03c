"""Small files, most of them after a public bug report, through both kernels, block sizes and thread counts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, bits, collected, run, ways
from safetensors.numpy import load_file

import vec2emb
from vec2emb.errors import InputError, Vec2embError

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case for case in json.loads((FIXTURES / "cases" / "cases.json").read_bytes())
}
FORMATS = {"auto": "auto", "glove": "glove", "word2vec-text": "word2vec", "word2vec-binary": "word2vec-binary"}

# What must be refused, and with what: code, line, and words that the message must have.
REFUSED: dict[str, tuple[str, int | None, list[str]]] = {
    "H06a": ("header-too-few-rows", None, ["expected 99999999999 rows, found 1"]),
    "H07a": ("header-zero-rows", 1, ["promises no rows, but rows follow", "'0 3'"]),
    "H07b": ("empty-file", None, ["the file is empty"]),
    "H07c": ("header-alone", 1, ["expected 5 rows, found none"]),
    "H07d": ("header-swapped", 1, ["swapped", "should read: 2 3"]),
    "T08a": ("empty-token", 4, ["starts with its separator", "line feed breaks its row in two"]),
    "T09c": ("is-commas", 1, ["fields separated by commas"]),
    "E01a": ("invalid-utf8", 2, ["not UTF-8", "63 61 66 e9"]),
    "E02b": ("invalid-utf8", 3, ["not UTF-8", "ed a0 bd ed b8 80"]),
    "E03a": ("invalid-utf8", 2, ["not UTF-8", "d6 d0 b9 fa"]),
    "N01a": ("non-finite", 2, ["2 rows", "found 'nan'"]),
    "N02b": ("not-a-numeral", 2, ["expected 3 numbers, found '1_0'"]),
    "N04a": ("out-of-range", 2, ["does not fit float32", "found '1e39'"]),
    "N05b": ("is-printed-array", 1, ["printed arrays"]),
    "R01a": ("row-width", 4, ["expected 3 after the token", "found 2 in 'and -0.5 0.12'"]),
    "R02a": ("row-width", 2, ["expected 3 after the token", "found 1 in 'the 0.5'"]),
    "R05b": ("not-a-numeral", 2, ["expected 3 numbers, found 'x'"]),
    "R06a": ("is-html", None, ["an HTML page"]),
    "R06b": ("is-pickle", None, ["a Python pickle"]),
    "R06c": ("is-git-lfs", None, ["a Git LFS pointer", "git lfs pull"]),
    "R08a": ("row-width", 1, ["expected 3 after the token", "found 2 in 'the 0.5 -1.25'"]),
    "B02b": ("binary-cut", None, ["record 3"]),
    "B04a": ("binary-float64", None, ["8-byte floats"]),
    "B04b": ("binary-float16", None, ["2-byte floats"]),
    "B05a": ("is-text", 1, ["this is text"]),
    "B07a": ("binary-misaligned", None, ["do not line up"]),
    "B09a": ("invalid-utf8", None, ["record 2", "63 61 66 e9"]),
    "C03a": ("several-tables", None, ["glove.2d.txt", "glove.3d.txt"]),
    "C01a": ("compressed-data-cut", None, ["gzip data end in the middle"]),
    "C01b": ("compressed-data-corrupt", None, ["gzip data are corrupt"]),
    "W01a": ("is-matrix", 1, ["rows of 4 numbers without words", "--dim 3"]),
    "W02a": ("is-word-counts", 1, ["words with their counts", "--vocab"]),
    "W02c": ("is-text-with-numbers", 1, ["lines of text that end in a number", "--dim 1"]),
    "W03a": ("is-glued-value", 1, ["the first value is glued to the token"]),
    "W04a": ("is-row-index", 1, ["tokens that begin with a row number"]),
    "W05a": ("is-printed-array", 1, ["printed arrays"]),
}

# What loads: the warnings it must give, in order, and words that each must have.
LOADED: dict[str, list[tuple[str, str]]] = {
    "H01a": [("extra-unk-row", "line 4: one row more than the header promises, '<unk>'")],
    "H03a": [],
    "H04a": [],
    "H04b": [],
    "H08a": [],
    "T01a": [],
    "T03a": [("numeral-ended-token", "line 3: 2 tokens")],
    "T03c": [("numeral-ended-token", "line 2: 1 token of several pieces, the last of them a number")],
    "T04a": [],
    "T06a": [],
    "T08b": [("cr-in-token", "line 3: 2 tokens with a carriage return")],
    "T09a": [],
    "T10a": [("excess-separators", "line 2: 2 rows")],
    "T10b": [],
    "T10c": [("excess-separators", "line 3: 1 row")],
    "T12a": [],
    "E04a": [],
    "N07a": [],
    "R03a": [],
    "R03b": [("blank-line", "line 3: 1 blank line")],
    "R04a": [("duplicate-tokens", "line 4: 1 row of a token that the file has already (first 'the')")],
    "B01a": [],
    "B01b": [],
    "B01c": [],
    "C02a": [],
    "C02c": [],
    "C02d": [],
    "C03b": [],
    "E03b": [],
    "V01a": [("special-in-file", "'<unk>' (the file's vector is used), '<pad>' (the file's vector is not used")],
    "V03a": [],
    "V05a": [],
    "S01a": [],
    "W01c": [],
}
# What the public cases leave open.
TOKENS = {"T03c": ["the 0.5", "of", "and"], "C02d": ["the", "of", "and"]}
VECTORS = {
    "T03c": [[-1.25, 2, 9], [1, 0.25, -0.75], [-0.5, 0.125, 0.0625]],
    "C02d": [[0.5, -1.25, 2], [1, 0.25, -0.75], [-0.5, 0.125, 0.0625]],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "V05a": {"limit": 2},
    "C03b": {"member": "glove.3d.txt"},
    "E03b": {"encoding": "gb18030"},
}

# Tested elsewhere, each for the reason given.
ELSEWHERE = {
    "S08a": "missing words: test_words",
    "P01a": "positions: test_positions",
    "P03a": "positions: test_positions",
    "P05a": "positions: test_positions",
    "S02a": "tensors that share memory: test_keys",
    "S03a": "a safetensors file: test_inspect",
    "S04a": "a safetensors file: test_inspect",
    "S06a": "what torch loads: test_torch",
    "S10a": "metadata: test_bundle",
}


def arguments(id: str) -> dict[str, Any]:
    return {"format": FORMATS[CASES[id]["format"]], **OPTIONS.get(id, {})}


def source(id: str) -> Path:
    return FIXTURES / "cases" / str(CASES[id]["file"])


def test_every_case_is_accounted_for() -> None:
    lists = [set(REFUSED), set(LOADED), set(ELSEWHERE)]
    assert sum(map(len, lists)) == len(set.union(*lists)) == len(CASES) == 79
    assert set.union(*lists) == set(CASES)
    assert {id for id in REFUSED if not CASES[id]["error"]} == set()
    assert {id for id in LOADED if CASES[id]["error"]} == {"C02d"}  # it accepts "3 rows" too
    assert {id for id in LOADED if CASES[id]["must_warn"] and not LOADED[id]} == set()


def assert_error(error: Vec2embError, id: str) -> None:
    code, line, words = REFUSED[id]
    assert (error.code, error.line, error.path) == (code, line, str(source(id)))
    assert str(error).startswith(f"{source(id)}, line {line}: " if line else f"{source(id)}")
    for word in words:
        assert word in str(error)


@pytest.mark.parametrize("id", REFUSED)
def test_refused(id: str, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for threads in ways(monkeypatch):
        with pytest.raises(InputError) as converting:
            vec2emb.convert(source(id), tmp_path / "out", threads=threads, **arguments(id))
        assert_error(converting.value, id)
        assert os.listdir(tmp_path) == []
        with pytest.raises(InputError) as reading:
            vec2emb.read_vectors(source(id), threads=threads, **arguments(id))
        assert_error(reading.value, id)
        with pytest.raises(InputError) as iterating:
            list(vec2emb.iter_vectors(source(id), **arguments(id)))
        assert iterating.value.code == REFUSED[id][0]


def assert_warnings(found: list[vec2emb.Vec2embWarning], expected: list[tuple[str, str]]) -> None:
    assert [warning.code for warning in found] == [code for code, _ in expected]
    for warning, (_, words) in zip(found, expected, strict=True):
        assert words in str(warning)


@pytest.mark.parametrize("id", LOADED)
def test_loaded(id: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[id]
    tokens, vectors = case["tokens"] or TOKENS[id], case["vectors"] or VECTORS[id]
    expected = [warning for warning in LOADED[id] if warning[0] != "special-in-file"]
    for threads in ways(monkeypatch):
        table, found = collected(lambda: vec2emb.read_vectors(source(id), threads=threads, **arguments(id)))  # noqa: B023
        assert_warnings(found, expected)
        assert table.dim == (case["dim"] or 3)
        assert table.vocab.to_list() == tokens
        assert bits(table.vectors) == bits(vectors)
        assert table.report is not None
        assert table.report.warnings == found

        pairs, found = collected(lambda: list(vec2emb.iter_vectors(source(id), **arguments(id))))
        assert_warnings(found, expected)
        assert [token for token, _ in pairs] == tokens
        assert bits(np.stack([vector for _, vector in pairs])) == bits(vectors)


@pytest.mark.parametrize("id", LOADED)
def test_converted(id: str, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the case, behind those of the two special tokens."""
    tokens, vectors = CASES[id]["tokens"] or TOKENS[id], CASES[id]["vectors"] or VECTORS[id]
    row_of = dict(zip(tokens, vectors, strict=True))
    others = [token for token in tokens if token not in ("<pad>", "<unk>")]
    zeros = [0.0] * len(vectors[0])
    unk_init = None if "<unk>" in tokens else "zeros"
    expected = [code for code, _ in LOADED[id]] + ["special-in-file"] * (id == "H01a")
    out = tmp_path / "out"
    for threads in ways(monkeypatch):
        options = {"threads": threads, "unk_init": unk_init, "if_exists": "replace", **arguments(id)}
        report, found = collected(lambda: vec2emb.convert(source(id), out, **options))  # noqa: B023
        assert sorted(w.code for w in found) == sorted(expected)
        assert (report.rows, report.dim) == (len(others) + 2, len(zeros))
        assert (out / "vocab.txt").read_bytes().decode().split("\n")[:-1] == ["<pad>", "<unk>", *others]
        assert bits(load_file(out / "model.safetensors")["weight"]) == bits(
            [zeros, row_of.get("<unk>", zeros), *(row_of[token] for token in others)]
        )
        assert sorted(os.listdir(out)) == ["model.safetensors", "vec2emb.json", "vocab.txt"]
        assert os.listdir(tmp_path) == ["out"]
    if id == "V01a":
        assert LOADED[id][0][1] in str(report.warnings[0])


def test_n01a_policies(kernel: str) -> None:
    """Kept and zeroed rows are counted; skipped ones are gone."""
    kept = vec2emb.read_vectors(source("N01a"), nonfinite="keep")
    assert bits(kept.vectors[1:]) == bits([[np.nan, 1, 2], [-np.nan, np.inf, -np.inf]])
    assert kept.report is not None
    assert kept.report.nonfinite == 2
    zeroed = vec2emb.read_vectors(source("N01a"), nonfinite="zero")
    assert bits(zeroed.vectors[1:]) == bits([[0, 1, 2], [0, 0, 0]])
    skipped, found = collected(lambda: vec2emb.read_vectors(source("N01a"), bad_rows="skip"))
    assert skipped.vocab.to_list() == ["the"]
    assert [(w.code, w.count, w.line) for w in found] == [("bad-rows", 2, 2)]


def test_n07a_unit_norm(kernel: str) -> None:
    table = vec2emb.read_vectors(source("N07a"), unit_norm=True)
    assert bits(table.vectors[1:3]) == bits([[0, 0, 0], [-0.0, 0, -0.0]])
    the = np.array([0.5, -1.25, 2])
    assert bits(table.vectors[:1]) == bits([the / np.sqrt((the * the).sum())])


def test_r05b_skip(kernel: str, block: str) -> None:
    table, found = collected(lambda: vec2emb.read_vectors(source("R05b"), bad_rows="skip"))
    assert table.vocab.to_list() == ["the", "and"]
    assert [(w.code, w.count, w.line) for w in found] == [("bad-rows", 1, 2)]
    assert "a value is not a number" in str(found[0])


def test_v03a_hash_seed(tmp_path: Path) -> None:
    """The order of the rows does not hang on how Python hashes strings."""
    for seed in "12":
        done = run("convert", source("V03a"), "-o", tmp_path / seed, "--quiet", env={"PYTHONHASHSEED": seed})
        assert (done.returncode, done.stderr) == (0, b"")
    for name in ("model.safetensors", "vocab.txt", "vec2emb.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.mark.parametrize("layout", ["fortran", "transposed", "strided", "columns", "reversed"])
def test_s01a_layouts(layout: str, tmp_path: Path) -> None:
    """Arrays of any layout are written in the order of their rows."""
    table = vec2emb.read_vectors(source("S01a"))
    plain = np.array(CASES["S01a"]["vectors"], np.float32)
    array = {
        "fortran": np.asfortranarray(plain),
        "transposed": np.ascontiguousarray(plain.T).T,
        "strided": np.repeat(plain, 2, axis=0)[::2],
        "columns": np.concatenate([plain, plain], axis=1)[:, :3],
        "reversed": np.ascontiguousarray(plain[::-1])[::-1],
    }[layout]
    vec2emb.save(tmp_path / "out", table.vocab.to_list(), array)
    assert bits(load_file(tmp_path / "out" / "model.safetensors")["weight"]) == bits(plain)
    assert bits(vec2emb.load(tmp_path / "out").vectors) == bits(plain)


def test_e04a_plain_locale(tmp_path: Path) -> None:
    """Without any UTF-8 in the environment: the same tokens, and printing them does not fail."""
    env = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}
    done = run("convert", source("E04a"), "-o", tmp_path / "out", "--special", "<é>", env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == "<pad>\n<unk>\n<é>\n”\ncafé\n中\n".encode()
    shown = run("inspect", source("E04a"), env=env)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"\\u201d" in shown.stdout
    assert b"caf\\xe9" in shown.stdout
