"""Gates: bounds that figures of a source must keep, named by dotted paths into its JSON.

    coverage.tokens=0.95     health.duplicates=0     health.norms.median=5     health.faults.row-width.count=0

Whether there is such a figure is told by the types of the result, before anything is read. Kinds and scripts that a
file does not have count as 0.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from ..errors import UsageError
from ..typed import Json
from .outcome import Audit
from .results import GateResult, Source, plain
from .schema import figures

Kind = Literal["min", "max"]
_OPEN = ("health.scripts.", "health.checks.")  # whose names the file decides


class Gate(NamedTuple):
    """A bound.

    Attributes:
        kind: `min` or `max`.
        path: of the figure.
        bound: the smallest or largest value that is let through.
    """

    kind: Kind
    path: str
    bound: float


def parse_gates(kind: Kind, bounds: Mapping[str, float] | Iterable[str]) -> Iterator[Gate]:
    """Gates from {path: bound} or from `PATH=NUMBER`.

    Raises:
        UsageError: there is no such figure, or no number.
    """
    if isinstance(bounds, str):
        bounds = [bounds]
    pairs: Iterable[tuple[str, float | str]]
    pairs = bounds.items() if isinstance(bounds, Mapping) else (_split(kind, bound) for bound in bounds)
    for path, bound in pairs:
        try:
            number = float(bound)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            raise UsageError("gate-number", f"the bound of {path} is no number", found=repr(bound))
        _check_path(path)
        yield Gate(kind, path, number)


def checked(gates: Iterable[Gate], audit: Audit) -> list[GateResult]:
    """Each gate with each source."""
    facts = [(source, plain(source)) for source in audit.sources]
    return [_check(gate, source, values) for gate in gates for source, values in facts]


def _check(gate: Gate, source: Source, values: Json) -> GateResult:
    found = values
    for step in _steps(gate.path):
        if isinstance(found, list):
            found = found[int(step)] if step.isdecimal() and int(step) < len(found) else None
        elif isinstance(found, dict):
            found = found.get(step, 0 if gate.path.startswith(_OPEN) else None)
    number = float(found) if isinstance(found, int | float) else None
    ok = number is not None and (number >= gate.bound if gate.kind == "min" else number <= gate.bound)
    return GateResult(gate.path, gate.kind, gate.bound, source.name, number, ok)


def _steps(path: str) -> list[str]:
    return path.split(".")


def _split(kind: Kind, text: str) -> tuple[str, str]:
    path, sign, number = text.rpartition("=")
    if not sign:
        raise UsageError("gate-form", f"a bound reads --{kind} PATH=NUMBER", found=text)
    return path.strip(), number


def _check_path(path: str) -> None:
    """Refuse a path that leads to no number."""
    known = list(figures(Source))
    steps = _steps(path)
    for figure in known:
        parts = figure.split(".")
        if len(parts) == len(steps) and all(
            a == b or (a == "*" and b) or (a == "#" and b.isdecimal()) for a, b in zip(parts, steps, strict=True)
        ):
            return
    close = difflib.get_close_matches(path, known, n=3, cutoff=0.3)
    raise UsageError(
        "gate-path", f"there is no figure {path!r}", expected="a dotted path such as coverage.tokens",
        hint=f"did you mean {' or '.join(close)}?" if close else "vec2emb audit --schema lists them",
    )  # fmt: skip
