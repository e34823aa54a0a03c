"""The rows of a table on their way to their place: the file's as they come, then the special and the missing ones."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from math import isfinite

from ..errors import InputError, shown
from ..safetensors_files.rows import PIECE, RowFile
from ..words.special_tokens import FITTED, Special
from .initialization import RunningSums, Statistics, initial_vector
from .parsed_rows import ParsedRows
from .selection import Selection

STAGED = 24 << 20  # bytes of a table that is put together in memory, if its rows come in no order
COMPOSED = 1024  # rows composed at a time
Compose = Callable[[list[str]], memoryview]  # float32 rows of words, in their order


def planned_inits(selection: Selection) -> list[str]:
    """How each special token gets its row: `file`, or an init."""
    return [
        "file" if special.init is None and id in selection.in_file else special.init or special.default
        for id, special in zip(selection.special_ids, selection.specials, strict=True)
    ]


class RowWriter:
    """Takes rows and puts them where the selection says; `finish` adds those that the file does not have.

    Args:
        table: the rows of the table.
        staging: where rows wait whose place is decided at the end (an indirect selection).
        limit: largest magnitude that the stored type holds.
        from_scratch: draw generated rows with mean 0 and standard deviation 1, as there are no rows to fit.
    """

    def __init__(
        self, table: RowFile, selection: Selection, staging: RowFile | None, limit: float, *, from_scratch: bool = False
    ) -> None:
        self._from_scratch = from_scratch
        self._table = table
        self._selection = selection
        self._staging = staging
        self._limit = limit
        self._deferred: dict[int, bytes] = {}
        fitted = any((special.init or special.default) in FITTED for special in selection.specials)
        in_order = staging is None and not selection.rewrites and not selection.scattered
        self._sums = RunningSums(selection.reserved, table.dim) if fitted and in_order else None
        table.hash_early(in_order)
        ids = len(selection) + len(selection.extra_tokens)
        in_memory = selection.scattered and ids * 4 * table.dim <= STAGED
        self._staged = bytearray(ids * 4 * table.dim) if in_memory else None

    def take(self, parsed: ParsedRows) -> None:
        """Write rows, or keep them until `finish`."""
        if self._staged is not None:
            parsed.scatter(self._staged)
        elif self._selection.scattered:
            self._scatter(parsed)
        else:
            for id, rows in parsed.runs():
                self._write(id, rows)

    def _write(self, id: int, rows: memoryview) -> None:
        if self._staging is not None:
            self._staging.write(id, rows)
            return
        deferred, width = self._selection.deferred, 4 * self._table.dim
        while rows and id in deferred:
            self._deferred[id] = bytes(rows[:width])
            rows, id = rows[width:], id + 1
        if not rows:
            return
        before = (deferred.start - id) * width if deferred and id < deferred.start else len(rows)
        self._table.write(self._selection.row_of(id), rows[:before])
        if self._sums is not None:
            self._sums.add(id, rows[:before])
        if before < len(rows):
            self._write(deferred.start, rows[before:])

    def finish(self, seed: int, missing_init: str, compose: Compose | None = None) -> list[str]:
        """Write all rows that are not in place yet; how each special token was set (`file`, or its init).

        Args:
            compose: with `missing_init="subword"`, what makes rows of missing words.

        Raises:
            InputError: a row cannot be made, or does not fit the type.
        """
        selection = self._selection
        self._table.hash_early(False)  # from here on one thread writes
        inits = planned_inits(selection)
        self._write_staged()
        from_file = {id for id, init in zip(selection.special_ids, inits, strict=True) if init == "file"}
        if self._staging is not None:
            self._gather(self._staging, selection.sources)
        for id in from_file & self._deferred.keys():
            self._table.write(selection.row_of(id), self._deferred[id])
        statistics = self._statistics(from_file)
        for id, special, init in zip(selection.special_ids, selection.specials, inits, strict=True):
            if init != "file":
                self._put(
                    selection.row_of(id), self._special_vector(special, init, seed, statistics), special.token, init
                )
        if compose is not None:
            self._compose(compose)
            return inits
        for row, token in self._missing_words():
            self._put(row, initial_vector(missing_init, token, seed, statistics), token, missing_init)
        return inits

    def _statistics(self, from_file: set[int]) -> Statistics:
        """What generated rows are fitted to."""
        dim = self._table.dim
        if self._from_scratch:
            return Statistics.standard(dim)
        # Special rows that came from the file count too, and in front of the others.
        sums = self._sums.upto(len(self._selection.index)) if self._sums is not None and not from_file else None
        return Statistics(lambda: self._rows_of_file(from_file), dim, sums)

    def _scatter(self, parsed: ParsedRows) -> None:
        deferred, places = self._selection.deferred, []
        for at, id, count in parsed.places():
            if id < deferred.stop and deferred.start < id + count:
                self._write(id, parsed.slice(at, count))
            else:
                places.append((at, self._selection.row_of(id), count))
        self._table.write_each(places, parsed.vectors)

    def _write_staged(self) -> None:
        if self._staged is None:
            return
        width, rows = 4 * self._table.dim, len(self._selection)
        self._deferred = {id: bytes(self._staged[id * width : (id + 1) * width]) for id in self._selection.deferred}
        step = max(1, PIECE // width)
        with memoryview(self._staged) as view:
            for row in range(0, rows, step):
                self._table.write(row, view[row * width : min(row + step, rows) * width])
        self._staged = None

    def _put(self, row: int, vector: array[float], token: str, init: str) -> None:
        # A copy is as the policies of the file's rows let it be.
        if not init.startswith("token:") and not all(isfinite(v) and abs(v) <= self._limit for v in vector):
            raise InputError(
                "out-of-range",
                f"the row of {shown(token)} ({init}) does not fit the type",
                hint="choose another INIT, or --dtype float32",
            )
        self._table.write(row, vector.tobytes())

    def _special_vector(self, special: Special, init: str, seed: int, statistics: Statistics) -> array[float]:
        if not init.startswith("token:"):
            return initial_vector(init, special.token, seed, statistics)
        word = init.removeprefix("token:")
        stored = self._vector_of(word)
        if stored is None:
            raise InputError(
                "init-word-missing",
                f"the row of {shown(special.token)} is to be that of a word that the file does not have",
                found=shown(word),
            )
        vector = array("f")
        vector.frombytes(stored)
        return vector

    def _vector_of(self, word: str) -> bytes | None:
        """The file's vector of a word, or None."""
        selection = self._selection
        id = selection.index.get(word.encode("utf-8", "surrogatepass"))
        if id < 0 or not selection.index.met(id):
            return None
        if id in selection.special_ids and selection.specials[selection.special_ids.index(id)].init is not None:
            return None
        if self._staging is not None:
            return self._staging.read(id, 1)
        return self._deferred[id] if id in self._deferred else self._table.read(selection.row_of(id), 1)

    def _compose(self, compose: Compose) -> None:
        missing = self._selection.missing()
        for start in range(0, len(missing), COMPOSED):
            rows = missing[start : start + COMPOSED]
            made, width = compose(self._selection.texts(rows)), 4 * self._table.dim
            for place, row in enumerate(rows):
                self._table.write(row, made[place * width : (place + 1) * width])

    def _missing_words(self) -> Iterator[tuple[int, str]]:
        missing = self._selection.missing()
        if missing:
            names = self._selection.names(missing)
            yield from zip(missing, names, strict=True)

    def _gather(self, staging: RowFile, sources: array[int]) -> None:
        """Copy the rows that waited to their place."""
        width = 4 * self._table.dim
        step = max(1, PIECE // width)
        for start in range(0, len(sources), step):
            rows = bytearray()
            for source in sources[start : start + step]:
                rows += staging.read(source, 1) if source >= 0 else bytes(width)
            self._table.write(start, rows)

    def _rows_of_file(self, from_file: set[int]) -> Iterator[bytes]:
        """The rows that came from the file, in their final order."""
        for start, stop in self._selection.rows_of_file(from_file):
            yield from self._table.blocks(start, stop)
