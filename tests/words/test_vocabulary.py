"""Vocabularies: expectations by hand, a plain dict as oracle, both kernels."""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from vocabularies import ODD, SMALL, TOKENS, VOCABULARIES, fast, refused

from vec2emb.errors import (
    UsageError,
    Vec2embError,
    VocabularyError,
)
from vec2emb.words import token_lookup, vocabulary_file
from vec2emb.words.vocabulary import NoSuchIdError, NoSuchTokenError, Vocabulary, other_forms

pytestmark = pytest.mark.usefixtures("kernel")


@pytest.fixture
def vocab() -> Vocabulary:
    return Vocabulary(SMALL, pad_token="<pad>", unk_token="<unk>")


def ids(array: Any) -> list[Any]:
    """The values, once it is certain that they are int64."""
    assert array.dtype == np.int64
    values: list[Any] = array.tolist()
    return values


# --- one token --------------------------------------------------------------------------------------------------------


def test_ids_are_places(vocab: Vocabulary) -> None:
    assert len(vocab) == 5
    assert [vocab[token] for token in SMALL] == [0, 1, 2, 3, 4]
    assert vocab["cat"] == 1
    assert "the" in vocab
    assert "cat" not in vocab
    assert 3 not in vocab
    assert vocab.get("of") == 3
    assert vocab.get("cat") is None
    assert vocab.get("cat", -1) == -1
    assert vocab.get("<unk>") == 1
    assert (vocab.padding_idx, vocab.unk_idx, vocab.pad_token, vocab.unk_token) == (0, 1, "<pad>", "<unk>")
    assert list(vocab) == vocab.to_list() == SMALL
    assert vocab.to_dict() == {"<pad>": 0, "<unk>": 1, "the": 2, "of": 3, "New York": 4}
    assert bytes(vocab.blob) == b"<pad>\n<unk>\nthe\nof\nNew York\n"
    assert vocab.blob.readonly


def test_special_tokens_may_stand_anywhere() -> None:
    vocab = Vocabulary(["a", "[UNK]", "b", ""], pad_token="", unk_token="[UNK]")
    assert (vocab.padding_idx, vocab.unk_idx) == (3, 1)
    assert ids(vocab.encode_batch([["b"], ["x", "a"]])[0]) == [[2, 3], [1, 0]]


def test_without_unknown_a_missing_token_is_an_error() -> None:
    vocab = Vocabulary(["a", "b"])
    assert (vocab.padding_idx, vocab.unk_idx, vocab.pad_token, vocab.unk_token) == (None, None, None, None)
    text = (
        "the token 'cat' is not in the vocabulary; it has no unknown token; make it with unk_token= "
        "to have one stand for missing tokens"
    )
    with refused(NoSuchTokenError, "no-such-token", text):
        vocab["cat"]
    with refused(NoSuchTokenError, "no-such-token", text):
        vocab(["a", "cat", "dog"])
    with pytest.raises(KeyError):
        vocab["cat"]
    with pytest.raises(VocabularyError):
        vocab.encode_batch([["cat"]])
    assert vocab.get("cat") is None
    assert ids(vocab(["b", "a", "b"])) == [1, 0, 1]


def test_ids_are_no_tokens(vocab: Vocabulary) -> None:
    text = "a token is a string: found int; the token of an id is vocab.tokens[id]"
    with refused(UsageError, "token-type", text):
        vocab[2]  # type: ignore[index]
    with refused(UsageError, "token-type", text):
        vocab.get(2)  # type: ignore[call-overload]


def test_odd_tokens_stay_as_they_are(tmp_path: Path) -> None:
    vocab = Vocabulary(ODD, pad_token="")
    assert vocab.to_list() == list(vocab) == ODD
    assert [vocab[token] for token in ODD] == ids(vocab(ODD)) == list(range(len(ODD)))
    assert vocab.decode(range(len(ODD))) == ODD
    vocab.to_file(tmp_path / "vocab.txt")
    assert Vocabulary.from_file(tmp_path / "vocab.txt", pad_token="") == vocab
    # What the documentation promises to readers without this package:
    assert (tmp_path / "vocab.txt").read_bytes().decode().split("\n")[:-1] == ODD


def test_what_is_in_no_vocabulary() -> None:
    vocab = Vocabulary(["a", "b"], unk_token="b")
    for token in ["", "\n", "a\n", "a\nb", "\n\n", "\ud800", "a\ud800"]:
        assert token not in vocab
        assert token not in vocab.tokens
        assert vocab[token] == 1
        assert ids(vocab([token, "a"])) == [1, 0]


def test_the_empty_vocabulary() -> None:
    vocab = Vocabulary([])
    assert len(vocab) == 0
    assert vocab.to_list() == []
    assert vocab.tokens == []
    assert bytes(vocab.blob) == b""
    assert "" not in vocab
    assert ids(vocab([])) == []
    assert vocab.decode([]) == []
    assert Vocabulary.from_blob(b"", padding_idx=None, unk_idx=None) == vocab
    with refused(
        NoSuchIdError,
        "no-such-id",
        "no token has this id: expected none, since the vocabulary is empty, found 0 at position 0",
    ):
        vocab.decode([0])


# --- what cannot be a vocabulary --------------------------------------------------------------------------------------


def test_duplicates_are_named_with_both_ids() -> None:
    text = (
        "the token 'b' stands twice: expected each token once, found ids 1 and 3; "
        "remove one of the two, and its row where there are vectors"
    )
    with refused(VocabularyError, "duplicate-token", text):
        Vocabulary(["a", "b", "c", "b", "a"])


@pytest.mark.parametrize(
    ("tokens", "kind", "code", "text"),
    [
        (
            "the cat",
            UsageError,
            "not-split",
            "tokens are wanted, not a string, which would be taken letter by letter: found 'the cat'; "
            "give a list of them, or a file: Vocabulary.from_file(path)",
        ),
        ({"a", "b"}, UsageError, "no-order", "a set has no order to take ids from; sort it first: sorted(tokens)"),
        (["a", 1], UsageError, "token-type", "a token is a string: found int at position 1"),
        (["a", b"b"], UsageError, "token-type", "a token is a string: found bytes at position 1"),
        ([None], UsageError, "token-type", "a token is a string: found NoneType at position 0"),
        (["a", "b\nc"], VocabularyError, "line-feed", r"a token cannot hold LF: found 'b\nc' at position 1"),
        (["a\n"], VocabularyError, "line-feed", r"a token cannot hold LF: found 'a\n' at position 0"),
        (
            ["a", "\ud800"],
            VocabularyError,
            "lone-surrogate",
            r"a token needs a UTF-8 form: found a lone surrogate in '\ud800' at position 1",
        ),
        (
            {"a": 0, "c": 2},
            VocabularyError,
            "ids-with-gaps",
            "the ids of the mapping are not 0, 1, 2, ..: expected id 1, found id 2 of 'c'; "
            "of tokens with counts pass the tokens alone, in the order wanted",
        ),
        (
            {"a": 0, "b": 0},
            VocabularyError,
            "ids-with-gaps",
            "the ids of the mapping are not 0, 1, 2, ..: expected id 1, found id 0 of 'b'; "
            "of tokens with counts pass the tokens alone, in the order wanted",
        ),
    ],
)
def test_what_cannot_be_tokens(tokens: Any, kind: type[Vec2embError], code: str, text: str) -> None:
    with refused(kind, code, text):
        Vocabulary(tokens)


def test_a_mapping_gives_the_ids() -> None:
    vocab = Vocabulary({"b": 1, "a": 0, "c": 2}, unk_token="c")
    assert vocab.to_list() == ["a", "b", "c"]
    assert Vocabulary(vocab.to_dict(), unk_token="c") == vocab
    assert Vocabulary((token for token in "abc"), unk_token="c") == vocab
    assert Vocabulary(vocab, unk_token="c") == Vocabulary(vocab.tokens, unk_token="c") == vocab


def test_specials_have_to_be_there() -> None:
    text = "the special token '[PAD]' is not among the tokens; add it, name another, or pass None for none"
    with refused(VocabularyError, "missing-special", text):
        Vocabulary(["a"], pad_token="[PAD]")
    with pytest.raises(VocabularyError, match=r"'\\ud800'"):
        Vocabulary(["a"], unk_token="\ud800")


@pytest.mark.parametrize(
    ("blob", "code", "text"),
    [
        (b"a\nb", "missing-last-lf", "the last token is not followed by LF"),
        (
            b"a\n\xff\xfe\n",
            "invalid-utf8",
            "line 2: the token is not UTF-8: found bytes ff; convert the file, as with: iconv -f latin1 -t utf-8",
        ),
        (
            b"a\nb\na\n",
            "duplicate-token",
            "the token 'a' stands twice: expected each token once, found ids 0 and 2; "
            "remove one of the two, and its row where there are vectors",
        ),
    ],
)
def test_what_cannot_be_a_blob(blob: bytes, code: str, text: str) -> None:
    with refused(VocabularyError, code, text):
        Vocabulary.from_blob(blob, padding_idx=None, unk_idx=None)


def test_a_blob_is_text_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_file, "_BLOCK", 4)
    tokens = ["a", "longer than a block", "é", "", "😀😀", "b"]
    blob = "".join(f"{token}\n" for token in tokens).encode()
    for form in (blob, bytearray(blob), memoryview(blob)):
        vocab = Vocabulary.from_blob(form, padding_idx=3, unk_idx=0)
        assert vocab.to_list() == tokens
        assert (vocab.pad_token, vocab.unk_token) == ("", "a")
    for place in (0, 2, 10, len(blob) - 2):
        broken = bytearray(blob)
        broken[place] = 0xFF
        with pytest.raises(VocabularyError, match="not UTF-8") as caught:
            Vocabulary.from_blob(broken, padding_idx=None, unk_idx=None)
        assert (caught.value.offset, caught.value.line) == (place, blob[:place].count(b"\n") + 1)
    with pytest.raises(VocabularyError, match="not UTF-8"):  # a surrogate, as CESU-8 has it
        Vocabulary.from_blob(b"\xed\xa0\x80\n", padding_idx=None, unk_idx=None)


def test_ids_of_specials_have_to_be_there() -> None:
    with refused(NoSuchIdError, "no-such-id", "no token has this id: expected 0 .. 1, found 2"):
        Vocabulary.from_blob(b"a\nb\n", padding_idx=2, unk_idx=None)
    with refused(NoSuchIdError, "no-such-id", "no token has this id: expected 0 .. 1, found -1"):
        Vocabulary.from_blob(b"a\nb\n", padding_idx=None, unk_idx=-1)


# --- many tokens ------------------------------------------------------------------------------------------------------


def test_encode(vocab: Vocabulary) -> None:
    assert ids(vocab(["of", "cat", "the", "New York"])) == [3, 1, 2, 4]
    assert ids(vocab.encode(("of", "the"))) == [3, 2]
    assert ids(vocab.encode(iter(["of"]))) == [3]
    assert ids(vocab.encode([])) == []
    assert ids(vocab.encode(np.array(["the", "cat"]))) == [2, 1]
    assert vocab.encode(["of"]).flags.writeable
    text = (
        "tokens are wanted, not a string, which would be taken letter by letter: found 'the cat'; "
        "split it first: vocab.encode(text.split())"
    )
    with refused(UsageError, "not-split", text):
        vocab("the cat")
    for wrong, found in ([["of"]], "list"), ([float("nan")], "float"), (b"the", "int"), ([None], "NoneType"):
        with refused(UsageError, "token-type", f"a token is a string: found {found} at position 0"):
            vocab.encode(wrong)  # type: ignore[arg-type]


def test_encode_batch(vocab: Vocabulary) -> None:
    docs = [["the", "cat", "of"], [], ["of"]]
    batch, lengths = vocab.encode_batch(docs)
    assert ids(batch) == [[2, 1, 3], [0, 0, 0], [3, 0, 0]]
    assert ids(lengths) == [3, 0, 1]
    batch, lengths = vocab.encode_batch(iter([iter(doc) for doc in docs]), max_length=2)
    assert ids(batch) == [[2, 1], [0, 0], [3, 0]]
    assert ids(lengths) == [2, 0, 1]
    batch, lengths = vocab.encode_batch(docs, max_length=0)
    assert (batch.shape, ids(lengths)) == ((3, 0), [0, 0, 0])
    assert ids(vocab.encode_batch(docs, max_length=99)[0]) == [[2, 1, 3], [0, 0, 0], [3, 0, 0]]


@pytest.mark.parametrize(("docs", "shape"), [([], (0, 0)), ([[]], (1, 0)), ([[], []], (2, 0)), ([["the"]], (1, 1))])
def test_small_batches(vocab: Vocabulary, docs: list[list[str]], shape: tuple[int, int]) -> None:
    batch, lengths = vocab.encode_batch(docs)
    assert batch.shape == shape
    assert batch.dtype == lengths.dtype == np.int64
    assert lengths.shape == shape[:1]


def test_batches_that_cannot_be(vocab: Vocabulary) -> None:
    text = (
        "tokens are wanted, not a string, which would be taken letter by letter: found 'the cat'; "
        "split them first: vocab.encode_batch([text.split() for text in texts])"
    )
    with refused(UsageError, "not-split", text):
        vocab.encode_batch("the cat")
    with refused(UsageError, "not-split", text):
        vocab.encode_batch(["the cat", "of"])
    with refused(UsageError, "max-length", "max_length cannot be so: expected 0 or more tokens, found -1"):
        vocab.encode_batch([["the"]], max_length=-1)
    bare = Vocabulary(["a", "b"])
    assert ids(bare.encode_batch([["a", "b"], ["b", "b"]])[0]) == [[0, 1], [1, 1]]
    text = (
        "texts of different lengths need a padding token, and the vocabulary has none: found 1 to 2 tokens; "
        "make it with pad_token=, or give texts of one length"
    )
    with refused(VocabularyError, "no-padding", text):
        bare.encode_batch([["a", "b"], ["b"]])


@pytest.mark.parametrize(
    "form",
    [list, tuple, iter, np.array, np.uint8, lambda x: np.array(x, ">i4"), torch.tensor, lambda x: [*torch.tensor(x)]],
)
def test_decode(vocab: Vocabulary, form: Any) -> None:
    assert vocab.decode(form([3, 0, 4, 3])) == ["of", "<pad>", "New York", "of"]


def test_decode_nothing(vocab: Vocabulary) -> None:
    empty: list[Any] = [[], np.array([]), torch.tensor([]), range(0)]
    assert [vocab.decode(nothing) for nothing in empty] == [[]] * 4


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        ([0, 5], NoSuchIdError, "no token has this id: expected 0 .. 4, found 5 at position 1"),
        ([-1, 5], NoSuchIdError, "no token has this id: expected 0 .. 4, found -1 at position 0"),
        (torch.tensor([0, -100]), IndexError, "no token has this id: expected 0 .. 4, found -100 at position 1"),
        ([0.0, 1.0], UsageError, "ids are integers: found float64"),
        ([True, False], UsageError, "ids are integers: found bool"),
        (["the"], UsageError, "ids are integers: found <U3"),
        ("the", UsageError, "ids are integers: found <U1"),
        (3, UsageError, "ids of one text are a list: found shape (); vocab.tokens[id]"),
        (
            np.zeros((2, 3), int),
            UsageError,
            "ids of one text are a list: found shape (2, 3); decode row by row: [vocab.decode(row) for row in ids]",
        ),
    ],
)
def test_what_cannot_be_decoded(vocab: Vocabulary, wrong: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=f"^{re.escape(text)}$"):
        vocab.decode(wrong)


def test_tokens_are_a_sequence(vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_lookup, "_BATCH", 2)
    tokens = vocab.tokens
    assert len(tokens) == 5
    assert [tokens[i] for i in range(-5, 5)] == SMALL + SMALL
    assert tokens[np.int64(2).item()] == "the"
    for start in (None, *range(-7, 8)):
        for stop in (None, *range(-7, 8)):
            for step in (None, -3, -1, 1, 2):
                assert tokens[start:stop:step] == SMALL[start:stop:step]
    assert list(tokens) == list(iter(tokens)) == SMALL
    assert list(reversed(tokens)) == SMALL[::-1]
    assert tokens.index("of") == 3
    assert tokens.index("of", -2) == 3
    assert tokens.count("of") == 1
    assert tokens.count("cat") == 0
    wrong: Any = [("cat", 1), ("the", 3), (7, 0)]
    for missing in wrong:
        with pytest.raises(ValueError, match="is not there"):
            tokens.index(*missing)
    for outside in (5, -6, 2**70):
        with refused(NoSuchIdError, "no-such-id", f"no token has this id: expected 0 .. 4, found {outside}"):
            tokens[outside]
    assert tokens == SMALL
    assert tokens == tuple(SMALL)
    assert tokens == vocab.tokens
    assert tokens != SMALL[:4]
    assert tokens != [*SMALL[:4], "x"]
    assert tokens != "<pad>"
    assert repr(tokens) == "<5 tokens: '<pad>', '<unk>', 'the', ..>"
    assert pickle.loads(pickle.dumps(tokens)) == SMALL


# --- how a missing token is looked up ---------------------------------------------------------------------------------

CASES = ["<unk>", "the", "Paris", "NATO", "us", "US", "istanbul", "Straße"]
LOOKED_UP = [  # token, exact, lower, case-fallback
    ("the", 1, 1, 1),
    ("The", 0, 1, 1),
    ("THE", 0, 1, 1),
    ("paris", 0, 0, 2),
    ("PARIS", 0, 0, 2),
    ("nato", 0, 0, 3),
    ("Nato", 0, 0, 3),
    ("us", 4, 4, 4),
    ("US", 5, 5, 5),
    ("Us", 0, 4, 4),
    ("ISTANBUL", 0, 6, 6),
    ("İstanbul", 0, 0, 0),  # lower-cased it has a dot above that the word has not
    ("STRASSE", 0, 0, 0),
    ("straße", 0, 0, 7),
    ("cat", 0, 0, 0),
    ("", 0, 0, 0),
    ("\ud800", 0, 0, 0),
    ("<UNK>", 0, 0, 0),
]


@pytest.mark.parametrize(("column", "lookup"), [(1, "exact"), (2, "lower"), (3, "case-fallback")])
def test_lookup(column: int, lookup: Any) -> None:
    words = [row[0] for row in LOOKED_UP]
    expected = [row[column] for row in LOOKED_UP]
    vocab = Vocabulary(CASES, unk_token="<unk>", lookup=lookup)
    other = Vocabulary(CASES, unk_token="<unk>")
    assert vocab.lookup == lookup
    assert ids(vocab(words)) == [vocab[word] for word in words] == expected
    assert ids(other.encode(words, lookup=lookup)) == expected
    assert ids(other.encode_batch([words, words], lookup=lookup)[0]) == [expected, expected]
    assert ids(vocab.encode(words, lookup="exact")) == [row[1] for row in LOOKED_UP]
    known = [
        i if i or (word.lower() == "<unk>" and column > 1) else None for word, i in zip(words, expected, strict=True)
    ]
    assert [vocab.get(word) for word in words] == known
    assert [word in vocab for word in words] == [i is not None for i in known]
    assert "The" not in vocab.tokens
    bare = Vocabulary(CASES[1:], lookup=lookup)
    if lookup == "case-fallback":
        assert ids(bare(["NATO", "PARIS", "nato", "The"])) == [2, 1, 2, 0]
    with pytest.raises(NoSuchTokenError, match="the token 'STRASSE' is not in"):
        bare(["the", "STRASSE", "cat"])


def test_other_forms() -> None:
    assert [form("mcDonald") for form in other_forms("case-fallback")] == ["mcdonald", "Mcdonald", "MCDONALD"]
    text = "there is no such lookup: expected exact or lower or case-fallback, found 'upper'"
    with refused(UsageError, "unknown-lookup", text):
        other_forms("upper")
    with refused(UsageError, "unknown-lookup", text):
        Vocabulary(["a"], lookup="upper")  # type: ignore[arg-type]
    with refused(UsageError, "unknown-lookup", text):
        Vocabulary(["a"]).encode([], lookup="upper")  # type: ignore[arg-type]


# --- the whole --------------------------------------------------------------------------------------------------------


def test_equality_and_hash(vocab: Vocabulary) -> None:
    same = Vocabulary.from_blob(bytes(vocab.blob), padding_idx=0, unk_idx=1)
    assert same == vocab
    assert hash(same) == hash(vocab)
    others = [
        Vocabulary(SMALL),
        Vocabulary(SMALL, pad_token="<pad>"),
        Vocabulary(SMALL, pad_token="<pad>", unk_token="the"),
        Vocabulary(SMALL, pad_token="<pad>", unk_token="<unk>", lookup="lower"),
        Vocabulary(SMALL[::-1], pad_token="<pad>", unk_token="<unk>"),
        Vocabulary(SMALL[:4], pad_token="<pad>", unk_token="<unk>"),
        Vocabulary([*SMALL[:4], "New", "York"], pad_token="<pad>", unk_token="<unk>"),
    ]
    assert all(other != vocab for other in others)
    assert len({vocab, same, *others}) == 8
    assert vocab != SMALL


def test_sha256() -> None:
    # printf 'a\nb\n' | sha256sum
    assert Vocabulary(["a", "b"]).sha256 == "911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2"


def test_repr(vocab: Vocabulary) -> None:
    assert repr(vocab) == "<Vocabulary of 5 tokens, padding_idx=0, unk_idx=1>"
    bare = Vocabulary([str(i) for i in range(1234)], lookup="lower")
    assert repr(bare) == "<Vocabulary of 1,234 tokens, padding_idx=None, unk_idx=None, lookup='lower'>"


def test_it_is_immutable(vocab: Vocabulary) -> None:
    for name in ("padding_idx", "unk_idx", "lookup", "tokens", "blob", "extra"):
        with pytest.raises(AttributeError):
            setattr(vocab, name, 1)
    assert copy.copy(vocab) is copy.deepcopy(vocab) is vocab
    assert copy.deepcopy({"v": vocab})["v"] is vocab


def test_errors_survive_pickling(vocab: Vocabulary) -> None:
    with pytest.raises(NoSuchIdError) as caught:
        vocab.decode([9])
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is NoSuchIdError
    assert str(again) == str(caught.value)


def test_threads_read_at_once(vocab: Vocabulary) -> None:
    words = [f"w{i}" for i in range(2000)]
    vocab = Vocabulary(["<unk>", *words], unk_token="<unk>", lookup="case-fallback")
    wrong: list[int] = []

    def read(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(2000)
        for _ in range(5):
            tokens = [words[i].upper() for i in order]
            if vocab(tokens).tolist() != (order + 1).tolist() or vocab.decode(order + 1) != [words[i] for i in order]:
                wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_importing_it_is_light() -> None:
    code = "import sys, vec2emb.words.vocabulary; print(*{'numpy', 'torch', 'dataclasses', 'pathlib'} & {*sys.modules})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


# --- promises ---------------------------------------------------------------------------------------------------------


@fast
@given(VOCABULARIES, st.lists(TOKENS))
def test_as_a_dict(tokens: list[str], words: list[str]) -> None:
    vocab = Vocabulary(tokens)
    oracle = {token: i for i, token in enumerate(tokens)}
    assert vocab.to_dict() == oracle
    assert vocab.decode(vocab(tokens)) == tokens
    assert ids(vocab(vocab.tokens)) == list(range(len(tokens)))
    for word in words + tokens:
        assert vocab.get(word) == oracle.get(word)
        assert (word in vocab) == (word in oracle) == (word in vocab.tokens)
    if tokens:
        vocab = Vocabulary(tokens, unk_token=tokens[-1])
        assert ids(vocab(words + tokens)) == [oracle.get(word, len(tokens) - 1) for word in words + tokens]


@fast
@given(VOCABULARIES.filter(bool), st.lists(st.lists(TOKENS, max_size=5), max_size=5), st.none() | st.integers(0, 6))
def test_batches_as_a_loop(tokens: list[str], docs: list[list[str]], max_length: int | None) -> None:
    vocab = Vocabulary(tokens, pad_token=tokens[0], unk_token=tokens[-1])
    batch, lengths = vocab.encode_batch(docs, max_length)
    assert ids(lengths) == [len(doc[:max_length]) for doc in docs]
    width = max(lengths.tolist(), default=0)
    assert batch.shape == (len(docs), width)
    for row, doc in zip(ids(batch), docs, strict=True):
        expected = [vocab[token] for token in doc[:max_length]]
        assert row == expected + [0] * (width - len(expected))


@fast
@given(VOCABULARIES, st.sampled_from(["exact", "lower", "case-fallback"]), st.lists(TOKENS))
def test_one_token_and_many_are_looked_up_alike(tokens: list[str], lookup: Any, words: list[str]) -> None:
    vocab = Vocabulary(dict.fromkeys([*tokens, "?"]).keys(), unk_token="?", lookup=lookup)
    varied = [form(word) for word in words + tokens for form in (str.lower, str.upper, str.title, str.swapcase)]
    assert ids(vocab(varied)) == [vocab[word] for word in varied]
