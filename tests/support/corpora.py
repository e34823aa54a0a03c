"""Texts to count, and what counting them must give."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from vec2emb import TokenCounts


def expected(tokens: Iterable[str] | Iterable[bytes]) -> list[tuple[str, int]]:
    """Tokens and counts in the order that counts have: by falling count, then by bytes."""
    counts = Counter(token.decode() if isinstance(token, bytes) else token for token in tokens)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0].encode()))


def check(counts: TokenCounts, tokens: Iterable[str] | Iterable[bytes]) -> None:
    """The counts are those of the tokens, in order."""
    wanted = expected(tokens)
    assert list(counts.items()) == wanted
    assert (counts.distinct, counts.total) == (len(wanted), sum(count for _, count in wanted))


def zipf_text(size: int, vocabulary: int = 50_000, seed: int = 0) -> bytes:
    """About `size` bytes of words whose frequency falls with their rank, separated by all that separates."""
    rng = np.random.default_rng(seed)
    letters = np.frombuffer("abcdefghijklmnopqrstuvwxyzäß€".encode("utf-32-le"), np.uint32)
    sizes = np.clip(rng.normal(2 + np.log2(np.arange(vocabulary) + 1) / 2.2, 1.5), 1, 30).astype(int)
    words = ["".join(map(chr, rng.choice(letters, n))) for n in sizes.tolist()]
    separators = [" "] * 18 + ["\n", "  ", "\t", "\r\n", " \v", "\f"]
    words_array = np.array(words, object)
    pieces: list[bytes] = []
    done = 0
    while done < size:
        ranks = rng.zipf(1.2, 200_000) - 1
        chosen = words_array[ranks[ranks < vocabulary]].tolist()
        gaps = rng.integers(0, len(separators), len(chosen)).tolist()
        pieces.append("".join(w + separators[g] for w, g in zip(chosen, gaps, strict=True)).encode())
        done += len(pieces[-1])
    return b"".join(pieces)


def lee() -> Path:
    """The corpus that comes with gensim: 300 news items, one a line."""
    import gensim

    return Path(os.path.dirname(gensim.__file__), "test", "test_data", "lee_background.cor")
