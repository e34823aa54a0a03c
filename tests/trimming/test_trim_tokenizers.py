"""Cut tokenizers against the `tokenizers` package: texts that use only kept tokens are encoded as before."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from donors import byte_level, characters, texts, unigram, word_piece

from vec2emb.errors import InputError
from vec2emb.trimming.merges import Merges
from vec2emb.trimming.tokenizer_json import TokenizerJson, close

pytest.importorskip("tokenizers")


def cut(content: dict[str, Any], wanted: set[int]) -> tuple[Any, dict[int, int]]:
    """The tokenizer with the wanted tokens and those that have to stay, and the new ids."""
    from tokenizers import Tokenizer

    read = TokenizerJson(content, "tokenizer.json")
    kept = sorted(close(read, read.always_kept() | wanted))
    new = {old: now for now, old in enumerate(kept)}
    return Tokenizer.from_str(json.dumps(read.cut(new))), new


KINDS = {
    "word-piece": lambda lines: word_piece(lines, 900),
    "byte-level": lambda lines: byte_level(lines, 700, ["<s>", "</s>"]),
    "unigram": lambda lines: unigram(lines, 1200, ["<s>", "</s>", "<unk>"]),
    "characters": lambda lines: characters(lines, 700),
}


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_kept_tokens_are_encoded_as_before(kind: str) -> None:
    """Whatever tokens are kept, also texts with characters that the tokenizer does not know."""
    lines = texts()[:200]
    original = KINDS[kind](lines)
    tried = [" ".join(line.split()[:3]) for line in texts()] + ["ab 💡 cd", "漢 ♞♞ x", "  two  spaces "]
    before = [encoding.ids for encoding in original.encode_batch(tried)]
    for seed in range(4):
        draw = random.Random(seed)
        wanted = {id for id in range(original.get_vocab_size()) if draw.random() < 0.7}
        after, new = cut(json.loads(original.to_str()), wanted)
        assert after.get_vocab() == {t: new[id] for t, id in original.get_vocab().items() if id in new}
        assert len(new) < original.get_vocab_size()
        same = 0
        for old, now in zip(before, after.encode_batch(tried), strict=True):
            if set(old) <= new.keys():
                assert [new[id] for id in old] == now.ids
                same += 1
        assert same > 30


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_skeletoken_removes_tokens_to_the_same_tokenizer(kind: str) -> None:
    """Its model of the file, given the tokens that are gone, comes to the same vocabulary, merges and encodings."""
    skeletoken = pytest.importorskip("skeletoken")
    original = KINDS[kind](texts()[:200])
    draw = random.Random(0)
    wanted = {id for id in range(original.get_vocab_size()) if draw.random() < 0.7}
    after, new = cut(json.loads(original.to_str()), wanted)
    gone = [token for token, id in original.get_vocab().items() if id not in new]
    theirs = skeletoken.TokenizerModel.from_tokenizer(original).remove_tokens_from_vocabulary(gone).to_tokenizer()
    assert after.get_vocab() == theirs.get_vocab()
    [ours, others] = [json.loads(one.to_str())["model"] for one in (after, theirs)]
    assert ours.get("merges") == others.get("merges")
    for one, other in zip(after.encode_batch(texts()), theirs.encode_batch(texts()), strict=True):
        assert one.ids == other.ids


def test_bpe_without_ancestors_would_break_texts() -> None:
    """The closure is needed: without it texts of kept tokens are encoded otherwise."""
    original = byte_level(texts()[:200], 700, [])
    read = TokenizerJson(json.loads(original.to_str()), "tokenizer.json")
    used = set(original.encode(" ".join(texts()[0].split()[:8])).ids)
    without = {old: now for now, old in enumerate(sorted(read.always_kept() | used))}
    _, new = cut(json.loads(original.to_str()), used)
    assert len(new) > len(without)
    from tokenizers import Tokenizer

    broken = Tokenizer.from_str(json.dumps(read.cut(without)))
    text = " ".join(texts()[0].split()[:8])
    assert broken.encode(text).ids != [without[id] for id in original.encode(text).ids]


def test_the_ancestors_of_a_token_by_hand() -> None:
    """`abcd` is made as ab + cd, as these have the lower ranks; abc + d is a merge that no text uses."""
    vocabulary = {token: id for id, token in enumerate(["a", "b", "c", "d", "ab", "cd", "abc", "abcd", "dd", "ddd"])}
    merges = [["a", "b"], ["c", "d"], ["ab", "c"], ["abc", "d"], ["ab", "cd"], "d d"]
    read = Merges(merges, vocabulary, path="tokenizer.json")
    names = list(vocabulary)
    found = {token: {names[id] for id in read.ancestors(token)} for token in names}
    assert found["abcd"] == {"a", "b", "c", "d", "ab", "cd"}
    assert found["abc"] == {"a", "b", "c", "ab"}
    assert found["dd"] == {"d"}
    assert found["ddd"] == set()  # no merges make it
    assert found["a"] == set()


def test_the_score_of_unknown_characters_stays() -> None:
    """A token of the lowest score stays: the score of an unknown character is ten below it.

    With zz, an unknown a costs 110, more than the 90 of the three pairs; without it, it would cost 40.
    """
    from tokenizers import Tokenizer, models

    scores = {"<unk>": 0.0, "ab": -30.0, "cd": -30.0, "ef": -30.0, "bcdef": -1.0, "zz": -100.0, "y": -2.0}
    original = Tokenizer(models.Unigram(list(scores.items()), 0, False))
    assert original.encode("abcdef").tokens == ["ab", "cd", "ef"]
    ids = {original.get_vocab()[token] for token in ("ab", "cd", "ef", "bcdef")}
    after, _ = cut(json.loads(original.to_str()), ids)
    assert after.encode("abcdef").tokens == ["ab", "cd", "ef"]
    assert after.token_to_id("zz") is not None


@pytest.mark.parametrize("ignoring", [False, True])
@pytest.mark.parametrize(("prefix", "suffix"), [("", ""), ("", "</w>"), ("@@", ""), ("@@", "</w>")])
def test_marks_of_the_place_in_a_word(prefix: str, suffix: str, ignoring: bool) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from tokenizers.trainers import BpeTrainer

    marks = {"continuing_subword_prefix": prefix, "end_of_word_suffix": suffix}
    settings: dict[str, Any] = {name: mark for name, mark in marks.items() if mark}
    original = Tokenizer(models.BPE(unk_token="<unk>", ignore_merges=ignoring, **settings))
    original.pre_tokenizer = pre_tokenizers.Whitespace()
    draw = random.Random(1)
    words = ["".join(draw.choices("abcde", k=draw.randint(1, 9))) for _ in range(400)]
    trainer = BpeTrainer(vocab_size=200, show_progress=False, special_tokens=["<unk>"], **settings)
    original.train_from_iterator([" ".join(words)], trainer)
    content = json.loads(original.to_str())
    wanted = {id for id in range(original.get_vocab_size()) if draw.random() < 0.6}
    after, new = cut(content, wanted)
    same = 0
    for word in words:
        old = original.encode(word).ids
        if set(old) <= new.keys():
            assert [new[id] for id in old] == after.encode(word).ids, word
            same += 1
    assert same > 50
    assert len(new) < original.get_vocab_size()
    single = {token for token in original.get_vocab() if len(token.removeprefix("@@").removesuffix("</w>")) == 1}
    assert single <= after.get_vocab().keys()


WORDS = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "ab": 2}, "unk_token": "[UNK]"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({}, "tokenizer-invalid"),
        ({"model": {"type": "Other", "vocab": {}}}, "tokenizer-kind"),
        ({"model": {**WORDS, "vocab": {"a": 0, "b": 0}}}, "tokenizer-invalid"),
        ({"model": {**WORDS, "vocab": {"a": -1}}}, "tokenizer-invalid"),
        ({"model": {**WORDS, "vocab": ["a"]}}, "tokenizer-invalid"),
        ({"model": WORDS, "added_tokens": [{"id": 1, "content": "b"}]}, "tokenizer-invalid"),
        ({"model": WORDS, "added_tokens": [{"id": 3, "content": "a"}]}, "tokenizer-invalid"),
        ({"model": WORDS, "added_tokens": ["a"]}, "tokenizer-invalid"),
        ({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}}, "tokenizer-invalid"),
        ({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a"]}}, "tokenizer-invalid"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}}}, "tokenizer-invalid"),
        ({"model": {"type": "Unigram", "vocab": [["a", -1.0], ["a", -2.0]]}}, "tokenizer-invalid"),
        ({"model": {"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 1}}, "tokenizer-invalid"),
        ({"model": {"type": "Unigram", "vocab": {"a": 1}}}, "tokenizer-invalid"),
    ],
)
def test_what_is_no_tokenizer_is_refused(content: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        TokenizerJson(content, "tokenizer.json")
    assert caught.value.code == code
    assert caught.value.path == "tokenizer.json"


def test_a_post_processor_that_inserts_no_token_is_refused() -> None:
    content = {"model": WORDS, "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 7], "cls": ["a", 1]}}
    with pytest.raises(InputError, match="no token") as caught:
        TokenizerJson(content, "tokenizer.json").always_kept()
    assert caught.value.code == "tokenizer-invalid"
