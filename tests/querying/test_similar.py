"""Neighbours and scores of a bundle, against a slow loop and against gensim."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, collected, run

import vec2emb
from vec2emb.errors import InputError, UsageError, VocabularyError
from vec2emb.querying import neighbours

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("similar") / "glove"
    vec2emb.convert(SAMPLE, path)
    return path


def gensims(folder: Path) -> Any:
    """The file as gensim reads it; with a header, as it leaves a file open without one."""
    models = pytest.importorskip("gensim.models")
    path = folder / "sample.vec"
    path.write_bytes(b"250 50\n" + SAMPLE.read_bytes())
    return models.KeyedVectors.load_word2vec_format(str(path), binary=False)


def cosine(a: Any, b: Any) -> float:
    dot = math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(math.fsum(float(x) ** 2 for x in a) * math.fsum(float(y) ** 2 for y in b))


def test_neighbours_are_those_of_a_slow_loop(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = vec2emb.read_vectors(SAMPLE)
    for block in (neighbours._BLOCK, 1):
        monkeypatch.setattr(neighbours, "_BLOCK", block)
        for found in vec2emb.similar(bundle, "the", "time", top=7):
            others = [token for token in table.vocab if token != found.word]
            ranked = sorted(others, key=lambda token: -cosine(table[token], table[found.word]))
            assert [near.token for near in found.nearest] == ranked[:7]
            wanted = [cosine(table[token], table[found.word]) for token in ranked[:7]]
            assert [near.cosine for near in found.nearest] == pytest.approx(wanted, abs=1e-8)
            assert all(vec2emb.load(bundle).vocab.tokens[near.row] == near.token for near in found.nearest)


def test_neighbours_are_those_of_gensim(bundle: Path, tmp_path: Path) -> None:
    keyed = gensims(tmp_path)
    [found] = vec2emb.similar(bundle, "they")
    theirs = keyed.most_similar("they", topn=10)
    assert [near.token for near in found.nearest] == [token for token, _ in theirs]
    assert [near.cosine for near in found.nearest] == pytest.approx([value for _, value in theirs], abs=1e-6)


def test_rows_that_no_file_gave_are_nobodys_neighbours(tmp_path: Path) -> None:
    collected(lambda: vec2emb.convert(SAMPLE, tmp_path / "b", vocab=["the", "of", "zyzzyva"]))
    [found] = vec2emb.similar(tmp_path / "b", "the")
    assert [near.token for near in found.nearest] == ["of"]


def test_rows_without_a_direction(tmp_path: Path) -> None:
    rows = np.array([[1, 0], [0, 0], [1, 1]], np.float32)
    vec2emb.save(tmp_path / "b", ["a", "zero", "b"], rows)
    [found] = vec2emb.similar(tmp_path / "b", "a")
    assert [near.token for near in found.nearest] == ["b"]
    with pytest.raises(VocabularyError) as error:
        vec2emb.similar(tmp_path / "b", "zero")
    assert error.value.code == "no-direction"


def test_the_lookup_of_the_bundle_is_used(tmp_path: Path) -> None:
    vec2emb.convert(SAMPLE, tmp_path / "b", lowercase=True)
    [found] = vec2emb.similar(tmp_path / "b", "The", top=1)
    assert (found.word, found.token) == ("The", "the")
    assert str(found).startswith("'The', found as 'the'\n  0.")


def test_words_that_are_not_there(bundle: Path) -> None:
    with pytest.raises(VocabularyError) as error:
        vec2emb.similar(bundle, "The")
    assert error.value.code == "no-such-token"
    assert "there is 'the' (id 2), lower-case" in str(error.value)
    for words, options in ((["the"], {"top": 0}), ([], {})):
        with pytest.raises(UsageError):
            vec2emb.similar(bundle, *words, **options)


def test_similar_as_a_command(bundle: Path) -> None:
    done = run("similar", bundle, "the", "of", "--top", "2")
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout.decode().splitlines()) == 6
    facts = json.loads(run("similar", bundle, "the", "--json").stdout)
    assert [len(word["nearest"]) for word in facts["words"]] == [10]
    assert facts["words"][0]["nearest"][0].keys() == {"token", "row", "cosine"}
    assert run("similar", bundle, "zyzzyva").returncode == 1


# Evaluation.


def test_scores_are_those_of_gensim_on_the_file(bundle: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("# word pairs\nthe\tof\t7.5\nhe\tshe\t9\ntime\tyear\t6\nthe\tzyzzyva\t1\nin\tyears\t2.5\n")
    keyed = gensims(tmp_path)
    pearson, spearman, left_out = keyed.evaluate_word_pairs(str(pairs))
    [score] = vec2emb.evaluate(bundle, [pairs])
    assert (score.kind, score.accuracy) == ("similarity", None)
    assert (score.pearson, score.spearman) == (float(pearson[0]), float(spearman[0]))
    assert 100 * score.left_out / (score.used + score.left_out) == left_out


def test_analogies(bundle: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text(": family\nhe his they their\nhe his she her\n: none\nzyzzyva a b c\n")
    keyed = gensims(tmp_path)
    accuracy, _ = keyed.evaluate_word_analogies(str(questions))
    [score] = vec2emb.evaluate(bundle, [questions])
    assert (score.kind, score.accuracy, score.spearman) == ("analogy", accuracy, None)
    assert score.used + score.left_out == 3


def test_float16_scores_about_the_same(bundle: Path, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    vec2emb.convert(SAMPLE, tmp_path / "half", dtype="float16", specials_at="end")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the\tof\t7.5\nhe\tshe\t9\ntime\tyear\t6\nin\tyears\t2.5\n")
    [wide], [half] = (vec2emb.evaluate(path, [pairs]) for path in (bundle, tmp_path / "half"))
    assert half.pearson == pytest.approx(wide.pearson, abs=1e-3)


def test_a_set_of_which_no_word_is_there(bundle: Path, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    (tmp_path / "pairs.tsv").write_text("qqq\trrr\t5\n")
    (tmp_path / "words.txt").write_text("no pairs at all\n")
    [score] = vec2emb.evaluate(bundle, tmp_path / "pairs.tsv")
    assert (score.used, score.left_out, score.spearman) == (0, 1, None)
    assert str(score).endswith("no pair is there (0 of 1)")
    with pytest.raises(InputError):
        vec2emb.evaluate(bundle, [tmp_path / "words.txt"])
    for sets, restrict in ((["no-such-set"], 1), (["wordsim353"], 0)):
        with pytest.raises(UsageError):
            vec2emb.evaluate(bundle, sets, restrict=restrict)


def test_evaluate_as_a_command(bundle: Path) -> None:
    pytest.importorskip("gensim")
    done = run("evaluate", bundle, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    scores = json.loads(done.stdout)["scores"]
    assert [score["name"] for score in scores] == ["wordsim353", "simlex999"]
    assert [score["used"] + score["left_out"] for score in scores] == [353, 999]
