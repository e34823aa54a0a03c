"""What a file of vectors, a bundle or a safetensors file holds."""

from __future__ import annotations

import os

from ..bundle.publication import VOCAB
from ..bundle.reader import Bundle
from ..conversion.parsed_rows import discard
from ..conversion.reading_pass import Pass, ReadOptions, open_pass
from ..conversion.report import announce
from ..conversion.selection import Selection
from ..errors import BundleError, InputError, UsageError, Vec2embWarning, printable
from ..formats.matrix.recognition import is_bundle
from ..io.digest import file_digest
from ..io.progress import ProgressLike
from ..io.sources import SourceLike
from ..io.urls import is_url, label_of, plain
from ..options.commands import INSPECT
from ..options.definition import check
from ..safetensors_files.header import TensorInfo, pieces, read_header
from ..typed import JsonReport

SHOWN_TOKENS = 10


class Inspection:
    """What was found.

    Attributes:
        kind: `vectors`, `bundle` or `safetensors`.
        facts: what it is, by name, in the order in which people want to know.
        checks: what was checked, with `ok` and, where it is not, what was found.
        warnings: what is odd.
    """

    def __init__(self, path: str, kind: str) -> None:
        self.path = path
        self.kind = kind
        self.facts: JsonReport = {}
        self.checks: list[JsonReport] = []
        self.warnings: list[Vec2embWarning] = []

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return all(check["ok"] for check in self.checks)

    def check(self, name: str, ok: bool, found: str | None = None) -> None:
        """Record a check."""
        self.checks.append({"check": name, "ok": ok, "found": None if ok else found})

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        return {
            "path": self.path,
            "kind": self.kind,
            **self.facts,
            "checks": self.checks,
            "ok": self.ok,
            "warnings": [warning.to_dict() for warning in self.warnings],
        }

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.kind}"]
        lines += [
            f"  {name.replace('_', ' ')}: {_plain(value)}" for name, value in self.facts.items() if value is not None
        ]
        lines += [
            f"  ok: {check['check']}" if check["ok"] else f"  FAILED: {check['check']} ({check['found']})"
            for check in self.checks
        ]
        return printable("\n".join(lines))


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(repr(item) if isinstance(item, str) else str(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items() if item not in (None, False, []))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def inspect(
    path: SourceLike,
    *,
    member: str | None = None,
    sha256: str | None = None,
    allow_pickle: bool = False,
    format: str = "auto",
    dim: int | None = None,
    encoding: str = "utf-8",
    encoding_errors: str = "error",
    binary_dtype: str | None = None,
    byte_order: str | None = None,
    count: bool = False,
    progress: ProgressLike = False,
) -> Inspection:
    """Say what a file of vectors, a bundle, or any safetensors file holds.

    Args:
        path: what to look at, a path or a URL: whatever `convert` takes, or any safetensors file. A URL that ends with
            `/` or `.safetensors`, or names a folder of an object store, is that of a bundle.
        member, allow_pickle, format, dim, encoding, encoding_errors, binary_dtype, byte_order: as for `convert`.
        sha256: what a file of vectors must have, as it lies there; all of it is read to see that.
        count: read all of a file of vectors: exact rows, duplicates, and every oddity; by default only its head is read
            and the rows are estimated.
        progress: as for `convert`.

    Raises:
        InputError: it is none of these, or is damaged.
        CheckError: it has not the SHA-256 that was given.
        TryAgainError: the network fails.
    """
    given = check(INSPECT, locals())
    options = ReadOptions.of(given, nonfinite="keep")
    if isinstance(path, str | os.PathLike):
        label = plain(os.fspath(path))
        if is_bundle(label):
            if member is not None:
                raise UsageError(
                    "member-without-archive", "a member can be named of an archive only", path=label_of(label)
                )
            return _inspect_remote(label) if is_url(label) else _inspect_tensors(label)
    return _inspect_vectors(path, options, count)


def _inspect_vectors(path: SourceLike, options: ReadOptions, count: bool) -> Inspection:
    with open_pass(path, options) as opened:
        source, detected = opened.source, opened.detected
        found = Inspection(source.label, "vectors")
        if count:
            selection = Selection([], expected=opened.expected_rows)
            counts, found.warnings = opened.run(selection, discard, fill=False)
            announce(found.warnings, strict=False)
            rows: int | None = counts.rows
            first = [selection.index.token(id) for id in range(min(SHOWN_TOKENS, len(selection)))]
        else:
            first = _first_tokens(opened)
            source.finish()
            if options.sha256 is not None:
                source.check_unchanged()
            size = source.size if source.compression == "none" else None
            rows = detected.header_rows or (detected.estimated_rows(size) if size is not None else None)
        found.facts = {
            "format": detected.format,
            "member": source.member,
            "compression": source.compression,
            "dim": detected.dim,
            "dim_from": detected.dim_from,
            "header_rows": detected.header_rows,
            "rows": rows,
            "rows_are": "counted" if count else "from the header" if detected.header_rows else "estimated",
            "bytes": source.size,
            **(opened.matrix.facts if opened.matrix is not None else {}),
            "first_tokens": [token.decode("utf-8", "backslashreplace") for token in first],
        }
        if count:
            found.facts["duplicates"] = selection.duplicates
    return found


def _first_tokens(opened: Pass) -> list[bytes]:
    """The first tokens, without reading on; of rows that are faulty there is none to show."""
    block = opened.reader.new_block()
    first: list[bytes] = []
    while len(first) < SHOWN_TOKENS and opened.reader.read(block):
        opened.reader.scan(block)
        first += [block.token(row) for row in range(block.rows.count) if not block.rows.fault_of(row)[0]]
    return first[:SHOWN_TOKENS]


def _inspect_remote(url: str) -> Inspection:
    """A copy of what is there now."""
    from ..bundle.download import downloaded

    with downloaded(url) as folder:
        found = _inspect_bundle(folder, Bundle(folder))
    found.path = label_of(url)
    return found


def _inspect_tensors(label: str) -> Inspection:
    try:
        bundle = Bundle(label)
    except InputError as error:
        if not label.endswith(".safetensors") or error.code not in ("bundle-incomplete", "not-a-bundle"):
            raise
        return _inspect_safetensors(label)
    return _inspect_bundle(label, bundle)


def _inspect_bundle(label: str, bundle: Bundle) -> Inspection:
    from ..words.vocabulary import Vocabulary

    found = Inspection(label, "bundle")
    manifest = bundle.manifest
    provenance = manifest.provenance
    found.facts = {
        "rows": manifest.rows,
        "dim": manifest.dim,
        "dtype": manifest.dtype,
        "key": manifest.key,
        "padding_idx": manifest.padding_idx,
        "unk_idx": manifest.unk_idx,
        "train": manifest.training.kind,
        "positions": None if manifest.positions is None else manifest.positions.to_dict(),
        "vec2emb_version": manifest.vec2emb_version,
        "specials": [f"{special.token}={special.id} ({special.init})" for special in manifest.specials],
        "source": None if manifest.source is None else manifest.source.name,
        "tokenizer": None if manifest.tokenizer is None else manifest.tokenizer.kind,
        "options": None if manifest.replay is None else dict(manifest.replay.options),
    }
    if bundle.shards:
        found.facts["shards"] = len(bundle.shards)
        found.facts["shard_size"] = manifest.shard_size
    for path, recorded in bundle.checksums():
        actual = file_digest(path)
        found.check(f"digest of {os.path.basename(path)}", actual == recorded, actual)
    try:
        vocab = Vocabulary.map_file(
            bundle.target.paths[VOCAB], padding_idx=None, unk_idx=None, sha256=bundle.vocab_sha256
        )
    except InputError as error:
        found.check("vocabulary belongs to the table", False, str(error))
    else:
        found.check("vocabulary belongs to the table", len(vocab) == manifest.rows, f"{len(vocab)} tokens")
        found.facts["first_tokens"] = list(vocab.tokens[:SHOWN_TOKENS])
    try:
        provenance.parse()
    except BundleError as error:
        found.check("records of rows can be read", False, str(error))
    else:
        found.facts["generated_rows"] = len(provenance.generated_rows()) or None
        found.facts["added_rows"] = len(provenance.added_rows()) or None
        found.facts["trained_rows"] = len(provenance.trained) or None
    padding = manifest.padding_idx
    if padding is not None and provenance.zeroes_padding:
        found.check("padding row is zero", not any(bundle.stored_bytes(padding, 1)), f"row {padding} is not zero")
    return found


def _inspect_safetensors(label: str) -> Inspection:
    """Any safetensors file; if its metadata name a padding row, that row of every table in it."""
    header = read_header(label)
    found = Inspection(label, "safetensors")
    found.facts = {
        "metadata": header.metadata,
        "tensors": [f"{name} {tensor.dtype}{list(tensor.shape)}" for name, tensor in header.tensors.items()],
    }
    padding = header.metadata.get("padding_idx", "")
    if padding.isdecimal():
        for name, tensor in header.tensors.items():
            if len(tensor.shape) == 2 and int(padding) < tensor.shape[0]:
                row = _row(label, header.data_start, tensor, int(padding))
                found.check(f"padding row of {name} is zero", not any(row), f"row {padding} is not zero")
    return found


def _row(path: str, data_start: int, tensor: TensorInfo, row: int) -> bytes:
    width = (tensor.stop - tensor.start) // tensor.shape[0]
    start = data_start + tensor.start + row * width
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return b"".join(pieces(descriptor, start, start + width, path=path))
    finally:
        os.close(descriptor)
