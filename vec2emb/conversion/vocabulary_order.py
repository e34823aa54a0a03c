"""Plans of rows that follow a list of words: `GivenOrder` (its rows are the table's rows) and fallbacks in spelling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._kernel import Block, TokenIndex
from .._kernel.codes import State
from ..errors import VocabularyError, shown
from ..words.pieces import speller, text_of
from ..words.special_tokens import Special
from ..words.vocabulary import Vocabulary
from ..words.word_list import WordList
from .selection import Rules, Selection


class Arrangement:
    """Where special tokens stand in a vocabulary that is given.

    The ids of a vocabulary with ids stay, and new special tokens go to the end. If lines hold padding and unknown, they
    keep their numbers as ids. If they hold neither, both go in front (or to the end). If they hold one of the two, it
    is undecided which is meant.

    Attributes:
        front, end: special tokens that get rows in front of the words, or behind them.
        shift: what to add to a line, counted from 0, to get its row.
    """

    def __init__(self, words: WordList, specials: Sequence[Special], specials_at: str) -> None:
        vocab = words.vocab
        new = [special for special in specials if special.token not in vocab.tokens]
        if words.has_ids:
            specials_at = "end"
        else:
            self._check_lines(words, specials, new, specials_at)
        self.front = new if specials_at == "start" else []
        self.end = new if specials_at == "end" else []
        self.shift = len(self.front)

    @staticmethod
    def _check_lines(words: WordList, specials: Sequence[Special], new: Sequence[Special], specials_at: str) -> None:
        """Refuse lines of which it is undecided whether their numbers are ids."""
        vocab = words.vocab
        main = [special for special in specials if special.role != "special"]
        held = [special for special in main if special.token in vocab.tokens]
        if held and len(held) < len(main):
            lacking = next(special for special in main if special not in held)
            raise VocabularyError(
                "special-missing",
                f"the vocabulary holds {shown(held[0].token)}, but not {shown(lacking.token)}",
                path=words.label,
                expected="both the padding and the unknown token, or neither",
                hint="name the one that it has with --pad TOKEN or --unk TOKEN, leave one out with --no-pad or "
                "--no-unk, or add it to the file",
            )
        if new and specials_at == "start" and (held or not main):
            raise VocabularyError(
                "special-missing",
                f"the vocabulary does not hold the special token {shown(new[0].token)}, and its ids are to stay",
                path=words.label,
                hint="add the token to the file, or put it behind the words with --specials-at end",
            )

    def tokens(self, vocab: Vocabulary) -> bytes:
        """All tokens of the table, each followed by LF."""
        lines = [b"".join(s.token.encode() + b"\n" for s in part) for part in (self.front, self.end)]
        return lines[0] + bytes(vocab.blob) + lines[1]


class GivenOrder(Selection):
    """The rows of the table are the lines of a vocabulary; words that the file lacks are `missing`."""

    scattered = True

    def __init__(
        self,
        words: WordList,
        specials: list[Special],
        specials_at: str = "start",
        rules: Rules | None = None,
        *,
        extra_tokens: Sequence[bytes] = (),
    ) -> None:
        super().__init__([], specials_at, rules)
        self.specials = specials
        vocab = words.vocab
        self.arrangement = Arrangement(words, specials, specials_at)
        blob = self.arrangement.tokens(vocab)
        self._rows = len(vocab) + len(self.arrangement.front) + len(self.arrangement.end)
        self.index = TokenIndex.over(blob + b"".join(token + b"\n" for token in extra_tokens))
        self.special_ids = [self.index.get(special.token.encode()) for special in specials]
        self.extra_tokens = {token: self.index.get(token) for token in extra_tokens}
        self._start_counting()

    def __len__(self) -> int:
        return self._rows

    @property
    def deferred(self) -> range:
        return range(self._rows, self._rows + len(self.extra_tokens))

    def row_of(self, id: int) -> int:
        return id

    def pieces(self) -> list[tuple[int, int]]:
        step = 1 << 16
        return [(i, min(i + step, self._rows)) for i in range(0, self._rows, step)]

    def missing(self) -> list[int]:
        specials = set(self.special_ids)
        return [id for id in self.index.unmet(0) if id < self._rows and id not in specials]

    @property
    def id_shift(self) -> int:
        return self.arrangement.shift

    def rows_of_file(self, from_file: set[int]) -> Iterator[tuple[int, int]]:
        others = set(self.special_ids) - from_file
        return ranges_without(sorted({*self.missing(), *others}), self._rows)

    def _look_up(self, block: Block) -> None:
        self.index.find_rows(block.buffer, block.rows)


class Fallback(Selection):
    """Words that take another spelling's row where the file lacks their own: lower, capitalised, upper.

    While the file is read, the rows of all spellings that may be needed wait under ids of their own. Which word takes
    which is decided at the end, by `settle`.

    Args:
        words: the words, in order.
        pieces: the style of subword tokens, which take the rows of the words they stand for; or `none`.
        case_fallback: whether words take the rows of other cases.
        arrangement: where the special tokens stand, if the rows are to follow the words; None keeps the words that have
            a row, in the order in which the file has it.

    Attributes:
        sources: for each row of the table the id whose vector it takes, or -1.
        hits: the rows that took another spelling, and which.
    """

    indirect = True

    def __init__(
        self,
        words: Vocabulary,
        specials: list[Special],
        specials_at: str = "start",
        rules: Rules | None = None,
        *,
        extra_tokens: Sequence[bytes] = (),
        arrangement: Arrangement | None = None,
        pieces: str = "none",
        case_fallback: bool = True,
    ) -> None:
        super().__init__(specials, specials_at, rules, extra_tokens=extra_tokens)
        self.lookup = "case-fallback" if case_fallback else "exact"
        self._pieces = pieces
        self._spellings = speller(pieces, case_fallback)
        self.arrangement = arrangement
        self._words = words
        self._names: list[bytes] = []
        self._row_of_special: dict[int, int] = {}
        self._order: dict[int, int] = {}  # ids that the file has, in its order
        self._absent: list[bytes] = []
        for word in words:
            for spelling in self._spellings(word):
                self.index.add(spelling.encode())

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def deferred(self) -> range:
        return range(0)

    def row_of(self, id: int) -> int:
        return self._row_of_special[id]

    def settle(self) -> None:
        """Decide which row each word takes, and in which order the rows stand."""
        chosen = [self._choose(word) for word in self._words]
        taken = {special.token for special in self.specials}
        words = [
            (word, source) for word, source in zip(self._words, chosen, strict=True)
            if self.arrangement is not None or (source >= 0 and word not in taken)
        ]  # fmt: skip
        front, end = self.specials, []
        if self.arrangement is not None:
            front, end = self.arrangement.front, self.arrangement.end
        else:
            self._absent = [
                word.encode() for word, source in zip(self._words, chosen, strict=True)
                if source < 0 and word not in taken
            ]  # fmt: skip
            words.sort(key=lambda pair: self._order[pair[1]])
            if self._at_end:
                front, end = end, front
        rows = [(s.token, -1) for s in front] + words + [(s.token, -1) for s in end]
        ids = {special.token: id for special, id in zip(self.specials, self.special_ids, strict=True)}
        for row, (token, source) in enumerate(rows):
            if token in ids:  # its own vector or its init, never another spelling's
                id = ids[token]
                self._row_of_special[id] = row
                source = id if id in self.in_file and id not in self._fixed else -1
            elif source >= 0 and (spelling := self.index.token(source)) != token.encode():
                self.hits.append((row, spelling.decode()))
            self._names.append(token.encode())
            self.sources.append(source)

    def _choose(self, word: str) -> int:
        ids = (self.index.get(spelling.encode()) for spelling in self._spellings(word))
        return next((id for id in ids if self.index.met(id)), -1)

    def vocabulary(self) -> Iterator[bytes]:
        return (name + b"\n" for name in self._names)

    def missing(self) -> list[int]:
        specials = set(self._row_of_special.values())
        return [row for row, source in enumerate(self.sources) if source < 0 and row not in specials]

    def names(self, rows: Sequence[int]) -> list[str]:
        return [self._names[row].decode() for row in rows]

    def texts(self, rows: Sequence[int]) -> list[str]:
        names = self.names(rows)
        return names if self._pieces == "none" else [text_of(name, self._pieces) for name in names]

    @property
    def absent(self) -> list[bytes]:
        return self._absent

    @property
    def id_shift(self) -> int | None:
        return None if self.arrangement is None else self.arrangement.shift

    def rows_of_file(self, from_file: set[int]) -> Iterator[tuple[int, int]]:
        return ranges_without([row for row, source in enumerate(self.sources) if source < 0], len(self.sources))

    def _look_up(self, block: Block) -> None:
        rows = block.rows
        self.index.find_rows(block.buffer, rows)
        for row in rows.rows_in_state(State.NEW):
            self._order[rows.id_of(row)] = len(self._order)


def ranges_without(rows: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """The ranges of 0 .. count-1 between the given rows, which rise."""
    start = 0
    for row in rows:
        if row > start:
            yield start, row
        start = row + 1
    if start < count:
        yield start, count
