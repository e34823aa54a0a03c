"""Tokens of subword vocabularies and the words they stand for; `transformers` and `tokenizers` decode them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import FIXTURES, collected
from tokenizers import decoders

import vec2emb
from vec2emb.errors import UsageError, VocabularyError
from vec2emb.words.pieces import text_of, word_of

ROWS = {"the": [1.0, 2.0], "The": [3.0, 4.0], "café": [5.0, 6.0], "ing": [7.0, 8.0], ",": [9.0, 1.0], "##s": [2.0, 5.0]}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "v.txt"
    path.write_text("".join(f"{word} {a} {b}\n" for word, (a, b) in ROWS.items()), "utf-8")
    return path


def converted(source: Path, **options: Any) -> vec2emb.Table:
    collected(lambda: vec2emb.convert(source, source.parent / "b", if_exists="replace", **options))
    done = vec2emb.verify(source.parent / "b", source, rebuild=source)
    assert done.ok, done
    return vec2emb.load(source.parent / "b")


BYTES = "caf\u00c3\u00a9"  # the letters of the UTF-8 bytes of "café"


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("wordpiece", {"[UNK]": None, "the": "the", "##ing": None, "##s": "##s", "café": "café", "Zebra": None}),
        ("metaspace", {"<unk>": None, "▁the": "the", "ing": None, "▁": None, "▁café": "café", ",": ",", "▁The": "The"}),
        ("byte-level", {"Ġthe": "the", "ing": None, "Ġ": None, f"Ġ{BYTES}": "café", ",": ",", "\u00c3": None}),
    ],
)
def test_marked_tokens_take_the_row_of_their_word(
    kernel: str, block: str, source: Path, style: str, expected: dict[str, str | None]
) -> None:
    ids = {token: id for id, token in enumerate(expected)}
    table = converted(source, vocab=ids, pieces=style, missing="zeros", unk_init="zeros" if "U" in str(ids) else None)
    assert table.vocab.to_dict() == ids
    for token, word in expected.items():
        if token != table.vocab.unk_token:
            assert table[token].tolist() == ([0.0, 0.0] if word is None else ROWS[word])
            origin = table.explain(token).origin
            assert origin == ("initialised" if word is None else "file" if word == token else "fallback")
    assert table.vocab.lookup == "exact"


def test_other_cases_are_spellings_of_the_word(source: Path) -> None:
    table = converted(source, vocab={"▁THE": 0, "▁Café": 1, "ING": 2}, pieces="metaspace", case_fallback=True,
                      missing="zeros")  # fmt: skip
    assert table.vectors.tolist() == [ROWS["the"], ROWS["café"], [0.0, 0.0]]


def test_what_does_not_fit_is_refused(source: Path) -> None:
    for options in ({}, {"vocab": ["▁the"], "lowercase": True}, {"only": ["▁the"]}):
        with pytest.raises(UsageError) as usage:
            converted(source, pieces="metaspace", **options)
        assert usage.value.code == "pieces-alone"
    with pytest.raises(VocabularyError) as error:
        converted(source, vocab=["▁the"], pieces="byte-level")
    assert error.value.code == "pieces-unmarked"


def test_pieces_are_composed_of_their_own_subwords(tmp_path: Path) -> None:
    gensim = pytest.importorskip("gensim.models.fasttext")
    model = FIXTURES / "fasttext" / "skipgram.bin"
    vocab = {"##zzing": 0, "qqword": 1}
    collected(lambda: vec2emb.convert(model, tmp_path / "b", vocab=vocab, pieces="wordpiece", missing="subword"))
    table, theirs = vec2emb.load(tmp_path / "b"), gensim.load_facebook_vectors(str(model))
    for token, text in (("##zzing", "zzing"), ("qqword", "qqword")):
        assert table[token].tolist() == pytest.approx(theirs[text].tolist(), abs=1e-6)


def test_words_are_what_the_decoders_of_tokenizers_say() -> None:
    byte_level, metaspace = decoders.ByteLevel(), decoders.Metaspace(prepend_scheme="never")
    for token in ("Ġthe", f"Ġ{BYTES}", "ĠÐ¼Ð¸ÑĢ", ",", "Ġnaïve".replace("ï", "Ã¯")):
        assert word_of(token, "byte-level") == byte_level.decode([token]).strip(" ")
        assert text_of(token, "byte-level") == byte_level.decode([token]).strip(" ")
    for token in ("▁the", "▁мир", ","):
        assert word_of(token, "metaspace") == metaspace.decode([token]).strip(" ")
    assert text_of("##ing", "wordpiece") == decoders.WordPiece().decode(["a", "##ing"])[1:]
