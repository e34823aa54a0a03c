"""The bytes of `vocab.txt`: a blob from tokens, a blob from a file, a file from a blob.

Grammar: a line is a token in UTF-8, whatever it holds but LF, and then LF. Line i, counted from 0, is id i.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import (
    BundleError,
    InputError,
    OutputError,
    UsageError,
    Vec2embWarning,
    VocabularyError,
    shown,
    warn_caller,
)
from ..io.urls import is_url, local_only, plain

if TYPE_CHECKING:
    from mmap import mmap

_BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 20  # bytes that are decoded at a time to check them
_PIECE = 1 << 20  # bytes read at a time
MAX_BYTES = 4 << 30  # of a file that is read into memory
MAX_GAPS = 10_000  # ids without a token that are given one
MAX_LINE = 8 << 20  # bytes of a token; a file with more of them before the first LF is no list of tokens


def blob_of(tokens: Iterable[str]) -> bytes:
    """The blob of tokens, or of a mapping {token: id} whose ids are 0 .. n-1.

    Raises:
        VocabularyError: a token holds LF or has no UTF-8 form, or the ids have gaps.
        UsageError: `tokens` is a single string, has no order, or holds something else than strings.
    """
    if isinstance(tokens, str):
        raise not_split(tokens, "give a list of them, or a file: Vocabulary.from_file(path)")
    if not isinstance(tokens, Iterable):
        raise UsageError("token-type", "tokens are a list of strings", found=type(tokens).__name__)
    words = in_order(tokens)
    try:
        text = "\n".join([*words, ""])
        blob = text.encode()
    except (TypeError, UnicodeEncodeError):
        raise unfit(words) from None
    if text.count("\n") != len(words):
        raise unfit(words)
    return blob


def not_split(text: str, hint: str) -> UsageError:
    """The error of a string where tokens are wanted."""
    return UsageError(
        "not-split",
        "tokens are wanted, not a string, which would be taken letter by letter",
        found=shown(text, 30),
        hint=hint,
    )


def in_order(tokens: Iterable[str]) -> list[str]:
    """Tokens in the order of their rows: those of a mapping {token: id} by their ids, all others as they come.

    Raises:
        VocabularyError: the ids are not 0 .. n-1.
        UsageError: a set has no order, and the ids are whole numbers.
    """
    if isinstance(tokens, (set, frozenset)):
        raise UsageError("no-order", "a set has no order to take ids from", hint="sort it first: sorted(tokens)")
    return by_id(tokens)[0] if isinstance(tokens, Mapping) else list(tokens)


def by_id(ids: Mapping[str, int], fill_gaps: bool = False) -> tuple[list[str], tuple[str, ...]]:
    """Return the tokens in the order of their ids, and the placeholders among them.

    Args:
        ids: each token with its id; the ids are 0 .. n-1.
        fill_gaps: if ids below the last are missing, give them placeholders.

    Raises:
        VocabularyError: two tokens have one id, an id is negative, ids are missing, or too many of them.
        UsageError: an id is not a whole number.
    """
    if not all(hasattr(id, "__index__") for id in ids.values()):
        raise UsageError("token-type", "the ids of the mapping are whole numbers", found=shown(str(ids)))
    tokens: list[str] = []
    placeholders: list[str] = []
    for token in sorted(ids, key=ids.__getitem__):
        id = ids[token]
        if fill_gaps and id + 1 - len(ids) <= MAX_GAPS:
            while len(tokens) < id:
                placeholders.append(_placeholder(len(tokens), ids))
                tokens.append(placeholders[-1])
        if id != len(tokens):
            raise VocabularyError(
                "ids-with-gaps",
                "the ids of the mapping are not 0, 1, 2, ..",
                expected=f"id {len(tokens)}",
                found=f"id {id} of {shown(str(token))}",
                hint="of tokens with counts pass the tokens alone, in the order wanted",
            )
        tokens.append(token)
    return tokens, tuple(placeholders)


def _placeholder(id: int, taken: Container[str]) -> str:
    name = f"<no token {id}>"
    while name in taken:
        name = f"<{name}>"
    return name


def unfit(words: Sequence[object]) -> UsageError | VocabularyError:
    """The error of the first of `words` that can be no token."""
    for place, word in enumerate(words):
        if not isinstance(word, str):
            return UsageError("token-type", "a token is a string", found=f"{type(word).__name__} at position {place}")
        if "\n" in word:
            text = shown(word.replace("\n", "\\n"))
            return VocabularyError("line-feed", "a token cannot hold LF", found=f"{text} at position {place}")
        try:
            word.encode()
        except UnicodeEncodeError:
            found = f"a lone surrogate in {shown(word)} at position {place}"
            return VocabularyError("lone-surrogate", "a token needs a UTF-8 form", found=found)
    raise AssertionError("all words are fit")


def blob_in(data: bytes, path: str, *, empty_line: bool) -> bytes:
    """The blob of a text file: the file as it stands, but for a byte order mark in front and a missing last LF.

    Raises:
        VocabularyError: it is empty or not UTF-8, every line ends with CR LF, or (unless `empty_line`) one is empty.
    """
    if not data:
        raise VocabularyError("empty-vocabulary", "the file is empty", path=path, expected="one token a line")
    if 0 < data.count(b"\n") == data.count(b"\r\n"):
        raise VocabularyError(
            "crlf-lines",
            "every line ends with CR LF",
            path=path,
            expected="lines that end with LF, since CR may be part of a token",
            hint="remove the CRs, as with: tr -d '\\r' <FILE >NEW",
        )
    if not data.endswith(b"\n"):
        last = data.count(b"\n") + 1
        text = f"{path}, line {last}: the last line does not end with LF; was the file cut?"
        warn_caller(Vec2embWarning("missing-last-lf", text, path=path, line=last))
        data += b"\n"
    check_utf8(data, path)
    if data.startswith(_BOM) and not data.startswith(_BOM + b"\n"):
        data = data[3:]
    empty = 0 if data.startswith(b"\n") else data.find(b"\n\n") + 1 or -1
    if empty >= 0 and not empty_line:
        raise VocabularyError(
            "empty-line",
            "the line is empty",
            path=path,
            line=data.count(b"\n", 0, empty) + 1,
            expected="one token a line",
            hint='remove it; if the empty token pads, pass pad_token=""',
        )
    return data


def check_readable(blob: bytes, path: str, *, empty_line: bool) -> None:
    """Raises OutputError if `blob_in` would not give the blob back once it is a file."""
    try:
        problem = None if blob_in(blob, path, empty_line=empty_line) == blob else "a byte order mark is in front"
    except VocabularyError as error:
        problem = error.message
    if problem is not None:
        raise OutputError("unreadable-vocabulary", "the file would not be read back as it is", path=path, found=problem)


def check_utf8(blob: bytes | mmap, path: str | None) -> None:
    """Decode the blob piece by piece, so that the check costs no memory; a blob ends with LF.

    Raises:
        VocabularyError: the blob is not UTF-8, or does not end with LF.
    """
    if len(blob) and blob[-1:] != b"\n":
        raise no_last_lf(path)
    start = 0
    while start < len(blob):
        stop = blob.rfind(b"\n", start, start + _BLOCK) + 1 or blob.find(b"\n", start) + 1
        try:
            blob[start:stop].decode()
        except UnicodeDecodeError as error:
            first, last = start + error.start, start + error.end
            raise VocabularyError(
                "invalid-utf8",
                "the token is not UTF-8",
                path=path,
                line=blob[:first].count(b"\n") + 1,
                offset=first,
                found=f"bytes {blob[first:last].hex(' ')}",
                hint="convert the file, as with: iconv -f latin1 -t utf-8",
            ) from None
        start = stop


def no_last_lf(path: str | None) -> VocabularyError:
    """The error of a text whose last token may be cut."""
    return VocabularyError("missing-last-lf", "the last token is not followed by LF", path=path)


def line_too_long(path: str) -> InputError:
    """The error of what is no list of tokens."""
    return InputError(
        "line-too-long", f"no line feed comes in {MAX_LINE >> 20} MiB", path=path, expected="one token a line"
    )


def sha256_of(blob: bytes | mmap) -> str:
    """The SHA-256 in hexadecimal."""
    from hashlib import sha256

    return sha256(blob).hexdigest()


def check_sha256(blob: bytes | mmap, expected: str, path: str | None) -> None:
    """Raises BundleError if the blob has another hash."""
    found = sha256_of(blob)
    if found != expected:
        raise BundleError(
            "vocabulary-changed",
            "the vocabulary is not the one that belongs here",
            path=path,
            expected=f"sha256 {expected}",
            found=found,
            hint="restore the file, or make again what refers to it",
        )


def read(path: str, *, lines: bool = True) -> bytes:
    """All bytes of a file, of this machine or behind a URL; it may be a pipe or a device that never ends.

    Args:
        lines: whether it is text of one token a line; else JSON, which may be one long line.

    Raises:
        InputError: it cannot be read, or is too large.
        TryAgainError: the network fails.
    """
    path = plain(path)
    if is_url(path):
        from ..io.remote import open_remote

        with open_remote(path) as download:
            data = _read_all(download, download.label, lines)
            download.check_unchanged()
            return data
    try:
        with open(path, "rb", buffering=0) as file:
            return _read_all(file, path, lines)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _cannot_open(error, path) from error


def _read_all(file: Any, label: str, lines: bool) -> bytes:
    found = bytearray()
    while piece := file.read(_PIECE):
        found += piece
        if lines and len(found) > MAX_LINE and found.find(b"\n", 0, MAX_LINE) < 0:
            raise line_too_long(label)
        if len(found) > MAX_BYTES:
            raise InputError("list-too-long", f"the file is larger than {MAX_BYTES >> 30} GiB", path=label)
    return bytes(found)


def map_(path: str) -> bytes | mmap:
    """A file mapped for reading. Raises InputError."""
    from mmap import ACCESS_READ, mmap

    try:
        with open(path, "rb") as file:
            # An empty file cannot be mapped.
            return mmap(file.fileno(), 0, access=ACCESS_READ) if os.fstat(file.fileno()).st_size else b""
    except OSError as error:
        raise _cannot_open(error, path) from error


def _cannot_open(error: OSError | ValueError, path: str) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("not-found", "there is no such file", path=path)
    reason = getattr(error, "strerror", None) or str(error)
    return InputError("cannot-open", f"the file cannot be opened ({reason})", path=path)


def write(blob: bytes, path: str, *, replace: bool) -> None:
    """Write a vocabulary, complete or not at all. Raises OutputError."""
    from ..io.atomic import check_file, new_output

    local_only(path, "a vocabulary that is written")
    with new_output(path, lambda: check_file(path, replace=replace)) as file:
        file.write(blob)
