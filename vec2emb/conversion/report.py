"""What a conversion did, in numbers and warnings."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from ..bundle.model_layout import ModelLayout
from ..bundle.reader import DTYPES, HEADER_BYTES
from ..errors import InputError, Vec2embWarning, shown, warn_caller
from ..formats import Detected
from ..io.sources import Source
from ..safetensors_files.sharding import rows_each
from ..words.special_tokens import Special
from .engine import Counts
from .selection import Selection

if TYPE_CHECKING:
    from ..bundle.manifest import Manifest
    from ..formats.matrix.source import MatrixSource

FEW = 10  # names shown of many


class Report:
    """What a conversion did.

    Attributes:
        path: the bundle, as the caller gave it; None where nothing was written.
        model_path: the safetensors file in it; None for shards.
        source: label of the source.
        format: `word2vec`, `glove`, `word2vec-binary`, `fasttext`, `npz`, `bundle`, `model2vec`,
            `sentence-transformers`, `gensim`, `memory` or `from-scratch`.
        member: of an archive, the member that was read; else None.
        compression: `none`, `gzip`, ..
        rows: V, rows of the table, special ones included.
        dim: D.
        dtype: of the stored rows.
        bytes: size of model.safetensors, or of all shards.
        shards: how many; 0 for one file.
        file_rows: rows seen in the file.
        skipped: rows left out because they are faulty (`bad_rows="skip"`).
        duplicates: rows left out because the file had their token before.
        merged: rows that lower-casing has made one with another.
        nonfinite: rows with `nan` or `inf` that were kept or zeroed.
        limited: whether reading ended at the limit, so that the rest of the file was not looked at.
        specials: the special tokens: token, id, role, init, seed; init `file` means the file's own vector.
        padding_idx, unk_idx: rows of the two, or None.
        id_shift: what to add to a line of the vocabulary given, counted from 0, to get its id; None without one.
        missing: how many words of the vocabulary given the file lacks; `missing_init` is how their rows were set, and
            `first_missing` names a few.
        absent: how many words of `only` the file lacks; `first_absent` names a few.
        fallbacks: how many words took the row of another spelling.
        all_lowercase: whether every token but the special ones is lower-case.
        frozen: whether the table is recorded as not to be trained at all.
        train: which rows are to train: `all`, `none`, `new` or `rows`; `training_rows` is how many these are.
        keys: what the tensors are called: words first, then positions.
        positions: the position table, as the manifest records it, or None.
        scale: what a module multiplies words by: kind and factor, or None.
        word_norm, position_norm: root mean square length of the file's rows and of the positions, where there are any;
            `norm_ratio` is the first, scaled, by the second.
        dry_run: whether nothing was to be written.
        kept_existing: whether the target held the same bundle already, so that nothing was written.
        warnings: all that was odd, one entry a kind.
        advice: what would make the next run faster, or None.
        seconds: wall time.
        manifest: what vec2emb.json records; of a dry run, what it would record.
    """

    def __init__(
        self,
        source: Source | MatrixSource,
        detected: Detected,
        counts: Counts,
        selection: Selection,
        manifest: Manifest,
        layout: ModelLayout | None = None,
    ) -> None:
        self.path: str | None = None
        self.model_path: str | None = None
        self.source = source.label
        self.format = detected.format
        self.member = source.member
        self.compression = source.compression
        self.rows = manifest.rows
        self.dim = manifest.dim
        self.dtype = manifest.dtype
        self.bytes = 0
        self.shards = 0
        self.file_rows = counts.rows
        self.skipped = counts.skipped.count
        self.duplicates = selection.duplicates
        self.merged = selection.merged
        self.nonfinite = counts.nonfinite.count
        self.limited = counts.limited
        self.specials = manifest.specials
        self.padding_idx = manifest.padding_idx
        self.unk_idx = manifest.unk_idx
        self.id_shift: int | None = selection.id_shift
        missing = selection.missing()
        self.missing = len(missing)
        self.missing_init = manifest.provenance.generated[0].init if missing else None
        self.first_missing = selection.names(missing[:FEW])
        absent = selection.absent
        self.absent, self.first_absent = len(absent), [token.decode() for token in absent[:FEW]]
        self.fallbacks = len(selection.hits)
        self.all_lowercase = False
        self.train = manifest.training.kind
        self.frozen = self.train == "none"
        self.training_rows = manifest.training.count(self.rows, self.padding_idx)
        self.keys = [] if layout is None else [layout.names.word, *layout.names.positions]
        self.positions = manifest.positions
        self.scale = manifest.scale
        self.word_norm = None if layout is None else layout.word_norm
        self.position_norm = None if layout is None else layout.position_norm
        self.norm_ratio = None if layout is None else layout.ratio
        self.dry_run = False
        self.kept_existing = False
        self.warnings: list[Vec2embWarning] = []
        self.advice = source.advice
        self.seconds = 0.0
        self.manifest: Manifest = manifest
        self._special_tokens = {special.token for special in selection.specials}

    def spelled(self, vocabulary: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces of vocab.txt, looked at on their way: whether all is lower-case is known after the last."""
        self.all_lowercase = True
        for piece in vocabulary:
            self.all_lowercase = self.all_lowercase and _is_lowercase(piece, self._special_tokens)
            yield piece

    def describe_files(self, shard_size: int | None) -> None:
        """Fill in how many bytes and shards there are; positions are one of the shards."""
        width = DTYPES[self.dtype][1]
        self.bytes = HEADER_BYTES + self.rows * self.dim * width
        if self.positions is not None:
            tables = len(self.positions.keys)
            self.bytes += tables * (self.positions.offset + self.positions.num) * self.dim * width
        if shard_size is not None:
            each = rows_each(shard_size, HEADER_BYTES, self.dim * width)
            self.shards = max(1, -(-self.rows // each)) + (self.positions is not None)
            self.bytes += (self.shards - 1) * HEADER_BYTES

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        plain = {name: value for name, value in vars(self).items() if name != "manifest" and name[0] != "_"}
        return {
            **plain,
            "specials": [special.to_dict() for special in self.specials],
            "positions": None if self.positions is None else self.positions.to_dict(),
            "scale": None if self.scale is None else self.scale._asdict(),
            "warnings": [warning.to_dict() for warning in self.warnings],
        }

    def __getstate__(self) -> dict[str, Any]:
        """What a copy in another process gets: what was done, and nothing of how."""
        return {name: value for name, value in vars(self).items() if name[0] != "_"}

    def __repr__(self) -> str:
        return f"<Report {self.rows} x {self.dim} from {self.source}, {len(self.warnings)} warnings>"


def _is_lowercase(piece: bytes, special: set[str]) -> bool:
    """Whether lower-casing changes no token of a piece of vocab.txt but special ones."""
    # ASCII is looked at as bytes, and only the rest as text: that is several times faster.
    others = "" if piece.isascii() else piece.translate(None, _ASCII).decode()
    if (piece.islower() or piece == piece.lower()) and others == others.lower():
        return True
    return all(token == token.lower() or token in special for token in piece.decode().split("\n"))


_ASCII = bytes(range(128))


def collect_warnings(
    label: str,
    counts: Counts,
    selection: Selection,
    missing_lf: bool,
    extra_unk: bool,
    own_specials: Collection[str] = (),
) -> list[Vec2embWarning]:
    """All that was odd about a source, one warning a kind, ordered by the line where it was first met."""
    found: list[Vec2embWarning] = []

    def warn(code: str, count: int, line: int | None, message: str) -> None:
        if count:
            where = f"{label}, line {line}" if line else label
            found.append(Vec2embWarning(code, f"{where}: {message}", count=count, path=label, line=line))

    blank, excess, numeral, cr = counts.blank, counts.excess_separators, counts.numeral_tokens, counts.cr_tokens
    warn("blank-line", blank.count, blank.line, f"{_some(blank.count, 'blank line')} among the rows, passed over")
    warn(
        "excess-separators", excess.count, excess.line,
        f"{_some(excess.count, 'row')} with more than one separator after the token; it is not part of the token",
    )  # fmt: skip
    warn(
        "numeral-ended-token", numeral.count, numeral.line,
        f"{_some(numeral.count, 'token')} of several pieces, the last of them a number; is it a value too many?",
    )  # fmt: skip
    warn(
        "recoded-token", counts.recoded.count, counts.recoded.line,
        f"{_some(counts.recoded.count, 'token')} with bytes that are not in the encoding",
    )  # fmt: skip
    warn("cr-in-token", cr.count, cr.line, f"{_some(cr.count, 'token')} with a carriage return inside")
    if selection.first_duplicate is not None:
        line, token = selection.first_duplicate
        which = "vector of the last" if selection.rewrites else "first"
        warn(
            "duplicate-tokens", selection.duplicates, line,
            f"{_some(selection.duplicates, 'row')} of a token that the file has already (first {shown(token)}); "
            f"the {which} is used",
        )  # fmt: skip
    if counts.skipped.count and counts.first_skipped is not None:
        skipped = counts.skipped
        reason = counts.first_skipped.message
        warn(
            "bad-rows", skipped.count, skipped.line, f"{_some(skipped.count, 'faulty row')} left out (first: {reason})"
        )
    specials = dict(zip(selection.special_ids, selection.specials, strict=True))
    lines = sorted((line, id) for id, line in selection.in_file.items() if specials[id].token not in own_specials)
    if lines:
        names = ", ".join(f"{shown(specials[id].token)} ({_origin(specials[id])})" for _, id in lines)
        warn("special-in-file", len(lines), lines[0][0], f"special tokens that the file has already: {names}")
    missing, absent = selection.missing(), selection.absent
    few = ", ".join(shown(name) for name in selection.names(missing[:FEW]))
    lacking = f"{_some(len(missing), 'word')} of the vocabulary not in the file: {few}"
    if missing and len(missing) + len(selection.specials) >= len(selection):
        lacking = f"none of the words of the vocabulary is in the file (first {few}); is that the right list?"
        warn("all-words-missing", len(missing), None, lacking)
    else:
        warn("missing-words", len(missing), None, lacking)
    few = ", ".join(shown(name) for name in absent[:FEW])
    warn("absent-words", len(absent), None, f"{_some(len(absent), 'word')} to keep not in the file: {few}")
    warn(
        "extra-unk-row", int(extra_unk), counts.lines,
        "one row more than the header promises, '<unk>': GloVe forgets to count it",
    )  # fmt: skip
    warn("missing-last-lf", int(missing_lf), counts.lines, "the last row has no line feed; is the file whole?")
    return sorted(found, key=lambda warning: warning.line or 0)


def _origin(special: Special) -> str:
    if special.init is None:
        return "the file's vector is used"
    return f"the file's vector is not used: {'padding is zero' if special.role == 'padding' else special.init}"


def _some(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


OUTCOMES = ("missing-words", "absent-words", "words-without-subwords")  # of what was asked for; `expect` bounds them


def announce(found: list[Vec2embWarning], strict: bool) -> None:
    """Warn of everything, or with `strict` raise the first that is not a mere outcome of the caller's own options.

    Raises:
        InputError: with `strict`, if there is such a warning; its code is that of the warning.
    """
    odd = [warning for warning in found if warning.code not in OUTCOMES]
    if strict and odd:
        others = f" (and {len(odd) - 1} more kinds of warning)" if len(odd) > 1 else ""
        first = odd[0]
        raise InputError(first.code, f"{first.message}{others}", hint="--strict makes such a warning an error")
    for warning in found:
        warn_caller(warning)
