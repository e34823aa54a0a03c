"""What was measured, as a table for a terminal, as JSON, and between two marks of a page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from targets import LINES, Line, Measured, met, ratio
from timing import Figure

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN = "<!-- measured: written by `python benchmarks/run.py --write-docs`, not by hand -->"
END = "<!-- measured: end -->"
NOT_YET = "not measured yet"
COLUMNS = ("What", "Beside", "vec2emb", "Peer", "Ratio", "Of the fastest", "Target", "Met")


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def _amount(figure: Figure | None, unit: str) -> str:
    if figure is None:
        return ""
    return seconds(figure.median) if unit == "s" else f"{figure.median / 1e6:.1f} MB"


def _times(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}x"


def cells(line: Line, measured: Measured | None) -> tuple[str, ...]:
    """A row of the table."""
    if measured is None:
        return line.what, line.beside, NOT_YET, "", "", "", line.says, ""
    found, done = ratio(line, measured), met(line, measured)
    peer = _amount(measured.peer, measured.unit)
    if measured.peer_name:
        peer += f", {measured.peer_name}"
    verdict = {True: "yes", False: "no", None: "not judged"}[done]
    ratios = (_times(found.median), _times(found.minimum)) if found else ("", "")
    return line.what, line.beside, _amount(measured.ours, measured.unit), peer, *ratios, line.says, verdict


def table(measured: dict[str, Measured]) -> list[tuple[str, ...]]:
    """All rows, those of lines that were not measured too."""
    return [cells(line, measured.get(line.key)) for line in LINES]


def notes(measured: dict[str, Measured]) -> list[str]:
    """What else is to be said of lines."""
    return [f"{line.what}: {measured[line.key].note}" for line in LINES if measured.get(line.key, Measured()).note]


def about_lines(about: dict[str, Any]) -> list[str]:
    """Machine, versions and conditions."""
    disturbed = about.get("others_share")
    busy = "" if disturbed is None else f"; others used {100 * disturbed:.0f}% of the processors meanwhile"
    return [
        f"{about['processor']}, {about['cores']} cores, {about['memory_bytes'] / 2**30:.0f} GiB;"
        f" {about['filesystem']}; {about['system']}",
        f"{about['vec2emb']}, {about['installed']}, commit {about['commit']}; Python {about['python']}",
        ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        f"{about['date']}, {about['runs']} runs each, alternating; load {about['load_before']} before,"
        f" {about['load_after']} after{busy}",
    ]


def as_text(about: dict[str, Any], measured: dict[str, Measured]) -> str:
    """For a terminal: the lines that were measured."""
    rows = [COLUMNS, *(cells(line, measured[line.key]) for line in LINES if line.key in measured)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*about_lines(about), "", *shown, "", *notes(measured)]).rstrip()


def as_markdown(about: dict[str, Any] | None, measured: dict[str, Measured]) -> str:
    """For a page: all lines."""
    rows = [COLUMNS, tuple("---" for _ in COLUMNS), *table(measured)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    if about is not None:
        lines += ["", *(f"- {line}" for line in [*about_lines(about), *notes(measured)])]
    return "\n".join(lines)


def write_into(page: Path, text: str) -> None:
    """Put a text between the marks of a page.

    Raises:
        SystemExit: the page has no such marks.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page}: there must be the lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def as_json(about: dict[str, Any], measured: dict[str, Measured], record: dict[str, Any]) -> dict[str, Any]:
    """For a program: the lines with their figures in seconds or bytes, and every run."""
    lines = []
    for line in LINES:
        if line.key in measured:
            one = measured[line.key]
            figures = {"ours": one.ours, "peer": one.peer, "ratio": ratio(line, one)}
            found: dict[str, Any] = {"key": line.key, "what": line.what, "beside": line.beside, "target": line.says}
            found |= {name: _figure(figure) for name, figure in figures.items()}
            lines.append(
                {**found, "unit": one.unit, "peer_name": one.peer_name, "met": met(line, one), "note": one.note}
            )
    return {"about": about, "lines": lines, **record}


def from_json(content: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Measured]]:
    """What `as_json` wrote."""

    def figure(value: dict[str, float] | None) -> Figure | None:
        return None if value is None else Figure(value["median"], value["minimum"])

    measured = {
        one["key"]: Measured(figure(one["ours"]), figure(one["peer"]), one["peer_name"], one["unit"], one["note"])
        for one in content["lines"]
    }
    return content["about"], measured


def _figure(figure: Figure | None) -> dict[str, float | None] | None:
    if figure is None:
        return None
    return {"median": figure.median, "minimum": None if math.isnan(figure.minimum) else figure.minimum}
