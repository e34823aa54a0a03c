"""What a conversion writes into the manifest: where each row comes from, the source, and the options to repeat it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._kernel import TokenIndex
from ..bundle.manifest import REPLAY_VERSION, Manifest, Replay, Scalar, SourceRecord, TokenizerRecord, WordsRecord
from ..bundle.provenance import RANDOM, STANDARD, Generated, Provenance, SpecialToken, Spellings
from ..bundle.ranges import Ranges
from ..errors import BundleError, UsageError, shown
from ..formats import Detected
from ..io.sources import Source
from ..options.conversion import CONVERT
from ..options.definition import check
from ..words.word_list import WordList
from .engine import Counts
from .planning import Plan
from .reading_pass import ReadOptions
from .selection import Selection

if TYPE_CHECKING:
    from ..bundle.derivation import RowMap
    from ..formats.matrix.source import MatrixSource
    from ..words.vocabulary import Vocabulary

_RECORDED = {option.recorded: option.name for option in CONVERT if option.recorded is not None}
_OF_THEIR_OWN = ("specials", "vocab", "only")  # fields of `Replay`
_LOOKUP = ("duplicates", "lowercase", "pieces")

READING = {name: argument for name, argument in _RECORDED.items() if argument in ReadOptions._fields}
"""Name of an option in a replay record, version 1 -> field of `ReadOptions` and argument of `convert`."""

TABLE = {name: argument for name, argument in _RECORDED.items() if name not in {*READING, *_OF_THEIR_OWN}}
"""The same for options that say how the table is made -> argument of `convert`."""


def provenance_of(
    selection: Selection, inits: Sequence[str], missing: str, seed: int, *, from_scratch: bool = False
) -> Provenance:
    """Where each row of a table comes from.

    Args:
        selection: settled.
        inits: how each special token is set.
        missing: how the rows of words are set that the source lacks.
        seed: of random rows.
        from_scratch: whether random rows were fitted to no rows.
    """
    if from_scratch:
        inits, missing = [STANDARD.get(init, init) for init in inits], STANDARD.get(missing, missing)
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


def recorded_reading(replay: Replay, label: str, **own: Any) -> ReadOptions:
    """How a source was read and its words were looked up.

    Args:
        replay: the record.
        label: the bundle, for messages.
        own: fields that are not recorded, or not taken from the record.

    Raises:
        BundleError: a recorded option has a value that it cannot have.
    """
    looked_up = {name: argument for name, argument in TABLE.items() if argument in _LOOKUP}
    known = {field: replay.options[name] for name, field in {**READING, **looked_up}.items() if name in replay.options}
    try:
        check(CONVERT, {name: value for name, value in known.items() if name not in own})
        options = ReadOptions.of(known, **own)
        options.read_as()
    except UsageError as error:
        raise BundleError(
            "bundle-config", f"$.replay.options is not what convert() takes ({error})", path=label,
            hint="the file was edited or damaged: convert again, or copy the bundle again",
        ) from error  # fmt: skip
    return options


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


def with_records_of(
    matrix: MatrixSource | None, manifest: Manifest, selection: Selection, *, keep_training: bool
) -> Manifest:
    """The manifest with what the source records of its rows, if that is a bundle."""
    if matrix is None or matrix.manifest is None or matrix.vocab is None:
        return manifest
    from ..bundle.derivation import derive_manifest  # late: few sources are bundles

    rows, old = row_map(selection, manifest.provenance, matrix.vocab), matrix.manifest
    if selection.rules.lowercase:
        lowered = tuple(special._replace(token=special.token.lower()) for special in old.specials)
        old = old._replace(provenance=old.provenance._replace(specials=lowered))
    return derive_manifest(manifest, old, rows, keep_training=keep_training)


def row_map(selection: Selection, provenance: Provenance, old: Vocabulary) -> RowMap:
    """Where the rows of a bundle went: each under its own token, and where another word took its spelling.

    Args:
        selection: settled.
        provenance: of the new table, without what the bundle records.
        old: the tokens of the bundle.
    """
    find, lowercase, tokens = row_finder(selection), selection.rules.lowercase, old.tokens
    made = {special.id for special in provenance.specials if special.init != "file"}
    made |= {*provenance.generated_rows().rows(), *provenance.spellings.rows.rows()}
    takers: dict[str, list[int]] = {}
    for row, spelling in provenance.spellings.pairs():
        takers.setdefault(spelling, []).append(row)
    kept = _kept_by_lowercase(tokens, selection.rules.duplicates) if lowercase else {}

    def rows(row: int) -> list[int]:
        token = tokens[row].lower() if lowercase else tokens[row]
        if lowercase and kept[token] != row:
            return []
        own = find(token)
        return [*([] if own is None or own in made else [own]), *takers.get(token, ())]

    return rows


def _kept_by_lowercase(tokens: Iterable[str], duplicates: str) -> dict[str, int]:
    """Of the tokens that become the same, the row that is kept: the lower-case one, else the first or the last."""
    kept: dict[str, int] = {}
    exact: set[str] = set()
    for row, token in enumerate(tokens):
        lowered = token.lower()
        if lowered == token:
            exact.add(token)
            kept[token] = row
        elif lowered not in kept or (duplicates == "last" and lowered not in exact):
            kept[lowered] = row
    return kept


def row_finder(selection: Selection) -> Callable[[str], int | None]:
    """The row of a token; the index over the finished vocabulary is made when the first is asked for."""

    @functools.cache
    def index() -> TokenIndex:
        return TokenIndex.over(b"".join(selection.vocabulary()))

    def find(token: str) -> int | None:
        row = index().get(token.encode())
        return row if row >= 0 else None

    return find
