"""Lines of the corpus that hold the most frequent missing words: what convinces people."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO, cast

from ..corpus.inputs import PARQUET, Input, PathsLike, find_inputs, open_raw
from ..corpus.settings import FIELD, Settings
from ..corpus.splitting import Splitter, splitter_of
from ..errors import InputError
from ..io.sources import Source as OpenedSource
from ..io.sources import open_source
from ..io.urls import is_url, label_of
from .results import Source

WORDS = 20  # that examples are looked for
WIDTH = 160  # characters of a line that are shown
_SPACE = "[ \\t\\n\\v\\f\\r]+"


def with_examples(
    sources: list[Source], corpus: PathsLike, number: int, tokenizer: str, lowercase: bool, field: str | None
) -> list[Source]:
    """The same sources, with `number` lines for each of their most frequent missing words.

    Reading ends as soon as every word has its lines.
    """
    words = {word.token for source in sources if source.coverage for word in source.coverage.missing[:WORDS]}
    search = _Search(words, number, splitter_of(Settings.of(tokenizer, lowercase, field, "replace")), lowercase)
    for one in find_inputs(corpus):
        if search.done:
            break
        if one.path != "-":  # it was read already
            for line in _lines(one, field or FIELD):
                search.look(line)
                if search.done:
                    break
    return [_filled(source, search.found) for source in sources]


def _filled(source: Source, found: dict[str, list[str]]) -> Source:
    if source.coverage is None:
        return source
    missing = [replace(word, examples=found.get(word.token, [])) for word in source.coverage.missing]
    return replace(source, coverage=replace(source.coverage, missing=missing))


class _Search:
    """Looks for lines until every word has enough."""

    def __init__(self, words: set[str], number: int, splitter: Splitter, lowercase: bool) -> None:
        self.found: dict[str, list[str]] = {word: [] for word in words}
        self._open = set(words)
        self._number = number
        self._splitter = splitter
        self._lowercase = lowercase

    @property
    def done(self) -> bool:
        return not self._open

    def look(self, line: str) -> None:
        for word in sorted(self._open & set(self._tokens(line))):
            lines = self.found[word]
            lines.append(_around(line, _place(line.lower() if self._lowercase else line, word), len(word)))
            if len(lines) == self._number:
                self._open.discard(word)

    def _tokens(self, line: str) -> Iterator[str]:
        """The tokens of a line, as they were counted."""
        spread, split = self._splitter
        if split is not None:
            tokens: Iterable[str] = split([line])
        else:
            pieces = [piece for piece in re.split(_SPACE, line) if piece]
            tokens = pieces if spread is None else (token for piece in pieces for token in spread(piece))
        return (token.lower() if self._lowercase else token for token in tokens)


def _place(line: str, word: str) -> int:
    """Where a word is in a line: preferably not inside a longer run of letters and digits; 0 if it is not found."""
    first = line.find(word)
    at = first
    while at >= 0:
        edges = (line[at - 1 : at] + word[:1], word[-1:] + line[at + len(word) : at + len(word) + 1])
        if not any(len(edge) == 2 and edge.isalnum() for edge in edges):
            return at
        at = line.find(word, at + 1)
    return max(first, 0)


def _around(line: str, start: int, length: int) -> str:
    """At most WIDTH characters of a line, with the word among them."""
    line = line.rstrip()
    if len(line) <= WIDTH:
        return line
    first = max(0, min(start - (WIDTH - length) // 2, len(line) - WIDTH))
    piece = line[first : first + WIDTH]
    return f"{'…' if first else ''}{piece}{'…' if first + WIDTH < len(line) else ''}"


def _lines(one: Input, field: str) -> Iterator[str]:
    """The texts of a file: lines, values of a field, rows of a column."""
    with open_raw(one.path) as raw, open_source(cast("BinaryIO", raw)) as source:
        head = source.read(len(PARQUET))
        source.unread(head)
        if head == PARQUET:
            yield from _column(one.path, field)
            return
        reader = io.BufferedReader(_Stream(source))
        for line in reader:
            text = line.decode("utf-8", "replace")
            if one.kind != "json":
                yield text.rstrip("\r\n")
            elif isinstance(value := _value(text, field), str):
                yield value


def _value(text: str, field: str) -> object:
    try:
        entry = json.loads(text)
    except ValueError:
        return None
    return entry.get(field) if isinstance(entry, dict) else None


def _column(path: str, field: str) -> Iterator[str]:
    from ..corpus.tables import parquet_file

    if is_url(path):
        raise InputError("no-examples", "examples are not looked up in Parquet behind a URL", path=label_of(path))
    with open_raw(path) as file:
        for batch in parquet_file(file, path).iter_batches(columns=[field]):
            yield from (text for text in batch.column(0).to_pylist() if isinstance(text, str))


class _Stream(io.RawIOBase):
    """A source as Python's files are."""

    def __init__(self, source: OpenedSource) -> None:
        super().__init__()
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # which io always gives
        return self._source.readinto(buffer)
