"""The typed figures of one source: its rows, vectors and tokens. `results` says how they are to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Example:
    """A token by name.

    Attributes:
        token: the token as it stands in the file; bytes that are no UTF-8 are written out as \\xNN.
        detail: what is to be said of it.
    """

    token: str
    detail: str


@dataclass(frozen=True)
class Fault:
    """Rows that do not load for one reason.

    Attributes:
        count: how many.
        line: line (of Word2Vec binary the record) of the first, counted from 1; null where there is none.
        message: what is wrong with the first.
    """

    count: int
    line: int | None
    message: str | None


@dataclass(frozen=True)
class Finding:
    """Something to act on, or at least to know.

    Attributes:
        code: a stable slug.
        level: `fault` loses or damages something, `warning` may surprise, `note` is good to know.
        count: how often.
        message: what was found, in a sentence.
        advice: what to do about it; null where nothing need be done.
    """

    code: str
    level: Literal["fault", "warning", "note"]
    count: int
    message: str
    advice: str | None


@dataclass(frozen=True)
class Histogram:
    """How values are spread.

    Attributes:
        edges: n + 1 borders, rising; the last bin holds its right border too.
        counts: n counts.
    """

    edges: list[float]
    counts: list[int]


@dataclass(frozen=True)
class Norms:
    """Lengths of the vectors; rows with NaN or infinity are left out.

    Attributes:
        min: the shortest.
        p01: the quantile at 1 %.
        median: the quantile at 50 %.
        p99: the quantile at 99 %.
        max: the longest.
        histogram: of lengths between the shortest and the longest.
    """

    min: float | None
    p01: float | None
    median: float | None
    p99: float | None
    max: float | None
    histogram: Histogram


@dataclass(frozen=True)
class Rogue:
    """A dimension that dominates.

    Attributes:
        dim: which, counted from 0.
        share: its part of the squared lengths of all rows.
        mean: its mean.
    """

    dim: int
    share: float
    mean: float


@dataclass(frozen=True)
class Dimensions:
    """Every dimension over all finite rows; D figures each, empty where there is no such row.

    Attributes:
        mean: the means.
        spread: the standard deviations.
        share: the part that each has of the squared lengths of all rows; they sum up to 1.
        rogue: those whose share is at least five times the even share 1 / D (at most a half is asked for).
        constant: dimensions with the same value in all rows.
    """

    mean: list[float]
    spread: list[float]
    share: list[float]
    rogue: list[Rogue]
    constant: list[int]


@dataclass(frozen=True)
class NearSpecial:
    """A token that looks like a special one.

    Attributes:
        token: the token.
        role: what it is usually meant for.
        advice: what `vec2emb convert` does about it, and which option does otherwise.
    """

    token: str
    role: str
    advice: str


@dataclass(frozen=True)
class Lengths:
    """How long tokens are, in characters.

    Attributes:
        median: of the tokens' lengths.
        p99: the quantile at 99 %, as the length of a token.
        max: of the longest.
        longest: that token, cut to 60 characters.
    """

    median: int | None
    p99: int | None
    max: int | None
    longest: str | None


@dataclass(frozen=True)
class Health:
    """What is in a source. Figures of vectors are over the rows that load; of a bundle, over those that a file gave.

    Attributes:
        rows: rows of the source.
        loaded: rows that `vec2emb convert --bad-rows skip` would take: neither faulty nor a later row of a token.
        made: of a bundle, rows that no file gave: padding, other special tokens with an init, missing words.
        faulty: rows that do not load.
        faults: these by their code.
        limited: whether reading ended at a limit, so that the rest of the file was not looked at.
        dim: values a row.
        header_rows: rows that the header promises; null without a header.
        header_agrees: whether that many are there; null without a header or with a limit.
        duplicates: rows whose token the file had before.
        case_twins: rows that case-folding the tokens would make one with another.
        nfc_twins: the same of Unicode's normal form C.
        nfkc_twins: the same of normal form KC (compatibility: full-width letters, ligatures ..).
        identical_vectors: rows whose vector, bit for bit, another token had before; rows of zeros do not count.
        zero_rows: rows of nothing but zeros.
        nan_rows: rows with a value that is not a number.
        inf_rows: rows with an infinite value (and none that is not a number).
        constant_rows: rows of one value over and over, which is not zero.
        norm_outliers: rows much longer or shorter than usual: three times the distance of the quartiles beyond them.
        rogue_dims: how many dimensions dominate.
        constant_dims: how many dimensions have the same value in all rows.
        checks_failed: of a bundle, how many of the checks of `vec2emb verify` failed; null for a file.
        checks: these checks by name: null for one that was passed, else what was found.
        mean_length: length of the mean of all finite rows.
        mean_cosine: average cosine over all pairs of finite rows that are not zero; far from 0, all point one way.
        norms: lengths of the vectors.
        dimensions: figures of each dimension.
        kinds: tokens by kind; each is of one kind.
        scripts: tokens of kind `word` by the script of their letters; `Mixed` has letters of several.
        token_length: how long tokens are.
        near_specials: tokens that look like special ones.
        examples: by the name of a figure, tokens that it counts; a few.
        findings: what to act on, the worst first.
    """

    rows: int
    loaded: int
    made: int
    faulty: int
    faults: dict[str, Fault]
    limited: bool
    dim: int
    header_rows: int | None
    header_agrees: bool | None
    duplicates: int
    case_twins: int
    nfc_twins: int
    nfkc_twins: int
    identical_vectors: int
    zero_rows: int
    nan_rows: int
    inf_rows: int
    constant_rows: int
    norm_outliers: int
    rogue_dims: int
    constant_dims: int
    checks_failed: int | None
    checks: dict[str, str | None]
    mean_length: float | None
    mean_cosine: float | None
    norms: Norms
    dimensions: Dimensions
    kinds: dict[str, int]
    scripts: dict[str, int]
    token_length: Lengths
    near_specials: list[NearSpecial]
    examples: dict[str, list[Example]]
    findings: list[Finding]
