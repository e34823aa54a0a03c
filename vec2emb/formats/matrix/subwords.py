"""fastText's subwords: which rows of the matrix a word's character n-grams have, and their mean.

A word is put between `<` and `>`. Its n-grams are all runs of `shortest` to `longest` characters of that, in the order
of their first character and then of their length, but for `<` and `>` alone. The row of one is

    words + FNV-1a(bytes) mod buckets         32 bits; each byte is sign-extended before it is mixed in

and a word's vector is the sum of its own row, if it has one, and those of its n-grams, in this order and in float32,
times the float32 next to 1 / their number. That is what fastText computes, to the bit. (gensim divides by the number
instead, and gives `</s>` n-grams, which fastText does not: its vectors differ in the last bit here and there.)

Bojanowski et al., "Enriching Word Vectors with Subword Information", 2017; `Dictionary::computeSubwords` of fastText.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_START, _PRIME = 2166136261, 16777619
_AT_ONCE = 4 << 20  # subwords, at most, that are found before their rows are added up


class Subwords(NamedTuple):
    """How a model cuts words: lengths in characters, the number of buckets, and of the words in front of their rows."""

    shortest: int
    longest: int
    buckets: int
    words: int

    @property
    def any(self) -> bool:
        """Whether words have subwords at all."""
        return self.longest > 0 and self.buckets > 0 and self.shortest <= self.longest


def groups(words: Sequence[bytes], cut: Subwords) -> Iterator[tuple[int, int]]:
    """Ranges of words that are cut at once, so that memory stays small however many subwords they have."""
    lengths = cut.longest - max(cut.shortest, 1) + 1
    start = size = 0
    for place, word in enumerate(words):
        more = (len(word) + 2) * lengths
        if size and size + more > _AT_ONCE:
            yield start, place
            start, size = place, 0
        size += more
    if words:
        yield start, len(words)


def subword_rows(words: Sequence[bytes], cut: Subwords) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of all n-grams, word after word in fastText's order, and how many each word has.

    All words are cut at once: for each length the hashes of all n-grams of that length are one step from those of the
    length before.
    """
    import numpy as np

    text = np.frombuffer(b"".join(b"<" + word + b">" for word in words), np.uint8)
    ends = np.cumsum([len(word) + 2 for word in words])
    starts = np.flatnonzero((text & 0xC0) != 0x80)  # of characters
    owner = np.searchsorted(ends, starts, side="right")
    last = np.searchsorted(starts, ends)[owner]  # one past the last character of the same word
    bounds = np.append(starts, len(text))
    # uint32 arithmetic wraps, as the hash is meant to; a byte from 128 on is negative, so its upper bits are ones.
    mixed = text.astype(np.int8).astype(np.int32).view(np.uint32)
    hashes = np.full(len(starts), _START, np.uint32)
    lengths = range(1, cut.longest + 1)
    found = np.full((len(starts), max(0, cut.longest - cut.shortest + 1)), -1, np.int64)
    alive = np.arange(len(starts))
    for length in lengths:
        alive = alive[alive + length <= last[alive]]
        if not len(alive):
            break
        _mix(hashes, alive, mixed, bounds[alive + length - 1], bounds[alive + length])
        if length >= max(cut.shortest, 1):
            inner = alive
            if length == 1:
                first = np.append(0, np.searchsorted(starts, ends)[:-1])[owner[alive]]
                inner = alive[(alive != first) & (alive != last[alive] - 1)]
            found[inner, length - cut.shortest] = hashes[inner] % np.uint32(cut.buckets)
    kept = found >= 0
    counts = np.bincount(owner, kept.sum(axis=1), len(words)).astype(np.int64)
    rows: NDArray[np.int64] = found[kept] + cut.words
    return rows, counts


def _mix(
    hashes: NDArray[np.uint32], alive: NDArray[np.int64], mixed: NDArray[np.uint32],
    start: NDArray[np.int64], stop: NDArray[np.int64],
) -> None:  # fmt: skip
    """Mix the bytes of one more character into the hashes of `alive`."""
    import numpy as np

    while len(alive):
        hashes[alive] = (hashes[alive] ^ mixed[start]) * np.uint32(_PRIME)
        start = start + 1
        more = start < stop
        alive, start, stop = alive[more], start[more], stop[more]


def mean_rows(
    matrix: NDArray[np.uint8], own: NDArray[np.int64] | None, rows: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """float32[n, D]: for each word the mean of its own row, if it has one, and of `counts` of `rows`.

    `matrix` holds the rows as bytes: they may stand at any address.
    """
    import numpy as np

    order = np.argsort(-counts, kind="stable")  # words with many n-grams first: then each step is a range of them
    offsets = (np.cumsum(counts) - counts)[order]
    sorted_counts = counts[order]
    total = np.zeros((len(counts), matrix.shape[1] // 4), np.float32)
    if own is not None:
        total += _floats(matrix, own[order])
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is a fault of its row
        for step in range(int(counts.max(initial=0))):
            count = int(np.searchsorted(-sorted_counts, -step))  # words that have more than `step`
            total[:count] += _floats(matrix, rows[offsets[:count] + step])
        number = sorted_counts + (own is not None)
        total *= (1.0 / np.maximum(number, 1)).astype(np.float32)[:, None]
    result = np.empty_like(total)
    result[order] = total
    return result


def _floats(matrix: NDArray[np.uint8], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    import numpy as np

    return matrix[rows].view("<f4").astype(np.float32, copy=False)
