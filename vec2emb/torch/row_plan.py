"""Which rows of a table train, as ranges, and where each row is in the two tensors that hold the table.

`frozen` has the rows outside the ranges and `trained` those inside, both in the order of the table. The ranges are
plain numbers, not a buffer: nothing averages, shards, casts or leaves them uninitialized.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UsageError

FEW = 64  # ranges up to which searching them is as fast as a table of V places, which takes memory


class RowPlan:
    """The rows of a table of `count` rows that train; immutable, so that copies of a module share it.

    Args:
        count: V.
        edges: int64[2 R]: first row and one past the last of each of R ranges, rising.

    Attributes:
        num_trained, num_frozen: T and V - T.
    """

    def __init__(self, count: int, edges: NDArray[np.int64]) -> None:
        self.count, self._edges = count, edges
        self.num_trained = int((edges[1::2] - edges[::2]).sum())
        self.num_frozen = count - self.num_trained
        self._on: dict[torch.device, tuple[Tensor, ...]] = {}
        self._on[torch.device("cpu")] = self._table() if len(edges) > 2 * FEW else self._segments()

    def _segments(self) -> tuple[Tensor, Tensor]:
        """int64[2 R], the edges, and int64[2 R + 1]: rows of the other kind in front of each segment between them."""
        lengths = np.diff(self._edges, prepend=0)
        shift = np.zeros(len(self._edges) + 1, np.int64)
        shift[2::2], shift[1::2] = np.cumsum(lengths[1::2]), np.cumsum(lengths[::2])
        return torch.from_numpy(self._edges), torch.from_numpy(shift)

    def _table(self) -> tuple[Tensor]:
        """int32[V]: the place of each row; those in `trained` are counted on from the last of `frozen`."""
        table = torch.empty(self.count, dtype=torch.int32 if self.count < 1 << 31 else torch.int64, device="cpu")
        table[self.rows(train=False)] = torch.arange(self.num_frozen, dtype=table.dtype, device="cpu")
        table[self.rows(train=True)] = torch.arange(self.num_frozen, self.count, dtype=table.dtype, device="cpu")
        return (table,)

    @classmethod
    def of_rows(cls, rows: Iterable[int] | Tensor, count: int, padding_idx: int | None) -> RowPlan:
        """The plan that trains these rows; the padding row never trains.

        Raises:
            UsageError: a row is not an integer or out of range, or all or none of the rows would train.
        """
        ids = np.unique(_ids(rows))
        outside = ids[(ids < 0) | (ids >= count)]
        if len(outside):
            expected = f"0 .. {count - 1}"
            raise UsageError(
                "train-rows", "a row id to train is out of range", expected=expected, found=str(int(outside[0]))
            )
        ids = ids[ids != (-1 if padding_idx is None else padding_idx)]
        if len(ids) in (0, count):
            which = "all rows" if len(ids) else "no row"
            raise UsageError(
                "rows-not-some", f"{which} would train", expected="some of them",
                hint=f"use nn.Embedding.from_pretrained(weight, freeze={not len(ids)})",
            )  # fmt: skip
        breaks = np.flatnonzero(np.diff(ids) != 1)
        edges = np.empty(2 * len(breaks) + 2, np.int64)
        edges[::2], edges[1::2] = ids[np.r_[0, breaks + 1]], ids[np.r_[breaks, len(ids) - 1]] + 1
        return cls(count, edges)

    @property
    def bounds(self) -> list[int]:
        """First row and one past the last of each range, one after the other, as a bundle records them."""
        edges: list[int] = self._edges.tolist()
        return edges

    def rows(self, *, train: bool) -> Tensor:
        """int64: ids of the rows that train, or of the others, rising; on the CPU."""
        steps = np.zeros(self.count + 1, np.int8)
        steps[self._edges[::2]], steps[self._edges[1::2]] = 1, -1  # ranges never touch
        return torch.from_numpy(np.flatnonzero(np.cumsum(steps[:-1], dtype=np.int8) == train))

    def locate(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Where the rows of ids, int64[..], are: places, int64[..], in one of the two tensors; whether in `trained`.

        Ids that are no row raise IndexError, or give a place that neither tensor has.
        """
        index = self._tensors(ids.device)
        if len(index) == 2:
            segment = torch.bucketize(ids.contiguous(), index[0], right=True)
            return ids - index[1][segment], (segment & 1).bool()
        place = index[0].index_select(0, ids.reshape(-1)).reshape(ids.shape).long()
        trains = place >= self.num_frozen
        return torch.where(trains, place - self.num_frozen, place), trains

    def _tensors(self, device: torch.device) -> tuple[Tensor, ...]:
        found = self._on.get(device)
        if found is None:
            found = tuple(tensor.to(device) for tensor in self._on[torch.device("cpu")])
            if not torch.compiler.is_compiling():  # there they are no tensors that last
                self._on[device] = found
        return found

    def split(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Copies of the frozen rows and of those that train, of [V, D]."""
        frozen, trained = (self.rows(train=train).to(weight.device) for train in (False, True))
        return weight.index_select(0, frozen), weight.index_select(0, trained)

    def join(self, frozen: Tensor, trained: Tensor, dim: int = 0) -> Tensor:
        """One tensor, V along `dim`, of the parts along `dim`; gradients reach both."""
        shape = list(frozen.shape)
        shape[dim] = self.count
        joined = frozen.new_empty(shape)
        for part, train in ((frozen, False), (trained, True)):
            joined.index_copy_(dim, self.rows(train=train).to(part.device), part)
        return joined

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowPlan):
            return NotImplemented
        return self.count == other.count and np.array_equal(self._edges, other._edges)

    def __hash__(self) -> int:
        return hash((self.count, self._edges.tobytes()))

    def __deepcopy__(self, memo: dict[int, Any]) -> RowPlan:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return RowPlan, (self.count, self._edges)


def _ids(rows: Iterable[int] | Tensor) -> NDArray[np.int64]:
    if isinstance(rows, Tensor):
        rows = rows.detach().cpu().numpy()
    if isinstance(rows, np.ndarray):
        if rows.dtype.kind in "iu":
            return rows.astype(np.int64).reshape(-1)
        raise _no_ids(f"{rows.dtype}")
    try:
        return np.fromiter(map(_whole, rows), np.int64)
    except TypeError:
        raise _no_ids(repr(rows)[:60]) from None


def _whole(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return operator.index(value)


def _no_ids(found: str) -> UsageError:
    return UsageError(
        "train-rows", "rows to train must be integer ids", found=found, hint="for a mask, pass mask.nonzero()"
    )
