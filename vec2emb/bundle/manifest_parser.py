"""The one parser of vec2emb.json: every field that is known must be there with a value of its type.

An error names the field by its JSON path, as `$.source.rows`. Fields that are not known are ignored. Ranges of rows
are only parsed when they are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, NoReturn, TypeVar, cast, get_args

from ..errors import BundleError, shown
from ..positions.key_styles import STYLES
from ..safetensors_files.sharding import FileRecord
from ..words.token_lookup import Lookup
from ..words.word_list import CorpusRecord
from . import manifest as m
from .provenance import Generated, Provenance, SpecialToken, Spellings
from .publication import CONFIG, Target, config_bytes
from .ranges import Ranges

T = TypeVar("T")

DTYPES = ("float32", "float16", "bfloat16")
ROLES = ("padding", "unknown", "special")
TRAINING = ("all", "none", "new", "rows")


def read_manifest(target: Target) -> m.Manifest:
    """The manifest of the bundle at a target.

    Raises:
        BundleError: vec2emb.json is missing, is malformed, or has another schema.
    """
    path = target.paths[CONFIG]
    try:
        content = config_bytes(path)
    except FileNotFoundError:
        raise BundleError(
            "bundle-incomplete", "the bundle has no vec2emb.json", path=target.label, expected=path,
            hint="copy all three files of a bundle together",
        ) from None  # fmt: skip
    except OSError as error:
        raise BundleError("bundle-config", f"{CONFIG} cannot be read ({error})", path=path) from error
    return parse_manifest(content, path)


def parse_manifest(content: bytes, path: str) -> m.Manifest:
    """The manifest in the bytes of a vec2emb.json.

    Raises:
        BundleError: it is malformed, or has another schema.
    """
    value = _load(content, path)
    root = _Fields(value, "$", path)
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != m.SCHEMA or type(schema) is not int:
        raise BundleError(
            "bundle-version", f"{CONFIG} has another schema than this version of vec2emb reads", path=path,
            expected=f"schema {m.SCHEMA}", found="none" if schema is None else shown(str(schema)),
            hint="convert again with this version, or install the version that wrote the bundle",
        )  # fmt: skip
    if root.count("format_version") != m.FORMAT_VERSION:
        root.fail("format_version", f"{m.FORMAT_VERSION}")
    return _manifest(root)


def self_checksum(path: str) -> tuple[str, str]:
    """The `self_sha256` that a vec2emb.json records, and the one that its content has.

    Raises:
        BundleError: the file is not JSON.
    """
    with open(path, "rb") as file:
        content = _load(file.read(), path)
    return str(content.get("self_sha256")), m.content_sha256(content)


def _load(content: bytes, path: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BundleError("bundle-config", f"{CONFIG} is not JSON ({error})", path=path) from error


class _Fields:
    """A JSON object whose fields are read with a check of their types."""

    def __init__(self, value: Any, where: str, file: str) -> None:
        self._where = where
        self._file = file
        if not isinstance(value, dict):
            self._refuse(where, "an object", value)
        self._value: dict[str, Any] = value

    def _refuse(self, where: str, expected: str, found: Any) -> NoReturn:
        raise BundleError(
            "bundle-config", f"{where} must be {expected}", path=self._file, expected=expected,
            found="nothing" if found is ... else shown(json.dumps(found)),
            hint="the file was edited or damaged: convert again, or copy the bundle again",
        )  # fmt: skip

    def fail(self, name: str, expected: str) -> NoReturn:
        """Refuse a field."""
        self._refuse(self.path(name), expected, self.get(name))

    def path(self, name: str) -> str:
        """The JSON path of a field."""
        return f"{self._where}.{name}"

    def get(self, name: str) -> Any:
        """The value of a field; an ellipsis where it is missing."""
        return self._value.get(name, ...)

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self.get(name) not in (..., None)

    def _typed(self, name: str, kind: type[T], expected: str) -> T:
        value = self.get(name)
        if type(value) is not kind:
            self.fail(name, expected)
        return value

    def text(self, name: str) -> str:
        return self._typed(name, str, "a string")

    def unicode(self, name: str) -> str:
        """A string that UTF-8 can hold, as tokens must."""
        value = self.text(name)
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            self.fail(name, "a string without surrogates")
        return value

    def flag(self, name: str) -> bool:
        return self._typed(name, bool, "true or false")

    def count(self, name: str, least: int = 0) -> int:
        value = self._typed(name, int, f"a whole number from {least}")
        if value < least:
            self.fail(name, f"a whole number from {least}")
        return value

    def integer(self, name: str) -> int:
        return self._typed(name, int, "a whole number")

    def number(self, name: str) -> float:
        value = self.get(name)
        if type(value) not in (int, float) or not abs(value) < float("inf"):
            self.fail(name, "a finite number")
        return value  # type: ignore[no-any-return]

    def choice(self, name: str, choices: Collection[str]) -> str:
        value = self.get(name)
        if not isinstance(value, str) or value not in choices:
            self.fail(name, f"one of {', '.join(choices)}")
        return value

    def scalar(self, name: str) -> m.Scalar:
        value = self.get(name)
        if value is None or type(value) in (str, bool, int, float):
            return value  # type: ignore[no-any-return]
        return self.fail(name, "a string, a number, true, false or null")

    def optional(self, read: Callable[[str], T], name: str) -> T | None:
        """A field that may be null."""
        return None if self.get(name) is None else read(name)

    def fields(self, name: str) -> _Fields:
        """A field that is an object."""
        return _Fields(self.get(name), self.path(name), self._file)

    def items(self, name: str) -> list[Any]:
        return self._typed(name, list, "a list")

    def each(self, name: str, read: Callable[[_Fields], T]) -> tuple[T, ...]:
        """A field that is a list of objects."""
        items = enumerate(self.items(name))
        return tuple(read(_Fields(item, f"{self.path(name)}[{i}]", self._file)) for i, item in items)

    def texts(self, name: str) -> tuple[str, ...]:
        """A field that is a list of strings."""
        items = self.items(name)
        if not all(isinstance(item, str) for item in items):
            self.fail(name, "a list of strings")
        return tuple(items)

    def ranges(self, name: str) -> Ranges:
        return Ranges.read(self.text(name), self.path(name), self._file)

    def spellings(self, name: str) -> Spellings:
        fields = self.fields(name)
        return Spellings(fields.ranges("rows"), fields.unicode("tokens"), (self.path(name), self._file))


def _manifest(root: _Fields) -> m.Manifest:
    earlier, steps = root.each("earlier_steps", _step), root.each("steps", _step)
    training = m.Training(root.choice("train", TRAINING), root.optional(root.ranges, "train_rows"))
    if (training.rows is None) != (training.kind in ("all", "none")):
        root.fail("train_rows", "ranges if train is new or rows, else null")
    manifest = m.Manifest(
        provenance=_provenance(root, len(earlier) + len(steps)),
        dim=root.count("dim", 1),
        dtype=root.choice("dtype", DTYPES),
        key=root.text("key"),
        key_style=root.choice("key_style", STYLES),
        tied_head=root.optional(root.text, "tied_head"),
        positions=_positions(root.fields("positions")) if root.has("positions") else None,
        scale=_scale(root.fields("scale")) if root.has("scale") else None,
        training=training,
        lookup=cast(Lookup, root.choice("lookup", get_args(Lookup))),
        all_lowercase=root.optional(root.flag, "all_lowercase"),
        tokenizer=_tokenizer(root.fields("tokenizer")) if root.has("tokenizer") else None,
        source=_source(root, "source"),
        replay=_replay(root, "replay"),
        earlier_steps=earlier,
        steps=steps,
        files=_files(root.fields("files")),
        shard_size=root.count("shard_size", 1) if root.has("shard_size") else None,
        vec2emb_version=root.text("vec2emb_version"),
        self_sha256=root.text("self_sha256"),
    )
    for name in ("padding_idx", "unk_idx"):
        row = root.optional(root.count, name)
        if row != getattr(manifest, name):
            root.fail(name, f"{json.dumps(getattr(manifest, name))}, as $.specials has it")
    return manifest


def _provenance(root: _Fields, steps: int) -> Provenance:
    fields, size = root.fields("provenance"), root.count("rows")

    def special(one: _Fields) -> SpecialToken:
        if (row := one.count("id")) >= size:
            one.fail("id", f"a row below {size}")
        return SpecialToken(
            one.unicode("token"), row, one.choice("role", ROLES), one.unicode("init"), one.optional(one.integer, "seed")
        )

    def added(one: _Fields) -> tuple[int, Ranges]:
        if (step := one.count("step")) >= steps:
            one.fail("step", f"the number of a step, below {steps}")
        return step, one.ranges("rows")

    specials = root.each("specials", special)
    for role in ("padding", "unknown"):
        if sum(special.role == role for special in specials) > 1:
            root.fail("specials", f"tokens of which one has the role {role}")
    return Provenance(
        size=size,
        specials=specials,
        generated=fields.each(
            "generated",
            lambda one: Generated(one.text("init"), one.optional(one.integer, "seed"), one.ranges("rows")),
        ),
        spellings=fields.spellings("spellings"),
        given=fields.ranges("given"),
        added=fields.each("added", added),
        inherited=fields.ranges("inherited"),
        trained=fields.ranges("trained"),
    )


def _positions(one: _Fields) -> m.PositionRecord:
    keys, num, offset = one.texts("keys"), one.count("num", 1), one.count("offset")
    padding_idx = one.optional(one.count, "padding_idx")
    if not keys:
        one.fail("keys", "a list of one key or more")
    if padding_idx is not None and padding_idx >= offset:
        one.fail("padding_idx", f"a row below {offset}, or null")
    kind = one.choice("kind", ("learned", "sinusoidal"))
    record = m.PositionRecord(
        keys, kind, num, offset, padding_idx, one.flag("trains"), one.optional(one.text, "preset")
    )
    if kind == "learned":
        return record._replace(
            init=one.optional(one.text, "init"), std=one.optional(one.number, "std"),
            seed=one.optional(one.integer, "seed"),
        )  # fmt: skip
    return record._replace(
        layout=one.optional(one.text, "layout"), frequencies=one.optional(one.text, "frequencies"),
        base=one.optional(one.number, "base"), odd=one.optional(one.text, "odd"),
        start=one.optional(one.number, "start"),
    )  # fmt: skip


def _scale(one: _Fields) -> m.Scale:
    scale = m.Scale(one.text("kind"), one.number("factor"))
    if scale.factor <= 0:
        one.fail("factor", "a number over 0")
    return scale


def _tokenizer(one: _Fields) -> m.TokenizerRecord:
    return m.TokenizerRecord(one.text("kind"), one.flag("lowercase"))


def _source(parent: _Fields, name: str) -> m.SourceRecord | None:
    if parent.get(name) is None:
        return None
    one = parent.fields(name)
    return m.SourceRecord(
        name=one.text("name"),
        format=one.text("format"),
        member=one.optional(one.text, "member"),
        compression=one.text("compression"),
        bytes=one.optional(one.count, "bytes"),
        rows=one.count("rows"),
        skipped=one.count("skipped"),
        duplicates=one.count("duplicates"),
        merged=one.count("merged"),
        limited=one.flag("limited"),
        license=one.optional(one.text, "license"),
        url=one.optional(one.text, "url"),
        treated=one.texts("treated"),
        origin=_source(one, "origin"),
    )


def _replay(parent: _Fields, name: str) -> m.Replay | None:
    if parent.get(name) is None:
        return None
    one = parent.fields(name)
    options = one.fields("options")
    specials = []
    for item in one.items("specials"):
        if not (isinstance(item, list) and [type(part) for part in item] in ([str, str], [str, type(None)])):
            one.fail("specials", "pairs of a token and its init, or null")
        specials.append((item[0], item[1]))
    return m.Replay(
        one.count("version", 1), {name: options.scalar(name) for name in options}, tuple(specials),
        _words(one, "vocab"), _words(one, "only"),
    )  # fmt: skip


def _words(parent: _Fields, name: str) -> m.WordsRecord | None:
    if parent.get(name) is None:
        return None
    one = parent.fields(name)
    corpus = None
    if one.get("corpus") is not None:
        of = one.fields("corpus")
        corpus = CorpusRecord(
            of.optional(of.texts, "names"), of.optional(of.text, "tokenizer"), of.flag("lowercase"),
            of.optional(of.text, "field"),
            of.count("min_count"), of.optional(of.count, "max_size"), of.count("distinct"), of.count("total"),
        )  # fmt: skip
    return m.WordsRecord(one.optional(one.text, "name"), one.count("words"), one.optional(one.text, "sha256"), corpus)


def _step(one: _Fields) -> m.Step:
    replay = _replay(one, "replay")
    if replay is None:
        one.fail("replay", "an object")
    return m.Step(one.text("kind"), replay, _source(one, "source"))


def _files(files: _Fields) -> dict[str, FileRecord]:
    found = {}
    for name in files:
        one = files.fields(name)
        rows = one.get("rows")
        if rows is not ... and not (isinstance(rows, list) and [type(row) for row in rows] == [int, int]):
            one.fail("rows", "a pair of rows")
        digest = one.text("digest")
        if not re.fullmatch("[0-9a-f]{64}", digest):
            one.fail("digest", "64 hexadecimal digits")
        found[name] = FileRecord(one.count("bytes"), digest, None if rows is ... else (rows[0], rows[1]))
    return found
