"""`TokenCounter`: how often each token stands in text."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable
from typing import Any

from .blocks import Bytes


class TokenCounter:
    """Counts of tokens. In text, tokens are what ASCII white space separates, as `bytes.split()` has it.

    A token never holds LF. What comes out is a *blob* and its counts: the tokens in some order, each followed by LF,
    and as many int64 in the machine's byte order.
    """

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}

    def __len__(self) -> int:
        """How many different tokens there are."""
        return len(self._counts)

    @property
    def total(self) -> int:
        """How many tokens there are, each as often as it came."""
        return sum(self._counts.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all different tokens, each with its LF."""
        return sum(map(len, self._counts)) + len(self._counts)

    @property
    def memory(self) -> int:
        """About how many bytes the counter takes."""
        return sum(len(token) + 140 for token in self._counts)

    def add_text(self, data: Bytes, start: int, stop: int) -> int:
        """Count the tokens of data[start:stop], whose ends separate too.

        Returns:
            Where in `data` the first token starts that had not come before and is not UTF-8, or -1. It is counted all
            the same.

        Raises:
            ValueError: 0 <= start <= stop <= len(data) does not hold.
        """
        if not 0 <= start <= stop <= len(data):
            raise ValueError("the text must lie within its buffer")
        text, at, invalid = bytes(data[start:stop]), 0, -1
        for token in text.split():
            at = text.index(token, at)
            if token not in self._counts and invalid < 0 and not _is_utf8(token):
                invalid = start + at
            self._counts[token] = self._counts.get(token, 0) + 1
            at += len(token)
        return invalid

    def add(self, token: bytes, count: int = 1) -> None:
        """Count a token `count` times.

        Raises:
            ValueError: it holds LF, or the count is below 1.
        """
        if count < 1:
            raise ValueError(f"a count is {count}, expected at least 1")
        if b"\n" in token:
            raise ValueError("a token cannot hold LF")
        self._counts[token] = self._counts.get(token, 0) + count

    def add_lines(self, blob: Bytes, counts: Any) -> None:
        """Count the tokens of a blob, each as often as `counts`, int64[n], says.

        Raises:
            ValueError: there are not as many counts as tokens, one is below 1, or the blob does not end with LF.
        """
        text, times = bytes(blob), memoryview(counts).cast("B").cast("q")
        if text and not text.endswith(b"\n"):
            raise ValueError("the last line does not end with LF")
        tokens = text.split(b"\n")[:-1]
        if len(tokens) != len(times):
            raise ValueError(f"{len(times)} counts for {len(tokens)} tokens")
        for count in times:
            if count < 1:
                raise ValueError(f"a count is {count}, expected at least 1")
        for token, count in zip(tokens, times, strict=True):
            self.add(token, count)

    def merge(self, other: TokenCounter) -> None:
        """Count all that another counter has."""
        for token, count in list(other._counts.items()):
            self.add(token, count)

    def by_count(self) -> tuple[bytes, bytes]:
        """Blob and counts by falling count; tokens that came equally often by their bytes."""
        return self._written(lambda token: -self._counts[token])

    def by_bucket(self, buckets: int) -> tuple[bytes, bytes, list[int]]:
        """Blob and counts by bucket, which is crc32(token) modulo `buckets`, then by the tokens' bytes.

        Returns:
            The two, and of each bucket how many tokens it has.

        Raises:
            ValueError: `buckets` is not from 1 to 65,536.
        """
        if not 1 <= buckets <= 1 << 16:
            raise ValueError(f"{buckets} buckets, expected 1 to 65536")
        sizes = [0] * buckets
        for token in self._counts:
            sizes[zlib.crc32(token) % buckets] += 1
        return *self._written(lambda token: zlib.crc32(token) % buckets), sizes

    def _written(self, first: Callable[[bytes], int]) -> tuple[bytes, bytes]:
        tokens = sorted(self._counts, key=lambda token: (first(token), token))
        counts = array("q", [self._counts[token] for token in tokens])
        return b"".join(token + b"\n" for token in tokens), counts.tobytes()


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True
