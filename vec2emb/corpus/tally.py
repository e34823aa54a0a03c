"""Counting blocks: the kernel's counter, and around it what only Python can do."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator

from .._kernel import TokenCounter
from ..errors import InputError, VocabularyError, shown
from ..typed import Place
from .reading import Block
from .settings import FIELD, Settings
from .splitting import splitter_of


class Tally:
    """Counts of blocks in whatever order they come."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._splitter = splitter_of(settings)
        self._counter = TokenCounter()

    @property
    def memory(self) -> int:
        """About how many bytes it takes."""
        return self._counter.memory

    def add(self, block: Block, buffer: bytearray) -> None:
        """Count the tokens of a block.

        Raises:
            InputError: its text is not UTF-8, a line is no JSON, or a record has no text.
        """
        if block.kind == "text" and self._splitter.split is None:
            invalid = self._counter.add_text(buffer, 0, block.size)
            if invalid >= 0 and self._settings.encoding_errors == "error":
                raise _not_utf8(block, bytes(memoryview(buffer)[: block.size]), invalid)
        else:
            self._add_texts(texts_of(block, buffer, self._settings), block)

    def finished(self) -> TokenCounter:
        """All that was counted, as it is to come out; the tally can be dropped then."""
        settings, spread = self._settings, self._splitter.spread
        if spread is None and not settings.lowercase and settings.encoding_errors == "error":
            return self._counter
        # Only different tokens get here, so that they may be Python strings.
        blob, raw, _ = self._counter.by_bucket(1)
        self._counter = TokenCounter()
        text, counts = blob.decode("utf-8", settings.handler), array("q", raw)
        if spread is not None:
            pieces: list[str] = []
            times = array("q")
            for token, count in zip(text.split("\n"), counts, strict=False):  # behind the last LF there is none
                # Neither white space nor punctuation is a letter or a number: nothing to split.
                found = [token] if token.isalnum() else spread(token)
                pieces += found
                times.extend([count] * len(found))
            text, counts = "\n".join([*pieces, ""]), times
        if settings.lowercase:
            text = text.lower()  # LF keeps tokens apart, also where a letter's form depends on its neighbours
        finished = TokenCounter()
        finished.add_lines(text.encode(), counts)
        return finished

    def _add_texts(self, texts: list[str], block: Block) -> None:
        if self._splitter.split is None:
            data = "\n".join(texts).encode()
            self._counter.add_text(data, 0, len(data))
            return
        for token, count in Counter(self._splitter.split(texts)).items():
            if "\n" in token:
                raise VocabularyError(
                    "line-feed",
                    "a token cannot hold LF",
                    path=block.label,
                    found=shown(token),
                    hint="take a tokenizer that splits at the end of a line",
                )
            self._counter.add(token.encode(), count)


def texts_of(block: Block, buffer: bytearray, settings: Settings) -> list[str]:
    """The texts of a block: the lines of a text file, or the values of the field; all have a UTF-8 form.

    Raises:
        InputError: the text is not UTF-8, a line is no JSON, or a record has no text.
    """
    if block.kind == "text":
        data = bytes(memoryview(buffer)[: block.size])
        try:
            text = data.decode("utf-8", settings.handler)
        except UnicodeDecodeError as error:
            raise _not_utf8(block, data, error.start) from None
        return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    records = _json_texts if block.kind == "json" else _row_texts
    texts = list(records(block, buffer, settings))
    try:
        "\n".join(texts).encode()
    except UnicodeEncodeError:  # JSON can say half a surrogate pair
        if settings.encoding_errors == "error":
            raise InputError("invalid-utf8", "a text holds half a surrogate pair", path=block.label) from None
        texts = [text.encode("utf-8", "surrogatepass").decode("utf-8", settings.handler) for text in texts]
    return texts


def _json_texts(block: Block, buffer: bytearray, settings: Settings) -> Iterator[str]:
    """The texts of lines of JSON."""
    field = settings.field or FIELD
    data = bytes(memoryview(buffer)[: block.size])
    offset = 0
    for number, line in enumerate(data.split(b"\n")):
        if line.strip():
            line_number = None if block.line is None else block.line + number
            place: Place = {"path": block.label, "line": line_number, "offset": block.offset + offset}
            try:
                record = json.loads(line.decode("utf-8", settings.handler))
            except UnicodeDecodeError as error:
                raise _not_utf8(block, data, offset + error.start) from None
            except (ValueError, RecursionError) as error:
                raise InputError("bad-json", f"the line is no JSON ({error})", **place) from None
            if not isinstance(record, dict) or field not in record:
                raise _no_field(f"the line has no field {field!r}", record, place)
            yield from _texts(record[field], field, place)
        offset += len(line) + 1


def _row_texts(block: Block, buffer: bytearray, settings: Settings) -> Iterator[str]:
    """The texts of a column."""
    assert block.rows is not None
    for row, value in enumerate(block.rows.to_pylist()):
        place: Place = {"path": block.label, "record": block.offset + row + 1}
        if isinstance(value, bytes):
            try:
                value = value.decode("utf-8", settings.handler)
            except UnicodeDecodeError as error:
                raise InputError("invalid-utf8", f"the text is not UTF-8 ({error.reason})", **place) from None
        yield from _texts(value, settings.field or FIELD, place)


def _texts(value: object, field: str, place: Place) -> Iterable[str]:
    """A text, a list of texts, or null for none."""
    if isinstance(value, str):
        return (value,)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return value
    raise InputError(
        "field-type",
        f"the field {field!r} holds no text",
        expected="a string, a list of strings, or null",
        found=shown(repr(value)),
        **place,
    )


def _no_field(message: str, record: object, place: Place) -> InputError:
    found = ", ".join(map(shown, record)) if isinstance(record, dict) else type(record).__name__
    hint = "name the one that holds text with field= or --field"
    return InputError("field-missing", message, found=found or "none", hint=hint, **place)


def _not_utf8(block: Block, data: bytes, start: int) -> InputError:
    """The error of the first token that is not UTF-8."""
    try:
        data[start:].decode()
        at, end = start, start + 1
    except UnicodeDecodeError as error:
        at, end = start + error.start, start + error.end
    return InputError(
        "invalid-utf8",
        "the text is not UTF-8",
        path=block.label,
        line=None if block.line is None else block.line + data.count(b"\n", 0, at),
        offset=block.offset + at,
        found=f"bytes {data[at:end].hex(' ')}",
        hint="replace or escape such bytes with encoding_errors= or --encoding-errors, or convert the file, as with: "
        "iconv -f latin1 -t utf-8",
    )
