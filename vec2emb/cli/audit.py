"""`vec2emb audit`: what is in files of vectors, what of a corpus they cover, and what to do about it."""

from __future__ import annotations

from typing import Any

import click

from ..errors import UsageError
from ..options.choices import ENCODING_ERRORS, FORMATS, REPLACE
from .output import HeadedCommand, emit, option, reading_options, say, tell, warnings_said

INPUT, CORPUS, GATES, OUTPUT, MACHINE = "Input", "Corpus", "Gates", "Output", "Machine"


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        import json

        from ..auditing.schema import json_schema

        tell(json.dumps(json_schema(), indent=2))
        context.exit()


@click.command(
    cls=HeadedCommand,
    short_help="What is in a file of vectors, and what of a corpus it covers.",
    epilog="Example:\n  vec2emb audit glove.6B.50d.txt --corpus 'texts/*.txt' --html audit.html\n"
    "  vec2emb audit glove-50d --counts counts.parquet --min coverage.tokens=0.95 --max health.duplicates=0",
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@option(INPUT, "--member", metavar="NAME", help="Of an archive, the member to read.")
@reading_options(INPUT, "allow-pickle")
@option(INPUT, "--format", type=click.Choice(FORMATS), default="auto",
        show_default=True, help="What a file of vectors is.")  # fmt: skip
@reading_options(INPUT, "dim", "limit", "encoding")
@option(INPUT, "--encoding-errors", type=click.Choice(list(ENCODING_ERRORS)), default="error",
        show_default=True, help="What to do at a token, of SOURCE or corpus, that is not in the encoding.")  # fmt: skip
@option(CORPUS, "--corpus", multiple=True, metavar="PATH",
        help="A file, folder or quoted pattern of text whose words are looked up; may be repeated.")  # fmt: skip
@option(CORPUS, "--counts", metavar="FILE", help="Instead of it, counts that `vec2emb vocab --save-counts` wrote.")
@option(CORPUS, "--tokenizer", metavar="NAME", default="whitespace", show_default=True,
        help="How the corpus is cut: whitespace, bert, regex:PATTERN or hf:FILE.")  # fmt: skip
@option(CORPUS, "--lowercase", is_flag=True, help="Lower-case the corpus.")
@option(CORPUS, "--field", metavar="NAME", help="Field or column that holds the text.  [default: text]")
@option(CORPUS, "--examples", type=click.IntRange(0), default=0, metavar="N",
        help="Show N lines of the corpus for each of the most frequent missing words.")  # fmt: skip
@option(GATES, "--min", "min_", multiple=True, metavar="PATH=NUMBER",
        help="The least that a figure of the JSON may be, such as coverage.tokens=0.95; may be repeated.")  # fmt: skip
@option(GATES, "--max", "max_", multiple=True, metavar="PATH=NUMBER",
        help="The most, such as health.duplicates=0; may be repeated.")  # fmt: skip
@option(OUTPUT, "--html", metavar="FILE", help="Write a page that needs nothing but a browser.")
@option(OUTPUT, "--missing-words", metavar="FILE", help="Write all missing words: token, count, best remedy (TSV).")
@option(OUTPUT, "--if-exists", type=click.Choice(REPLACE), default="error", show_default=True,
        help="What to do about another file in their place; an earlier page or list is replaced.")  # fmt: skip
@option(OUTPUT, "--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema,
        help="Print the JSON Schema of --json.")  # fmt: skip
@option(MACHINE, "--threads", type=int, metavar="N", help="Workers.  [default: one a core]")
@option(MACHINE, "--json", "with_json", is_flag=True, help="Print all figures as one line of JSON.")
@option(MACHINE, "--quiet", is_flag=True, help="Neither progress nor page.")
def audit(
    sources: tuple[str, ...],
    corpus: tuple[str, ...],
    min_: tuple[str, ...],
    max_: tuple[str, ...],
    html: str | None,
    missing_words: str | None,
    if_exists: str,
    with_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Say what is in each SOURCE, a file of vectors or a bundle, and what of a corpus it covers.

    Faulty rows are counted, not refused. A gate that is missed ends with exit code 3.
    """
    from ..auditing.auditor import audit as run
    from ..auditing.writing import check_files, write_page, write_words

    if missing_words is not None and not corpus and options["counts"] is None:
        raise UsageError("missing-words-alone", "no word can be missing", hint="add --corpus FILES or --counts FILE")
    check_files(html, missing_words, [*sources, *corpus, options["counts"], options["tokenizer"]], if_exists)
    with warnings_said():
        found = run(*sources, corpus=corpus or None, min=min_, max=max_, progress=not quiet, **options)
    if missing_words is not None:
        write_words(found, missing_words, if_exists=if_exists)
    if html is not None:
        write_page(found, html, command=_command(), if_exists=if_exists)
    if with_json:
        emit(found.to_dict())
    elif not quiet:
        _show(found)
    for gate in found.gates:
        if not gate.ok:
            say(f"missed: {gate}")
    return 0 if found.ok else 3


def _command() -> str:
    """What was typed, for the foot of the page."""
    import shlex
    import sys

    from ..io.urls import cleaned

    return cleaned(shlex.join(["vec2emb", *sys.argv[1:]]))


def _show(found: Any) -> None:
    """The page, in colour on a terminal."""
    import os
    import shutil
    import sys

    if sys.stdout is not None and sys.stdout.isatty():
        tell(found.page(width=shutil.get_terminal_size().columns, colour=os.environ.get("TERM") != "dumb"))
    else:
        tell(found.page())
