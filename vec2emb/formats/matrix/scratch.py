"""`ScratchSource`: a width and no rows, so that every row of a table is generated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .source import MatrixSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ScratchSource(MatrixSource):
    """No words, of dimension `dim`."""

    has_rows = False

    def __init__(self, dim: int) -> None:
        super().__init__("<from scratch>", "from-scratch", "from-scratch", 0, dim, 0, "of --from-scratch")

    def words(self, count: int) -> list[bytes]:
        return []

    def block(self, first: int, count: int, wanted: Sequence[int], words: Sequence[bytes]) -> NDArray[np.generic]:
        import numpy as np

        return np.empty((0, self.dim), np.float32)
