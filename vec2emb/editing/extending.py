"""A bundle that grows: new words and special tokens behind the old rows, which keep their ids and their bits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..bundle.manifest import REPLAY_VERSION, Manifest, Replay, SourceRecord, Step, Training
from ..bundle.provenance import RANDOM, Generated, SpecialToken
from ..bundle.ranges import Ranges
from ..bundle.reader import Bundle, compare_with_existing, open_bundle
from ..bundle.table import stored_positions
from ..bundle.target import target_of
from ..bundle.training import TrainLike, TrainRows
from ..bundle.writer import BundleWriter
from ..conversion.reading_pass import ReadOptions
from ..conversion.recording import reading_options, words_record
from ..conversion.report import announce
from ..errors import UsageError, Vec2embWarning, VocabularyError, shown
from ..io.progress import ProgressLike
from ..io.sources import SourceLike
from ..options.commands import EXTEND
from ..options.definition import check
from ..words.special_tokens import Special, SpecialLike, arrange
from ..words.vocabulary import Vocabulary
from ..words.word_list import WordsLike, read_words
from .new_rows import FEW, NewRows

Pathish = str | os.PathLike[str]


class Extension:
    """What a bundle gained.

    Attributes:
        path: the new bundle, as the caller gave it.
        rows, dim: of it.
        added: new rows, `first` being the first of them.
        present: words and special tokens that the bundle had already; they keep their rows.
        from_source: new rows that the source gave.
        missing: new words that no source gave; `missing_init` is how their rows were set, `first_missing` names a few.
        specials: the new special tokens: token, id, role, init, seed.
        train: which rows are to train now: `all`, `none`, `new` or `rows`; `training_rows` is how many these are.
        source: what is recorded of the source, or None.
        kept_existing: whether the target held the same bundle already, so that nothing was written.
        warnings: all that was odd.
    """

    def __init__(self, path: str, before: int, rows: int, dim: int) -> None:
        self.path = path
        self.rows = rows
        self.dim = dim
        self.added = rows - before
        self.first = before
        self.present = 0
        self.from_source = 0
        self.missing = 0
        self.missing_init: str | None = None
        self.first_missing: list[str] = []
        self.specials: tuple[SpecialToken, ...] = ()
        self.train = "all"
        self.training_rows = 0
        self.source: SourceRecord | None = None
        self.kept_existing = False
        self.warnings: list[Vec2embWarning] = []

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            **vars(self),
            "specials": [special.to_dict() for special in self.specials],
            "source": None if self.source is None else self.source._asdict(),
            "warnings": [warning.to_dict() for warning in self.warnings],
        }


def extend(
    bundle: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    tokens: Iterable[str] | None = None,
    vocab: WordsLike | None = None,
    specials: Iterable[SpecialLike] = (),
    pad: str | None = None,
    unk: str | None = None,
    unk_init: str | None = None,
    missing: str | None = None,
    seed: int = 0,
    source: SourceLike | None = None,
    member: str | None = None,
    allow_pickle: bool = False,
    format: str = "auto",
    encoding: str = "utf-8",
    encoding_errors: str = "error",
    binary_dtype: str | None = None,
    byte_order: str | None = None,
    duplicates: str = "first",
    bad_rows: str = "error",
    nonfinite: str = "error",
    unit_norm: bool | None = None,
    train_rows: TrainLike = "added",
    freeze: bool = False,
    if_exists: str = "error",
    strict: bool = False,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> Extension:
    """Write a bundle with further rows behind those of another, which keep their ids and, to the bit, their values.

    Words that the bundle has already, as they stand, keep their rows. Positions, scale, names and type stay what they
    are. Where the new rows come from is recorded beside what was recorded before.

    Args:
        bundle: a folder, or NAME.safetensors.
        output: where to write. It may be the bundle itself with if_exists="replace".
        tokens: the new words.
        vocab: or a list of them: a file (text, vocab.json or tokenizer.json), a mapping, a `Vocabulary`.
        specials: new special tokens, each `TOKEN`, `TOKEN=INIT` or a pair, in front of the new words. INIT is `zeros`,
            `mean`, `normal` (unless said otherwise), `uniform`, or `token:WORD` for a copy of a row of the bundle.
        pad, unk: a padding or unknown token for a bundle that has none.
        unk_init: INIT of the unknown token; by default `mean`.
        source: a file of vectors that has the new words, of the same space as the bundle's. A warning says when the
            vectors of words that both have are not the same.
        member, format, encoding, encoding_errors, binary_dtype, byte_order: of the source, as in `convert`.
        allow_pickle, duplicates, bad_rows, nonfinite, threads: likewise.
        unit_norm: scale its rows to length 1; by default as the bundle's were.
        missing: the row of a new word that the source lacks: `normal`, `mean`, `zeros`, `uniform`, or `error`, fitted
            to the bundle's own rows. It must be said where there is no source; with one it is `normal`.
        seed: of the random rows.
        train_rows: the rows that are to train from now on: those that were `added`; `keep` what is recorded; or `all`,
            `new`, words or ids as in `convert`.
        freeze: record that no row trains.
        if_exists: what to do about a bundle at `output`.
        strict: make every warning an error.
        progress: True for the usual display, or a function of (bytes done, bytes in all or None).

    Raises:
        InputError: there is no bundle, it is damaged, or the source is at fault.
        VocabularyError: a word stands twice, or is missing with `missing="error"`.
        UsageError: arguments exclude each other, or there is nothing to add.
        OutputError: the result cannot be written.
        TryAgainError: another run is writing there.
    """
    arguments = check(EXTEND, locals())
    if freeze and not (isinstance(train_rows, str) and train_rows == "added"):
        raise UsageError(
            "freeze-and-train", "freeze and train_rows exclude each other", hint="leave one of the two out"
        )
    missing = _check_arguments(tokens, vocab, source, missing)
    given = vocab if tokens is None else list(tokens)
    wanted = None if given is None else read_words(given)
    asked = arrange(pad, unk, unk_init, specials)
    if wanted is None and not asked:
        raise UsageError("nothing-to-add", "what is to be added?", hint="add --tokens, --vocab, --special or --unk")
    Bundle(bundle)  # what is no bundle is refused before anything is touched
    target = target_of(output)
    with target.publication(if_exists) as publication:
        opened, old = open_bundle(bundle)  # again: nobody else can write it any more, if it is the target
        opened.check_sum()
        manifest = opened.manifest
        if unit_norm is None:
            unit_norm = manifest.source is not None and "unit-norm" in manifest.source.treated
        read = ReadOptions.of(arguments, unit_norm=unit_norm, dtype=manifest.dtype)
        new_specials = _special_tokens(asked, old)
        words = _new_words(wanted.vocab if wanted else Vocabulary([]), old, {special.token for special in asked})
        dim, count = manifest.dim, len(old) + len(new_specials) + len(words)
        done = Extension(target.label, len(old), count, dim)
        done.present = len({special.token for special in asked}.union(wanted.vocab if wanted else ())) - done.added
        with BundleWriter(publication, dim, manifest.dtype, stored=True, shard_size=manifest.shard_size) as writer:
            gained = NewRows(opened, old, new_specials, words, writer.staging_rows())
            if source is not None:
                gained.read(source, read, duplicates)
            gained.initialize(missing, seed)
            _describe(done, gained, missing, new_specials, seed)
            options = {**reading_options(read), "duplicates": duplicates, "missing": missing, "seed": seed}
            replay = Replay(REPLAY_VERSION, options, vocab=words_record(wanted))
            grown = _grown(manifest, gained, done, Step("extend", replay, gained.source))
            plan = None if freeze else train_rows
            grown = grown._replace(training=_training(manifest, old, grown, gained, done, plan))
            done.train, done.training_rows = grown.training.kind, grown.training.count(count, grown.padding_idx)
            announce(done.warnings, strict)
            for at, stored in opened.pieces():
                writer.rows.write(at, stored)
            for at, rows in gained.stored():
                writer.rows.write(done.first + at, rows)
            writer.write_vocabulary([bytes(old.blob), gained.blob()])
            written = writer.finish(grown, stored_positions(opened))
        if if_exists == "keep" and not target.is_free():
            compare_with_existing(target, written)
            done.kept_existing = True
        else:
            publication.publish()
    return done


def _check_arguments(tokens: Any, vocab: Any, source: Any, missing: str | None) -> str:
    """The policy for words that no source gives."""
    if tokens is not None and vocab is not None:
        raise UsageError("two-word-lists", "the new words are given twice", expected="--tokens or --vocab")
    if source is not None and tokens is None and vocab is None:
        raise UsageError(
            "source-without-words", "only words take rows from a source, special tokens do not",
            hint="add --tokens or --vocab, or leave --from out",
        )  # fmt: skip
    if missing is None:
        if source is None and (tokens is not None or vocab is not None):
            raise UsageError(
                "rows-from-where", "where are the rows of the new words to come from?",
                expected="--from SOURCE, --missing POLICY, or both",
            )  # fmt: skip
        missing = "normal"
    return missing


def _special_tokens(asked: list[Special], old: Vocabulary) -> list[Special]:
    """Those that are new.

    Raises:
        UsageError: a role is taken, or a token that is to have one has a row already.
    """
    for special, taken in ((s, old.pad_token if s.role == "padding" else old.unk_token) for s in asked):
        if special.role == "special":
            continue
        if taken is not None:
            raise UsageError(
                "role-taken",
                f"the bundle has its {special.role} token",
                found=shown(taken),
                hint="leave the option out",
            )
        if special.token in old.tokens:
            raise UsageError(
                "role-of-old-row", f"the {special.role} token would be a word that has a row already",
                found=f"{shown(special.token)}, row {old.tokens.index(special.token)}", hint="choose another token",
            )  # fmt: skip
    return [special for special in asked if special.token not in old.tokens]


def _new_words(words: Vocabulary, old: Vocabulary, special: set[str]) -> Vocabulary:
    new = [word for word in words if word not in old.tokens and word not in special]
    capitals = [word for word in new if word != word.lower()] if old.lookup == "lower" else []
    if capitals:
        raise VocabularyError(
            "words-not-lowercase", f"the bundle's tokens were lower-cased, but {len(capitals)} of the words are not",
            found=", ".join(map(shown, capitals[:5])), hint="lower-case them as well",
        )  # fmt: skip
    return Vocabulary(new)


def _describe(done: Extension, gained: NewRows, missing: str, specials: list[Special], seed: int) -> None:
    done.source = gained.source
    done.missing = len(gained.missing)
    done.from_source = done.added - done.missing - len(specials)
    if done.missing:
        done.missing_init, done.first_missing = missing, gained.names(gained.missing[:FEW])
    inits = [special.init or special.default for special in specials]
    done.specials = tuple(
        SpecialToken(special.token, done.first + row, special.role, init, seed if init in RANDOM else None)
        for row, (special, init) in enumerate(zip(specials, inits, strict=True))
    )
    done.warnings = gained.warnings
    if not done.added:
        text = f"{done.path}: the bundle has all of the words already; nothing was added"
        done.warnings.append(Vec2embWarning("nothing-new", text, path=done.path))


def _grown(manifest: Manifest, gained: NewRows, done: Extension, step: Step) -> Manifest:
    """The manifest with the new rows; which rows train is still as before."""
    if not done.added:
        return manifest
    before = manifest.provenance
    seed = step.replay.options["seed"]
    lacking = Ranges.of_rows(done.first + row for row in gained.missing)
    generated = before.generated
    if lacking and done.missing_init is not None:
        own_seed = seed if done.missing_init in RANDOM and isinstance(seed, int) else None
        generated += (Generated(done.missing_init, own_seed, lacking),)
    provenance = before._replace(
        size=done.rows,
        specials=(*before.specials, *done.specials),
        generated=generated,
        added=(*before.added, (len(manifest.steps), Ranges((done.first, done.rows)))),
    )
    all_lowercase = manifest.all_lowercase
    if all_lowercase:
        words = gained.blob().decode().split("\n")[len(done.specials) : -1]
        all_lowercase = all(word == word.lower() for word in words)
    return manifest._replace(provenance=provenance, steps=(*manifest.steps, step), all_lowercase=all_lowercase)


def _training(
    manifest: Manifest,
    old: Vocabulary,
    grown: Manifest,
    gained: NewRows,
    done: Extension,
    train_rows: TrainLike | None,
) -> Training:
    """Which rows are to train now."""
    padding, before = grown.padding_idx, manifest.training
    new = grown.provenance.new_rows()
    if isinstance(train_rows, str) and train_rows == "added" and done.added:
        rows = Ranges((done.first, done.rows))
        return Training("rows", rows if padding is None else rows - Ranges((padding, padding + 1)))
    if isinstance(train_rows, str) and train_rows in ("added", "keep"):
        return Training("new", new) if before.kind == "new" else before
    plan = TrainRows.parse(train_rows) or TrainRows("none")
    added = Vocabulary.from_blob(gained.blob(), padding_idx=None, unk_idx=None).tokens

    def find(word: str) -> int | None:
        if word in old.tokens:
            return old.tokens.index(word)
        return done.first + added.index(word) if word in added else None

    return Training(plan.kind, plan.ranges(done.rows, padding, new, find))
