"""Figures of a source that was read through, brought into one result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..errors import shown
from .findings import find
from .geometry import CONSTANT, INF, NAN, ZERO
from .health_figures import Example, Health
from .streaming import Streamed
from .tokens import FEW, look_at_tokens


def health_of(source: Streamed) -> Health:
    """All figures of a source, and what to make of them."""
    geometry, index = source.geometry, source.index
    tokens = look_at_tokens(index, source.made)
    identical, pairs = geometry.identical()
    outliers = geometry.outliers()
    dimensions = geometry.dimensions()
    flagged = {
        name: geometry.rows_with(flag)
        for name, flag in (("zero_rows", ZERO), ("nan_rows", NAN), ("inf_rows", INF), ("constant_rows", CONSTANT))
    }

    def named(ids: Iterable[int], detail: Callable[[int], str] = "row {}".format) -> list[Example]:
        return [Example(index.token(id).decode(), detail(id)) for id, _ in zip(ids, range(FEW), strict=False)]

    # A row with NaN and infinity is one with NaN.
    examples = {name: named(ids.tolist()) for name, ids in flagged.items()}
    examples["norm_outliers"] = named(outliers.tolist(), lambda row: f"length {geometry.norms[row]:.4g}")
    examples["identical_vectors"] = [
        Example(index.token(later).decode(), f"same as {shown(index.token(earlier))}") for earlier, later in pairs[:FEW]
    ]
    examples["duplicates"] = source.duplicate_examples
    examples.update(tokens.examples)
    made = len(source.made)
    kinds = {**tokens.kinds, "invalid_utf8": source.faults["invalid-utf8"].count}
    failed = None if source.checks is None else sum(found is not None for found in source.checks.values())
    extra_unk = any(warning.code == "extra-unk-row" for warning in source.warnings)
    agrees = None
    if source.header_rows is not None and not source.limited:
        agrees = source.header_rows + extra_unk == source.rows
    health = Health(
        rows=source.rows,
        loaded=len(index) - made,
        made=made,
        faulty=sum(fault.count for fault in source.faults.values()),
        faults=source.faults,
        limited=source.limited,
        dim=source.dim,
        header_rows=source.header_rows,
        header_agrees=agrees,
        duplicates=source.duplicates,
        **{f"{form}_twins": count for form, count in tokens.twins.items()},
        identical_vectors=identical,
        **{name: len(ids) for name, ids in flagged.items()},
        norm_outliers=len(outliers),
        rogue_dims=len(dimensions.rogue),
        constant_dims=len(dimensions.constant),
        checks_failed=failed,
        checks=source.checks or {},
        mean_length=geometry.mean_length,
        mean_cosine=geometry.mean_cosine,
        norms=geometry.lengths(),
        dimensions=dimensions,
        kinds=kinds,
        scripts=tokens.scripts,
        token_length=tokens.length,
        near_specials=tokens.near_specials,
        examples={name: found for name, found in examples.items() if found},
        findings=[],
    )
    return replace(health, findings=find(health, source.warnings, source.kind == "bundle"))
