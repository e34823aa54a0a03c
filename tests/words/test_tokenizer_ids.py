"""Ids that belong to a tokenizer stay; `transformers` and `tokenizers` say which they are, and what pads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from helpers import collected
from tokenizers import Tokenizer, models

import vec2emb
from vec2emb.errors import UsageError, VocabularyError

WORDS = ["the", "of", "state", "▁the", "Ġthe", "##s", "people", "[CLS]"]
VECTORS = {word: [float(i + 1), -1.0, 0.5] for i, word in enumerate(WORDS)}


def made(kind: str, model: models.Model, **options: Any) -> Any:
    return getattr(transformers, kind)(tokenizer_object=Tokenizer(model), **options)


def bert() -> Any:
    tokens = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##s", "state", "of"]
    model = models.WordPiece({token: id for id, token in enumerate(tokens)}, unk_token="[UNK]")
    return made("BertTokenizerFast", model)


def gpt2() -> Any:
    tokens = ["!", "the", "Ġthe", "of", "Ġpeople", "state", "<|endoftext|>"]
    model = models.BPE({token: id for id, token in enumerate(tokens)}, [])
    return made("GPT2TokenizerFast", model)


def gpt2_bare() -> Any:
    """Without settings: nothing says what <|endoftext|> is for."""
    tokens = ["!", "the", "Ġthe", "of", "<|endoftext|>"]
    model = models.BPE({token: id for id, token in enumerate(tokens)}, [])
    return made("PreTrainedTokenizerFast", model)


def t5() -> Any:
    tokens = ["<pad>", "</s>", "<unk>", "▁the", "of", "state"]
    model = models.Unigram([(token, -float(id)) for id, token in enumerate(tokens)], unk_id=2)
    return made("T5TokenizerFast", model, extra_ids=2)


def llama() -> Any:
    tokens = ["<unk>", "<s>", "</s>", "▁the", "of", "state"]
    model = models.BPE({token: id for id, token in enumerate(tokens)}, [], unk_token="<unk>")
    return made("LlamaTokenizerFast", model)


TOKENIZERS = [bert, gpt2, gpt2_bare, t5, llama]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {a} {b} {c}\n" for word, (a, b, c) in VECTORS.items()), "utf-8")
    return path


def converted(source: Path, **options: Any) -> vec2emb.Table:
    target = source.parent / "bundle"
    collected(lambda: vec2emb.convert(source, target, if_exists="replace", **options))
    verification = vec2emb.verify(target, source, rebuild=source)
    assert verification.ok, verification
    return vec2emb.load(target)


def given(form: str, tokenizer: Any, folder: Path) -> Any:
    """The vocabulary of a tokenizer in one of its forms."""
    if form == "object":
        return tokenizer
    if form == "backend":
        return tokenizer.backend_tokenizer
    if form == "mapping":
        return tokenizer.get_vocab()
    folder.mkdir()
    tokenizer.save_pretrained(folder)
    if form == "vocab.json":
        (folder / form).write_text(json.dumps(tokenizer.get_vocab()), "utf-8")
    return folder / form


@pytest.mark.parametrize("form", ["object", "backend", "mapping", "tokenizer.json", "vocab.json"])
@pytest.mark.parametrize("make", TOKENIZERS)
def test_row_of_every_id_is_that_of_its_token(kernel: str, source: Path, make: Callable[[], Any], form: str) -> None:
    tokenizer = make()
    table = converted(source, vocab=given(form, tokenizer, source.parent / "saved"), missing="zeros")
    ids = tokenizer.get_vocab()
    assert table.vocab.to_dict() == dict(sorted(ids.items(), key=lambda item: item[1]))
    special = {tokenizer.pad_token, tokenizer.unk_token}
    for token, id in ids.items():
        if token not in special:
            assert table.vectors[id].tolist() == VECTORS.get(token, [0.0] * 3)
    if form in ("object", "tokenizer.json", "vocab.json"):
        assert table.vocab.pad_token == tokenizer.pad_token
        assert table.vocab.unk_token == tokenizer.unk_token
    if table.padding_idx is not None:
        assert table.vectors[table.padding_idx].tolist() == [0.0] * 3


def test_nothing_that_is_not_declared_pads(source: Path) -> None:
    for form in ("mapping", "backend"):
        table = converted(source, vocab=given(form, gpt2(), source.parent), missing="zeros")
        assert (table.padding_idx, table.vocab.unk_idx) == (None, None)
    table = converted(source, vocab={"<s>": 0, "the": 1, "</s>": 2, "<|endoftext|>": 3}, missing="zeros")
    assert (table.padding_idx, table.vocab.unk_idx, len(table)) == (None, None, 4)


def test_settings_beside_the_file_name_both(source: Path) -> None:
    folder = source.parent / "model"
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps({"<s>": 0, "the": 1, "</s>": 2, "<pad>": 3}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": {"content": "</s>"}, "unk_token": "<s>"}))
    table = converted(source, vocab=folder / "vocab.json", missing="zeros")
    assert (table.padding_idx, table.vocab.unk_idx) == (2, 0)
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "<pad>", "unk_token": None}))
    table = converted(source, vocab=folder / "vocab.json", missing="zeros")
    assert (table.padding_idx, table.vocab.unk_idx) == (3, 0)


def test_a_token_of_both_roles_pads(source: Path) -> None:
    tokenizer = gpt2()
    tokenizer.pad_token = tokenizer.unk_token
    table = converted(source, vocab=tokenizer, missing="zeros")
    assert (table.vocab.pad_token, table.vocab.unk_token) == ("<|endoftext|>", None)


def test_only_an_option_adds_rows_and_at_the_end(source: Path) -> None:
    ids = {"the": 0, "of": 1, "[X]": 2}
    table = converted(source, vocab=ids, missing="zeros", pad="<pad>", specials=["<new>=mean"])
    assert table.vocab.to_list() == ["the", "of", "[X]", "<pad>", "<new>"]
    assert (table.padding_idx, table.vocab.unk_idx) == (3, None)
    assert table["<new>"].tolist() == np.mean([VECTORS["the"], VECTORS["of"]], axis=0).tolist()
    table = converted(source, vocab=ids, missing="zeros", pad="[X]", unk="the")
    assert (table.padding_idx, table.vocab.unk_idx, len(table)) == (2, 0, 3)


@pytest.mark.parametrize(
    ("words", "tokens", "padding", "unknown"),
    [
        (["[PAD]", "of", "[UNK]", "the"], None, 0, 2),
        (["of", "[UNK]"], None, None, 1),
        (["of", "[PAD]"], None, 1, None),
        (["of", "the"], ["<pad>", "<unk>", "of", "the"], 0, 1),
        (["of", "<unk>", "<pad>"], None, 2, 1),
    ],
)
def test_lines_with_tokens_of_models_are_ids(
    source: Path, words: list[str], tokens: list[str] | None, padding: int | None, unknown: int | None
) -> None:
    for given in (words, source.parent / "vocab.txt"):
        (source.parent / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
        table = converted(source, vocab=given)
        assert table.vocab.to_list() == (tokens or words)
        assert (table.padding_idx, table.vocab.unk_idx) == (padding, unknown)


def test_a_corpus_that_speaks_of_padding_keeps_its_order(source: Path) -> None:
    (source.parent / "corpus.txt").write_text("the [PAD] the\n")
    table = converted(source, corpus=source.parent / "corpus.txt", missing="zeros")
    assert table.vocab.to_list() == ["<pad>", "<unk>", "the", "[PAD]"]


def test_gaps_are_filled_with_recorded_rows(kernel: str, source: Path) -> None:
    ids = {"of": 1, "the": 4, "<no token 0>": 2}
    with pytest.raises(VocabularyError, match="--fill-gaps") as error:
        converted(source, vocab=ids)
    assert error.value.code == "ids-with-gaps"
    table = converted(source, vocab=ids, fill_gaps=True, missing="zeros")
    assert table.vocab.to_list() == ["<<no token 0>>", "of", "<no token 0>", "<no token 3>", "the"]
    for token, id in (("of", 1), ("the", 4)):
        assert table.vectors[id].tolist() == VECTORS[token]
    made = {special.token: special.init for special in table.manifest.specials} if table.manifest else {}
    assert made == {"<<no token 0>>": "normal", "<no token 3>": "normal"}
    assert "drawn" in str(table.explain("<no token 3>")) or "normal" in str(table.explain("<no token 3>"))
    with pytest.raises(VocabularyError) as error:
        converted(source, vocab={"the": 10**9}, fill_gaps=True)
    assert error.value.code == "ids-with-gaps"
    for doubtful in ({"the": 0, "of": 0}, {"the": -1, "of": 0}):
        with pytest.raises(VocabularyError) as error:
            converted(source, vocab=doubtful, fill_gaps=True)
        assert error.value.code == "ids-with-gaps"
    with pytest.raises(UsageError) as usage:
        converted(source, vocab=["the"], fill_gaps=True)
    assert usage.value.code == "gaps-without-ids"
