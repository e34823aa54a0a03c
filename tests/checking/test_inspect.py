"""What `inspect` says of files of vectors, of bundles and of any safetensors file."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, collected
from safetensors.numpy import save_file

import vec2emb
from vec2emb.errors import InputError, RowError, Vec2embError

ROWS = b"the 0.5 -1.25 2\nof 1 0.25 -0.75\nand -0.5 0.125 0.0625\n"
MANY = b"".join(b"w%04d 0.5 -1.25 2\n" % i for i in range(5000))
CASES = FIXTURES / "cases"


def test_glove(kernel: str, block: str) -> None:
    found = vec2emb.inspect(io.BytesIO(ROWS))
    assert (found.path, found.kind, found.ok, found.warnings, found.checks) == ("<stream>", "vectors", True, [], [])
    facts = found.facts
    assert (facts["format"], facts["compression"], facts["dim"], facts["header_rows"]) == ("glove", "none", 3, None)
    assert facts["dim_from"] == "as in most rows"
    assert facts["first_tokens"] == ["the", "of", "and"]


def test_rows_are_estimated_from_the_size(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(MANY)
    facts = vec2emb.inspect(path).facts
    assert (facts["rows"], facts["rows_are"], facts["bytes"]) == (5000, "estimated", len(MANY))
    facts = vec2emb.inspect(path, count=True).facts
    assert (facts["rows"], facts["rows_are"], facts["duplicates"]) == (5000, "counted", 0)
    path.write_bytes(gzip.compress(MANY))
    facts = vec2emb.inspect(path).facts
    assert (facts["rows"], facts["rows_are"], facts["compression"]) == (None, "estimated", "gzip")
    assert vec2emb.inspect(path, count=True).facts["rows"] == 5000


def test_the_header_says_how_many() -> None:
    """Without reading on, nobody can know better; counting finds out."""
    facts = vec2emb.inspect(io.BytesIO(b"9 3\n" + ROWS)).facts
    assert (facts["format"], facts["header_rows"], facts["rows"], facts["rows_are"]) == (
        "word2vec", 9, 9, "from the header",
    )  # fmt: skip
    with pytest.raises(InputError, match="fewer rows than its header promises"):
        vec2emb.inspect(io.BytesIO(b"9 3\n" + ROWS), count=True)


def test_first_tokens(kernel: str, block: str) -> None:
    """Ten, whatever the blocks; none of a row that is faulty."""
    for count in (False, True):
        facts = vec2emb.inspect(io.BytesIO(MANY), count=count).facts
        assert facts["first_tokens"] == [f"w{i:04}" for i in range(10)]
    facts = vec2emb.inspect(io.BytesIO(b"x 1 2\n 1 2 3\n\xff 1 2 3\n" + ROWS)).facts
    assert facts["first_tokens"] == ["the", "of", "and"]


def test_oddities_are_counted(kernel: str, block: str) -> None:
    data = ROWS + b"the 1 2 3\n\nof  7 8 9\nx  1 2 3"
    found, warned = collected(lambda: vec2emb.inspect(io.BytesIO(data), count=True))
    assert (found.facts["rows"], found.facts["duplicates"]) == (6, 2)
    assert [(w.code, w.count, w.line) for w in found.warnings] == [
        ("duplicate-tokens", 2, 4), ("blank-line", 1, 5), ("excess-separators", 2, 6), ("missing-last-lf", 1, 7),
    ]  # fmt: skip
    assert warned == found.warnings
    assert [entry["code"] for entry in found.to_dict()["warnings"]] == [w.code for w in warned]


def test_faults_are_found_when_all_is_read(kernel: str) -> None:
    data = MANY + b"x 1 2\n" + MANY
    assert vec2emb.inspect(io.BytesIO(data)).ok
    with pytest.raises(RowError, match="line 5001"):
        vec2emb.inspect(io.BytesIO(data), count=True)


def test_words_are_shown_safely() -> None:
    found = vec2emb.inspect(io.BytesIO(b"\x1b[31mred 1 2 3\n" + "\u202e 1 2 3\n".encode()))
    assert not {"\x1b", "\u202e"} & set(str(found))
    assert found.to_dict()["first_tokens"] == ["\x1b[31mred", "\u202e"]
    json.dumps(found.to_dict())


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "b"
    vec2emb.convert(io.BytesIO(ROWS), path, specials=["<s>=zeros"], freeze=True)
    return path


def test_a_bundle(bundle: Path) -> None:
    found = vec2emb.inspect(bundle)
    assert (found.kind, found.ok) == ("bundle", True)
    assert [check["check"] for check in found.checks] == [
        "digest of model.safetensors", "digest of vocab.txt", "vocabulary belongs to the table", "padding row is zero",
    ]  # fmt: skip
    facts = found.facts
    assert (facts["rows"], facts["dim"], facts["dtype"], facts["padding_idx"], facts["unk_idx"]) == (
        6, 3, "float32", 0, 1,
    )  # fmt: skip
    assert facts["train"] == "none"
    assert facts["first_tokens"] == ["<pad>", "<unk>", "<s>", "the", "of", "and"]
    assert "FAILED" not in str(found)
    json.dumps(found.to_dict())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_bundles_of_one_stem_and_other_types(dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "b.safetensors"
    vec2emb.convert(io.BytesIO(ROWS), path, dtype=dtype, specials_at="end")
    found = vec2emb.inspect(path)
    assert (found.kind, found.ok, found.facts["dtype"], found.facts["padding_idx"]) == ("bundle", True, dtype, 3)


def damage(path: Path, change: Any) -> None:
    path.write_bytes(change(path.read_bytes()))


def test_a_padding_row_that_is_not_zero(bundle: Path) -> None:
    damage(bundle / "model.safetensors", lambda data: data[:4096] + b"\0\0\x80\x3f" + data[4100:])
    failed = [check["check"] for check in vec2emb.inspect(bundle).checks if not check["ok"]]
    assert failed == ["digest of model.safetensors", "padding row is zero"]


def test_another_vocabulary(bundle: Path) -> None:
    damage(bundle / "vocab.txt", lambda data: data.replace(b"the\nof\n", b"of\nthe\n"))
    found = vec2emb.inspect(bundle)
    assert [check["check"] for check in found.checks if not check["ok"]] == [
        "digest of vocab.txt", "vocabulary belongs to the table",
    ]  # fmt: skip
    assert not found.ok
    assert "FAILED: digest of vocab.txt" in str(found)


def test_a_safetensors_file_with_a_padding_row() -> None:
    """S04a: metadata name the padding row, and it is not zero."""
    found = vec2emb.inspect(CASES / "S04a" / "pad-row.safetensors")
    assert (found.kind, found.ok) == ("safetensors", False)
    assert found.facts["tensors"] == ["weight F32[3, 3]"]
    assert found.checks == [{"check": "padding row of weight is zero", "ok": False, "found": "row 0 is not zero"}]


def test_metadata_must_be_strings() -> None:
    """S03a: a clean error, as every reader of safetensors gives one."""
    with pytest.raises(InputError) as caught:
        vec2emb.inspect(CASES / "S03a" / "int-metadata.safetensors")
    assert "padding_idx" in str(caught.value)
    assert "string" in str(caught.value)


def test_any_safetensors_file(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_file({"a": np.zeros((2, 3), np.float32), "b": np.ones(4, np.int64)}, path)
    found = vec2emb.inspect(path)
    assert (found.kind, found.ok, found.checks) == ("safetensors", True, [])
    assert sorted(found.facts["tensors"]) == ["a F32[2, 3]", "b I64[4]"]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("none.txt", None, "not-found"),
        ("none.safetensors", None, "not-found"),
        ("empty.txt", b"", "empty-file"),
        ("page.txt", b"<html>", "is-html"),
        ("short.safetensors", b"\x08\0\0\0\0\0\0\0{}", None),
        ("not.safetensors", ROWS, None),
    ],
)
def test_what_is_none_of_these(name: str, content: bytes | None, code: str | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        vec2emb.inspect(path)
    assert code is None or caught.value.code == code
    assert str(path) in str(caught.value)


def test_a_folder_without_a_bundle(tmp_path: Path) -> None:
    with pytest.raises(Vec2embError) as caught:
        vec2emb.inspect(tmp_path)
    assert caught.value.code == "is-a-folder"
    assert os.listdir(tmp_path) == []
