"""What a conversion did, in numbers and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from .bundle import DTYPES, HEADER_BYTES
from .engine import Counts
from .errors import InputError, Vec2embWarning, shown
from .formats import Detected
from .selection import Selection
from .sources import Source
from .special import Special

FEW = 10  # names shown of many


class Report:
    """What a conversion did.

    Attributes:
        path: the bundle, as the caller gave it; None where nothing was written.
        model_path: the safetensors file in it.
        source: label of the source.
        format: `word2vec`, `glove` or `word2vec-binary`.
        member: of an archive, the member that was read; else None.
        compression: `none`, `gzip`, ..
        rows: V, rows of the table, special ones included.
        dim: D.
        dtype: of the stored rows.
        bytes: size of model.safetensors.
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
        frozen: whether the table is recorded as not to be trained.
        dry_run: whether nothing was to be written.
        kept_existing: whether the target held the same bundle already, so that nothing was written.
        warnings: all that was odd, one entry a kind.
        advice: what would make the next run faster, or None.
        seconds: wall time.
        config: the content of vec2emb.json, where a bundle was written.
    """

    def __init__(self, source: Source, detected: Detected, counts: Counts, selection: Selection) -> None:
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
        self.dry_run = False
        self.kept_existing = False
        self.warnings: list[Vec2embWarning] = []
        self.advice = source.advice
        self.seconds = 0.0
        self.config: dict[str, Any] = {}
        self._selection = selection
        self._missing_rows: list[int] = []
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

    def describe_plan(self, dtype: str, freeze: bool, missing: str, inits: list[str]) -> None:
        """Add what was decided about the table's rows; `inits` says how each special token is set."""
        selection = self._selection
        self.dtype, self.frozen = dtype, freeze
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
        arrangement = getattr(selection, "arrangement", None)
        self.id_shift = None if arrangement is None else arrangement.shift
        self.all_lowercase = _all_lowercase(selection)

    def facts(self) -> dict[str, Any]:
        """What the tensors' metadata hold beside the shape."""
        return {
            "padding_idx": self.padding_idx,
            "positions": None,
            "train": "none" if self.frozen else "all",
            "unk_idx": self.unk_idx,
        }

    def details(self, license: str | None, source_url: str | None) -> dict[str, Any]:
        """What vec2emb.json holds beside these: where every row comes from."""
        return {
            "lookup": self._selection.lookup,
            "all_lowercase": self.all_lowercase,
            "specials": self.specials,
            "missing": {"init": self.missing_init, "rows": _ranges(self._missing_rows)},
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

    def __repr__(self) -> str:
        return f"<Report {self.rows} x {self.dim} from {self.source}, {len(self.warnings)} warnings>"


def _ranges(rows: list[int]) -> list[list[int]]:
    """Rising rows as [first, one past the last] of each run."""
    ranges: list[list[int]] = []
    for row in rows:
        if ranges and ranges[-1][1] == row:
            ranges[-1][1] = row + 1
        else:
            ranges.append([row, row + 1])
    return ranges


def _all_lowercase(selection: Selection) -> bool:
    """Whether lower-casing changes no token but special ones; most tables answer within the first piece."""
    special = {s.token for s in selection.specials}
    for piece in selection.vocabulary():
        text = piece.decode()
        if text != text.lower() and any(t != t.lower() and t not in special for t in text.split("\n")):
            return False
    return True


def collect_warnings(
    label: str, counts: Counts, selection: Selection, missing_lf: bool, extra_unk: bool
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
    if selection.in_file:
        specials = dict(zip(selection.special_ids, selection.specials, strict=True))
        lines = sorted((line, id) for id, line in selection.in_file.items())
        names = ", ".join(f"{shown(specials[id].token)} ({_origin(specials[id])})" for _, id in lines)
        warn("special-in-file", len(lines), lines[0][0], f"special tokens that the file has already: {names}")
    missing, absent = selection.missing(), selection.absent
    few = ", ".join(shown(name) for name in selection.names(missing[:FEW]))
    warn("missing-words", len(missing), None, f"{_some(len(missing), 'word')} of the vocabulary not in the file: {few}")
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


def announce(found: list[Vec2embWarning], strict: bool, stacklevel: int = 3) -> None:
    """Warn of everything, or with `strict` raise the first.

    Raises:
        InputError: with `strict`, if there is a warning; its code is that of the warning.
    """
    if strict and found:
        others = f" (and {len(found) - 1} more kinds of warning)" if len(found) > 1 else ""
        first = found[0]
        raise InputError(first.code, f"{first.message}{others}", hint="--strict makes every warning an error")
    for warning in found:
        warnings.warn(warning, stacklevel=stacklevel)
