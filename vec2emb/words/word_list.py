"""Words that are wanted: a list in memory, a text file, a `vocab.json` or a `tokenizer.json`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import VocabularyError, shown
from ..io.urls import is_url, label_of, name_of, plain

if TYPE_CHECKING:
    from .vocabulary import Vocabulary


class CorpusRecord(NamedTuple):
    """The corpus whose most frequent tokens make a list of words.

    Attributes:
        names: base names of its files and folders; None for counts in memory.
        tokenizer, lowercase, field: how it was read; tokenizer None of counts that do not say.
        min_count, max_size: which tokens were taken.
        distinct, total: its types and tokens.
    """

    names: tuple[str, ...] | None
    tokenizer: str | None
    lowercase: bool
    field: str | None
    min_count: int
    max_size: int | None
    distinct: int
    total: int


class WordList(NamedTuple):
    """Different words in order.

    Attributes:
        vocab: the words; word i is line i.
        label: name for messages and records: the base name of a file, or None for words in memory.
        pad, unk: the padding and unknown token that the file itself names, or None.
        corpus: the corpus that the words come from, or None.
    """

    vocab: Vocabulary
    label: str | None
    pad: str | None = None
    unk: str | None = None
    corpus: CorpusRecord | None = None


WordsLike = str | os.PathLike[str] | Iterable[str] | Mapping[str, int] | WordList


def read_words(words: WordsLike) -> WordList:
    """Read a list of words; a path whose name ends in `.json` is one of the two JSON forms.

    Raises:
        VocabularyError: a word stands twice, ids have gaps, or the file is no list of words.
        InputError: the file cannot be read.
    """
    from .vocabulary import Vocabulary  # late: most conversions have no list of words

    if isinstance(words, WordList):
        return words
    if isinstance(words, Vocabulary):
        return WordList(words, None, words.pad_token, words.unk_token)
    if not isinstance(words, str | os.PathLike):
        return WordList(Vocabulary(words), None)
    path = plain(os.fspath(words))
    name = name_of(path) if is_url(path) else os.path.basename(path)
    if name.endswith(".json"):
        return _read_json(path, name)
    return WordList(Vocabulary.from_file(path, pad_token=None, unk_token=None), name)


def _read_json(path: str, label: str) -> WordList:
    import json

    from .vocabulary_file import read

    data = read(path, lines=False)
    path = label_of(path)
    try:
        content = json.loads(data, object_pairs_hook=_without_repeats)
    except VocabularyError as error:
        error.path = path
        raise
    except (ValueError, RecursionError) as error:
        raise VocabularyError("words-not-json", f"the file is no JSON ({error})", path=path) from error
    if isinstance(content, list) and all(isinstance(word, str) for word in content):
        return WordList(_vocabulary(content, path), label)
    if not isinstance(content, dict):
        raise _no_words(path, content)
    if "model" in content and isinstance(content["model"], dict):
        return _of_tokenizer(content, path, label)
    return WordList(_vocabulary(_dense(content, path), path), label)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose keys must differ: of two Python would keep the last without a word."""
    content = dict(pairs)
    if len(content) < len(pairs):
        places = {key: place for place, (key, _) in reversed(list(enumerate(pairs)))}  # the first of each
        twice = next(key for place, (key, _) in enumerate(pairs) if places[key] < place)
        raise VocabularyError("duplicate-token", f"the token {shown(twice)} stands twice", expected="each token once")
    return content


def _of_tokenizer(content: dict[str, Any], path: str, label: str) -> WordList:
    """The vocabulary of a tokenizer.json: its model's, and the added tokens."""
    model = content["model"]
    vocab = model.get("vocab")
    if isinstance(vocab, list):  # Unigram: pairs of token and score
        pairs = [pair for pair in vocab if isinstance(pair, list) and pair and isinstance(pair[0], str)]
        if len(pairs) != len(vocab):
            raise _no_words(path, vocab)
        ids: dict[str, Any] = {}
        for id, pair in enumerate(pairs):
            if pair[0] in ids:
                raise VocabularyError("duplicate-token", f"the token {shown(pair[0])} stands twice", path=path)
            ids[pair[0]] = id
        unk_id = model.get("unk_id")
        unk = pairs[unk_id][0] if type(unk_id) is int and 0 <= unk_id < len(pairs) else None
    elif isinstance(vocab, dict):
        ids = dict(vocab)
        unk = model.get("unk_token")
    else:
        raise _no_words(path, vocab)
    added_tokens = content.get("added_tokens")
    for added in added_tokens if isinstance(added_tokens, list) else []:
        if isinstance(added, dict) and isinstance(added.get("content"), str):
            ids.setdefault(added["content"], added.get("id"))
    padding = content.get("padding")
    pad = padding.get("pad_token") if isinstance(padding, dict) else _pad_beside(path, ids)
    return WordList(_vocabulary(_dense(ids, path), path), label, pad, unk if isinstance(unk, str) else None)


def _pad_beside(path: str, ids: dict[str, Any]) -> str | None:
    """The one of the tokens that tokenizer_config.json, in the same folder, names for padding."""
    import json

    try:
        with open(os.path.join(os.path.dirname(path), "tokenizer_config.json"), "rb") as file:
            pad = json.load(file).get("pad_token")
    except (OSError, ValueError, RecursionError, AttributeError):
        return None
    content = pad.get("content") if isinstance(pad, dict) else pad
    return content if isinstance(content, str) and content in ids else None


def _dense(ids: dict[str, Any], path: str) -> list[str]:
    """The tokens in the order of their ids, which must be 0 .. n-1."""
    if not ids or not all(type(id) is int for id in ids.values()):
        raise _no_words(path, next(iter(ids.items()), ids))
    ordered = sorted(ids, key=ids.__getitem__)
    for place, token in enumerate(ordered):
        if ids[token] != place:
            raise VocabularyError(
                "ids-with-gaps",
                "the ids are not 0, 1, 2, ..",
                path=path,
                expected=f"id {place}",
                found=f"id {ids[token]} of {shown(token)}",
                hint="a row of the table belongs to every id up to the last: fill the gap",
            )
    return ordered


def _vocabulary(tokens: list[str], path: str) -> Vocabulary:
    from .vocabulary import Vocabulary

    try:
        return Vocabulary(tokens)
    except VocabularyError as error:
        error.path = path
        raise


def _no_words(path: str, found: object) -> VocabularyError:
    return VocabularyError(
        "words-form",
        "the file is no list of words",
        path=path,
        expected='{"token": id, ..}, ["token", ..] or a tokenizer.json',
        found=shown(str(found)),
    )
