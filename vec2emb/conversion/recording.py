"""What a conversion writes into the manifest: where each row comes from, the source, and the options to repeat it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._kernel import TokenIndex
from ..bundle.manifest import REPLAY_VERSION, Replay, Scalar, SourceRecord, TokenizerRecord, WordsRecord
from ..bundle.provenance import RANDOM, Generated, Provenance, SpecialToken, Spellings
from ..bundle.ranges import Ranges
from ..errors import UsageError, shown
from ..formats import Detected
from ..io.sources import Source
from ..words.word_list import WordList
from .engine import Counts
from .planning import Plan
from .reading_pass import ReadOptions
from .selection import Selection

if TYPE_CHECKING:
    from ..formats.matrix.source import MatrixSource

READING = {
    "format": "format",
    "dim": "dim",
    "limit": "limit",
    "bad_rows": "bad_rows",
    "nonfinite": "nonfinite",
    "unit_norm": "unit_norm",
    "dtype": "dtype",
    "encoding": "encoding",
    "encoding_errors": "encoding_errors",
    "binary_dtype": "binary_dtype",
    "byte_order": "byte_order",
    "member": "member",
}
"""Name of an option in a replay record, version 1 -> field of `ReadOptions` and argument of `convert`."""

TABLE = {
    "pad": "pad",
    "unk": "unk",
    "zero_padding": "zero_padding",
    "unk_init": "unk_init",
    "specials_at": "specials_at",
    "pieces": "pieces",
    "case_fallback": "case_fallback",
    "lowercase": "lowercase",
    "duplicates": "duplicates",
    "missing": "missing",
    "seed": "seed",
    "positions": "positions",
    "max_positions": "max_positions",
    "position_preset": "position_preset",
    "train_positions": "train_positions",
    "scale": "scale",
    "train_rows": "train_rows",
    "key_style": "key_style",
    "word_key": "word_key",
    "position_key": "position_key",
    "tied_head": "tied_head",
}
"""The same of options that say how the table is made -> argument of `convert`."""


def provenance_of(selection: Selection, inits: Sequence[str], missing: str, seed: int) -> Provenance:
    """Where each row of a table comes from.

    Args:
        selection: settled.
        inits: how each special token is set.
        missing: how the rows of words are set that the source lacks.
        seed: of random rows.
    """
    specials = tuple(
        SpecialToken(special.token, selection.row_of(id), special.role, init, _seed(init, seed))
        for id, special, init in zip(selection.special_ids, selection.specials, inits, strict=True)
    )
    lacking = Ranges.of_rows(selection.missing())
    return Provenance(
        len(selection),
        specials,
        (Generated(missing, _seed(missing, seed), lacking),) if lacking else (),
        Spellings.of_pairs(selection.hits),
    )


def _seed(init: str, seed: int) -> int | None:
    return seed if init in RANDOM else None


def source_record(
    source: Source | MatrixSource, detected: Detected, counts: Counts, selection: Selection, read: ReadOptions
) -> SourceRecord:
    """What was read."""
    done = {
        "lowercase": selection.rules.lowercase,
        "unit-norm": read.unit_norm,
        "nonfinite-zero": read.nonfinite == "zero",
    }
    return SourceRecord(
        name=source.name,
        format=detected.format,
        member=source.member,
        compression=source.compression,
        bytes=source.size if source.size is not None else source.consumed,
        rows=counts.rows,
        skipped=counts.skipped.count,
        duplicates=selection.duplicates,
        merged=selection.merged,
        limited=counts.limited,
        treated=tuple(name for name, is_done in done.items() if is_done),
    )


def reading_options(read: ReadOptions) -> dict[str, Scalar]:
    """How a source is read, under the names of a replay record."""
    return {name: getattr(read, field) for name, field in READING.items()}


def recorded_reading(replay: Replay, **own: Any) -> ReadOptions:
    """How a source was read; `own` are fields that are not recorded, or not taken from the record."""
    known = {field: replay.options[name] for name, field in READING.items() if name in replay.options}
    options: dict[str, Any] = {**known, **own}
    return ReadOptions(**options)


def replay_of(read: ReadOptions, plan: Plan, rest: Mapping[str, Scalar]) -> Replay:
    """The options of a conversion."""
    options = {**reading_options(read), **plan.recorded(), **rest}
    specials = tuple((special.token, special.init) for special in plan.specials)
    return Replay(REPLAY_VERSION, options, specials, words_record(plan.words), words_record(plan.only))


def words_record(words: WordList | None) -> WordsRecord | None:
    """What is recorded of a list of words."""
    return None if words is None else WordsRecord(words.label, len(words.vocab), words.vocab.sha256, words.corpus)


def tokenizer_record(words: WordList | None) -> TokenizerRecord | None:
    """The tokenizer of the corpus that words come from."""
    corpus = None if words is None else words.corpus
    return None if corpus is None or corpus.tokenizer is None else TokenizerRecord(corpus.tokenizer, corpus.lowercase)


def arguments_of(replay: Replay, names: Mapping[str, str], label: str) -> dict[str, Any]:
    """The recorded options as arguments of a function.

    Args:
        names: name in the record -> argument.
        label: the bundle, for messages.

    Raises:
        UsageError: this version does not know the record, or an option in it.
    """
    unknown = [name for name in replay.options if name not in names]
    if replay.version != REPLAY_VERSION or unknown:
        raise UsageError(
            "not-rebuildable", "this version of vec2emb cannot repeat the recorded operation", path=label,
            expected=f"options of version {REPLAY_VERSION}",
            found=", ".join(map(shown, unknown)) or f"version {replay.version}",
            hint="use the version of vec2emb that wrote the bundle",
        )  # fmt: skip
    return {names[name]: value for name, value in replay.options.items()}


def row_finder(selection: Selection) -> Callable[[str], int | None]:
    """The row of a token; the index over the finished vocabulary is made when the first is asked for."""

    @functools.cache
    def index() -> TokenIndex:
        return TokenIndex.over(b"".join(selection.vocabulary()))

    def find(token: str) -> int | None:
        row = index().get(token.encode())
        return row if row >= 0 else None

    return find
