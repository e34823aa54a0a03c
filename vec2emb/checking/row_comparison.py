"""Rows of a bundle against a file of vectors: is every row what its word has there?

The file is read as in a conversion: the same options, the same policies, one pass. A row that was parsed is compared
with the table, byte for byte, and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..bundle.manifest import REPLAY_VERSION, Replay
from ..bundle.ranges import NO_ROWS
from ..bundle.reader import DTYPES, Bundle
from ..bundle.writer import narrowed
from ..conversion.parsed_rows import ParsedRows
from ..conversion.reading_pass import Pass, with_recorded_member
from ..conversion.recording import recorded_reading
from ..conversion.selection import Rules
from ..conversion.vocabulary_order import GivenOrder
from ..errors import UsageError, shown
from ..io.progress import ProgressLike
from ..io.sources import SourceLike
from ..words.pieces import speller
from ..words.vocabulary import Vocabulary
from ..words.word_list import WordList
from .result import Verification

_FEW = 5  # words named of many
_SAME, _OTHER = 1, 2


def check_rows(
    opened: Bundle,
    vocab: Vocabulary,
    source: SourceLike,
    found: Verification,
    allow_pickle: bool,
    threads: int | None,
    progress: ProgressLike,
) -> None:
    """Compare all rows with a source, and record what was found.

    Raises:
        InputError: the source cannot be read as the bundle records.
        UsageError: the bundle was made without a source.
    """
    if opened.manifest.from_scratch:
        raise UsageError(
            "from-scratch-source", "the table was generated without a source, so no source has its rows",
            path=opened.label, hint="--rebuild behind BUNDLE, without a value; in Python rebuild=True",
        )  # fmt: skip
    replay = opened.manifest.replay
    recorded = Replay(REPLAY_VERSION, {}) if replay is None else replay
    options = recorded_reading(
        recorded, opened.label, dtype=opened.manifest.dtype, threads=threads, progress=progress,
        allow_pickle=allow_pickle,
    )  # fmt: skip
    reading = with_recorded_member(lambda member: Pass(source, options._replace(member=member)), source, options.member)
    with reading.source:
        dim, expected = reading.detected.dim, opened.tensor.shape[1]
        if not found.check(f"the dimension is that of {reading.source.label}", dim == expected, f"{dim}"):
            return
        origins = _Origins(opened, vocab, reading.detected.format == "bundle")
        rules = Rules(str(recorded.options.get("duplicates", "first")), recorded.options.get("lowercase") is True)
        selection = GivenOrder(WordList(vocab, None), [], rules=rules, extra_tokens=origins.elsewhere)
        comparison = _Comparison(opened, selection, origins)
        reading.run(selection, comparison.take)
        comparison.conclude(reading.source.label, found)
        made_of = opened.manifest.source
        if made_of is not None and made_of.format == "bundle" and reading.detected.format != "bundle":
            found.notes.append(f"the bundle was converted from the bundle {shown(made_of.name)}: compare it with that")


class _Origins:
    """Where each row comes from, as vec2emb.json has it.

    Attributes:
        made: rows that come from no row of the file: special, missing and added ones.
        added: rows that the bundle gained since it was converted, wherever they come from.
        trained: other rows that were trained since.
        absent: of these, the words that the file must not have.
        takers: token of the file -> rows that took its vector though they are another token's.
        elsewhere: those tokens that are no rows themselves.
    """

    def __init__(self, opened: Bundle, vocab: Vocabulary, of_bundle: bool) -> None:
        provenance = opened.manifest.provenance
        # A bundle has the rows whose record came from it.
        same = provenance.inherited if of_bundle else NO_ROWS
        self.made: set[int] = set()
        self.takers: dict[bytes, list[int]] = {}
        self.added = set((provenance.added_rows() - same).rows())
        for special in provenance.specials:
            if special.id in self.added or special.id in same:
                continue
            if special.init.startswith("token:"):
                self._take(special.id, special.init.removeprefix("token:"))
            elif special.init not in ("file", "given"):
                self.made.add(special.id)
        self.absent = set((provenance.generated_rows() - same).rows()) - self.added
        self.trained = set((provenance.trained - same).rows()) - self.added
        self.made |= self.absent | self.added
        replay = opened.manifest.replay
        style = "none" if replay is None else str(replay.options.get("pieces", "none"))
        self.spellings = speller(style, False)  # a piece from the inside of a word is none of its own spellings
        borrowed = [(row, spelling) for row, spelling in provenance.spellings.pairs() if row not in same]
        self.fallbacks = [row for row, _ in borrowed]
        for row, spelling in borrowed:
            self._take(row, spelling)
        self.taken = {row for rows in self.takers.values() for row in rows} - self.trained
        self.elsewhere = [token for token in self.takers if token.decode() not in vocab.tokens]

    def _take(self, row: int, token: str) -> None:
        self.takers.setdefault(token.encode(), []).append(row)


class _Comparison:
    """Rows as they come against those of the table."""

    def __init__(self, opened: Bundle, selection: GivenOrder, origins: _Origins) -> None:
        self._opened = opened
        self._index = selection.index
        self._origins = origins
        self._rows, dim = opened.tensor.shape
        self._width = dim * DTYPES[opened.manifest.dtype][1]
        self._seen = bytearray(self._rows)  # of each token: whether its row was met, and was the table's
        self._takers = {self._index.get(token): rows for token, rows in origins.takers.items()}
        self._taken: dict[int, int] = {}  # the same, of rows that took another token's vector

    def take(self, parsed: ParsedRows) -> None:
        """Compare rows; a later row of an id replaces the earlier one."""
        for id, rows in parsed.runs():
            self._compare(id, rows)

    def _compare(self, id: int, rows: memoryview) -> None:
        stored, width = self._stored(rows), self._width
        count = len(stored) // width
        inside = max(0, min(count, self._rows - id))
        if inside and self._opened.stored_bytes(id, inside) == stored[: inside * width]:
            self._seen[id : id + inside] = bytes([_SAME]) * inside
        else:
            for i in range(inside):
                self._seen[id + i] = self._judge(id + i, stored[i * width : (i + 1) * width])
        for i in range(count if self._takers else 0):
            for row in self._takers.get(id + i, ()):
                self._taken[row] = self._judge(row, stored[i * width : (i + 1) * width])
        self._opened.release()

    def _judge(self, row: int, vector: bytes) -> int:
        return _SAME if self._opened.stored_bytes(row, 1) == vector else _OTHER

    def _stored(self, rows: memoryview) -> bytes:
        """The rows in the type of the table."""
        return bytes(narrowed(rows, self._opened.manifest.dtype))

    def conclude(self, label: str, found: Verification) -> None:
        """Record what came out."""
        origins = self._origins
        others = origins.made | origins.taken | origins.trained
        different = [row for row, verdict in enumerate(self._seen) if verdict == _OTHER and row not in others]
        different += [row for row, verdict in self._taken.items() if verdict == _OTHER and row in origins.taken]
        lacking = [row for row, verdict in enumerate(self._seen) if not verdict and row not in others]
        lacking += sorted(origins.taken - self._taken.keys())
        present = [
            row for row in (*sorted(origins.absent), *origins.fallbacks)
            if self._seen[row] and (token := self._index.token(row).decode()) in origins.spellings(token)
        ]  # fmt: skip
        compared = self._rows - len(origins.made | origins.trained)
        self._check(f"{compared:,} rows are what their words have in {label}", different, "different", found)
        self._check(f"no row is of a word that {label} lacks", lacking, "not there", found)
        self._check(f"words recorded as missing are not in {label}", present, "there, and not taken from there", found)
        if made := len(origins.made - origins.added):
            found.notes.append(f"{made:,} rows come from no row of the file: special and missing words")
        if origins.trained:
            found.notes.append(f"{len(origins.trained):,} rows were trained since, and not compared")
        if origins.added:
            found.notes.append(f"{len(origins.added):,} rows were added since by vec2emb extend, and not compared")

    def _check(self, name: str, rows: Sequence[int], what: str, found: Verification) -> None:
        found.check(name, not rows, f"{len(rows):,} {what}: {', '.join(self._names(rows[:_FEW]))}")

    def _names(self, rows: Iterable[int]) -> list[str]:
        return [f"{shown(self._index.token(row))} (row {row})" for row in rows]
