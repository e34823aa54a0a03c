"""What a conversion did, in numbers and warnings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from .._kernel import TokenIndex
from ..bundle.model_layout import ModelLayout
from ..bundle.reader import DTYPES, HEADER_BYTES
from ..bundle.training import Ranges, TrainRows, new_rows, ranges_of, rows_of_file
from ..errors import InputError, Vec2embWarning, shown, warn_caller
from ..formats import Detected
from ..io.sources import Source
from ..safetensors_files.sharding import rows_each
from ..words.special_tokens import Special
from .engine import Counts
from .selection import Selection

if TYPE_CHECKING:
    from ..formats.matrix.source import MatrixSource

FEW = 10  # names shown of many


class Report:
    """What a conversion did.

    Attributes:
        path: the bundle, as the caller gave it; None where nothing was written.
        model_path: the safetensors file in it; None for shards.
        source: label of the source.
        format: `word2vec`, `glove`, `word2vec-binary`, `fasttext`, `npz`, `bundle`, `model2vec`,
            `sentence-transformers`, `gensim` or `memory`.
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
        specials: `{token, id, role, init}` of each special token; init `file` means the file's own vector.
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
        positions: the position table, as vec2emb.json records it, or None.
        scale: what a module multiplies words by: `{kind, factor}`, or None.
        word_norm, position_norm: root mean square length of the file's rows and of the positions, where there are any;
            `norm_ratio` is the first, scaled, by the second.
        dry_run: whether nothing was to be written.
        kept_existing: whether the target held the same bundle already, so that nothing was written.
        warnings: all that was odd, one entry a kind.
        advice: what would make the next run faster, or None.
        seconds: wall time.
        config: the content of vec2emb.json, where a bundle was written.
    """

    def __init__(self, source: Source | MatrixSource, detected: Detected, counts: Counts, selection: Selection) -> None:
        self.path: str | None = None
        self.model_path: str | None = None
        self.source = source.label
        self.format = detected.format
        self.member = source.member
        self.compression = source.compression
        self.rows = len(selection)
        self.dim = detected.dim
        self.dtype = "float32"
        self.bytes = 0
        self.shards = 0
        self.file_rows = counts.rows
        self.skipped = counts.skipped.count
        self.duplicates = selection.duplicates
        self.merged = selection.merged
        self.nonfinite = counts.nonfinite.count
        self.limited = counts.limited
        self.specials: list[dict[str, Any]] = []
        self.padding_idx: int | None = None
        self.unk_idx: int | None = None
        self.id_shift: int | None = None
        self.missing = 0
        self.missing_init: str | None = None
        self.first_missing: list[str] = []
        self.absent = 0
        self.first_absent: list[str] = []
        self.fallbacks = 0
        self.all_lowercase = False
        self.frozen = False
        self.train = "all"
        self.training_rows = 0
        self.keys: list[str] = []
        self.positions: dict[str, Any] | None = None
        self.scale: dict[str, Any] | None = None
        self.word_norm: float | None = None
        self.position_norm: float | None = None
        self.norm_ratio: float | None = None
        self.dry_run = False
        self.kept_existing = False
        self.warnings: list[Vec2embWarning] = []
        self.advice = source.advice
        self.seconds = 0.0
        self.config: dict[str, Any] = {}
        self._selection = selection
        self._missing_rows: list[int] = []
        self._train_ranges: Ranges | None = None
        self._source = {
            "name": source.name,
            "format": detected.format,
            "member": source.member,
            "compression": source.compression,
            "bytes": source.size if source.size is not None else source.consumed,
            "rows": counts.rows,
            "skipped": self.skipped,
            "duplicates": self.duplicates,
            "merged": self.merged,
            "limited": counts.limited,
        }

    def describe_plan(self, dtype: str, missing: str, inits: list[str]) -> None:
        """Add what was decided about the table's rows; `inits` says how each special token is set."""
        selection = self._selection
        self.dtype = dtype
        _, width, _ = DTYPES[dtype]
        self.bytes = HEADER_BYTES + self.rows * self.dim * width
        for id, special, init in zip(selection.special_ids, selection.specials, inits, strict=True):
            row = selection.row_of(id)
            self.specials.append({"token": special.token, "id": row, "role": special.role, "init": init})
            if special.role == "padding":
                self.padding_idx = row
            elif special.role == "unknown":
                self.unk_idx = row
        self._missing_rows = selection.missing()
        self.missing = len(self._missing_rows)
        if self.missing:
            self.missing_init = missing
            self.first_missing = selection.names(self._missing_rows[:FEW])
        absent = selection.absent
        self.absent, self.first_absent = len(absent), [token.decode() for token in absent[:FEW]]
        self.fallbacks = len(selection.hits)
        self.id_shift = selection.id_shift

    def spelled(self, vocabulary: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces of vocab.txt, looked at on their way: whether all is lower-case is known after the last."""
        special = {special.token for special in self._selection.specials}
        self.all_lowercase = True
        for piece in vocabulary:
            self.all_lowercase = self.all_lowercase and _is_lowercase(piece, special)
            yield piece

    def describe_model(self, layout: ModelLayout, train: TrainRows) -> None:
        """Add how the table enters a model, and which of its rows train.

        Raises:
            UsageError, VocabularyError: a row that is to train is none.
        """
        self._layout = layout
        self.keys = [layout.names.word, *layout.names.positions]
        self.positions = layout.details()["positions"]
        self.scale = layout.scale.recorded()
        self.word_norm, self.position_norm = layout.word_norm, layout.position_norm
        self.norm_ratio = layout.ratio
        if layout.table is not None:
            _, width, _ = DTYPES[self.dtype]
            self.bytes += layout.table.size * width * len(layout.names.positions)
        new = new_rows(self.specials, ranges_of(self._missing_rows))
        ranges = train.ranges(self.rows, self.padding_idx, new, _row_finder(self._selection))
        self.train, self.frozen, self._train_ranges = train.kind, train.kind == "none", ranges
        padding = self.padding_idx is not None
        every = 0 if self.frozen else self.rows - padding
        self.training_rows = every if ranges is None else sum(stop - start for start, stop in ranges)

    def describe_shards(self, shard_size: int | None) -> None:
        """Fill in how many shards there are; after the model, whose positions are one of them."""
        if shard_size is not None:
            each = rows_each(shard_size, HEADER_BYTES, self.dim * DTYPES[self.dtype][1])
            self.shards = max(1, -(-self.rows // each)) + (self.positions is not None)
            self.bytes += (self.shards - 1) * HEADER_BYTES

    def rows_of_file(self) -> Ranges:
        """The rows that come from the file."""
        return rows_of_file(self.specials, ranges_of(self._missing_rows), self.rows)

    def facts(self) -> dict[str, Any]:
        """What the tensors' metadata hold beside the shape."""
        own = {"padding_idx": self.padding_idx, "train": self.train, "unk_idx": self.unk_idx}
        return {**own, **self._layout.facts()}

    def details(self, license: str | None, source_url: str | None) -> dict[str, Any]:
        """What vec2emb.json holds beside these: where every row comes from."""
        return {
            **self._layout.details(),
            "train_rows": self._train_ranges,
            "lookup": self._selection.lookup,
            "all_lowercase": self.all_lowercase,
            "specials": self.specials,
            "missing": {"init": self.missing_init, "rows": ranges_of(self._missing_rows)},
            "fallbacks": [[row, spelling] for row, spelling in self._selection.hits],
            "source": {**self._source, "license": license, "url": source_url},
        }

    def made_rows(self) -> Iterator[dict[str, Any]]:
        """The rows that are not simply the file's own, in the order of the table, kind by kind."""
        for special in self.specials:
            reason = f"{special['role']}, {special['init']}"
            yield {"what": "special", "row": special["id"], "token": special["token"], "reason": reason}
        rows = [row for row, _ in self._selection.hits]
        for (row, spelling), token in zip(self._selection.hits, self._selection.names(rows), strict=True):
            yield {"what": "fallback", "row": row, "token": token, "reason": f"the row of {spelling}"}
        for row, token in zip(self._missing_rows, self._selection.names(self._missing_rows), strict=True):
            yield {"what": "initialised", "row": row, "token": token, "reason": self.missing_init}

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        hidden = ("warnings", "config")
        plain = {name: value for name, value in vars(self).items() if name not in hidden and name[0] != "_"}
        return {**plain, "warnings": [warning.to_dict() for warning in self.warnings]}

    def __getstate__(self) -> dict[str, Any]:
        """What a copy in another process gets: what was done, and nothing of how."""
        return {name: value for name, value in vars(self).items() if name[0] != "_"}

    def __repr__(self) -> str:
        return f"<Report {self.rows} x {self.dim} from {self.source}, {len(self.warnings)} warnings>"


def _row_finder(selection: Selection) -> Callable[[str], int | None]:
    """The row of a token; the index over the finished vocabulary is made when the first is asked for."""

    @functools.cache
    def index() -> TokenIndex:
        return TokenIndex.over(b"".join(selection.vocabulary()))

    def find(token: str) -> int | None:
        row = index().get(token.encode())
        return row if row >= 0 else None

    return find


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


def announce(found: list[Vec2embWarning], strict: bool) -> None:
    """Warn of everything, or with `strict` raise the first.

    Raises:
        InputError: with `strict`, if there is a warning; its code is that of the warning.
    """
    if strict and found:
        others = f" (and {len(found) - 1} more kinds of warning)" if len(found) > 1 else ""
        first = found[0]
        raise InputError(first.code, f"{first.message}{others}", hint="--strict makes every warning an error")
    for warning in found:
        warn_caller(warning)
