"""The lines of the table: what is measured, and what it must reach."""

from __future__ import annotations

from dataclasses import dataclass

from timing import Figure


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        group: the name by which `--only` picks it, with others that are measured together.
        beside: the peer.
        target: of the ratio: at least so many times faster than the peer, or at most so many times its time.
        says: the target in words.
    """

    key: str
    group: str
    what: str
    beside: str
    target: float
    at_least: bool
    says: str


def _faster(key: str, what: str, beside: str, times: float) -> Line:
    return Line(key, key.partition("-")[0], what, beside, times, True, f"at least {times:g}x faster")


def _within(key: str, what: str, beside: str, times: float) -> Line:
    return Line(key, key.partition("-")[0], what, beside, times, False, f"at most {times:g}x its time")


def _limit(key: str, what: str, says: str) -> Line:
    return Line(key, key.partition("-")[0], what, "a limit", 1, False, says)


_GENSIM, _FAST = "gensim's load, safetensors' save", "the fastest of pandas, pyarrow and polars, and save"
_PEAK = "at most 80 MB + token bytes + 40 bytes a kept row"

LINES = (
    _faster("text-50-gensim", "GloVe text of 50 columns to a bundle", _GENSIM, 100),
    _faster("text-300-gensim", "GloVe text of 300 columns to a bundle", _GENSIM, 100),
    _faster("text-50-csv", "The same, 50 columns", _FAST, 6),
    _faster("text-300-csv", "The same, 300 columns", _FAST, 6),
    _faster("numbers-50", "The kernel's numbers alone, 50 columns, one thread", "a loop over std::from_chars", 2.5),
    _faster("numbers-300", "The kernel's numbers alone, 300 columns, one thread", "a loop over std::from_chars", 2.5),
    _within("binary-cp", "Word2Vec binary to a bundle, without start-up", "cp and sync of the file", 2),
    _faster("binary-gensim", "Word2Vec binary to a bundle", _GENSIM, 6),
    _within("words-vocab", "30,000 of 400,000 words, --vocab, without start-up", "wc -l of the file", 4),
    _within("words-only", "30,000 of 400,000 words, --only, without start-up", "wc -l of the file", 4),
    _within("gzip", "GloVe text in gzip to a bundle, without start-up", "the fastest decompressor alone", 1.25),
    _limit("open-time", "Opening a bundle and looking one word up, after imports", "at most 50 ms"),
    _limit("open-memory", "The memory that this takes", "at most 8 MB + token bytes + 40 bytes a row"),
    _within("help", "vec2emb --help", "import click", 1.5),
    _faster("threads-50", "Parsing 50 columns with two threads", "one thread", 1.7),
    _faster("threads-300", "Parsing 300 columns with two threads", "one thread", 1.7),
    _limit("memory-1", "Peak memory, text of 1 column", _PEAK),
    _limit("memory-50", "Peak memory, text of 50 columns", _PEAK),
    _limit("memory-300", "Peak memory, text of 300 columns", _PEAK),
    _limit("memory-2000", "Peak memory, text of 2,000 columns", _PEAK),
    _limit("memory-binary", "Peak memory, Word2Vec binary of 300 columns", _PEAK),
    _limit("memory-gzip", "Peak memory, text of 50 columns in gzip", _PEAK),
    _limit("memory-words", "Peak memory, 30,000 words out of 50 columns", _PEAK),
)

GROUPS = tuple(dict.fromkeys(line.group for line in LINES))


@dataclass(frozen=True)
class Measured:
    """What a line came to. Without figures, `note` says why."""

    ours: Figure | None = None
    peer: Figure | None = None
    peer_name: str = ""
    unit: str = "s"
    note: str = ""


def ratio(line: Line, measured: Measured) -> Figure | None:
    """Of the medians, and of the minima; None where nothing was measured, or where noise ate what was."""
    ours, peer = measured.ours, measured.peer
    if ours is None or peer is None or min(ours.median, peer.median) <= 0:
        return None
    above, below = (peer, ours) if line.at_least else (ours, peer)
    least = above.minimum / below.minimum if min(ours.minimum, peer.minimum) > 0 else float("nan")
    return Figure(above.median / below.median, least)


def met(line: Line, measured: Measured) -> bool | None:
    """Whether the target was reached, by the medians; None if that cannot be said."""
    found = ratio(line, measured)
    if found is None:
        return None
    return found.median >= line.target if line.at_least else found.median <= line.target
