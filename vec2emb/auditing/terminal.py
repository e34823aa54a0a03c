"""The figures of an audit on one page of a terminal: at most 40 lines, whatever was found.

The page is a list of tables first, which rich draws where it is there and a terminal shows it, and plain text else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..errors import printable, shown
from .coverage_figures import Coverage
from .findings import ORDER
from .health_figures import Health
from .results import Comparison, Corpus, GateResult, Source

LINES = 40
WIDTH = 100
_FINDINGS, _REMEDIES, _MISSING, _PAIRS = 10, 4, 8, 6
_STYLES = {"fault": "bold red", "warning": "yellow", "note": "dim"}


class Row(NamedTuple):
    """A line of a table: what it is about, a cell a source, and how it is to look."""

    name: str
    cells: Sequence[str]
    style: str = ""


class Section(NamedTuple):
    """A table, or with `prose` lines that take the whole width."""

    title: str
    rows: list[Row]
    prose: bool = False


def page(
    sources: list[Source],
    corpus: Corpus | None,
    comparisons: list[Comparison],
    gates: list[GateResult],
    *,
    width: int | None,
    colour: bool,
) -> str:
    """The page as text, without its last LF; see `Audit.page`."""
    sections = list(_sections(sources, corpus, comparisons, gates))
    if colour:
        try:
            return _drawn(sections, width or WIDTH)
        except ImportError:  # the extra is not installed
            pass
    return _plain(sections, width)


# What stands there.


def _sections(
    sources: list[Source], corpus: Corpus | None, comparisons: list[Comparison], gates: list[GateResult]
) -> list[Section]:
    single = len(sources) == 1
    top = [Section("audit" if single else f"audit of {len(sources)} sources", list(_figures(sources)))]
    if corpus is not None:
        text = f"coverage of {corpus.tokens:,} tokens, {corpus.types:,} of them different"
        top.append(Section(text, list(_coverage(sources))))
    if comparisons:
        rows = [_beside(sources, comparison) for comparison in comparisons[:_PAIRS]]
        top.append(Section("beside each other", rows, prose=True))
    end = []
    if single and sources[0].coverage is not None:
        end.append(Section("what would find more", list(_remedies(sources[0].coverage)), prose=True))
    if gates:
        missed = sum(not gate.ok for gate in gates)
        text = f"{missed} of {len(gates)} missed" if missed else f"{len(gates)} of {len(gates)} kept"
        end.append(Section("", [Row("gates", [text], "bold red" if missed else "green")], prose=True))
    room = LINES - 1 - sum(bool(section.title) + len(section.rows) for section in top + end)
    return [*top, Section("findings", _findings(sources, room), prose=True), *end]


def _figures(sources: list[Source]) -> Iterable[Row]:
    def row(name: str, cell: Callable[[Health], str]) -> Row:
        return Row(name, [cell(source.health) for source in sources])

    yield Row("", [source.name for source in sources], "bold")
    yield Row("is", [_what(source) for source in sources])
    yield row("rows", _rows)
    yield row("norms", _norms)
    yield row("direction", lambda h: f"mean vector {_number(h.mean_length)}, mean cosine {_number(h.mean_cosine)}")
    yield row("rogue dimensions", lambda h: ", ".join(f"{r.dim} ({r.share:.0%})" for r in h.dimensions.rogue) or "none")
    yield row(
        "zero, NaN, inf, constant", lambda h: f"{h.zero_rows:,}, {h.nan_rows:,}, {h.inf_rows:,}, {h.constant_rows:,}"
    )
    yield row("duplicates, same vectors", lambda h: f"{h.duplicates:,}, {h.identical_vectors:,}")
    yield row("twins by case, NFC, NFKC", lambda h: f"{h.case_twins:,}, {h.nfc_twins:,}, {h.nfkc_twins:,}")
    yield row("tokens", _kinds)
    yield row("scripts", lambda h: _listed(h.scripts, 4))
    if any(source.health.checks_failed is not None for source in sources):
        yield row("checks", _checks)


def _what(source: Source) -> str:
    compression = "" if source.compression == "none" else f", {source.compression}"
    return f"{source.kind}, {source.format}{compression}, {source.health.dim} values a row"


def _rows(health: Health) -> str:
    parts = [f"{health.rows:,}"]
    if health.faulty:
        parts.append(f"{health.faulty:,} faulty")
    if health.made:
        parts.append(f"{health.made:,} not from a file")
    if health.header_agrees is False:
        parts.append(f"header says {health.header_rows:,}")
    return ", ".join(parts) + (", read up to the limit" if health.limited else "")


def _norms(health: Health) -> str:
    norms = health.norms
    if norms.median is None:
        return "none"
    low, p01, middle, p99, high = map(_number, (norms.min, norms.p01, norms.median, norms.p99, norms.max))
    return f"{low} | 1% {p01} | {middle} | 99% {p99} | {high}"


def _kinds(health: Health) -> str:
    names = {kind.replace("_", " "): count for kind, count in health.kinds.items()}
    return _listed(names, 4)


def _listed(counts: dict[str, int], most: int) -> str:
    ranked = sorted(((count, name) for name, count in counts.items() if count), reverse=True)
    more = ", .." if len(ranked) > most else ""
    return ", ".join(f"{name} {count:,}" for count, name in ranked[:most]) + more or "none"


def _checks(health: Health) -> str:
    if health.checks_failed is None:
        return ""
    return (
        f"{health.checks_failed} of {len(health.checks)} failed"
        if health.checks_failed
        else f"all {len(health.checks)} passed"
    )


def _coverage(sources: list[Source]) -> Iterable[Row]:
    covers = [source.coverage for source in sources if source.coverage is not None]
    yield Row("running tokens found", [f"{c.tokens:.2%}" for c in covers], "bold")
    yield Row("different tokens found", [f"{c.types:.2%}" for c in covers])
    yield Row("of frequent ones", [_bands(c) for c in covers])
    yield Row("rows used", [f"{c.used_rows:,}, {c.unused_rows:,} never" for c in covers])
    sizes = [(c.restricted.float32_bytes / 1e6, c.restricted.float16_bytes / 1e6) for c in covers]
    yield Row("bundle of these", [f"{wide:,.2f} MB, float16 {narrow:,.2f} MB" for wide, narrow in sizes])
    if len(covers) > 1:
        yield Row("with all remedies", [f"{c.together.tokens:.2%}" for c in covers])
        best = [next((r for r in c.remedies if r.tokens_won), None) for c in covers]
        yield Row("best remedy", ["none" if r is None else f"{r.options or r.title}: {r.tokens:.2%}" for r in best])


def _bands(coverage: Coverage) -> str:
    bands = [band for band in coverage.bands if band.types][:4]
    return ", ".join(f"{band.least:,}+: {band.running_found / band.running:.0%}" for band in bands)


def _beside(sources: list[Source], c: Comparison) -> Row:
    names = f"{sources[c.first].name} and {sources[c.second].name}"
    agreement = f"; cosines agree {_number(c.agreement)}, neighbours {_percent(c.neighbours)}" if c.sample else ""
    text = f"{c.shared:,} tokens shared ({c.first_share:.0%} and {c.second_share:.0%}){agreement}"
    return Row("", [f"{names}: {text}"])


def _findings(sources: list[Source], room: int) -> list[Row]:
    """The worst findings in at most `room` lines; what to do about each, as far as there is room."""
    ranked = sorted(
        ((ORDER[finding.level], place, finding) for place, s in enumerate(sources) for finding in s.health.findings),
        key=lambda entry: entry[:2],
    )
    most = min(_FINDINGS, room)
    shown_ones = ranked if len(ranked) <= most else ranked[: most - 1]
    spare = room - len(shown_ones) - (len(shown_ones) < len(ranked))
    rows = []
    for _, place, finding in shown_ones:
        front = f"{sources[place].name}: " if len(sources) > 1 else ""
        rows.append(Row(finding.level, [front + finding.message], _STYLES[finding.level]))
        if finding.advice and finding.level != "note" and spare > 0:
            rows.append(Row("", [finding.advice], "dim"))
            spare -= 1
    if len(ranked) > len(shown_ones):
        rows.append(Row("", [f"and {len(ranked) - len(shown_ones)} more: --json and --html have them all"], "dim"))
    return rows or [Row("", ["nothing odd"], "green")]


def _remedies(coverage: Coverage) -> Iterable[Row]:
    useful = [remedy for remedy in coverage.remedies if remedy.types_won]
    for remedy in useful[:_REMEDIES]:
        how = remedy.options or f"{remedy.title}: {remedy.code}"
        yield Row("remedy", [f"+{remedy.tokens_won:,} tokens to {remedy.tokens:.2%}: {how}"], "cyan")
    if len(useful) > 1:
        yield Row(
            "all remedies", [f"{coverage.together.tokens:.2%} of running, {coverage.together.types:.2%} of different"]
        )
    if coverage.missing:
        named = ", ".join(f"{shown(word.token, 20)} {word.count:,}" for word in coverage.missing[:_MISSING])
        yield Row("missing", [named + (", .." if coverage.types_missing > _MISSING else "")])
        if example := next(((w.token, line) for w in coverage.missing for line in w.examples), None):
            yield Row("as in", [example[1]], "dim")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{value:.0%}"


# How it is drawn.


def _plain(sections: list[Section], width: int | None) -> str:
    """Lines of text; without a width, in a pipe or a file, nothing is cut."""
    lines: list[str] = []
    for section in sections:
        if section.title:
            lines.append(_cut(section.title, width or len(section.title)))
        name_width = max((len(row.name) for row in section.rows), default=0)
        columns = 1 if section.prose else max((len(row.cells) for row in section.rows), default=1)
        if width is None:
            room = max((len(printable(cell)) for row in section.rows for cell in row.cells), default=0)
        else:
            room = max(10, (width - name_width - 4 - 2 * (columns - 1)) // columns)
        for row in section.rows:
            cells = [_cut(printable(cell), room).ljust(room if columns > 1 else 0) for cell in row.cells]
            lines.append(f"  {row.name:<{name_width}}  {'  '.join(cells)}".rstrip())
    return "\n".join(lines)


def _cut(text: str, width: int) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= width else text[: width - 1] + "…"


def _drawn(sections: list[Section], width: int) -> str:
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, highlight=False)
    for section in sections:
        if section.title:
            console.print(Text(section.title, "bold underline"), no_wrap=True, overflow="ellipsis")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, expand=section.prose)
        table.add_column(style="dim", no_wrap=True)
        columns = max((len(row.cells) for row in section.rows), default=1)
        for _ in range(columns):
            table.add_column(no_wrap=True, overflow="ellipsis", ratio=1 if section.prose else None)
        for row in section.rows:
            style = "" if section.prose and row.style == "dim" else row.style
            cells = [Text(printable(cell).replace("\n", " "), style) for cell in row.cells]
            table.add_row(Text(f"  {row.name}", row.style), *cells)
        console.print(table)
    return stream.getvalue().rstrip("\n")
