"""How a table enters a model: the names of its tensors, its positions, and the factor between the two.

Word vectors differ a hundredfold in length from file to file. Added as they are, words may drown positions or the other
way round, so the lengths of both are always compared. A scale is recorded and applied by the module; stored rows stay
what the file says. The length of many rows is the root of the mean of their squared lengths; of a sinusoidal table it
is sqrt(D/2).
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import math
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from .._kernel import add_square_deviations
from ..errors import InputError, UsageError, Vec2embWarning, shown
from ..positions.key_styles import STYLES
from ..positions.plan import PositionPlan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .manifest import PositionRecord, Scale

SCALES = ("none", "sqrt-dim", "unit-rms", "match-positions")
DROWNED = 5.0  # times longer, and one of the two hardly matters
LONGEST_KEY = 200  # of a tensor, so that the header keeps its size

ScaleLike = str | float


class Names(NamedTuple):
    """What tensors are called; `positions` is empty where there are none."""

    style: str
    word: str
    positions: tuple[str, ...]
    tied_head: str | None


def name_tensors(
    style: str, word_key: str | None, position_key: str | None, tied_head: str | None, with_positions: bool
) -> Names:
    """The names in a style, or those that are given.

    Raises:
        UsageError: there is no such style, or a name cannot be one.
    """
    if style not in STYLES:
        raise UsageError("key-style", "no such key style", expected=", ".join(STYLES), found=repr(style))
    if position_key is not None and not with_positions:
        raise UsageError("position-key-alone", "there are no positions to name", hint="add --positions")
    home = STYLES[style]
    word = word_key or (home.word_key if with_positions else home.alone_key)
    keys = () if not with_positions else home.position_keys if position_key is None else (position_key,)
    head = home.tied_head if tied_head is None else tied_head
    for key in (word, *keys, *([] if head is None else [head])):
        if not key.isprintable() or not 0 < len(key) <= LONGEST_KEY or key == "__metadata__":
            raise UsageError(
                "tensor-key", "a tensor cannot be called so", expected=f"1 to {LONGEST_KEY} printable characters",
                found=shown(key),
            )  # fmt: skip
    if len({word, *keys, head}) < 2 + len(keys):
        raise UsageError("tensor-key-twice", "two tensors cannot have the same name", found=shown(word))
    return Names(style, word, keys, head)


class ScalePlan(NamedTuple):
    """What words are multiplied by before positions are added; `factor` is None until it is known."""

    kind: str
    factor: float | None = None

    @classmethod
    def parse(cls, scale: ScaleLike) -> "ScalePlan":
        """One of SCALES, or a factor.

        Raises:
            UsageError: it is neither.
        """
        if scale == "none":
            return cls("none", 1.0)
        if scale in SCALES:
            return cls(str(scale))
        try:
            factor = float(scale)
        except (TypeError, ValueError):
            factor = math.nan
        if not 0 < factor < math.inf:
            raise UsageError(
                "scale", "this is no scale", expected=f"{', '.join(SCALES)}, or a number over 0", found=repr(scale)
            )
        return cls("factor", factor)

    def settle(self, dim: int, words: float | None, positions: float | None) -> "ScalePlan":
        """The scale with its factor, from the lengths of words and positions.

        Raises:
            InputError: words, or positions, have no length to go by.
        """
        if self.kind == "sqrt-dim":
            return self._replace(factor=math.sqrt(dim))
        if self.kind not in ("unit-rms", "match-positions"):
            return self
        wanted = math.sqrt(dim) if self.kind == "unit-rms" else positions
        if not words or not wanted:
            raise InputError(
                "nothing-to-scale", f"{'positions' if words else 'words'} are all zero: no factor makes them even",
                hint="choose --scale none, sqrt-dim or a number",
            )  # fmt: skip
        return self._replace(factor=wanted / words)

    @property
    def asked(self) -> ScaleLike:
        """What `parse` makes this scale of."""
        return self.factor or 1.0 if self.kind == "factor" else self.kind

    def recorded(self) -> "Scale | None":
        """What a manifest holds of it."""
        from .manifest import Scale

        return None if self.kind == "none" or self.factor is None else Scale(self.kind, self.factor)

    @classmethod
    def of_recorded(cls, scale: "Scale | None") -> "ScalePlan":
        """The scale that a manifest holds."""
        return cls("none", 1.0) if scale is None else cls(*scale)


class ModelPlan(NamedTuple):
    """What is asked for, before anything is read."""

    names: Names
    positions: PositionPlan | None
    scale: ScalePlan

    @classmethod
    def parse(
        cls,
        positions: PositionPlan | None,
        scale: ScaleLike = "none",
        key_style: str = "plain",
        word_key: str | None = None,
        position_key: str | None = None,
        tied_head: str | None = None,
    ) -> "ModelPlan":
        """Check all that can be checked without a table.

        Raises:
            UsageError: an option is out of range, or options exclude each other.
        """
        names = name_tensors(key_style, word_key, position_key, tied_head, positions is not None)
        parsed = ScalePlan.parse(scale)
        if parsed.kind == "match-positions" and positions is None:
            raise UsageError("scale-alone", "there are no positions to match", hint="add --positions")
        return cls(names, positions, parsed)

    def check(self, dim: int, has_padding: bool) -> None:
        """Check what depends on the table's form, before its rows are read.

        Raises:
            UsageError: no such position table can be made.
        """
        if self.positions is not None:
            self.positions.check(self.names.style, dim, has_padding)

    def make_table(self, dim: int, padding_idx: int | None) -> "ModelLayout":
        """The settled plan with its position table; the lengths are still to be measured.

        Raises:
            UsageError: no such table can be made.
        """
        if self.positions is None:
            return ModelLayout(self.names, None, None, self.scale)
        plan = self.positions.settle(self.names.style, padding_idx)
        return ModelLayout(self.names, plan, plan.table(dim), self.scale)


class ModelLayout(NamedTuple):
    """How a table enters a model, decided.

    Attributes:
        table: float32[P, D], or None.
        word_norm, position_norm: the lengths, where they were needed.
    """

    names: Names
    positions: PositionPlan | None
    table: "NDArray[np.float32] | None"
    scale: ScalePlan
    word_norm: float | None = None
    position_norm: float | None = None

    def measure(self, blocks: Iterable[bytes], dim: int) -> "ModelLayout":
        """With lengths and scale; `blocks` are the words, float32[n, D], and read only where that is needed.

        Raises:
            InputError: there is nothing to scale by.
        """
        words = positions = None
        if self.table is not None and self.positions is not None:
            positions = typical_norm([self.table[self.positions.offset :].tobytes()], dim)
        if self.table is not None or self.scale.kind == "unit-rms":
            words = typical_norm(blocks, dim)
        scale = self.scale.settle(dim, words, positions)
        return self._replace(scale=scale, word_norm=words, position_norm=positions)

    @property
    def ratio(self) -> float | None:
        """How many times longer scaled words are than positions; None where one of the two has no length."""
        if not self.word_norm or not self.position_norm:
            return None
        return self.word_norm * (self.scale.factor or 1.0) / self.position_norm

    def warning(self, label: str) -> Vec2embWarning | None:
        """The warning that one drowns the other, if it does."""
        ratio = self.ratio
        if ratio is None or 1 / DROWNED <= ratio <= DROWNED:
            return None
        which, times = ("words", ratio) if ratio > 1 else ("positions", 1 / ratio)
        return Vec2embWarning(
            "scale-mismatch",
            f"{label}: the {which} drown the {'positions' if ratio > 1 else 'words'}, {times:.1f} times longer on "
            "average; --scale match-positions evens them out",
        )

    def recorded_positions(self) -> "PositionRecord | None":
        """What a manifest holds of the position table."""
        from .manifest import PositionRecord

        return None if self.positions is None else PositionRecord.of(self.positions, self.names.positions)


def typical_norm(blocks: Iterable[bytes | memoryview], dim: int) -> float:
    """The root of the mean squared length of float32[n, dim] rows, of those that are finite; 0 where there is none."""
    squares, zeros = (array("d", bytes(8 * dim)) for _ in range(2))
    count = sum(add_square_deviations(memoryview(squares), memoryview(zeros), block, dim) for block in blocks)
    return math.sqrt(math.fsum(squares) / count) if count else 0.0
