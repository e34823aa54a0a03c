"""The rows of a bundle that are exported: all, or all but the special tokens; read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..bundle.reader import Bundle
from ..bundle.table import raw_rows, stored_rows
from ..conversion.vocabulary_order import ranges_without
from ..errors import InputError

if TYPE_CHECKING:
    from ..words.vocabulary import Vocabulary

_PIECE = 1 << 20  # bytes of rows at a time


class Part:
    """The rows that are exported. No more than a piece of them is in memory.

    Attributes:
        rows, dim: how many, and values a row.
        specials: the special tokens among them; ids are the bundle's, as nothing is left out then.
        dropped: how many special tokens were left out.
        padding_idx, unk_idx: rows of the two, or None.
        label: name of the bundle.
        manifest: what the bundle records.
        sha256: of all tokens, each followed by LF.
    """

    def __init__(self, bundle: Bundle, vocab: Vocabulary, drop_specials: bool) -> None:
        self._bundle = bundle
        self._vocab = vocab
        special = sorted(special.id for special in bundle.manifest.specials) if drop_specials else []
        self._ranges = list(ranges_without(special, len(vocab)))
        self.rows = sum(stop - start for start, stop in self._ranges)
        self.dim = bundle.tensor.shape[1]
        self.dropped = len(vocab) - self.rows
        self.label, self.manifest = bundle.label, bundle.manifest
        self.specials = () if drop_specials else bundle.manifest.specials
        self.padding_idx = None if drop_specials else vocab.padding_idx
        self.unk_idx = None if drop_specials else vocab.unk_idx
        self.lookup = vocab.lookup
        if not self.rows:
            raise InputError("nothing-to-export", "no row is left to be exported", path=bundle.label)

    @property
    def first(self) -> int:
        """The first row of the bundle that is exported."""
        return self._ranges[0][0]

    @property
    def dtype(self) -> str:
        """The type of the rows as `stored` gives them: `float32` or `float16`."""
        return "float16" if self._bundle.manifest.dtype == "float16" else "float32"

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows of the bundle, in order."""
        step = max(1, _PIECE // (4 * self.dim))
        for start, stop in self._ranges:
            for row in range(start, stop, step):
                yield row, min(row + step, stop)

    def tokens(self, start: int, stop: int) -> list[str]:
        """Tokens of rows of the bundle."""
        return self._vocab.tokens[start:stop]

    def all_tokens(self) -> Iterator[str]:
        """All tokens, in order."""
        for start, stop in self.pieces():
            yield from self.tokens(start, stop)

    def blob(self, start: int, stop: int) -> bytes:
        """Tokens of rows of the bundle in UTF-8, each followed by LF."""
        return "\n".join([*self.tokens(start, stop), ""]).encode()

    def floats(self, start: int, stop: int) -> bytes:
        """Rows of the bundle, float32[stop - start, dim]."""
        rows = stored_rows(self._bundle, start, stop).tobytes()
        self._bundle.release()
        return rows

    def stored(self, start: int, stop: int) -> bytes:
        """Rows of the bundle in `dtype`: bfloat16, which numpy has not, as the float32 that it stands for."""
        if self._bundle.manifest.dtype == "bfloat16":
            return self.floats(start, stop)
        rows = raw_rows(self._bundle, start, stop).tobytes()
        self._bundle.release()
        return rows

    def differs(self, first: int, rows: memoryview) -> bool:
        """Whether float32[n, dim] are not the exported rows from `first` on; one NaN is like another of its sign."""
        import numpy as np

        at, width = 0, 4 * self.dim
        for start, stop in self._ranges:
            skipped = min(first, stop - start)
            first -= skipped
            count = min(stop - start - skipped, (len(rows) - at) // width)
            if not count:
                continue
            mine, its = self.floats(start + skipped, start + skipped + count), rows[at : at + count * width]
            at += count * width
            if mine != its:
                a, b = np.frombuffer(mine, np.float32), np.frombuffer(its, np.float32)
                nan = np.isnan(a) & np.isnan(b) & (np.signbit(a) == np.signbit(b))
                if not ((a.view(np.uint32) == b.view(np.uint32)) | nan).all():
                    return True
        return at < len(rows)
