"""gensim's own files of vectors, read where they lie in its wheel, against gensim's own reader."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bits

import vec2emb
from vec2emb.errors import InputError

gensim = pytest.importorskip("gensim")
DATA = Path(gensim.__file__).parent / "test" / "test_data"

# name: what gensim's reader must be told
SAME: dict[str, dict[str, Any]] = {
    "EN.1-10.cbow1_wind5_hs0_neg10_size300_smpl1e-05.txt": {},
    "IT.1-10.cbow1_wind5_hs0_neg10_size300_smpl1e-05.txt": {},
    "crime-and-punishment.vec": {},
    "high_precision.kv.txt": {},
    "lee_fasttext.vec": {},
    "test_glove.txt": {"no_header": True},
    "toy-model.vec": {},
    "word2vec_pre_kv_c": {},
    "euclidean_vectors.bin": {"binary": True},
    "high_precision.kv.bin": {"binary": True},
    "poincare_vectors.bin": {"binary": True},
}

# name: code, words of the message; and why gensim takes it
REFUSED = {
    # gensim finds no end to it either.
    "pretrained.vec": ("header-too-few-rows", "expected 3 rows, found 1"),
    # Words cut in the middle of a character; gensim's tests read it with unicode_errors='ignore'.
    "w2v_keyedvectors_load_test.modeldata": ("invalid-utf8", "e3 83"),
    # Five tokens are not UTF-8; gensim fails too unless it is told to replace them.
    "pang_lee_polarity_fasttext.vec": ("invalid-utf8", "line "),
    "lee_fasttext": ("is-pickle", "a Python pickle"),
}


def gensims(name: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gensim.models.KeyedVectors.load_word2vec_format(str(DATA / name), **options)


@pytest.mark.parametrize("name", SAME)
def test_the_same_tokens_and_bits(name: str, kernel: str, threads: int) -> None:
    theirs = gensims(name, **SAME[name])
    ours = vec2emb.read_vectors(DATA / name, threads=threads)
    assert ours.vocab.to_list() == theirs.index_to_key
    assert np.array_equal(ours.vectors.view(np.uint32), theirs.vectors.view(np.uint32))


@pytest.mark.parametrize("name", REFUSED)
def test_refused_for_a_reason(name: str, kernel: str) -> None:
    code, words = REFUSED[name]
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(DATA / name)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_tokens_that_are_not_utf8(kernel: str) -> None:
    """Left out where bad rows are skipped, and the rest is what gensim reads."""
    name = "pang_lee_polarity_fasttext.vec"
    with pytest.warns(vec2emb.Vec2embWarning, match="5 faulty rows"):
        ours = vec2emb.read_vectors(DATA / name, bad_rows="skip")
    theirs = gensims(name, unicode_errors="replace")
    assert len(ours) == len(theirs) - 5 == 1689
    for token, vector in ours:
        assert bits([vector]) == bits([theirs[token]])


def test_gensim_refuses_a_cut_file_too() -> None:
    with pytest.raises(EOFError, match="is count incorrect"):
        gensims("pretrained.vec")
