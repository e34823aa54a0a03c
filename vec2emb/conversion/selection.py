"""Which row of the file goes to which row of the table; decided on tokens alone, in the order of the file.

`Selection` takes the file's tokens in the file's order, all of them or only those wanted. `vocabulary_order.py` has
the plans that follow a vocabulary, and those that fall back to other spellings.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .._kernel import Block, TokenIndex
from .._kernel.codes import State
from ..errors import RowError, shown
from ..words.special_tokens import Special
from ..words.token_lookup import Lookup


class RowEvent(NamedTuple):
    """Something about a row of the file that is not simply taken: what, on which line, of which token."""

    what: str
    line: int
    token: bytes
    reason: str | None = None


class Rules(NamedTuple):
    """How rows with the same token are treated.

    Attributes:
        duplicates: `first`, `last` or `error`.
        lowercase: lower-case every token; the row whose token is lower-case in the file wins.
        note_events: call `on_event` for every row that is dropped.
    """

    duplicates: str = "first"
    lowercase: bool = False
    note_events: bool = False


class Selection:
    """The plan of rows in the file's order, made block after block.

    Ids are handed out in this order: special tokens, words that are read only for their vector (`token:WORD` of a word
    that is no row itself), then the tokens of the file. `row_of` turns an id into a row of the table.

    Attributes:
        index: all tokens so far.
        specials: the special tokens.
        special_ids: the id of each.
        in_file: id of each special token that the file has, with the line of its first row.
        duplicates: how many later rows of a token there were; `first_duplicate` is the line and token of the first.
        merged: how many rows have become one with another by lower-casing.
        sources: of an indirect selection, for each row of the table the id whose vector it takes, or -1.
        on_event: called with every row that is dropped, if the rules ask for it.
        lookup: how the vocabulary will look tokens up, as the file's were treated.
    """

    indirect = False  # whether rows wait elsewhere until all of the file is seen
    scattered = False  # whether rows that stand beside each other in the file go to rows that do not

    def __init__(
        self,
        specials: list[Special],
        specials_at: str = "start",
        rules: Rules | None = None,
        *,
        expected: int = 0,
        wanted: TokenIndex | None = None,
        extra_tokens: Sequence[bytes] = (),
    ) -> None:
        self.rules = rules or Rules()
        self.specials = specials
        self.index = TokenIndex(expected + len(specials))
        self.special_ids = [self.index.add(special.token.encode()) for special in specials]
        self.extra_tokens = {token: self.index.add(token) for token in extra_tokens}
        self.lookup: Lookup = "lower" if self.rules.lowercase else "exact"
        self._wanted = wanted
        self._at_end = specials_at == "end"
        self._start_counting()

    def _start_counting(self) -> None:
        self.in_file: dict[int, int] = {}
        self.duplicates = 0
        self.merged = 0
        self.first_duplicate: tuple[int, bytes] | None = None
        self.sources = array("q")
        self.hits: list[tuple[int, str]] = []  # rows that took another spelling's vector, and which spelling
        self.on_event: Callable[[RowEvent], None] = _ignore
        self._fixed = {
            id for id, special in zip(self.special_ids, self.specials, strict=True) if special.init is not None
        }
        self._special_end = max(self.special_ids, default=-1) + 1
        self._lines = array("Q")
        self._spelling = bytearray()  # of each id: whether it has a row, and of which spelling

    # The table.

    def __len__(self) -> int:
        """Rows of the table so far."""
        return len(self.index) - len(self.extra_tokens)

    @property
    def rewrites(self) -> bool:
        """Whether a later row may be written over an earlier one."""
        return self.rules.duplicates == "last" or self.rules.lowercase

    @property
    def reserved(self) -> int:
        """How many ids stand in front of those of the file's other tokens."""
        return len(self.specials) + len(self.extra_tokens)

    @property
    def deferred(self) -> range:
        """Ids whose row is not known before the end, or that have none: their vectors are held back until then."""
        return range(0 if self._at_end else len(self.specials), self.reserved)

    def row_of(self, id: int) -> int:
        """The row of the table for an id; final once all rows of the file were seen."""
        if id >= self.reserved:
            return id - (self.reserved if self._at_end else len(self.extra_tokens))
        return len(self.index) - self.reserved + id if self._at_end else id

    def pieces(self) -> list[tuple[int, int]]:
        """The ranges of ids that, one after the other, give the tokens in the order of the table's rows."""
        count, total = len(self.specials), len(self.index)
        own = [(0, count)] if count else []
        body = [(i, min(i + _PIECE, total)) for i in range(self.reserved, total, _PIECE)]
        return body + own if self._at_end else own + body

    def vocabulary(self) -> Iterator[bytes]:
        """vocab.txt, piece by piece."""
        return (self.index.blob(*piece) for piece in self.pieces())

    @property
    def id_shift(self) -> int | None:
        """What to add to a line of the vocabulary that was given to get its row; None without one."""
        return None

    def rows_of_file(self, from_file: set[int]) -> Iterator[tuple[int, int]]:
        """Ranges of rows that came from the file, in rising order; `from_file` are the special ids that did."""
        own = sorted(self.row_of(id) for id in from_file)
        body = len(self.index) - self.reserved
        first = 0 if self._at_end else len(self.specials)
        ranges = [(row, row + 1) for row in own]
        ranges.insert(0 if self._at_end else len(own), (first, first + body))
        return iter(ranges)

    def missing(self) -> list[int]:
        """Rows of wanted words that the file does not have."""
        return []

    def names(self, rows: Sequence[int]) -> list[str]:
        """The tokens of missing rows."""
        return [self.index.token(row).decode() for row in rows]

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The texts that vectors of missing rows are composed of."""
        return self.names(rows)

    def settle(self) -> None:
        """Called once, when all rows of the file were seen."""

    @property
    def absent(self) -> list[bytes]:
        """Wanted words that the file does not have and that get no row, in their order."""
        if self._wanted is None:
            return []
        names = {special.token.encode() for special in self.specials}
        absent = (self._wanted.token(id) for id in self._wanted.unmet(0))
        return [token for token in absent if token not in names and token not in self.extra_tokens]

    # Selecting.

    def select(self, block: Block, label: str) -> tuple[int, RowError | None]:
        """Give the rows of the next block their ids and list those whose vectors are wanted.

        Args:
            label: name of the file, for the error.

        Returns:
            How many rows are wanted, and the error for the first duplicate where duplicates are errors; the rows
            from that one on are then forgotten.
        """
        rows = block.rows
        spelled = self._lower(block) if self.rules.lowercase else None
        self._look_up(block)
        if spelled is None:
            error = self._count_duplicates(block, label)
            kept = rows.keep(self.rules.duplicates == "last")
        else:
            kept, error = self._keep_spelled_best(block, label, spelled)
        unwanted = set(self._specials_of_file(block))
        if spelled is None and self.rules.duplicates == "last":
            # A later row with a fault, where such are skipped, takes nothing from the earlier one.
            unwanted.update(row for row in rows.rows_in_state(State.SEEN) if rows.fault_of(row)[0])
        for row in unwanted:
            rows.drop(row)
        return kept - len(unwanted), error

    def _look_up(self, block: Block) -> None:
        if self._wanted is None:
            self.index.add_rows(block.buffer, block.rows)
        else:
            self._wanted.find_rows(block.buffer, block.rows)
            self.index.add_rows(block.buffer, block.rows, True)

    def _count_duplicates(self, block: Block, label: str) -> RowError | None:
        rows = block.rows
        count, first = rows.tally_state(State.SEEN)
        if self.rules.duplicates == "error":
            for row in rows.rows_in_state(State.NEW):
                self._remember_line(block, row)
        if not count:
            return None
        if self.rules.duplicates == "error" or self.rules.note_events:
            for row in rows.rows_in_state(State.SEEN):
                error = self._duplicate(block, row, label)
                if error is not None:
                    return error
            return None
        if self.first_duplicate is None:
            self.first_duplicate = (block.line(first), block.token(first))
        self.duplicates += count
        return None

    def _duplicate(self, block: Block, row: int, label: str) -> RowError | None:
        """Count a later row of a token; where that is an error, forget the rows from it on and return the error."""
        line, token = block.line(row), block.token(row)
        if self.rules.duplicates == "error":
            error = RowError(
                "duplicate-token",
                f"the token {shown(token)} stands twice",
                path=label,
                line=line,
                expected="each token once",
                found=f"it on lines {self._lines[block.rows.id_of(row)]} and {line}",
                hint="--duplicates first or --duplicates last takes one of them",
            )
            block.rows.truncate(row)
            return error
        if self.first_duplicate is None:
            self.first_duplicate = (line, token)
        self.duplicates += 1
        self._note("duplicate", block, row)
        return None

    def _remember_line(self, block: Block, row: int) -> None:
        """The first line of each id, which the error for a duplicate names."""
        if self.rules.duplicates == "error":
            id = block.rows.id_of(row)
            if id >= len(self._lines):
                self._lines.extend([0] * (id + 1 - len(self._lines)))
            self._lines[id] = block.line(row)

    def _note(self, what: str, block: Block, row: int) -> None:
        if self.rules.note_events:
            self.on_event(RowEvent(what, block.line(row), block.token(row)))

    def _specials_of_file(self, block: Block) -> list[int]:
        """Note which special tokens the file has; the kept rows of those whose vector is set otherwise."""
        unwanted = []
        for row, id in block.rows.below(self._special_end):
            if id not in self.special_ids:
                continue
            first_time = id not in self.in_file
            self.in_file.setdefault(id, block.line(row))
            if id in self._fixed and (first_time or self.rules.duplicates == "last"):
                unwanted.append(row)
        return unwanted

    # Lower-casing.

    def _lower(self, block: Block) -> list[bool]:
        """Put lower-case tokens in place; for each row, whether the file spells it so itself."""
        tokens = block.rows.tokens(block.buffer)
        lowered = [_lower(token) for token in tokens]
        block.rows.set_tokens(lowered)
        return [a == b for a, b in zip(tokens, lowered, strict=True)]

    def _keep_spelled_best(self, block: Block, label: str, spelled: list[bool]) -> tuple[int, RowError | None]:
        """Of the rows that lower-casing makes one, keep the one that the file itself spells in lower case."""
        rows, ids = block.rows, len(self.index)
        self._spelling.extend(bytes(max(ids - len(self._spelling), 0)))
        error = None
        kept: list[int] = []
        for row in sorted(rows.rows_in_state(State.NEW) + rows.rows_in_state(State.SEEN)):
            if rows.fault_of(row)[0]:
                continue
            id = rows.id_of(row)
            had, own = self._spelling[id], _LOWER if spelled[row] else _OTHER
            if had == own == _LOWER:
                error = self._duplicate(block, row, label)
                if error is not None:
                    break
                if self.rules.duplicates == "last":
                    kept.append(row)
            elif had < own:
                self._spelling[id] = own
                self.merged += had > 0
                self._remember_line(block, row)
                kept.append(row)
            else:
                self.merged += 1
                self._note("merged", block, row)
        rows.keep_these(kept)
        return len(kept), error


def _ignore(event: RowEvent) -> None:
    """Nobody wants to know."""


_OTHER, _LOWER = 1, 2  # spellings: a row that was lower-cased, a row that is lower-case itself
_PIECE = 1 << 16  # tokens handed out at a time


def _lower(token: bytes) -> bytes:
    if token.isascii():
        return token.lower()
    try:
        return token.decode().lower().encode()
    except UnicodeDecodeError:
        return token  # the row is faulty, and is reported as such
