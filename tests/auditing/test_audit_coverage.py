"""What a corpus finds in a source, against plain loops; and remedies, each of them applied."""

from __future__ import annotations

import csv
import gzip
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, collected

import vec2emb
from vec2emb.auditing.coverage_figures import Coverage, Remedy
from vec2emb.auditing.remedies import TEXTS
from vec2emb.auditing.writing import write_words
from vec2emb.errors import InputError, UsageError

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"

TOKENS = [
    "the", "of", "Paris", "berlin", "USA", "café", "cafe", "fish", "don't", "well", "known", "'s", "john", ",", ".",
    '"', "0000", "####", "l’eau", "naïve", "resume", "é", "Straße", "12",
]  # fmt: skip
# Each word is missing, and what finds it is of another kind.
CORPUS = Counter({
    "the": 50, "of": 40, "The": 30, "OF": 9, "paris": 12, "BERLIN": 8, "Usa": 3, "usa": 4, "cafe\u0301": 7, "ﬁsh": 6,
    "don’t": 11, "l'eau": 5, "well-known": 10, "john's": 9, "fish,": 13, '"well': 4, "résumé": 6, "1234": 8,
    "naïve.": 2, "zyzzyva": 17, "straße": 2, "12": 3, "9999": 2, "Ｐaris": 1, "": 1,
})  # fmt: skip
del CORPUS[""]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    path = tmp_path / "v.txt"
    lines = [f"{token} {' '.join(map(str, rng.normal(size=4).round(4)))}\n" for token in TOKENS]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def cover(source: Path, **options: Any) -> Coverage:
    coverage = vec2emb.audit(source, counts=CORPUS, **options).sources[0].coverage
    assert coverage is not None
    return coverage


def shares(finds: Callable[[str], bool]) -> tuple[float, float]:
    """Shares of distinct and of running tokens."""
    types = [word for word in CORPUS if finds(word)]
    return len(types) / len(CORPUS), sum(CORPUS[word] for word in types) / CORPUS.total()


# The figures.


def test_shares(source: Path) -> None:
    coverage = cover(source)
    assert (coverage.types, coverage.tokens) == shares(lambda word: word in TOKENS)
    assert (coverage.types_found, coverage.tokens_found) == (3, 93)
    assert coverage.types_found + coverage.types_missing == len(CORPUS)
    assert coverage.tokens_found + coverage.tokens_missing == CORPUS.total()
    assert (coverage.used_rows, coverage.unused_rows) == (3, len(TOKENS) - 3)


def test_missing_words_in_the_order_of_their_counts(source: Path) -> None:
    coverage = cover(source)
    missing = sorted((word for word in CORPUS if word not in TOKENS), key=lambda word: (-CORPUS[word], word.encode()))
    assert [(word.token, word.count) for word in coverage.missing] == [(word, CORPUS[word]) for word in missing]
    assert [(word, count) for word, count, _ in coverage.misses] == [(word, CORPUS[word]) for word in missing]


def test_bands_add_up(source: Path) -> None:
    coverage = cover(source)
    assert [(band.least, band.most) for band in coverage.bands] == [(10, 99), (2, 9), (1, 1)]
    for band in coverage.bands:
        inside = [word for word, count in CORPUS.items() if band.least <= count <= band.most]
        found = [word for word in inside if word in TOKENS]
        assert (band.types, band.types_found) == (len(inside), len(found))
        assert (band.running, band.running_found) == (sum(CORPUS[w] for w in inside), sum(CORPUS[w] for w in found))


def test_the_curve_ends_at_the_shares(source: Path) -> None:
    coverage = cover(source)
    ordered = sorted(CORPUS, key=lambda word: (-CORPUS[word], word.encode()))
    for point in coverage.curve:
        head = ordered[: point.rank]
        found = [word for word in head if word in TOKENS]
        assert point.types == len(found) / point.rank
        assert point.tokens == sum(CORPUS[w] for w in found) / sum(CORPUS[w] for w in head)
    last = coverage.curve[-1]
    assert (last.rank, last.types, last.tokens) == (len(CORPUS), coverage.types, coverage.tokens)


def test_the_size_of_a_restricted_bundle_is_the_size_it_gets(source: Path, tmp_path: Path) -> None:
    restricted = cover(source).restricted
    for dtype, size in (("float32", restricted.float32_bytes), ("float16", restricted.float16_bytes)):
        out = tmp_path / dtype
        report, _ = collected(lambda out=out, dtype=dtype: vec2emb.convert(source, out, only=list(CORPUS), dtype=dtype))  # type: ignore[misc]
        assert report.rows == restricted.rows
        assert (out / "model.safetensors").stat().st_size == size


def test_the_lookup_of_a_bundle_is_used(source: Path, tmp_path: Path) -> None:
    vec2emb.convert(source, tmp_path / "b", lowercase=True)
    coverage = cover(tmp_path / "b")
    lowered = {token.lower() for token in TOKENS}
    assert (coverage.types, coverage.tokens) == shares(lambda word: word in lowered or word.lower() in lowered)


def test_rows_that_were_drawn_cover_nothing(source: Path, tmp_path: Path) -> None:
    collected(lambda: vec2emb.convert(source, tmp_path / "b", vocab=list(CORPUS)))
    assert cover(tmp_path / "b").types == cover(source).types


# The remedies: what is promised is what happens.


def promised(coverage: Coverage) -> dict[str, Remedy]:
    return {remedy.name: remedy for remedy in coverage.remedies}


@pytest.mark.parametrize("name", ["lowercase", "case-fallback"])
def test_options_give_what_they_promise(name: str, source: Path, tmp_path: Path) -> None:
    remedy = promised(cover(source))[name]
    assert remedy.options is not None
    assert remedy.types_won > 0
    words = tmp_path / "words.txt"
    words.write_bytes(b"".join(word.encode() + b"\n" for word in CORPUS))
    options = {
        "--lowercase": {"lowercase": True},
        "--only words.txt --case-fallback": {"only": words, "case_fallback": True},
    }[remedy.options]
    collected(lambda: vec2emb.convert(source, tmp_path / "b", **options))  # type: ignore[arg-type]
    after = cover(tmp_path / "b")
    assert (after.types, after.tokens) == (remedy.types, remedy.tokens)


@pytest.mark.parametrize("name", [remedy.name for remedy in TEXTS])
def test_code_gives_what_it_promises(name: str, source: Path) -> None:
    coverage = cover(source)
    remedy = promised(coverage)[name]
    assert remedy.code is not None
    assert remedy.options is None
    assert remedy.types_won > 0, "the corpus has a word for each remedy"

    def finds(word: str) -> bool:
        if word in TOKENS:
            return True
        pieces = eval(remedy.code or "", {"re": re, "unicodedata": unicodedata, "token": word})
        pieces = [pieces] if isinstance(pieces, str) else pieces
        return bool(pieces) and all(piece in TOKENS for piece in pieces)

    assert (remedy.types, remedy.tokens) == shares(finds)
    assert remedy.tokens_won == round((remedy.tokens - coverage.tokens) * CORPUS.total())


@pytest.mark.parametrize("name", ["lowercase", "case-fallback"])
def test_a_bundle_is_helped_by_code_alone(name: str, source: Path, tmp_path: Path) -> None:
    vec2emb.convert(source, tmp_path / "b")
    remedy = promised(cover(tmp_path / "b"))[name]
    assert remedy.options is None
    vocab = vec2emb.load(tmp_path / "b").vocab

    def finds(word: str) -> bool:
        return word in vocab.tokens or eval(remedy.code or "", {"vocab": vocab, "token": word}) in vocab.tokens

    assert (remedy.types, remedy.tokens) == shares(finds)


@pytest.mark.parametrize("remedy", TEXTS, ids=[remedy.name for remedy in TEXTS])
@pytest.mark.parametrize(
    "token", ["don’t", "Ａ", "e\u0301", "--", "a-b-", "-a", "1,2", "x's", "X'S", "'s", "‘ab’", "", "_a_", "é.", "¼"]
)
def test_code_is_what_is_counted(remedy: Any, token: str) -> None:
    said = eval(remedy.code, {"re": re, "unicodedata": unicodedata, "token": token})
    [done] = remedy.of([token])
    assert done == ([said] if isinstance(said, str) else said) or done == [token]
    if not remedy.touches.search(token):
        assert said in (token, [token], []) or not all(said), "a token that is not touched would not be found either"


def test_the_most_useful_comes_first(source: Path) -> None:
    coverage = cover(source)
    won = [remedy.tokens_won for remedy in coverage.remedies]
    assert won == sorted(won, reverse=True)
    best = {word.token: word.remedy for word in coverage.missing}
    assert best["zyzzyva"] is None
    assert (best["The"], best["don’t"], best["ﬁsh"]) == ("lowercase", "straight-apostrophes", "nfkc")


def test_all_together(source: Path) -> None:
    coverage = cover(source)
    assert coverage.together.tokens >= max(remedy.tokens for remedy in coverage.remedies)
    assert coverage.together.types == (len(CORPUS) - 1) / len(CORPUS)  # all but zyzzyva
    assert coverage.together.tokens == (CORPUS.total() - CORPUS["zyzzyva"]) / CORPUS.total()


def test_one_word_may_need_several_remedies(source: Path) -> None:
    coverage = vec2emb.audit(source, counts={'"WELL-KNOWN,': 2, "PARIS": 1, "fish,": 1}).sources[0].coverage
    assert coverage is not None
    assert [word.remedy for word in coverage.missing] == [None, "lowercase", "punctuation"]
    assert coverage.together.tokens == 1


def test_a_file_in_lower_case(tmp_path: Path) -> None:
    coverage = vec2emb.audit(SAMPLE, counts={"The": 3, "the": 2, "OF": 1, "xx": 1}).sources[0].coverage
    assert coverage is not None
    both = promised(coverage)
    assert both["lowercase"].tokens == both["case-fallback"].tokens == 6 / 7
    assert coverage.remedies[0].name == "lowercase", "of two that do the same the simpler one comes first"


# The corpus.


def test_counting_a_corpus_and_giving_its_counts_is_the_same(source: Path, tmp_path: Path) -> None:
    text = tmp_path / "corpus.txt"
    text.write_text("\n".join(f"{word} " * count for word, count in CORPUS.items()), encoding="utf-8")
    counted = vec2emb.audit(source, corpus=text)
    given = vec2emb.audit(source, counts=CORPUS)
    assert counted.sources[0].coverage is not None
    assert counted.to_dict()["sources"] == given.to_dict()["sources"]
    assert counted.corpus is not None
    assert (counted.corpus.tokens, counted.corpus.types) == (CORPUS.total(), len(CORPUS))
    assert counted.corpus.tokenizer == "whitespace"
    assert [(file.name, file.bytes) for file in counted.corpus.files] == [(str(text), text.stat().st_size)]
    assert given.corpus is not None
    assert given.corpus.files == []


def test_the_corpus_is_lower_cased_if_asked(source: Path, tmp_path: Path) -> None:
    text = tmp_path / "corpus.txt"
    text.write_text("The THE of OF zz")
    coverage = vec2emb.audit(source, corpus=[text], lowercase=True).sources[0].coverage
    assert coverage is not None
    assert coverage.tokens == 4 / 5


def test_examples_hold_the_token_and_not_a_longer_one(source: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "pounds.txt"
    corpus.write_text("it cost £75m\nx1 is one\n" + "£10 " * 60 + "then £1 at last\n", "utf-8")
    for tokenizer, word in (("whitespace", "£1"), ("bert", "£1"), (r"regex:£\d+\b|\S+", "£1")):
        coverage = vec2emb.audit(source, corpus=corpus, tokenizer=tokenizer, examples=9).sources[0].coverage
        assert coverage is not None
        examples = {one.token: one.examples for one in coverage.missing}
        [example] = examples[word]
        assert "then £1 at last" in example


def test_examples(source: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"one zyzzyva here\r\n{'x ' * 200}zyzzyva {'y ' * 200}\nthird zyzzyva\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"packed qwert line\n"))
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": "a field with wombat"}) + "\n")
    corpus = [tmp_path / name for name in ("a.txt", "b.txt.gz", "c.jsonl")]
    coverage = vec2emb.audit(source, corpus=corpus, examples=2).sources[0].coverage
    assert coverage is not None
    shown = {word.token: word.examples for word in coverage.missing}
    assert shown["zyzzyva"][0] == "one zyzzyva here"
    assert len(shown["zyzzyva"]) == 2
    assert "zyzzyva" in shown["zyzzyva"][1]
    assert len(shown["zyzzyva"][1]) <= 162
    assert (shown["qwert"], shown["wombat"]) == (["packed qwert line"], ["a field with wombat"])


def test_words_file(source: Path, tmp_path: Path) -> None:
    found = vec2emb.audit(source, counts={**CORPUS, "tab\there": 2, "back\\slash": 1})
    write_words(found, tmp_path / "w.tsv")
    write_words(found, tmp_path / "w.tsv")  # it is replaced
    with open(tmp_path / "w.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows[0] == ["token", "count", "remedy"]
    assert rows[1] == ["The", "30", "lowercase"]
    assert ["tab\\there", "2", ""] in rows
    assert ["back\\\\slash", "1", ""] in rows
    assert sum(int(row[1]) for row in rows[1:]) == found.sources[0].coverage.tokens_missing  # type: ignore[union-attr]
    two = vec2emb.audit(source, SAMPLE, counts=CORPUS)
    write_words(two, tmp_path / "two.tsv")
    assert (tmp_path / "two.tsv").read_text().startswith(f"source\ttoken\tcount\tremedy\n{source}\tThe\t30\t")
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"corpus": "x", "counts": {"a": 1}}, "corpus-and-counts"),
        ({"examples": 1}, "examples-alone"),
        ({"min": {"coverage.tokens": 0.5}}, "gate-without-corpus"),
        ({"min": ["health.rows"]}, "gate-form"),
        ({"min": {"health.rows": "many"}}, "gate-number"),
        ({"max": {"health.duplicate": 0}}, "gate-path"),
        ({"max": {"health.findings": 0}}, "gate-path"),
    ],
)
def test_arguments_that_cannot_be(options: dict[str, Any], code: str, source: Path) -> None:
    with pytest.raises(UsageError) as error:
        vec2emb.audit(source, **options)
    assert error.value.code == code


def test_a_corpus_without_tokens(source: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(InputError) as error:
        vec2emb.audit(source, corpus=tmp_path / "empty.txt")
    assert error.value.code == "no-tokens"


# Several sources.


def test_sources_beside_each_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    words = [f"w{i}" for i in range(60)]
    vectors = rng.normal(size=(60, 8)).astype(np.float32)
    turned = vectors @ np.linalg.qr(rng.normal(size=(8, 8)))[0].astype(np.float32)  # other coordinates, same geometry
    vec2emb.save(tmp_path / "a", words, vectors)
    vec2emb.save(tmp_path / "b", [*words[20:], "more"], np.vstack([turned[20:], np.ones((1, 8), np.float32)]))
    vec2emb.export(tmp_path / "a", "glove", tmp_path / "a.txt")
    found = vec2emb.audit(tmp_path / "a", tmp_path / "b", tmp_path / "a.txt").comparisons
    assert [(c.first, c.second) for c in found] == [(0, 1), (0, 2), (1, 2)]
    assert [(c.shared, c.sample, c.same_vectors) for c in found] == [(40, 40, 0), (60, 60, 60), (40, 40, 0)]
    assert (found[0].first_share, found[0].second_share) == (40 / 60, 40 / 41)
    assert found[1].agreement == pytest.approx(1)
    assert found[1].neighbours == 1
    assert found[0].agreement == pytest.approx(1, abs=1e-5)
    assert found[0].neighbours > 0.99  # type: ignore[operator]


def test_agreement_is_the_correlation_of_cosines(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    words = [f"w{i}" for i in range(30)]
    a, b = rng.normal(size=(30, 5)).astype(np.float32), rng.normal(size=(30, 7)).astype(np.float32)
    vec2emb.save(tmp_path / "a", words, a)
    vec2emb.save(tmp_path / "b", words, b)
    [found] = vec2emb.audit(tmp_path / "a", tmp_path / "b").comparisons

    def cosines(rows: Any) -> list[list[float]]:
        units = [row / np.linalg.norm(row.astype(np.float64)) for row in rows]
        return [[float(x @ y) for y in units] for x in units]

    x, y = cosines(a), cosines(b)
    pairs = [(i, j) for i in range(30) for j in range(i)]
    wanted = np.corrcoef([x[i][j] for i, j in pairs], [y[i][j] for i, j in pairs])[0, 1]
    assert found.agreement == pytest.approx(wanted, abs=1e-6)
    nearest = [
        [set(sorted((j for j in range(30) if j != i), key=lambda j: -table[i][j])[:10]) for i in range(30)]
        for table in (x, y)
    ]
    assert found.neighbours == pytest.approx(sum(len(u & v) for u, v in zip(*nearest, strict=True)) / 300)


def test_what_can_be_read_once_only_is_compared_by_its_words(tmp_path: Path) -> None:
    with open(SAMPLE, "rb") as file:
        [found] = vec2emb.audit(file, SAMPLE).comparisons
    assert (found.shared, found.sample, found.agreement) == (250, None, None)
