"""What `trim` did: sizes, files, the proof and the gates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import UsageError
from ..typed import ModelSettings
from .proof import Proof
from .rewriting import Change

FIGURES = {
    "identical": "share of the sampled texts that are encoded with the same tokens as before",
    "coverage": "share of the corpus's running tokens that were kept",
}


Bounds = Mapping[str, float] | Iterable[str]


class CutTensor(NamedTuple):
    """A tensor over the vocabulary: its key, the file it is in, and the axis that was cut."""

    key: str
    file: str
    axis: int


class Trimmed(NamedTuple):
    """What `trim` did.

    Attributes:
        model, out: as the caller gave them.
        tokens: of the tokenizer, before and after.
        rows: of the tables, before and after; more than tokens if the table is filled up.
        always: how many tokens were kept whatever the corpus has.
        frequent: how many more were kept because of their counts.
        built_from: how many more were kept because a BPE token of those is built from them.
        coverage: share of the corpus's running tokens that were kept; None without counts.
        lost: how many of the tokens that the corpus uses are gone.
        tensors: the tensors that were cut.
        bytes: of all tensors, before and after.
        changes: settings that changed.
        copied: files that are the same in both.
        notes: what was left out, one sentence each.
        memory: the most memory that the process that counted had, in bytes; 0 if nothing was counted.
        proof: what a sample of the corpus showed.
    """

    model: str
    out: str
    tokens: tuple[int, int]
    rows: tuple[int, int]
    always: int
    frequent: int
    built_from: int
    coverage: float | None
    lost: int
    tensors: tuple[CutTensor, ...]
    bytes: tuple[int, int]
    changes: tuple[Change, ...]
    copied: tuple[str, ...]
    notes: tuple[str, ...]
    memory: int
    proof: Proof

    @property
    def identical(self) -> float | None:
        """Share of the sampled texts that are encoded with the same tokens as before; None without a corpus."""
        return self.proof.identical / self.proof.texts if self.proof.texts else None

    def to_dict(self) -> ModelSettings:
        """What `--json` prints."""
        lists = {name: [one._asdict() for one in getattr(self, name)] for name in ("tensors", "changes")}
        proof = {**self.proof._asdict(), "lost": [one._asdict() for one in self.proof.lost]}
        return {**self._asdict(), **lists, "identical": self.identical, "proof": proof}


class Gate(NamedTuple):
    """The least that a figure may be."""

    figure: str
    bound: float


def parse_gates(bounds: Bounds) -> list[Gate]:
    """Read gates: {figure: bound}, or `FIGURE=NUMBER` each.

    Raises:
        UsageError: there is no such figure, or the bound is not a number.
    """
    pairs: Iterable[tuple[str, object]]
    if isinstance(bounds, Mapping):
        pairs = bounds.items()
    else:
        given = [bounds] if isinstance(bounds, str) or not isinstance(bounds, Iterable) else list(bounds)
        if not all(isinstance(bound, str) for bound in given):
            raise UsageError("gate-form", "a bound must be FIGURE=NUMBER", found=repr(given)[:60])
        pairs = [(name.strip(), number) for name, _, number in (bound.partition("=") for bound in given)]
    gates = []
    for figure, bound in pairs:
        if figure not in FIGURES:
            raise UsageError(
                "gate-path", "the figure must be a known one", expected=" or ".join(FIGURES), found=repr(figure)
            )
        try:
            number = float(bound)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            raise UsageError("gate-number", f"the bound of {figure} must be a number", found=repr(bound))
        gates.append(Gate(figure, number))
    return gates


def summary(done: Trimmed) -> str:
    """The result in a few lines."""
    before, after = done.tokens
    lines = [
        f"{done.out}: {after:,} of {before:,} tokens, {_size(done.bytes[1])} of {_size(done.bytes[0])} of tensors",
        f"  {done.always:,} always kept, {done.frequent:,} by their counts, "
        f"{done.built_from:,} that these are built from",
    ]
    if done.rows[1] != after:
        lines.append(f"  {done.rows[1]:,} rows in the table")
    if done.coverage is not None:
        lines.append(
            f"  {done.coverage:.4%} of the corpus's tokens were kept; {done.lost:,} of its distinct tokens are gone"
        )
    proof = done.proof
    if done.identical is not None:
        lines.append(
            f"  {proof.identical:,} of {proof.texts:,} sampled texts are encoded as before ({done.identical:.4%}), "
            f"{proof.tokens_after:,} tokens instead of {proof.tokens_before:,}, "
            f"{proof.unknown_after:,} unknown instead of {proof.unknown_before:,}"
        )
    lines += [f"    {one.token} ({one.uses:,} times): now {' '.join(one.now)}" for one in proof.lost[:5]]
    lines += [f"  {one.file}: {one.field}{_values(one)}" for one in done.changes]
    lines += [f"  note: {note}" for note in done.notes]
    memory = max(done.memory, proof.memory)
    lines.append(f"  the tokenizers ran in processes of their own, with at most {_size(memory)} of memory")
    return "\n".join(lines)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _values(change: Change) -> str:
    """The values of a change, unless they are many."""
    text = f" {change.before} to {change.after}"
    return text if len(text) <= 60 else ""
