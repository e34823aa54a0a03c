"""A bundle as a source: to restrict it, put it in another order, in another type or under other names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...bundle.reader import open_bundle
from ...safetensors_files.dtypes import FLOATS, widen_bfloat16
from .arrays import Lines, pieces_of
from .source import MatrixSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAPPED = 64 << 20  # bytes of the table that may stay mapped before they are given back


class BundleSource(MatrixSource):
    """The table of a bundle, with its vocabulary; both were checked to belong together.

    Before the first vector is used, the table is compared with its checksum, lest damage be given a new one that fits.
    Rows keep their bits: float16 and bfloat16 are widened. Padding and unknown token go by the bundle's own names.
    """

    pad_is_zero = True

    def __init__(self, path: str) -> None:
        self._bundle, self._vocab = open_bundle(path)
        rows, dim = self._bundle.tensor.shape
        tensor, manifest = self._bundle.tensor, self._bundle.manifest
        name = os.path.basename(os.path.abspath(path))
        super().__init__(path, name, "bundle", rows, dim, tensor.stop - tensor.start, "of the bundle")
        self.value_bytes = 2 if tensor.dtype == "F16" else 4
        self.pad, self.unk = self._vocab.pad_token, self._vocab.unk_token
        self.manifest, self.vocab = manifest, self._vocab
        self.keeps_padding = not manifest.provenance.zeroes_padding
        recorded = manifest.source
        if recorded is not None:
            self.license, self.url = recorded.license, recorded.url
        self.facts = {"dtype": manifest.dtype, "source": None if recorded is None else recorded.name}
        self.notes = [
            what
            for what, is_there in (
                ("the position table", manifest.positions is not None),
                ("the scale", manifest.scale is not None),
                ("the tied head", manifest.tied_head is not None),
            )
            if is_there
        ]
        self._lines = Lines(pieces_of(self._vocab.blob), path)
        self._used = 0

    def words(self, count: int) -> list[bytes]:
        return self._lines.take(count)

    def block(self, first: int, count: int, wanted: Sequence[int], words: Sequence[bytes]) -> NDArray[np.generic]:
        import numpy as np

        self.verify()
        stored = self._bundle.stored_bytes(first, count)
        self._used += len(stored)
        if self._used > _MAPPED:
            self._used = 0
            self._bundle.release()
        dtype = self._bundle.tensor.dtype
        block = np.frombuffer(stored, FLOATS[dtype]).reshape(count, self.dim)
        return widen_bfloat16(block) if dtype == "BF16" else block

    def _verify(self) -> None:
        self._bundle.check_sum()
