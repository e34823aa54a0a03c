"""Sets of rows, kept as rising ranges in one flat integer array."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import lt

from ..errors import BundleError, shown


class Ranges:
    """Rows as half-open ranges that rise and do not touch; equal if they hold the same rows.

    `text` is how vec2emb.json writes them: `2:5 9:10` is the rows 2, 3, 4 and 9. Text that was read is parsed when the
    rows are first asked for, so that a bundle with many ranges opens quickly.
    """

    __slots__ = ("_bounds", "_text", "_where")

    def __init__(self, bounds: Iterable[int] = ()) -> None:
        self._bounds: array[int] | None = array("q", bounds)
        self._text: str | None = None
        self._where: tuple[str, str] = "", ""

    @classmethod
    def of_rows(cls, rows: Iterable[int]) -> Ranges:
        """The ranges of rising rows."""
        bounds = array("q")
        for row in rows:
            if bounds and bounds[-1] == row:
                bounds[-1] = row + 1
            else:
                bounds.append(row)
                bounds.append(row + 1)
        return cls(bounds)

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[int, int]]) -> Ranges:
        """The union of ranges (start, stop) in any order."""
        bounds = array("q")
        for start, stop in sorted(pairs):
            if bounds and start <= bounds[-1]:
                bounds[-1] = max(bounds[-1], stop)
            elif start < stop:
                bounds.append(start)
                bounds.append(stop)
        return cls(bounds)

    @classmethod
    def read(cls, text: str, json_path: str, file: str) -> Ranges:
        """Text of a vec2emb.json; `json_path` and `file` are named if it is malformed."""
        self = cls()
        self._bounds, self._text, self._where = None, text, (json_path, file)
        return self

    @property
    def bounds(self) -> array[int]:
        """start, stop, start, stop, ..

        Raises:
            BundleError: the text that was read is malformed.
        """
        if self._bounds is None:
            self._bounds = self._parsed(self.text)
        return self._bounds

    def _parsed(self, text: str) -> array[int]:
        if not text:
            return array("q")
        try:
            bounds = array("q", map(int, text.replace(":", " ").split(" ")))
        except (ValueError, OverflowError):
            raise self._malformed() from None
        rises = all(map(lt, bounds, islice(bounds, 1, None)))
        separators = text.encode().translate(None, b"0123456789")  # all that is to be left is ": : .. :"
        if not rises or len(bounds) % 2 or separators != (b": " * (len(bounds) // 2))[:-1]:
            raise self._malformed()
        return bounds

    @property
    def text(self) -> str:
        """The ranges as vec2emb.json writes them."""
        if self._text is None:
            self._text = " ".join(f"{start}:{stop}" for start, stop in self)
        return self._text

    @property
    def end(self) -> int:
        """One past the last row, found without parsing the rest; 0 without rows.

        Raises:
            BundleError: the text that was read does not end with a number.
        """
        if self._bounds is not None:
            return self._bounds[-1] if self._bounds else 0
        if not self.text:
            return 0
        _, colon, last = self.text.rpartition(":")
        if not (colon and last.isascii() and last.isdecimal() and len(last) < 19):
            raise self._malformed()
        return int(last)

    def _malformed(self) -> BundleError:
        json_path, file = self._where
        return BundleError(
            "bundle-config", f"{json_path} must be rising ranges of rows that do not touch", path=file,
            expected="START:STOP START:STOP ..", found=shown(self.text),
        )  # fmt: skip

    def __iter__(self) -> Iterator[tuple[int, int]]:
        bounds = self.bounds
        return zip(bounds[::2], bounds[1::2], strict=True)

    def rows(self) -> Iterator[int]:
        """Each row, rising."""
        return (row for start, stop in self for row in range(start, stop))

    def __contains__(self, row: object) -> bool:
        return isinstance(row, int) and bisect_right(self.bounds, row) % 2 == 1

    def __len__(self) -> int:
        """The number of rows."""
        return sum(stop - start for start, stop in self)

    def __bool__(self) -> bool:
        return bool(self._text) if self._bounds is None else bool(self._bounds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[type[Ranges], tuple[array[int]]]:
        """Pickle the rows, without the name of the file that they were read from."""
        return Ranges, (self.bounds,)

    def __repr__(self) -> str:
        return f"Ranges({self.text!r})"

    def __or__(self, other: Ranges) -> Ranges:
        return Ranges.of_pairs([*self, *other])

    def __sub__(self, other: Ranges) -> Ranges:
        return self & other.complement(self.end)

    def __and__(self, other: Ranges) -> Ranges:
        bounds, mine, its = array("q"), list(self), list(other)
        i = j = 0
        while i < len(mine) and j < len(its):
            start, stop = max(mine[i][0], its[j][0]), min(mine[i][1], its[j][1])
            if start < stop:
                bounds.append(start)
                bounds.append(stop)
            if mine[i][1] < its[j][1]:
                i += 1
            else:
                j += 1
        return Ranges(bounds)

    def complement(self, count: int) -> Ranges:
        """The rows of 0 .. count-1 that are not among these."""
        edges = [0, *(min(edge, count) for edge in self.bounds), count]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return Ranges(edge for start, stop in pairs if start < stop for edge in (start, stop))


NO_ROWS = Ranges()
