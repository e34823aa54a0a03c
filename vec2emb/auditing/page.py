"""The page of an audit: one HTML file that needs nothing else, for a screen, a phone, and paper.

Whatever came from a file or a corpus is data: `_text` escapes it for HTML and shows control characters escaped. The
page's own policy (CSP) allows its one script by hash, and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import platform
from collections.abc import Callable, Iterable, Iterator
from importlib import resources

from ..errors import printable
from .coverage_figures import Coverage, Remedy
from .health_figures import Finding, Health
from .outcome import Audit
from .plots import plots_of
from .results import InputFile, Source

GENERATOR = '<meta name="generator" content="vec2emb audit">'  # tells an earlier page from another file
WORDS = 2000  # missing words on a page, shared among the sources

Cell = str  # of HTML, escaped already


def html_page(audit: Audit, *, command: str | None = None) -> str:
    """The page as text; the same audit and versions give the same bytes.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    style, script = (resources.files(__package__).joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{allowed}'"
    names = ", ".join(_text(source.name) for source in audit.sources)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            GENERATOR,
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<link rel="icon" href="data:,">\n<title>Audit of {names}</title>',
            f"<style>\n{style}</style>\n</head>\n<body>",
            f'<header><h1>Audit of word vectors</h1><p class="muted">{names}</p></header>',
            *_body(audit),
            f"<footer>{_foot(audit, command)}</footer>",
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def _body(audit: Audit) -> Iterator[str]:
    if len(audit.sources) == 1:
        yield _cards(audit.sources[0])
    if audit.gates:
        yield "<h2>Gates</h2>" + _gates(audit)
    if len(audit.sources) > 1:
        yield "<h2>Side by side</h2>" + _figures(audit.sources)
        yield from _comparisons(audit)
    yield '<div class="plots">'
    for name, title, svg in plots_of(audit.sources):
        yield f'<figure id="plot-{name}"><figcaption>{_text(title)}</figcaption>\n{svg}\n</figure>'
    yield "</div>"
    for place, source in enumerate(audit.sources):
        of = f": {_text(source.name)}" if len(audit.sources) > 1 else ""
        yield f"<h2>Findings{of}</h2>" + _findings(source.health.findings)
        if source.coverage is not None:
            yield f"<h2>What would find more{of}</h2>" + _remedies(source.coverage)
            yield f"<h2>Missing words{of}</h2>" + _words(source.coverage, f"words-{place}", WORDS // len(audit.sources))
    if len(audit.sources) == 1:
        yield "<h2>All figures</h2>" + _figures(audit.sources)


# The parts.


def _cards(source: Source) -> str:
    health, coverage = source.health, source.coverage
    cards = [(f"{health.rows:,}", f"rows of {health.dim} values")]
    if coverage is not None:
        cards += [
            (f"{coverage.tokens:.1%}", "of running tokens found"),
            (f"{coverage.types:.1%}", "of different tokens found"),
            (f"{coverage.together.tokens:.1%}", "of these with all remedies"),
            (_megabytes(coverage.restricted.float32_bytes), "for the rows that the corpus uses"),
        ]
    faults = sum(finding.level == "fault" for finding in health.findings)
    odd = sum(finding.level == "warning" for finding in health.findings)
    cards.append((f"{faults + odd:,}", f"findings: {_number(faults, 'fault')}, {_number(odd, 'warning')}"))
    inner = "".join(
        f'<div class="card"><b>{_text(figure)}</b><span>{_text(what)}</span></div>' for figure, what in cards
    )
    return f'<div class="cards">{inner}</div>'


def _findings(findings: list[Finding]) -> str:
    if not findings:
        return '<p class="good">Nothing odd.</p>'
    items = "".join(
        f'<li><span class="level {finding.level}">{finding.level}</span>{_text(finding.message)}'
        + (f'<span class="advice">{_text(finding.advice)}</span>' if finding.advice else "")
        + "</li>"
        for finding in findings
    )
    return f'<ul class="findings wide">{items}</ul>'


def _remedies(coverage: Coverage) -> str:
    useful = [remedy for remedy in coverage.remedies if remedy.types_won]
    if not useful:
        return "<p>Nothing that is tried here.</p>"
    rows = [_remedy(remedy, max(r.tokens_won for r in useful)) for remedy in useful]
    heads = [
        "",
        "number|running tokens won",
        "number|then found",
        "number|different tokens won",
        "number|then found",
        "how|how",
    ]
    note = (
        f'<p class="muted">All of them together: {coverage.together.tokens:.2%} of running tokens, '
        f"{coverage.together.types:.2%} of different ones. Options are those of <code>vec2emb convert</code>; "
        "<code>words.txt</code> is what <code>vec2emb vocab CORPUS -o words.txt</code> writes. Python makes of a "
        "missing <code>token</code> what to look up instead.</p>"
    )
    return _table(heads, rows) + note


def _remedy(remedy: Remedy, most: int) -> list[Cell]:
    width = 8 * remedy.tokens_won / max(most, 1)
    bar = f'<span class="bar" style="width:{width:.2f}rem"></span> {remedy.tokens_won:,}'
    how = f"<code>{_text(remedy.options or remedy.code or '')}</code>"
    return [_text(remedy.title), bar, f"{remedy.tokens:.2%}", f"{remedy.types_won:,}", f"{remedy.types:.2%}", how]


def _words(coverage: Coverage, name: str, most: int) -> str:
    if not coverage.types_missing:
        return '<p class="good">None.</p>'
    examples = {word.token: word.examples for word in coverage.missing}
    titles = {remedy.name: remedy.title for remedy in coverage.remedies}
    total = coverage.tokens_found + coverage.tokens_missing
    rows = []
    for (token, count, remedy), _ in zip(coverage.misses, range(most), strict=False):
        lines = "".join(f'<span class="example">{_text(line)}</span>' for line in examples.get(token, ()))
        share = 100 * count / total
        rows.append([_text(token) + lines, f"{count:,}", f"{share:.3f}", _text(titles.get(remedy or "", ""))])
    told = "the" if coverage.types_missing <= most else f"the {most:,} most frequent of"
    search = (
        f'<div class="search" hidden><input type="search" data-table="{name}" placeholder="search a word" '
        f'aria-label="search a word"><span class="muted" id="{name}-told"></span></div>'
    )
    table = _table(["token|token", "number|count", "number|% of the corpus", "found by"], rows, name=name, kind="words")
    return f'<p class="muted">Here are {told} {coverage.types_missing:,} words without a row.</p>' + search + table


_FIGURES: tuple[tuple[str, Callable[[Health], object]], ...] = (
    ("rows", lambda h: h.rows),
    ("rows that load", lambda h: h.loaded),
    ("rows that no file gave", lambda h: h.made),
    ("faulty rows", lambda h: _counts({code: fault.count for code, fault in h.faults.items()})),
    ("rows that the header promises", lambda h: "no header" if h.header_rows is None else h.header_rows),
    ("values a row", lambda h: h.dim),
    ("duplicates", lambda h: h.duplicates),
    ("twins by case, NFC, NFKC", lambda h: _joined(h.case_twins, h.nfc_twins, h.nfkc_twins)),
    ("rows with the vector of another", lambda h: h.identical_vectors),
    ("rows of zeros, with NaN, with infinity", lambda h: _joined(h.zero_rows, h.nan_rows, h.inf_rows)),
    ("rows of one value", lambda h: h.constant_rows),
    ("lengths: shortest, 1 %, median", lambda h: _joined(h.norms.min, h.norms.p01, h.norms.median)),
    ("lengths: 99 %, longest", lambda h: _joined(h.norms.p99, h.norms.max)),
    ("rows of an odd length", lambda h: h.norm_outliers),
    ("length of the mean vector", lambda h: h.mean_length),
    ("average cosine of two rows", lambda h: h.mean_cosine),
    ("dimensions that dominate", lambda h: ", ".join(f"{r.dim} ({r.share:.0%})" for r in h.dimensions.rogue) or "none"),
    ("scripts of words", lambda h: _counts(dict(list(h.scripts.items())[:6]))),
    ("tokens: median, 99 %, longest, in characters",
     lambda h: _joined(h.token_length.median, h.token_length.p99, h.token_length.max)),
    ("checks that failed", lambda h: "not a bundle" if h.checks_failed is None else h.checks_failed),
)  # fmt: skip


def _figures(sources: list[Source]) -> str:
    """One row a figure, one column a source."""
    rows = [[_text(name), *(_text(_shown(figure(source.health))) for source in sources)] for name, figure in _FIGURES]
    if any(source.coverage for source in sources):
        rows += _coverage(sources)
    heads = [f"|{_text(source.name)}" for source in sources] if len(sources) > 1 else ["figure"]
    return _table(["", *heads], rows, row_heads=True)


def _coverage(sources: list[Source]) -> list[list[Cell]]:
    def line(name: str, cell: Callable[[Coverage], str]) -> list[Cell]:
        return [_text(name), *("" if s.coverage is None else _text(cell(s.coverage)) for s in sources)]

    return [
        line("running tokens found", lambda c: f"{c.tokens:.2%}, {c.tokens_found:,}"),
        line("different tokens found", lambda c: f"{c.types:.2%}, {c.types_found:,}"),
        line("running tokens with all remedies", lambda c: f"{c.together.tokens:.2%}"),
        line("rows that the corpus uses, and never uses", lambda c: f"{c.used_rows:,}, {c.unused_rows:,}"),
        line(
            "a bundle of those it uses",
            lambda c: f"{_megabytes(c.restricted.float32_bytes)}, float16 {_megabytes(c.restricted.float16_bytes)}",
        ),
    ]


def _comparisons(audit: Audit) -> Iterator[str]:
    names = [_text(source.name) for source in audit.sources]
    rows = [
        [
            f"{names[c.first]}<br>{names[c.second]}", f"{c.shared:,}", f"{c.first_share:.1%}, {c.second_share:.1%}",
            _shown(c.sample), _shown(c.same_vectors), _shown(c.agreement),
            "none" if c.neighbours is None else f"{c.neighbours:.0%}",
        ]
        for c in audit.comparisons
    ]  # fmt: skip
    heads = [
        "",
        "number|shared tokens",
        "number|of either",
        "number|compared",
        "number|same vectors",
        "number|cosines agree",
        "number|neighbours shared",
    ]
    yield "<h2>Shared words</h2>" + _table(heads, rows)


def _gates(audit: Audit) -> str:
    rows = []
    for gate in audit.gates:
        verdict = '<span class="good">kept</span>' if gate.ok else '<span class="bad">missed</span>'
        asked = f"{'at least' if gate.kind == 'min' else 'at most'} {gate.bound:.9g}"
        rows.append([verdict, _text(gate.source), f"<code>{_text(gate.path)}</code>", asked, _shown(gate.found)])
    return _table(["", "source", "figure", "number|asked for", "number|found"], rows)


def _foot(audit: Audit, command: str | None) -> str:
    import matplotlib
    import numpy

    versions = f"vec2emb {audit.vec2emb_version}, Python {platform.python_version()}, numpy {numpy.__version__}, "
    lines = [f"<p><code>{_text(command)}</code></p>"] if command else []
    lines.append(f"<p>{_text(versions)}matplotlib {_text(matplotlib.__version__)}</p>")
    if audit.corpus is not None:
        how = f", cut by {audit.corpus.tokenizer}" if audit.corpus.tokenizer else ""
        lower = ", lower-cased" if audit.corpus.lowercase else ""
        lines.append(
            f"<p>Corpus: {audit.corpus.tokens:,} tokens, {audit.corpus.types:,} different{_text(how)}{lower}</p>"
        )
    files = [
        *(file for source in audit.sources for file in source.files),
        *(audit.corpus.files if audit.corpus else []),
    ]
    lines += [f"<p>{_file(file)}</p>" for file in files[:50]]
    if len(files) > 50:
        lines.append(f"<p>and {len(files) - 50:,} files more</p>")
    return "\n".join(lines)


def _file(file: InputFile) -> str:
    size = "size unknown" if file.bytes is None else f"{file.bytes:,} bytes"
    return f"{_text(file.name)}: {size}{'' if file.sha256 is None else f', sha256 <code>{file.sha256}</code>'}"


# Pieces of HTML.


def _table(
    heads: Iterable[str], rows: list[list[Cell]], *, name: str = "", kind: str = "", row_heads: bool = False
) -> str:
    """A table. A head is HTML, with the class of its column in front of a `|`: `number|count`."""
    split = [head.partition("|") if "|" in head else ("", "", head) for head in heads]
    classes = [f' class="{column}"' if column else "" for column, _, _ in split]
    top = "".join(f"<th{column}>{head}</th>" for column, (_, _, head) in zip(classes, split, strict=True))
    body = []
    for row in rows:
        tags = ["th" if row_heads and not place else "td" for place in range(len(row))]
        cells = zip(tags, classes, row, strict=True)
        body.append(f"<tr>{''.join(f'<{tag}{column}>{cell}</{tag}>' for tag, column, cell in cells)}</tr>")
    identity = f' id="{name}"' if name else ""
    lines = "\n".join(body)
    return (
        f'<div class="wide {kind}"><table{identity}><thead><tr>{top}</tr></thead>\n<tbody>{lines}</tbody></table></div>'
    )


def _text(value: str) -> Cell:
    """Text as HTML: markup and control characters are shown, not obeyed."""
    return html.escape(printable(value.replace("\n", "\\n")))


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _joined(*values: object) -> str:
    return ", ".join(map(_shown, values))


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count) or "none"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
