"""A bundle made again from its source, with the options that it records, and compared byte for byte."""

from __future__ import annotations

import hashlib
import inspect
import os
import tempfile
import warnings
from typing import Any

from ..bundle.publication import CONFIG, MODEL, VOCAB, Target
from ..bundle.reader import Bundle, pretty, self_sha256, table_sha256
from ..conversion.pipeline import convert
from ..conversion.reading_pass import with_recorded_member
from ..editing.attaching import repeat_steps
from ..errors import UsageError, Vec2embWarning, shown
from ..io.progress import ProgressLike
from ..words.vocabulary import Vocabulary
from ..words.word_list import WordList
from .result import Verification

# What may be different though the table is the same: how the file is called and packed, and who reads it.
_PACKING = ("name", "member", "bytes", "compression")


def check_rebuilt(
    opened: Bundle,
    vocab: Vocabulary,
    source: str | os.PathLike[str],
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
    own = {"allow_pickle": allow_pickle, "threads": threads, "progress": progress}
    with tempfile.TemporaryDirectory(prefix="vec2emb-") as folder:
        target = Target(os.path.join(folder, _recorded_name(opened)))
        with warnings.catch_warnings():  # what is odd was said when the bundle was made
            warnings.simplefilter("ignore", Vec2embWarning)
            config = _convert(source, target, {**arguments, **own})
            if steps := opened.config.get("steps"):
                repeat_steps(target.label, steps)
                config = Bundle(target.label).config
        same = [_compare(*pair, found) for pair in _pairs(opened, target)]
    same.append(_compare_config(opened, config, found))
    if all(same):
        found.identical_sha256 = table_sha256(opened.config)


def _arguments(opened: Bundle, vocab: Vocabulary, found: Verification) -> dict[str, Any] | None:
    """What to give to `convert`; None if the words of the vocabulary given cannot be told."""
    config = opened.config
    source, options = config.get("source"), config["options"]
    if source is None or "format" not in options:
        raise UsageError(
            "not-rebuildable", "the bundle was made from a table in memory, not from a file", path=opened.label
        )
    if extensions := config.get("extensions"):
        sources = ", ".join(shown(one["source"]["name"]) for one in extensions if one["source"])
        raise UsageError(
            "not-rebuildable", "rows were added since the bundle was converted", path=opened.label,
            found=f"{len(extensions)} extension{'' if len(extensions) == 1 else 's'}{sources and f', from {sources}'}",
            hint="rebuild the bundle that was extended; --source compares the rows that it had",
        )  # fmt: skip
    if config.get("trained"):
        raise UsageError("not-rebuildable", "the rows were trained since they were converted", path=opened.label)
    known = inspect.signature(convert).parameters
    arguments = {name: value for name, value in options.items() if name in known}
    arguments["specials"] = [(token, init) for token, init in options["specials"]]
    arguments["shard_size"] = config.get("shard_size")
    arguments["license"], arguments["source_url"] = source.get("license"), source.get("url")
    if options.get("vocab") is not None:
        words = _given_words(options, vocab)
        same = words.sha256 == options["vocab"]["sha256"]
        if not found.check("the vocabulary holds the words that were given", same, f"sha256 {words.sha256}"):
            return None
        arguments["vocab"] = WordList(words, options["vocab"]["name"], corpus=options["vocab"].get("corpus"))
    if options.get("only") is not None:
        arguments["only"] = WordList(_kept_words(config, vocab), options["only"]["name"])
    if arguments.get("train_rows") == "none":
        arguments |= {"train_rows": None, "freeze": True}
    elif arguments.get("train_rows") == "rows":
        arguments["train_rows"] = [row for start, stop in config["train_rows"] for row in range(start, stop)]
    return arguments


def _given_words(options: dict[str, Any], vocab: Vocabulary) -> Vocabulary:
    """The words of `--vocab`: all rows, less the special tokens that were put in front of them or behind."""
    count = options["vocab"]["words"]
    tokens = vocab.tokens
    return Vocabulary(tokens[:count] if options["specials_at"] == "end" else tokens[len(tokens) - count :])


def _kept_words(config: dict[str, Any], vocab: Vocabulary) -> Vocabulary:
    """The words of `--only` that the file has."""
    specials = {special["id"] for special in config["specials"]}
    return Vocabulary([token for row, token in enumerate(vocab.tokens) if row not in specials])


def _recorded_name(opened: Bundle) -> str:
    """The base name under which the bundle was first written: a folder, or the tensors' file."""
    names = list(opened.config["files"])
    return "bundle" if VOCAB in names else next(name for name in names if name.endswith(".safetensors"))


def _convert(source: str | os.PathLike[str], target: Target, arguments: dict[str, Any]) -> dict[str, Any]:
    """The new vec2emb.json."""

    def run(member: str | None) -> dict[str, Any]:
        return convert(source, target.label, **{**arguments, "member": member}).config

    return with_recorded_member(run, source, arguments.get("member"))


def _pairs(opened: Bundle, target: Target) -> list[tuple[str, str, str]]:
    """Each file that is not vec2emb.json: its name, where it is, and where it was rebuilt."""
    if not opened.shards:
        return [(name, opened.target.paths[name], target.paths[name]) for name in (MODEL, VOCAB)]
    named = [(os.path.basename(path), path) for path, _ in opened.checksums()]
    return [(name, path, os.path.join(target.path, name)) for name, path in named]


def _compare(name: str, path: str, rebuilt: str, found: Verification) -> bool:
    if not os.path.exists(rebuilt):
        return found.check(f"rebuilt {name} is the same", False, "no such file")
    digests = []
    for one in (path, rebuilt):
        with open(one, "rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return found.check(
        f"rebuilt {name} is the same", digests[0] == digests[1], f"sha256 {digests[1]} instead of {digests[0]}"
    )


def _compare_config(opened: Bundle, config: dict[str, Any], found: Verification) -> bool:
    """Compare the two vec2emb.json, once what may be different is made the same and noted."""
    recorded = opened.config
    rebuilt = {**config, "source": dict(config["source"]), "options": dict(config["options"])}
    for name in _PACKING:
        _excuse(rebuilt["source"], recorded["source"], name, f"source {name}", found)
    _excuse(rebuilt["options"], recorded["options"], "member", "option member", found)
    _excuse(rebuilt, recorded, "vec2emb_version", "version of vec2emb", found)
    only = recorded["options"].get("only")
    if only is not None:
        rebuilt["options"]["only"] = only
        found.notes.append("of the words of --only, the bundle holds those that were kept; the others are not known")
        if recorded["options"].get("bad_rows") == "skip":  # faulty rows of those others were counted
            _excuse(rebuilt["source"], recorded["source"], "skipped", "skipped rows", found)
    rebuilt["self_sha256"] = self_sha256(rebuilt)
    with open(opened.target.paths[CONFIG], "rb") as file:
        same = file.read() == pretty(rebuilt)
    different = [key for key in {**recorded, **rebuilt} if recorded.get(key) != rebuilt.get(key)]
    listed = ", ".join(map(shown, different)) or "the spelling of it alone"
    return found.check(f"rebuilt {CONFIG} is the same", same, f"different: {listed}")


def _excuse(rebuilt: dict[str, Any], recorded: dict[str, Any], name: str, what: str, found: Verification) -> None:
    if name in recorded and rebuilt.get(name) != recorded[name]:
        found.notes.append(f"{what}: {shown(str(rebuilt.get(name)))} now, recorded {shown(str(recorded[name]))}")
        rebuilt[name] = recorded[name]
