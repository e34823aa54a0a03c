"""Rows that a bundle gains: new special tokens and new words, on their way from a source or an initial value.

They are made as float32 in a file of their own, and put behind the old rows when all of them are there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from math import isfinite

from ..bundle.manifest import SourceRecord
from ..bundle.reader import DTYPES, Bundle, largest
from ..bundle.table import rows_of_source, stored_rows
from ..bundle.writer import narrowed
from ..conversion.initialization import Statistics, initial_vector
from ..conversion.parsed_rows import ParsedRows
from ..conversion.reading_pass import ReadOptions, open_pass
from ..conversion.recording import source_record
from ..conversion.selection import Rules
from ..conversion.vocabulary_order import GivenOrder
from ..errors import FormatError, InputError, Vec2embWarning, VocabularyError, shown
from ..io.sources import SourceLike
from ..safetensors_files.rows import RowFile
from ..words.special_tokens import Special
from ..words.vocabulary import Vocabulary
from ..words.word_list import WordList

_SAMPLE = 1000  # words of the bundle that are looked for in the source as well
FEW = 10  # words named of many


class NewRows:
    """New rows: first the special tokens, then the words, numbered from 0.

    Args:
        bundle, vocab: what grows.
        specials: new special tokens, each with an init.
        words: new words.
        file: where the rows go, float32.

    Attributes:
        missing: rows of words that no source gave, rising.
        source: what is recorded of the source, or None.
        warnings: what was odd about it.
    """

    def __init__(
        self, bundle: Bundle, vocab: Vocabulary, specials: Sequence[Special], words: Vocabulary, file: RowFile
    ) -> None:
        self._bundle = bundle
        self._vocab = vocab
        self._specials = specials
        self._words = words
        self._file = file
        self._limit = min(largest(bundle.manifest.dtype), largest("float32"))
        self._statistics = Statistics(lambda: rows_of_source(bundle), file.dim)
        self.missing = list(range(len(specials), len(specials) + len(words)))
        self.source: SourceRecord | None = None
        self.warnings: list[Vec2embWarning] = []

    def __len__(self) -> int:
        return len(self._specials) + len(self._words)

    def read(self, source: SourceLike, options: ReadOptions, duplicates: str) -> None:
        """Take the rows of words from a file of vectors, which is only opened if there are none.

        Raises:
            InputError: the source is at fault, or its rows have another width.
        """
        rules = Rules(duplicates, lowercase=self._vocab.lookup == "lower")
        with open_pass(source, options) as reading:
            label, dim = reading.source.label, reading.detected.dim
            if dim != self._file.dim:
                raise FormatError(
                    "other-dim", "the source has rows of another width than the bundle", path=label,
                    expected=f"{self._file.dim} values", found=str(dim),
                )  # fmt: skip
            if not len(self._words):
                return
            comparison = _Comparison(self._bundle, self._vocab, self._sample())
            selection = GivenOrder(WordList(self._words, None), [], rules=rules, extra_tokens=comparison.tokens)

            def take(parsed: ParsedRows) -> None:
                for id, rows in parsed.runs():
                    known = max(0, min(len(self._words) - id, len(rows) // (4 * dim)))
                    if known:
                        self._file.write(len(self._specials) + id, rows[: known * 4 * dim])
                    comparison.compare(id + known - len(self._words), rows[known * 4 * dim :])

            counts, self.warnings = reading.run(selection, take)
            self.missing = [row + len(self._specials) for row in selection.missing()]
            self.warnings += comparison.warnings(label)
            self.source = source_record(reading.source, reading.detected, counts, selection, options)

    def initialize(self, missing: str, seed: int) -> None:
        """Make the rows that no source gave.

        Raises:
            VocabularyError: `missing` is `error`, and there are such words.
            InputError: a row cannot be made, or does not fit the type.
        """
        if self.missing and missing == "error":
            more = ", .." if len(self.missing) > FEW else ""
            raise VocabularyError(
                "missing-words", f"the source lacks {len(self.missing)} of the new words",
                path=self.source.name if self.source else None,
                found=", ".join(map(shown, self.names(self.missing[:FEW]))) + more,
                hint="--missing normal, mean, uniform or zeros makes rows for them",
            )  # fmt: skip
        for row, special in enumerate(self._specials):
            self._put(row, special.token, special.init or special.default, seed)
        for row in self.missing:
            self._put(row, self._words.tokens[row - len(self._specials)], missing, seed)

    def names(self, rows: Sequence[int]) -> list[str]:
        """Tokens of words among the new rows."""
        return [self._words.tokens[row - len(self._specials)] for row in rows]

    def blob(self) -> bytes:
        """The new tokens in UTF-8, each followed by LF."""
        return b"".join(special.token.encode() + b"\n" for special in self._specials) + bytes(self._words.blob)

    def stored(self) -> Iterator[tuple[int, bytes | bytearray]]:
        """(first row, rows as the bundle stores them), piece by piece."""
        at = 0
        for block in self._file.blocks(0, len(self)):
            yield at, narrowed(block, self._bundle.manifest.dtype)
            at += len(block) // (4 * self._file.dim)

    def _put(self, row: int, token: str, init: str, seed: int) -> None:
        vector = self._copy(token, init) if init.startswith("token:") else None
        if vector is None:
            vector = initial_vector(init, token, seed, self._statistics)
            if not all(isfinite(value) and abs(value) <= self._limit for value in vector):
                raise InputError(
                    "out-of-range", f"the row of {shown(token)} ({init}) does not fit the type",
                    hint="choose another INIT or --missing",
                )  # fmt: skip
        self._file.write(row, vector.tobytes())

    def _copy(self, token: str, init: str) -> array[float]:
        word = init.removeprefix("token:")
        if word not in self._vocab.tokens:
            raise InputError(
                "init-word-missing", f"the row of {shown(token)} is to be that of a word that the bundle does not have",
                path=self._bundle.label, found=shown(word),
            )  # fmt: skip
        row = self._vocab.tokens.index(word)
        return array("f", stored_rows(self._bundle, row, row + 1).tobytes())

    def _sample(self) -> list[int]:
        """Some old rows that should be the same in a source of the same vectors: no copies and no trained ones."""
        provenance = self._bundle.manifest.provenance
        rows = provenance.rows_of_file() - provenance.borrowed_rows() - provenance.trained
        return list(islice(rows.rows(), _SAMPLE))


class _Comparison:
    """Whether words that bundle and source share have the same vectors, as those of one file have."""

    def __init__(self, bundle: Bundle, vocab: Vocabulary, rows: list[int]) -> None:
        self._bundle = bundle
        self._rows = rows
        self.tokens = [vocab.tokens[row].encode() for row in rows]
        self._verdicts = bytearray(len(rows))  # of each: 1 the same, 2 another

    def compare(self, at: int, rows: memoryview) -> None:
        """Take float32 rows of the tokens from `at` on."""
        dtype, dim = self._bundle.manifest.dtype, self._bundle.manifest.dim
        stored, width = narrowed(bytes(rows), dtype), dim * DTYPES[dtype][1]
        for i in range(len(stored) // width):
            same = self._bundle.stored_bytes(self._rows[at + i], 1) == stored[i * width : (i + 1) * width]
            self._verdicts[at + i] = 1 if same else 2

    def warnings(self, label: str) -> list[Vec2embWarning]:
        """The warning that the two are not of one space, if it looks so."""
        same, other = self._verdicts.count(1), self._verdicts.count(2)
        if other <= same:
            return []
        text = (
            f"{label}: of {same + other:,} words of the bundle that were met there, {other:,} have other vectors; "
            "vectors of different files do not go together"
        )
        return [Vec2embWarning("other-vectors", text, count=other, path=label)]
