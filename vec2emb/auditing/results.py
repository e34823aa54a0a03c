"""What an audit finds, typed. The fields are those of the JSON, their descriptions those of its schema.

Shares are ratios of counts, between 0 and 1. Figures of vectors are rounded to nine digits, so that they do not depend
on how a file was cut into blocks. A figure that does not exist (the median length of no rows) is null.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from .coverage_figures import Coverage
from .health_figures import Health

SCHEMA = "vec2emb-audit"
SCHEMA_VERSION = 1


def figure(value: float) -> float | None:
    """A number of nine significant digits; None for one that is not finite."""
    return float(f"{value:.9g}") if math.isfinite(value) else None


@dataclass(frozen=True)
class InputFile:
    """A file that was read.

    Attributes:
        name: as it was given.
        bytes: its size; null for a pipe.
        sha256: of the file as it is, compressed or not; null for a pipe.
    """

    name: str
    bytes: int | None
    sha256: str | None


@dataclass(frozen=True)
class Source:
    """One source and all that was found.

    Attributes:
        name: as it was given.
        kind: `vectors` or `bundle`.
        format: how the vectors stand there: `glove`, `word2vec`, `word2vec-binary`; of a bundle its dtype.
        compression: `none`, `gzip`, ..
        member: of an archive, the member that was read.
        files: what was read.
        health: what is in it.
        coverage: what of the corpus it covers; null without a corpus.
    """

    name: str
    kind: Literal["vectors", "bundle"]
    format: str
    compression: str
    member: str | None
    files: list[InputFile]
    health: Health
    coverage: Coverage | None


@dataclass(frozen=True)
class Corpus:
    """What coverage was measured on.

    Attributes:
        tokens: running tokens.
        types: distinct tokens.
        tokenizer: how it was cut; null for counts that were given.
        lowercase: whether it was lower-cased before it was counted.
        files: what was read.
    """

    tokens: int
    types: int
    tokenizer: str | None
    lowercase: bool
    files: list[InputFile]


@dataclass(frozen=True)
class Comparison:
    """Two sources beside each other.

    Attributes:
        first, second: their places among the sources, from 0.
        shared: tokens that both have.
        first_share: the part that they are of the first's tokens.
        second_share: the part that they are of the second's.
        sample: of how many shared tokens, drawn by a hash of the token, the vectors were compared; null if one source
            cannot be read twice.
        same_vectors: how many of these have the same vector in both, to the bit.
        agreement: correlation (Pearson) between the cosines of all pairs of the sample in one and in the other.
        neighbours: of the ten nearest neighbours of a token within the sample, the share that both sources name.
    """

    first: int
    second: int
    shared: int
    first_share: float
    second_share: float
    sample: int | None
    same_vectors: int | None
    agreement: float | None
    neighbours: float | None


@dataclass(frozen=True)
class GateResult:
    """A bound, and how a source stands to it.

    Attributes:
        path: which figure, as a dotted path into a source.
        kind: `min` or `max`.
        bound: the number given.
        source: name of the source.
        found: its figure; null if it has none.
        ok: whether the bound is kept; a figure that does not exist keeps none.
    """

    path: str
    kind: Literal["min", "max"]
    bound: float
    source: str
    found: float | None
    ok: bool

    def __str__(self) -> str:
        sign = ">=" if self.kind == "min" else "<="
        found = "none" if self.found is None else f"{self.found:.9g}"
        return f"{self.source}: {self.path} is {found}, expected {sign} {self.bound:.9g}"


def plain(value: Any) -> Any:
    """Dictionaries, lists, text and numbers of a result."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = (f for f in fields(value) if not f.metadata.get("hidden"))
        return {f.name: plain(getattr(value, f.name)) for f in shown}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value
