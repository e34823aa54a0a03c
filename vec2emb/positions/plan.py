"""What position table a bundle is to have: the options of `positions`, checked, completed and recorded."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from .key_styles import PRESETS, STYLES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..typed import JsonObject

_SINUSOIDAL = ("preset", "layout", "frequencies", "base", "odd", "start")
_LEARNED = ("init", "std", "seed")


class PositionPlan(NamedTuple):
    """A position table; None stands for the usual value of an option.

    Attributes:
        kind: `learned` or `sinusoidal`.
        num: usable positions.
        offset: rows in front of the first usable one.
        padding_idx: the row of padding tokens, which is zero. With one, positions are counted as RoBERTa and fairseq do
            it: padding takes this row and is not counted.
        trains: whether it is to train; by default a learned table does and a sinusoidal one does not.
        preset, layout, frequencies, base, odd, start: as in `positions.sinusoidal`.
        init, std, seed: as in `positions.learned`.
    """

    kind: str
    num: int
    offset: int | None = None
    padding_idx: int | None = None
    trains: bool | None = None
    preset: str | None = None
    layout: str | None = None
    frequencies: str | None = None
    base: float | None = None
    odd: str | None = None
    start: float | None = None
    init: str | None = None
    std: float | None = None
    seed: int | None = None

    def settle(self, style: str, padding_idx: int | None) -> "PositionPlan":
        """The plan with every option of its kind decided.

        Args:
            style: the key style, whose models may keep rows in front.
            padding_idx: of the vocabulary: padding of words and of positions have the same number in these models.

        Raises:
            UsageError: an option is for the other kind, or the style or preset needs a padding token.
        """
        own, other = (_LEARNED, _SINUSOIDAL) if self.kind == "learned" else (_SINUSOIDAL, _LEARNED)
        for name in other:
            if getattr(self, name) is not None:
                raise UsageError("positions-option", f"{name} is no option of a {self.kind} position table")
        home = STYLES[style]
        preset = PRESETS.get(self.preset or "vaswani")
        padding, offset = self.padding_idx, self.offset
        if padding is None and (home.zero_row or (preset is not None and preset.padding_idx is not None)):
            padding = padding_idx
            if padding is None:
                raise UsageError(
                    "padding-needed", "the position table is to have a row for padding, and there is no padding token",
                    hint="keep a padding token, or choose another key style or preset",
                )  # fmt: skip
        if offset is None:
            offset = 0 if padding is None else padding + 1
            offset = home.first_row(padding) if home.offset != 0 else offset
        usual: dict[str, str | float] = {"init": "normal", "std": 0.02, "seed": 0}
        if self.kind == "sinusoidal":
            usual = {"preset": "vaswani", "base": 10000.0, "start": 0}
            if preset is not None:
                usual |= {"layout": preset.layout, "frequencies": preset.frequencies, "odd": preset.odd}
        decided: dict[str, Any] = {
            name: usual.get(name) if getattr(self, name) is None else getattr(self, name) for name in own
        }
        trains = self.kind == "learned" if self.trains is None else self.trains
        return self._replace(offset=offset, padding_idx=padding, trains=trains, **decided)

    def table(self, dim: int) -> "NDArray[np.float32]":
        """The table of a settled plan: float32[offset + num, dim].

        Raises:
            UsageError: an option is out of range, or there is no such table of this width.
        """
        from .. import positions

        make = positions.learned if self.kind == "learned" else positions.sinusoidal
        return make(self.num, dim, offset=self.offset, padding_idx=self.padding_idx, **self._own())

    def _own(self) -> dict[str, Any]:
        """The options of its kind, each of a type of its own."""
        return {name: getattr(self, name) for name in (_LEARNED if self.kind == "learned" else _SINUSOIDAL)}

    def recorded(self) -> "JsonObject":
        """What vec2emb.json holds of a settled plan."""
        return {**self.facts(), **self._own()}

    def facts(self) -> "JsonObject":
        """What the tensors' metadata hold of it."""
        return {
            "kind": self.kind,
            "num": self.num,
            "offset": self.offset,
            "padding_idx": self.padding_idx,
            "preset": self.preset,
            "trains": self.trains,
        }

    @classmethod
    def asked(
        cls, kind: str, num: int | None, preset: str | None, trains: bool | None, seed: int
    ) -> "PositionPlan | None":
        """What the options of `convert` ask for.

        Raises:
            UsageError: they contradict each other.
        """
        if kind == "none":
            given = {"max_positions": num, "position_preset": preset, "train_positions": trains}
            for name in (name for name, value in given.items() if value is not None):
                raise UsageError("positions-missing", f"{name} is for a position table", hint="add --positions")
            return None
        if num is None:
            raise UsageError("max-positions-missing", "how many positions?", hint="add --max-positions N")
        plan = cls(kind, num, trains=trains, preset=preset, seed=seed if kind == "learned" else None)
        plan.settle("plain", 0)
        return plan

    def check(self, style: str, dim: int, has_padding: bool) -> None:
        """Make one row, so that what is wrong is said before anything is read.

        Raises:
            UsageError: an option is out of range, or there is no such table of this width.
        """
        from . import check_size

        one = self._replace(num=1).settle(style, 0 if has_padding else None)
        check_size(self.num + (one.offset or 0), dim)
        one.table(dim)
