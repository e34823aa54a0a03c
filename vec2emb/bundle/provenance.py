"""Where each row of a table comes from, kept as ranges."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from ..errors import BundleError
from .ranges import NO_ROWS, Ranges

STANDARD = {"normal": "standard-normal", "uniform": "standard-uniform"}
"""Init that is fitted to the rows of a file -> the same with mean 0 and standard deviation 1."""
RANDOM = (*STANDARD, *STANDARD.values())  # inits that draw numbers, and so depend on a seed


class SpecialToken(NamedTuple):
    """A special token of a table.

    Attributes:
        token: its text.
        id: its row.
        role: `padding`, `unknown` or `special`.
        init: how its row was set: `zeros`, `mean`, `normal`, `uniform`, `standard-normal`, `standard-uniform`,
            `token:WORD`, `file` or `given`.
        seed: of a random init; else None.
    """

    token: str
    id: int
    role: str
    init: str
    seed: int | None = None

    def to_dict(self) -> dict[str, object]:
        """The fields by name, as in vec2emb.json."""
        return self._asdict()


class Generated(NamedTuple):
    """Rows of words that their source lacks, all set in the same way."""

    init: str
    seed: int | None
    rows: Ranges


class Spellings:
    """Rows that took the vector of another spelling of their word.

    Args:
        rows: the rows.
        text: the spelling of each, separated by LF, which no token contains.
        where: JSON path and file, named if the two do not fit each other.
    """

    __slots__ = ("_found", "_starts", "_where", "rows", "text")

    def __init__(self, rows: Ranges = NO_ROWS, text: str = "", where: tuple[str, str] = ("", "")) -> None:
        self.rows = rows
        self.text = text
        self._where = where
        self._found: list[str] | None = None
        self._starts: list[int] = []

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[int, str]]) -> "Spellings":
        """From (row, spelling) in any order."""
        ordered = sorted(pairs)
        return cls(Ranges.of_rows(row for row, _ in ordered), "\n".join(spelling for _, spelling in ordered))

    @property
    def _spellings(self) -> list[str]:
        if self._found is None:
            found = self.text.split("\n") if self.rows else []
            lengths = [stop - start for start, stop in self.rows]
            if len(found) != sum(lengths):
                json_path, file = self._where
                raise BundleError(
                    "bundle-config", f"{json_path} must have a spelling for each of its rows", path=file,
                    expected=f"{sum(lengths):,} spellings", found=f"{len(found):,}",
                )  # fmt: skip
            self._starts = list(accumulate(lengths, initial=0))
            self._found = found
        return self._found

    def __reduce__(self) -> "tuple[type[Spellings], tuple[Ranges, str]]":
        """Pickle the spellings, without the name of the file that they were read from."""
        return Spellings, (self.rows, self.text)

    def get(self, row: int) -> str | None:
        """The spelling whose vector a row has; None for any other row."""
        if row not in self.rows:
            return None
        spellings, bounds = self._spellings, self.rows.bounds
        at = bisect_right(bounds, row) // 2
        return spellings[self._starts[at] + row - bounds[2 * at]]

    def pairs(self) -> Iterator[tuple[int, str]]:
        """(row, spelling), the rows rising."""
        return zip(self.rows.rows(), self._spellings, strict=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spellings) and (self.rows, self.text) == (other.rows, other.text)

    def __hash__(self) -> int:
        return hash((self.rows, self.text))

    def __repr__(self) -> str:
        return f"Spellings({self.rows!r}, {self.text!r})"


class Origin(NamedTuple):
    """Where one row comes from.

    Attributes:
        kind: `file`, `special`, `spelling`, `generated` or `given`.
        special: the special token of the row.
        spelling: the spelling whose vector the row has.
        generated: how the row was set.
        step: the number of the step that added the row; None for a row of the conversion.
        trained: whether the row was trained since.
    """

    kind: str
    special: SpecialToken | None = None
    spelling: str | None = None
    generated: Generated | None = None
    step: int | None = None
    trained: bool = False


class Provenance(NamedTuple):
    """Where each row of a table comes from; a row that nothing else is recorded of is the file's.

    Attributes:
        size: V, rows of the table.
        specials: the special tokens.
        generated: rows of words that their source lacks.
        spellings: rows that took the vector of another spelling.
        given: rows whose vectors the caller gave.
        added: (number of the step, rows that it added).
        inherited: rows whose record was carried over from the bundle that was converted.
        trained: rows that were trained since.
    """

    size: int
    specials: tuple[SpecialToken, ...] = ()
    generated: tuple[Generated, ...] = ()
    spellings: Spellings = Spellings()
    given: Ranges = NO_ROWS
    added: tuple[tuple[int, Ranges], ...] = ()
    inherited: Ranges = NO_ROWS
    trained: Ranges = NO_ROWS

    def origin(self, row: int) -> Origin:
        """Where a row comes from."""
        step = next((step for step, rows in self.added if row in rows), None)
        trained = row in self.trained
        special = next((special for special in self.specials if special.id == row), None)
        if special is not None:
            return Origin("special", special=special, step=step, trained=trained)
        for generated in self.generated:
            if row in generated.rows:
                return Origin("generated", generated=generated, step=step, trained=trained)
        spelling = self.spellings.get(row)
        if spelling is not None:
            return Origin("spelling", spelling=spelling, step=step, trained=trained)
        return Origin("given" if row in self.given else "file", step=step, trained=trained)

    def generated_rows(self) -> Ranges:
        """The rows of words that their source lacks."""
        return Ranges.of_pairs(pair for generated in self.generated for pair in generated.rows)

    def new_rows(self) -> Ranges:
        """The rows that no file had: special tokens that were set, padding excepted, and generated rows."""
        made = [s.id for s in self.specials if s.init not in ("file", "given") and s.role != "padding"]
        return Ranges.of_pairs([*((row, row + 1) for row in made), *self.generated_rows()])

    def made_rows(self) -> Ranges:
        """The rows that no file gave and no training changed since: they say nothing about their words."""
        return self.new_rows() - self.trained | self._padding()

    def rows_of_file(self) -> Ranges:
        """The rows that a file or the caller gave, whether they were trained since or not."""
        return (self.new_rows() | self._padding()).complement(self.size)

    def _padding(self) -> Ranges:
        row = self.token_of_role("padding")
        return NO_ROWS if row is None else Ranges((row, row + 1))

    def borrowed_rows(self) -> Ranges:
        """The rows that are, by intention, a copy of another spelling's, and were not trained since."""
        return self.spellings.rows - self.trained

    def added_rows(self) -> Ranges:
        """The rows that some step added."""
        return Ranges.of_pairs(pair for _, rows in self.added for pair in rows)

    def token_of_role(self, role: str) -> int | None:
        """The row of the padding or the unknown token."""
        return next((special.id for special in self.specials if special.role == role), None)

    @property
    def zeroes_padding(self) -> bool:
        """Whether the padding row is zero; if not, it was taken over from a model."""
        return all(special.init != "file" for special in self.specials if special.role == "padding")

    def records(self) -> dict[str, Ranges]:
        """All ranges of rows, by where they are in vec2emb.json."""
        return {
            **{f"provenance.generated[{i}].rows": one.rows for i, one in enumerate(self.generated)},
            "provenance.spellings.rows": self.spellings.rows,
            "provenance.given": self.given,
            **{f"provenance.added[{i}].rows": rows for i, (_, rows) in enumerate(self.added)},
            "provenance.inherited": self.inherited,
            "provenance.trained": self.trained,
        }

    def parse(self) -> None:
        """Parse all ranges and spellings.

        Raises:
            BundleError: one of them is malformed.
        """
        for rows in self.records().values():
            rows.bounds  # noqa: B018
        tuple(self.spellings.pairs())
