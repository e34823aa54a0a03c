"""`TokenCounts`: what it says of its tokens, and its files."""

from __future__ import annotations

import os
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpora import expected
from hypothesis import given, settings
from hypothesis import strategies as st

from vec2emb import TokenCounts, Vocabulary
from vec2emb.corpus import storing, tables
from vec2emb.errors import InputError, OutputError, UsageError, Vec2embError, VocabularyError

ODD = {"the": 7, "of": 3, "a\tb": 3, "": 1, "é": 3, "\r": 2, "\u2028": 2, "x" * 1000: 1, "a\0": 3, "a": 3}


NO_COUNT = "the line is no token and count: expected TOKEN TAB COUNT"


@pytest.fixture
def counts() -> TokenCounts:
    return TokenCounts.of(ODD)


def refused(call: Any, kind: type[Vec2embError], code: str, text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert (caught.value.code, str(caught.value)) == (code, text)


def test_order_and_facts(kernel: str) -> None:
    counts = TokenCounts.of(ODD)
    assert list(counts.tokens) == ["the", "a", "a\0", "a\tb", "of", "é", "\r", "\u2028", "", "x" * 1000]
    assert counts.counts.tolist() == [7, 3, 3, 3, 3, 3, 2, 2, 1, 1]
    assert counts.counts.dtype == np.int64
    assert (counts.distinct, len(counts), counts.total) == (10, 10, 28)
    assert bytes(counts.blob) == "".join(f"{token}\n" for token in counts.tokens).encode()
    assert dict(counts.items()) == ODD
    assert counts.most_common(2) == [("the", 7), ("a", 3)]
    assert repr(counts) == "<TokenCounts of 10 different tokens, 28 in all>"


def test_nothing_can_be_changed(counts: TokenCounts) -> None:
    with pytest.raises(ValueError, match="read-only"):
        counts.counts[0] = 1
    assert counts.blob.readonly


def test_tokens_are_a_sequence(counts: TokenCounts) -> None:
    tokens, plain = counts.tokens, list(counts.tokens)
    for index in (0, 3, -1, -10):
        assert tokens[index] == plain[index]
    for piece in (slice(None), slice(2, 5), slice(-3, None), slice(None, None, -2), slice(5, 2), slice(20)):
        assert tokens[piece] == plain[piece]
    with pytest.raises(IndexError):
        tokens[10]
    assert "of" in tokens
    assert tokens == plain
    assert tokens != plain[1:]
    assert repr(tokens) == r"<10 tokens: 'the', 'a', 'a\x00', ..>"


def test_equality_and_pickles(counts: TokenCounts) -> None:
    copy = pickle.loads(pickle.dumps(counts))
    assert copy == counts
    assert TokenCounts.of({**ODD, "of": 4}) != counts
    assert TokenCounts.of({"of": 1}) != TokenCounts.of({"or": 1})
    assert counts != 5
    assert TokenCounts.of({}) == TokenCounts.of(Counter())


@pytest.mark.parametrize(
    ("given", "code"),
    [({"a": 0}, "count-range"), ({"a": 1.5}, "count-range"), ({"a\nb": 1}, "line-feed"), ({3: 1}, "token-type"),
     ({"\ud800": 1}, "lone-surrogate")],
)  # fmt: skip
def test_counts_that_cannot_be(given: Any, code: str) -> None:
    with pytest.raises(Vec2embError) as caught:
        TokenCounts.of(given)
    assert caught.value.code == code


# --- vocabularies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("min_count", "max_size", "number"), [(1, None, 10), (2, None, 8), (3, None, 6), (4, 9, 1), (7, 1, 1), (1, 4, 4)]
)
def test_the_most_frequent(counts: TokenCounts, min_count: int, max_size: int | None, number: int) -> None:
    assert counts.kept(min_count, max_size) == number
    vocab = counts.vocabulary(min_count, max_size)
    assert isinstance(vocab, Vocabulary)
    assert list(vocab) == counts.tokens[:number]
    assert (vocab.padding_idx, vocab.unk_idx) == (None, None)


def test_left_out_tokens_make_room(counts: TokenCounts) -> None:
    plain = list(counts.tokens)
    assert counts.vocabulary(max_size=3, without=["a", "the", "a", "none"]).to_list() == plain[2:5]
    assert counts.vocabulary(min_count=3, max_size=5, without=["of", "é", "a\tb"]).to_list() == ["the", "a", "a\0"]
    assert counts.vocabulary(without=["x" * 1000, ""]).to_list() == plain[:8]


def test_a_vocabulary_of_nothing(counts: TokenCounts) -> None:
    refused(lambda: counts.vocabulary(8), VocabularyError, "empty-vocabulary",
            "no token comes often enough: expected a token that comes 8 times, found at most 7")  # fmt: skip
    refused(lambda: TokenCounts.of({}).vocabulary(), VocabularyError, "empty-vocabulary", "the corpus has no token")
    for name in ("min_count", "max_size"):
        for value in (0, -1, 1.0, True, "2"):
            with pytest.raises(UsageError, match=f"{name} cannot be so: expected a whole number from 1"):
                counts.kept(**{name: value})  # type: ignore[arg-type]


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".tsv"])
def test_what_is_written_is_read_back(counts: TokenCounts, suffix: str, tmp_path: Path, kernel: str) -> None:
    path = tmp_path / f"counts{suffix}"
    counts.save(path)
    assert TokenCounts.load(path) == counts
    assert path.stat().st_mode & 0o777 == 0o666 & ~os.umask(os.umask(0o22))
    other = tmp_path / f"other{suffix}"
    TokenCounts.load(path).save(str(other))
    assert other.read_bytes() == path.read_bytes()
    TokenCounts.of({}).save(other, replace=True)
    assert TokenCounts.load(other).distinct == 0
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, other.name}


def test_golden_tsv(tmp_path: Path) -> None:
    TokenCounts.of({"b": 2, "a\tb": 2, "the": 10}).save(tmp_path / "c.tsv")
    assert (tmp_path / "c.tsv").read_bytes() == b"the\t10\na\tb\t2\nb\t2\n"


def test_parquet_as_others_read_it(counts: TokenCounts, tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "c.parquet"
    counts.save(path)
    rows = list(counts.items())
    table = pq.read_table(path)
    assert [str(field.type) for field in table.schema] == ["large_string", "int64"]
    assert list(zip(*table.to_pydict().values(), strict=True)) == rows
    assert duckdb.connect().execute(f"SELECT token, count FROM '{path}'").fetchall() == rows


def test_facts_come_back(tmp_path: Path) -> None:
    counts = TokenCounts.of({"a": 1})
    counts.tokenizer, counts.lowercase = "bert", True
    counts.save(tmp_path / "c.parquet")
    loaded = TokenCounts.load(tmp_path / "c.parquet")
    assert (loaded.tokenizer, loaded.lowercase) == ("bert", True)


def test_many_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROWS", 7)
    monkeypatch.setattr(tables, "_BLOCK", 16)
    monkeypatch.setattr(tables.slices, "__defaults__", (7,))
    counts = TokenCounts.of({f"token-{i}" * (i % 5 + 1): i + 1 for i in range(50)})
    for suffix in (".parquet", ".tsv"):
        counts.save(tmp_path / f"c{suffix}")
        assert TokenCounts.load(tmp_path / f"c{suffix}") == counts
    assert pq.ParquetFile(tmp_path / "c.parquet").num_row_groups == 8


def test_files_of_others_in_any_order(counts: TokenCounts, tmp_path: Path) -> None:
    rows = sorted(ODD.items())
    columns = {"count": pa.array([count for _, count in rows], pa.int32()), "more": [0] * len(rows),
               "token": pa.array([token for token, _ in rows]).dictionary_encode()}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "c.parquet", row_group_size=3)
    assert TokenCounts.load(tmp_path / "c.parquet") == counts
    (tmp_path / "c.tsv").write_bytes(b"".join(f"{token}\t{count}\n".encode() for token, count in rows))
    assert TokenCounts.load(tmp_path / "c.tsv") == counts


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")), st.integers(1, 2**40))
)
def test_any_counts_survive(tmp_path_factory: pytest.TempPathFactory, given: dict[str, int]) -> None:
    folder = tmp_path_factory.mktemp("counts")
    counts = TokenCounts.of(given)
    assert list(counts.items()) == expected([]) + sorted(given.items(), key=lambda i: (-i[1], i[0].encode()))
    for name in ("c.tsv", "c.parquet"):
        counts.save(folder / name)
        assert TokenCounts.load(folder / name) == counts


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (b"a\t1\nb 2\n", "bad-counts", f", line 2: {NO_COUNT}, found 'b 2'"),
        (b"a\t0\n", "bad-counts", f", line 1: {NO_COUNT}, found 'a\\t0'"),
        (b"a\t+1\n", "bad-counts", f", line 1: {NO_COUNT}, found 'a\\t+1'"),
        (b"a\t1", "missing-last-lf", ": the last line does not end with LF; was the file cut?"),
        (b"a\t1\nb\t2\na\t3\n", "duplicate-token", ": a token stands twice: found 1 more"),
        (b"\xff\t1\n", "invalid-utf8", ", line 1: the token is not UTF-8: found bytes ff; "
         "convert the file, as with: iconv -f latin1 -t utf-8"),
    ],
)  # fmt: skip
def test_text_that_is_at_fault(data: bytes, code: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        TokenCounts.load(path)
    assert (caught.value.code, str(caught.value)) == (code, f"{path}{text}")


def test_parquet_that_is_at_fault(counts: TokenCounts, tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"word": ["a"], "n": [1]}), path)
    refused(lambda: TokenCounts.load(path), InputError, "bad-counts",
            f"{path}: the file holds no counts: expected columns token and count, found word, n")  # fmt: skip
    for columns in ({"token": ["a"], "count": [0]}, {"token": ["a", None], "count": [1, 2]},
                    {"token": ["a"], "count": ["x"]}, {"token": ["a"], "count": [None]},
                    {"token": ["a"], "count": [1.5]}, {"token": ["a\nb"], "count": [1]}):  # fmt: skip
        pq.write_table(pa.table(columns), path)
        with pytest.raises(InputError, match=re.escape(f"{path}: the file holds no counts (")):
            TokenCounts.load(path)
    pq.write_table(pa.table({"token": ["a", "b", "a"], "count": [1, 2, 3]}), path)
    refused(lambda: TokenCounts.load(path), VocabularyError, "duplicate-token",
            f"{path}: a token stands twice: found 1 more")  # fmt: skip
    counts.save(path, replace=True)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="the file is no whole Parquet file"):
        TokenCounts.load(path)
    with pytest.raises(InputError, match="there is no such file"):
        TokenCounts.load(tmp_path / "gone.parquet")


def test_targets_that_cannot_be(counts: TokenCounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("mine")
    refused(lambda: counts.save(path), OutputError, "target-exists",
            f"{path}: the file is there already; pass replace=True to replace it")  # fmt: skip
    assert path.read_text() == "mine"
    for call in (lambda: counts.save(tmp_path / "c.csv"), lambda: TokenCounts.load(tmp_path / "c.csv")):
        with pytest.raises(UsageError, match=r"counts are a \.parquet or a \.tsv file"):
            call()
    with pytest.raises(OutputError, match="cannot be written"):
        counts.save(tmp_path / "gone" / "c.tsv")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storing, "_write_tsv", full)
    with pytest.raises(OutputError) as caught:
        counts.save(tmp_path / "d.tsv")
    assert caught.value.code == "disk-full"
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.tsv"]
