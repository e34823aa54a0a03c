"""A bundle made again from its source, with the options that it records, and compared byte for byte."""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any

from ..bundle.manifest import Manifest, Replay, Scalar, WordsRecord
from ..bundle.publication import CONFIG, MODEL, VOCAB, Target
from ..bundle.reader import Bundle
from ..conversion.pipeline import convert
from ..conversion.reading_pass import with_recorded_member
from ..conversion.recording import READING, TABLE, arguments_of
from ..editing.attaching import repeat_steps
from ..errors import UsageError, Vec2embWarning, shown
from ..io.digest import file_digest
from ..io.progress import ProgressLike
from ..words.vocabulary import Vocabulary
from ..words.word_list import WordList
from .result import Verification

# What may be different though the table is the same: how the file is called and packed, and who reads it.
_PACKING = ("name", "member", "bytes", "compression")


def check_rebuilt(
    opened: Bundle,
    vocab: Vocabulary,
    source: str | os.PathLike[str] | bool,
    found: Verification,
    allow_pickle: bool,
    threads: int | None,
    progress: ProgressLike,
) -> None:
    """Convert again into a folder for temporary files, compare, and record what was found.

    Raises:
        UsageError: the bundle was not made by `convert`.
        InputError: the source cannot be converted so.
    """
    arguments = _arguments(opened, vocab, found)
    if arguments is None:
        return
    file = _file(source, opened.manifest.from_scratch, opened.label)
    own = {"allow_pickle": allow_pickle, "threads": threads, "progress": progress}
    with tempfile.TemporaryDirectory(prefix="vec2emb-") as folder:
        target = Target(os.path.join(folder, _recorded_name(opened)))
        with warnings.catch_warnings():  # what is odd was said when the bundle was made
            warnings.simplefilter("ignore", Vec2embWarning)
            manifest = _convert(file, target, {**arguments, **own})
            if opened.manifest.steps:
                repeat_steps(target.label, opened.manifest.steps)
                manifest = Bundle(target.label).manifest
        same = [_compare(*pair, found) for pair in _pairs(opened, target)]
    same.append(_compare_manifests(opened, manifest, found))
    if all(same):
        found.identical_digest = opened.manifest.table_digest()


def _arguments(opened: Bundle, vocab: Vocabulary, found: Verification) -> dict[str, Any] | None:
    """What to give to `convert`; None if the words of the vocabulary given cannot be told."""
    manifest = opened.manifest
    source, replay = manifest.source, manifest.replay
    if replay is None or (source is None and not manifest.from_scratch):
        raise UsageError(
            "not-rebuildable", "the bundle was made from a table in memory, not from a file", path=opened.label
        )
    if extensions := [step for step in manifest.steps if step.kind == "extend"]:
        sources = ", ".join(shown(step.source.name) for step in extensions if step.source)
        raise UsageError(
            "not-rebuildable", "rows were added since the bundle was converted", path=opened.label,
            found=f"{len(extensions)} extension{'' if len(extensions) == 1 else 's'}{sources and f', from {sources}'}",
            hint="rebuild the bundle that was extended; --source compares the rows that it had",
        )  # fmt: skip
    if manifest.provenance.trained - manifest.provenance.inherited:
        raise UsageError("not-rebuildable", "the rows were trained since they were converted", path=opened.label)
    arguments: dict[str, Any] = {
        **arguments_of(replay, {**READING, **TABLE}, opened.label),
        "specials": list(replay.specials),
        "shard_size": manifest.shard_size,
        "license": None if source is None else source.license,
        "source_url": None if source is None else source.url,
    }
    if replay.vocab is not None:
        words = _given_words(replay.vocab, vocab)
        same = words.vocab.sha256 == replay.vocab.sha256
        if not found.check("the vocabulary holds the words that were given", same, f"sha256 {words.vocab.sha256}"):
            return None
        arguments["vocab"] = words
    if replay.only is not None:
        arguments["only"] = WordList(_kept_words(replay, vocab), replay.only.name)
    if arguments.get("train_rows") == "none":
        arguments |= {"train_rows": None, "freeze": True}
    elif arguments.get("train_rows") == "rows" and manifest.training.rows is not None:
        arguments["train_rows"] = list(manifest.training.rows.rows())
    return arguments


def _given_words(given: WordsRecord, vocab: Vocabulary) -> WordList:
    """The words of `--vocab`: all rows, less the special tokens that were put in front of them or behind."""
    tokens, count = vocab.tokens, given.words
    first = Vocabulary(tokens[:count])
    if first.sha256 == given.sha256:  # no row is in front, so that the ids are those of the words
        return WordList(first, given.name, corpus=given.corpus, has_ids=True)
    return WordList(Vocabulary(tokens[len(tokens) - count :]), given.name, corpus=given.corpus)


def _kept_words(replay: Replay, vocab: Vocabulary) -> Vocabulary:
    """The words of `--only` that the file has."""
    asked = {token for token, _ in replay.specials}
    return Vocabulary([token for token in vocab.tokens if token not in asked])


def _recorded_name(opened: Bundle) -> str:
    """The base name under which the bundle was first written: a folder, or the tensors' file."""
    names = list(opened.manifest.files)
    return "bundle" if VOCAB in names else next(name for name in names if name.endswith(".safetensors"))


def _file(source: str | os.PathLike[str] | bool, from_scratch: bool, label: str) -> str | os.PathLike[str] | None:
    """The file to convert; None for a table from scratch.

    Raises:
        UsageError: there must be one, or there must be none.
    """
    if isinstance(source, bool):
        if not from_scratch:
            raise UsageError(
                "rebuild-source", "a bundle that was made of a file is rebuilt from that file", path=label,
                hint="--rebuild FILE; in Python rebuild=FILE",
            )  # fmt: skip
        return None
    if from_scratch:
        raise UsageError(
            "rebuild-source", "a table from scratch is rebuilt without a file", path=label, found=shown(str(source)),
            hint="--rebuild behind BUNDLE, without a value; in Python rebuild=True",
        )  # fmt: skip
    return source


def _convert(source: str | os.PathLike[str] | None, target: Target, arguments: dict[str, Any]) -> Manifest:
    """The new manifest."""

    def run(member: str | None) -> Manifest:
        return convert(source, target.label, **{**arguments, "member": member}).manifest

    return run(None) if source is None else with_recorded_member(run, source, arguments.get("member"))


def _pairs(opened: Bundle, target: Target) -> list[tuple[str, str, str]]:
    """Each file that is not vec2emb.json: its name, where it is, and where it was rebuilt."""
    if not opened.shards:
        return [(name, opened.target.paths[name], target.paths[name]) for name in (MODEL, VOCAB)]
    named = [(os.path.basename(path), path) for path, _ in opened.checksums()]
    return [(name, path, os.path.join(target.path, name)) for name, path in named]


def _compare(name: str, path: str, rebuilt: str, found: Verification) -> bool:
    if not os.path.exists(rebuilt):
        return found.check(f"rebuilt {name} is the same", False, "no such file")
    digests = [file_digest(one) for one in (path, rebuilt)]
    return found.check(
        f"rebuilt {name} is the same", digests[0] == digests[1], f"digest {digests[1]} instead of {digests[0]}"
    )


def _compare_manifests(opened: Bundle, rebuilt: Manifest, found: Verification) -> bool:
    """Compare the two vec2emb.json, once what may be different is made the same and noted."""
    recorded = opened.manifest
    source, replay = rebuilt.source, rebuilt.replay
    if replay is None or recorded.replay is None:
        raise AssertionError("a conversion without a record of its options")
    excused = [*_PACKING]
    if recorded.replay.only is not None:
        replay = replay._replace(only=recorded.replay.only)
        found.notes.append("of the words of --only, the bundle holds those that were kept; the others are not known")
        if recorded.replay.options.get("bad_rows") == "skip":  # faulty rows of those others were counted
            excused.append("skipped")
    if source is not None and recorded.source is not None:
        for name in excused:
            now, before = getattr(source, name), getattr(recorded.source, name)
            _note(f"source {name.replace('_', ' ')}", now, before, found)
            source = source._replace(**{name: before})
    member = recorded.replay.options.get("member")
    _note("option member", replay.options.get("member"), member, found)
    replay = replay._replace(options={**replay.options, "member": member})
    _note("version of vec2emb", rebuilt.vec2emb_version, recorded.vec2emb_version, found)
    rebuilt = rebuilt._replace(source=source, replay=replay, vec2emb_version=recorded.vec2emb_version).signed()
    with open(opened.target.paths[CONFIG], "rb") as file:
        same = file.read() == rebuilt.encode()
    now, before = rebuilt.to_dict(), recorded.to_dict()
    different = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    listed = ", ".join(map(shown, different)) or "the spelling of it alone"
    return found.check(f"rebuilt {CONFIG} is the same", same, f"different: {listed}")


def _note(what: str, now: Scalar, before: Scalar, found: Verification) -> None:
    if now != before:
        found.notes.append(f"{what}: {shown(str(now))} now, recorded {shown(str(before))}")
