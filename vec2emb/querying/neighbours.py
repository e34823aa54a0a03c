"""`similar`: the nearest neighbours of words in a bundle, by cosine, over the mapped table in blocks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ..bundle.ranges import Ranges
from ..bundle.reader import open_bundle
from ..bundle.table import Table, stored_rows
from ..errors import UsageError, VocabularyError, printable, shown
from ..options.commands import SIMILAR
from ..options.definition import check
from ..typed import JsonReport

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..bundle.reader import Bundle

_BLOCK = 1 << 20  # bytes of float64 that are looked at in one go


class Neighbour(NamedTuple):
    """A token near a word.

    Attributes:
        token: the token.
        row: its row.
        cosine: of its vector and the word's, -1 .. 1.
    """

    token: str
    row: int
    cosine: float


class Neighbours(NamedTuple):
    """The neighbours of one word.

    Attributes:
        word: as it was asked for.
        token: the token that it was found as.
        row: its row.
        nearest: the nearest other tokens, the nearest first.
    """

    word: str
    token: str
    row: int
    nearest: list[Neighbour]

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        return {**self._asdict(), "nearest": [neighbour._asdict() for neighbour in self.nearest]}

    def __str__(self) -> str:
        head = shown(self.word) if self.token == self.word else f"{shown(self.word)}, found as {shown(self.token)}"
        return printable("\n".join([head, *(f"  {n.cosine:.4f}  {printable(n.token)}" for n in self.nearest)]))


def similar(bundle: str | os.PathLike[str], *words: str, top: int = 10) -> list[Neighbours]:
    """The nearest neighbours of words, by cosine.

    Rows that no file gave (padding, drawn ones) and rows of zeros are nobody's neighbours. Memory does not grow
    with the table.

    Args:
        bundle: a folder, or the `.safetensors` file of a bundle under one stem.
        words: the words; each is looked up as the bundle's vocabulary does it.
        top: how many neighbours of each.

    Raises:
        InputError: there is no bundle, or it is damaged.
        VocabularyError: a word is not in it, or its row has no direction.
        UsageError: no word is given, or `top` is below 1.
    """
    check(SIMILAR, locals())
    import numpy as np

    if not words:
        raise UsageError("no-words", "no word is given")
    opened, vocab = open_bundle(bundle)
    table = Table.mapped(opened, vocab)
    rows = [_row_of(table, word) for word in words]
    queries = np.concatenate([stored_rows(opened, row, row + 1) for row in rows]).astype(np.float64)
    lengths = np.sqrt((queries**2).sum(axis=1))
    for word, length in zip(words, lengths.tolist(), strict=True):
        if not 0 < length < np.inf:
            raise VocabularyError("no-direction", f"the row of {shown(word)} has no direction", path=opened.label,
                                  found="zeros" if length == 0 else "values that are not finite")  # fmt: skip
    nearest = _nearest(opened, queries / lengths[:, None], rows, opened.manifest.provenance.made_rows(), top)
    return [
        Neighbours(word, vocab.tokens[row], row, [Neighbour(vocab.tokens[r], r, c) for r, c in found])
        for word, row, found in zip(words, rows, nearest, strict=True)
    ]


def _row_of(table: Table, word: str) -> int:
    row = table.vocab.get(word)
    if row is None:
        spellings = table.explain(word).spellings
        hint = f"there is {spellings[0]}" if spellings else None
        raise VocabularyError("no-such-token", f"the token {shown(word)} is not in the vocabulary", hint=hint)
    return row


def _nearest(
    bundle: Bundle, units: NDArray[np.float64], own: list[int], left_out: Ranges, top: int
) -> list[list[tuple[int, float]]]:
    """For each of float64[Q, D] the rows with the largest cosines, and these; of equal ones the earlier row."""
    import numpy as np

    count, dim = bundle.tensor.shape
    step = max(1, _BLOCK // (8 * dim))
    best: list[list[tuple[float, int]]] = [[] for _ in own]
    hidden = np.zeros(count, np.bool_)
    hidden[list(left_out.rows())] = True
    for start in range(0, count, step):
        block = stored_rows(bundle, start, min(start + step, count)).astype(np.float64)
        lengths = np.sqrt(np.einsum("nd,nd->n", block, block))
        useful = (lengths > 0) & np.isfinite(lengths) & ~hidden[start : start + len(block)]
        block, ids = block[useful] / lengths[useful, None], start + np.flatnonzero(useful)
        for query, cosines in enumerate(units @ block.T):
            keep = np.argsort(-cosines, kind="stable")[: top + 1]
            found = [(-float(cosines[i]), int(ids[i])) for i in keep if ids[i] != own[query]]
            best[query] = sorted(best[query] + found)[:top]
    return [[(row, round(-negated, 9)) for negated, row in found] for found in best]
