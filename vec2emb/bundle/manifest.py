"""What vec2emb.json holds: the types, and the one writer of them. `manifest_parser` has the one parser.

The records are named tuples and not dataclasses, whose module takes longer to load than a small conversion to run.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..io.digest import digest_of
from ..positions.plan import PositionPlan
from ..safetensors_files.sharding import FileRecord, is_shard_name
from ..version import __version__
from ..words.token_lookup import Lookup
from ..words.word_list import CorpusRecord
from .provenance import Provenance, SpecialToken
from .ranges import Ranges

SCHEMA = 2  # of vec2emb.json
FORMAT_VERSION = 1  # of the metadata in the tensors' header
REPLAY_VERSION = 1

Scalar = str | int | float | None  # and so True and False


class WordsRecord(NamedTuple):
    """A list of words that was given.

    Attributes:
        name: of its file; None for words in memory.
        words: how many.
        sha256: of the words, each followed by LF; None where it was not recorded.
        corpus: the corpus whose tokens they are.
    """

    name: str | None
    words: int
    sha256: str | None = None
    corpus: CorpusRecord | None = None


class Replay(NamedTuple):
    """The options of an operation that change what comes out, so that it can be repeated.

    Attributes:
        version: of the names in `options`.
        options: values by names of this record's own, which no change of a Python signature touches.
        specials: the special tokens asked for, each with its init.
        vocab, only: the lists of words.
    """

    version: int
    options: Mapping[str, Scalar]
    specials: tuple[tuple[str, str | None], ...] = ()
    vocab: WordsRecord | None = None
    only: WordsRecord | None = None


class SourceRecord(NamedTuple):
    """The file that rows were read from.

    Attributes:
        name: its base name.
        format, member, compression, bytes: what it is.
        rows, skipped, duplicates, merged, limited: what reading it found, as in `Report`.
        license, url: of the vectors.
        treated: what was done to the rows: `lowercase`, `unit-norm`, `nonfinite-zero`, and the types narrower than the
            table's that they were rounded to before.
        origin: of a bundle, the source that it records itself.
    """

    name: str
    format: str
    member: str | None
    compression: str
    bytes: int | None
    rows: int
    skipped: int
    duplicates: int
    merged: int
    limited: bool
    license: str | None = None
    url: str | None = None
    treated: tuple[str, ...] = ()
    origin: "SourceRecord | None" = None


class Step(NamedTuple):
    """What was done to a bundle since its rows were converted.

    Attributes:
        kind: `extend`, `attach-positions` or `resize-positions`.
        replay: its options.
        source: the file that new rows were read from.
    """

    kind: str
    replay: Replay
    source: SourceRecord | None = None


class Scale(NamedTuple):
    """What a module multiplies words by before it adds positions."""

    kind: str
    factor: float


class Training(NamedTuple):
    """Which rows train: `all`, `none`, `new` or `rows`, of the last two with these rows."""

    kind: str
    rows: Ranges | None = None

    def count(self, size: int, padding_idx: int | None) -> int:  # type: ignore[override]
        """How many of `size` rows train."""
        if self.rows is not None:
            return len(self.rows)
        return 0 if self.kind == "none" else size - (padding_idx is not None)


class TokenizerRecord(NamedTuple):
    """The tokenizer whose tokens are the words."""

    kind: str
    lowercase: bool


class PositionRecord(NamedTuple):
    """A position table and the keys that it is stored under.

    Attributes:
        kind, num, offset, padding_idx, trains: as in `PositionPlan`, decided.
        preset, layout, frequencies, base, odd, start: of a sinusoidal table.
        init, std, seed: of a learned one.
    """

    keys: tuple[str, ...]
    kind: str
    num: int
    offset: int
    padding_idx: int | None
    trains: bool
    preset: str | None = None
    layout: str | None = None
    frequencies: str | None = None
    base: float | None = None
    odd: str | None = None
    start: float | None = None
    init: str | None = None
    std: float | None = None
    seed: int | None = None

    @classmethod
    def of(cls, plan: PositionPlan, keys: tuple[str, ...]) -> "PositionRecord":
        """The record of a settled plan."""
        if plan.offset is None or plan.trains is None:
            raise AssertionError("a plan that is not settled")
        return cls(keys=keys, **plan._asdict())

    def plan(self) -> PositionPlan:
        """The plan that makes this table."""
        return PositionPlan(**{name: getattr(self, name) for name in PositionPlan._fields})

    def to_dict(self) -> dict[str, Any]:
        """The options of its kind, and the keys."""
        return {**self.plan().recorded(), "keys": list(self.keys)}


class Manifest(NamedTuple):
    """All that a bundle records of its table.

    Attributes:
        provenance: where each row comes from, V and the special tokens among it.
        dim, dtype: D, and the type of the stored rows.
        key, key_style, tied_head: names of tensors, and whose they are.
        positions, scale: None without.
        training: which rows train.
        lookup: how a token is looked up that the vocabulary does not have: `exact`, `lower`, `case-fallback`.
        all_lowercase: whether no token but special ones has a capital; None where that was not looked at.
        tokenizer: the tokenizer of the corpus whose tokens are the words.
        source: None for a table from memory or from scratch.
        replay: how the source was converted; None for a table from memory.
        earlier_steps: of a bundle that was converted, what had been done to it.
        steps: what was done since the conversion.
        files: the other files, by base name.
        shard_size: of a table in shards, the bytes of one at most.
        vec2emb_version: what wrote the bundle.
        self_sha256: of the rest of vec2emb.json; empty for a manifest that was not written.
    """

    provenance: Provenance
    dim: int
    dtype: str
    key: str = "weight"
    key_style: str = "plain"
    tied_head: str | None = None
    positions: PositionRecord | None = None
    scale: Scale | None = None
    training: Training = Training("all")
    lookup: Lookup = "exact"
    all_lowercase: bool | None = None
    tokenizer: TokenizerRecord | None = None
    source: SourceRecord | None = None
    replay: Replay | None = None
    earlier_steps: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()
    files: Mapping[str, FileRecord] = {}
    shard_size: int | None = None
    vec2emb_version: str = __version__
    self_sha256: str = ""

    @property
    def from_scratch(self) -> bool:
        """Whether all rows of the conversion were generated, without a source."""
        return self.replay is not None and self.replay.options.get("from_scratch") is not None

    @property
    def rows(self) -> int:
        """V."""
        return self.provenance.size

    @property
    def specials(self) -> tuple[SpecialToken, ...]:
        """The special tokens."""
        return self.provenance.specials

    @property
    def padding_idx(self) -> int | None:
        """The row of padding."""
        return self.provenance.token_of_role("padding")

    @property
    def unk_idx(self) -> int | None:
        """The row of the unknown token."""
        return self.provenance.token_of_role("unknown")

    @property
    def shards(self) -> list[str]:
        """The names of the shards, in order; none for a table in one file."""
        return sorted(filter(is_shard_name, self.files))

    @property
    def position_keys(self) -> tuple[str, ...]:
        """The keys of the position table; none without one."""
        return () if self.positions is None else self.positions.keys

    @property
    def factor(self) -> float:
        """What words are multiplied by."""
        return 1.0 if self.scale is None else self.scale.factor

    @property
    def history(self) -> tuple[Step, ...]:
        """All steps; `added` of the provenance refers to them by number."""
        return (*self.earlier_steps, *self.steps)

    def added(self) -> Iterator[tuple[Step, Ranges]]:
        """The steps that added rows, each with its rows."""
        history = self.history
        for step, rows in self.provenance.added:
            yield history[step], rows

    def table_digest(self) -> str:
        """The digest of model.safetensors; of shards, SHA-256 over the digests of all of them, in their order."""
        if self.shard_size is not None:
            return digest_of(bytes.fromhex(self.files[name].digest) for name in self.shards)
        return next(record.digest for name, record in self.files.items() if name.endswith(".safetensors"))

    def header(self) -> dict[str, Any]:
        """What the tensors' own metadata hold, but for the hash of the vocabulary."""
        return {
            "format_version": FORMAT_VERSION,
            "rows": self.rows,
            "dim": self.dim,
            "dtype": self.dtype,
            "padding_idx": self.padding_idx,
            "unk_idx": self.unk_idx,
            "train": self.training.kind,
            "positions": None if self.positions is None else self.positions.plan().facts(),
            "scale": None if self.scale is None else self.scale._asdict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of vec2emb.json, as JSON holds it."""
        content = {
            "schema": SCHEMA,
            "vec2emb_version": self.vec2emb_version,
            "key": self.key,
            "key_style": self.key_style,
            "tied_head": self.tied_head,
            **self.header(),
            "positions": None if self.positions is None else self.positions.to_dict(),
            "train_rows": None if self.training.rows is None else self.training.rows.text,
            "lookup": self.lookup,
            "all_lowercase": self.all_lowercase,
            "tokenizer": None if self.tokenizer is None else self.tokenizer._asdict(),
            "specials": [special.to_dict() for special in self.specials],
            "provenance": _provenance(self.provenance),
            "source": _source(self.source),
            "replay": _replay(self.replay),
            "earlier_steps": [_step(step) for step in self.earlier_steps],
            "steps": [_step(step) for step in self.steps],
            "files": {name: record.to_dict() for name, record in self.files.items()},
        }
        if self.shard_size is not None:
            content["shard_size"] = self.shard_size
        return {**content, "self_sha256": self.self_sha256}

    def signed(self) -> "Manifest":
        """With `self_sha256`."""
        return self._replace(self_sha256=content_sha256(self.to_dict()))

    def encode(self) -> bytes:
        """The bytes of vec2emb.json."""
        return pretty(self.to_dict())


def _provenance(provenance: Provenance) -> dict[str, Any]:
    return {
        "generated": [{**one._asdict(), "rows": one.rows.text} for one in provenance.generated],
        "spellings": {"rows": provenance.spellings.rows.text, "tokens": provenance.spellings.text},
        "given": provenance.given.text,
        "added": [{"step": step, "rows": rows.text} for step, rows in provenance.added],
        "inherited": provenance.inherited.text,
        "trained": provenance.trained.text,
    }


def _source(source: SourceRecord | None) -> dict[str, Any] | None:
    if source is None:
        return None
    return {**source._asdict(), "treated": list(source.treated), "origin": _source(source.origin)}


def _step(step: Step) -> dict[str, Any]:
    return {"kind": step.kind, "source": _source(step.source), "replay": _replay(step.replay)}


def _replay(replay: Replay | None) -> dict[str, Any] | None:
    if replay is None:
        return None
    return {
        "version": replay.version,
        "options": dict(replay.options),
        "specials": [list(special) for special in replay.specials],
        "vocab": _words(replay.vocab),
        "only": _words(replay.only),
    }


def _words(words: WordsRecord | None) -> dict[str, Any] | None:
    if words is None:
        return None
    corpus = None
    if words.corpus is not None:
        names = words.corpus.names
        corpus = {**words.corpus._asdict(), "names": None if names is None else list(names)}
    return {**words._asdict(), "corpus": corpus}


def canonical(value: Any) -> str:
    """JSON with one spelling: sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def pretty(value: Any) -> bytes:
    """JSON for people, in UTF-8. A file's name may hold bytes that are no text; their surrogates stay escaped."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def content_sha256(content: Mapping[str, Any]) -> str:
    """SHA-256 of the content of vec2emb.json, in its canonical spelling and without the field that holds the hash."""
    import hashlib

    rest = {name: value for name, value in content.items() if name != "self_sha256"}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()
