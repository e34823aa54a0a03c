"""The plots of the page: SVG for inlining, the same bytes each time, in the colours of the page around them.

matplotlib cannot write a colour that the page decides later, so each plot is drawn in stand-ins, which become
variables of CSS; so do fonts. Identifiers get the plot's name in front, as all plots stand in one document.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import needed, printable
from .results import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GRID = "#010101", "#020202"
SERIES = ("#030301", "#030302", "#030303", "#030304", "#030305", "#030306")
_VARIABLES = {INK: "--ink", GRID: "--grid", **{colour: f"--series-{i}" for i, colour in enumerate(SERIES)}}

_SETTINGS: dict[str, str | float] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "vec2emb",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}
_NAME = 24  # characters of a source in a legend

Draw = Callable[["Axes", list[Source]], None]


def plots_of(sources: list[Source]) -> list[tuple[str, str, str]]:
    """(name, what it shows, SVG) of each plot that there are figures for.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    wanted: list[tuple[str, str, Draw]] = [
        ("norms", "Lengths of the vectors", _norms),
        ("kinds", "Kinds of token", _kinds),
        ("dimensions", "Weight of each dimension in the squared length", _dimensions),
    ]
    if any(source.coverage for source in sources):
        wanted[:0] = [
            ("curve", "Running tokens found, among the most frequent", _curve),
            ("bands", "Running tokens found, by frequency", _bands),
        ]
    return [(name, title, _svg(name, title, draw, sources)) for name, title, draw in wanted]


def _svg(name: str, title: str, draw: Draw, sources: list[Source]) -> str:
    with needed("matplotlib", "report", "the page"):
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's own settings are
        matplotlib.rcParams.update(_SETTINGS)  # type: ignore[arg-type]
        figure = Figure(figsize=(5.2, 3.0), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        draw(axes, sources)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inlined(text.getvalue(), name, title)


def _inlined(svg: str, name: str, title: str) -> str:
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1), count=1
    )
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px system-ui, sans-serif", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg


# What each shows. A source keeps its colour in all of them.


def _legend(axes: Axes, sources: list[Source]) -> None:
    if len(sources) > 1:
        axes.legend(fontsize=8, loc="best")


def _label(source: Source) -> str:
    name = printable(source.name).rpartition("/")[2]
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _colour(place: int) -> str:
    return SERIES[place % len(SERIES)]


def _curve(axes: Axes, sources: list[Source]) -> None:
    for place, source in enumerate(sources):
        if source.coverage is not None:
            points = source.coverage.curve
            ranks, shares = [p.rank for p in points], [100 * p.tokens for p in points]
            axes.plot(ranks, shares, color=_colour(place), linewidth=2, label=_label(source))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda rank, _: f"{rank:,.0f}")
    axes.xaxis.set_minor_formatter(lambda rank, _: "")
    axes.set_ylim(0, 102)
    axes.set_xlabel("most frequent tokens")
    axes.set_ylabel("% found")
    _legend(axes, sources)


def _bands(axes: Axes, sources: list[Source]) -> None:
    names: list[str] = []
    for source in sources:
        if source.coverage is not None:
            names = [_times(band.least, band.most) for band in source.coverage.bands]
    shares = [
        [100 * band.running_found / band.running for band in source.coverage.bands] if source.coverage else []
        for source in sources
    ]
    _grouped(axes, names, shares, sources)
    axes.set_xlim(0, 102)
    axes.set_xlabel("% found")


def _times(least: int, most: int) -> str:
    if least == most:
        return "once" if least == 1 else f"{least:,} times"
    return f"{least:,} to {most:,} times"


def _kinds(axes: Axes, sources: list[Source]) -> None:
    kinds = [kind for kind in sources[0].health.kinds if any(source.health.kinds[kind] for source in sources)]
    shares = [
        [100 * source.health.kinds[kind] / max(sum(source.health.kinds.values()), 1) for kind in kinds]
        for source in sources
    ]
    _grouped(axes, [kind.replace("_", " ") for kind in kinds], shares, sources)
    axes.set_xlabel("% of the tokens")
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(0, 110)
    axes.set_xticks([0, 0.5, 1, 10, 100], ["0", "0.5", "1", "10", "100"])


def _grouped(axes: Axes, names: Sequence[str], values: list[list[float]], sources: list[Source]) -> None:
    """Horizontal bars, the first name on top, a bar a source."""
    height = 0.8 / max(len(values), 1)
    for place, series in enumerate(values):
        offsets = [i + (place - (len(values) - 1) / 2) * height for i in range(len(series))]
        axes.barh(offsets, series, height * 0.92, color=_colour(place), label=_label(sources[place]))
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    _legend(axes, sources)


def _norms(axes: Axes, sources: list[Source]) -> None:
    for place, source in enumerate(sources):
        histogram = source.health.norms.histogram
        total = max(sum(histogram.counts), 1)
        if histogram.counts:
            shares = [100 * count / total for count in histogram.counts]
            alpha = 0.85 if len(sources) == 1 else 0.35
            axes.stairs(shares, histogram.edges, fill=True, alpha=alpha, color=_colour(place), label=_label(source))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("length")
    axes.set_ylabel("% of the rows")
    axes.grid(axis="x", visible=False)
    _legend(axes, sources)


def _dimensions(axes: Axes, sources: list[Source]) -> None:
    for place, source in enumerate(sources):
        shares = sorted((100 * share for share in source.health.dimensions.share), reverse=True)
        if shares:
            edges = [100 * i / len(shares) for i in range(len(shares) + 1)]
            axes.stairs(shares, edges, color=_colour(place), linewidth=2, baseline=None, label=_label(source))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("dimensions, the heaviest first, in %")
    axes.set_ylabel("% of the squared length")
    _legend(axes, sources)
