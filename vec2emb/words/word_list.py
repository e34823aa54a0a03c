"""Words that are wanted: a list, a text file, or a vocabulary with ids (a mapping, vocab.json, a tokenizer)."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import VocabularyError, shown
from ..io.urls import is_url, label_of, name_of, plain
from .tokenizer_vocabulary import PAD_NAMES, UNK_NAMES, TokenIds, first_of, of_json, of_object

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
        has_ids: whether the words came with ids, which are their places.
        placeholders: tokens that were made up for ids without one.
    """

    vocab: "Vocabulary"
    label: str | None
    pad: str | None = None
    unk: str | None = None
    corpus: CorpusRecord | None = None
    has_ids: bool = False
    placeholders: tuple[str, ...] = ()

    @property
    def keeps_ids(self) -> bool:
        """Whether the id of each word is its place: words with ids, and lines with a token that only models have."""
        is_of_model = any(token in self.vocab.tokens for token in ("[PAD]", "[UNK]"))
        return self.has_ids or (is_of_model and self.corpus is None)

    def own_specials(self) -> tuple[str | None, str | None]:
        """The padding and the unknown token among words that keep their ids: named, or of a usual name; or None.

        If both names are the same token, it is the padding token.
        """
        tokens = self.vocab.tokens
        pad = first_of((self.pad, *PAD_NAMES), tokens)
        unk = first_of((self.unk, *UNK_NAMES), tokens)
        return pad, None if unk == pad else unk


class Tokenizer(Protocol):
    """A tokenizer of `transformers`, or a `tokenizers.Tokenizer`."""

    def get_vocab(self) -> dict[str, int]:
        """Return its tokens with their ids."""


WordsLike = str | os.PathLike[str] | Iterable[str] | Mapping[str, int] | Tokenizer | WordList


def read_words(words: WordsLike, fill_gaps: bool = False) -> WordList:
    """Read a list of words; a path whose name ends in `.json` is one of the two JSON forms.

    Args:
        words: the words.
        fill_gaps: give ids without a token a placeholder.

    Raises:
        VocabularyError: a word stands twice, ids have gaps, or the file is no list of words.
        InputError: the file cannot be read.
    """
    from .vocabulary import Vocabulary  # late: most conversions have no list of words

    if isinstance(words, WordList):
        return words
    if isinstance(words, Vocabulary):
        return WordList(words, None, words.pad_token, words.unk_token, has_ids=True)
    if hasattr(words, "get_vocab"):
        label = f"<{type(words).__name__}>"
        return _with_ids(of_object(words, lambda found: _no_words(label, found)), label, None, fill_gaps)
    if isinstance(words, Mapping):
        return _with_ids(TokenIds(dict(words)), None, None, fill_gaps)
    if not isinstance(words, str | os.PathLike):
        return WordList(Vocabulary(words), None)
    path = plain(os.fspath(words))
    name = name_of(path) if is_url(path) else os.path.basename(path)
    if name.endswith(".json"):
        return _read_json(path, name, fill_gaps)
    return WordList(Vocabulary.from_file(path, pad_token=None, unk_token=None), name)


def _read_json(path: str, label: str, fill_gaps: bool) -> WordList:
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
        found = of_json(content, path, lambda found: _no_words(path, found))
    else:
        found = TokenIds(content)
    if not found.ids or not all(type(id) is int for id in found.ids.values()):
        raise _no_words(path, next(iter(found.ids.items()), found.ids))
    return _with_ids(found.named_beside(path), path, label, fill_gaps)


def _with_ids(found: TokenIds, path: str | None, label: str | None, fill_gaps: bool) -> WordList:
    from .vocabulary_file import MAX_GAPS, by_id

    try:
        tokens, placeholders = by_id(found.ids, fill_gaps)
    except VocabularyError as error:
        error.path = path
        error.hint = f"{error.hint}; --fill-gaps gives free ids a row, at most {MAX_GAPS:,} of them"
        raise
    return WordList(_vocabulary(tokens, path), label, found.pad, found.unk, None, True, placeholders)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose keys must differ: of two Python would keep the last without a word."""
    content = dict(pairs)
    if len(content) < len(pairs):
        places = {key: place for place, (key, _) in reversed(list(enumerate(pairs)))}  # the first of each
        twice = next(key for place, (key, _) in enumerate(pairs) if places[key] < place)
        raise VocabularyError("duplicate-token", f"the token {shown(twice)} stands twice", expected="each token once")
    return content


def _vocabulary(tokens: list[str], path: str | None) -> "Vocabulary":
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
