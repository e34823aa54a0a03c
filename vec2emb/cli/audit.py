"""`vec2emb audit`: what is in files of vectors, what of a corpus they cover, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..options.commands import AUDIT, SCHEMA
from .options import HeadedCommand, eager, options_of
from .output import emit, say, tell, warnings_said

if TYPE_CHECKING:
    from ..auditing.outcome import Audit


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
@options_of(AUDIT)
@eager(SCHEMA, _print_schema)
def audit(
    sources: tuple[str, ...],
    html: str | None,
    missing_words: str | None,
    if_exists: str,
    passed: str | None,
    with_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Say what is in each SOURCE, a file of vectors or a bundle, and what of a corpus it covers.

    Faulty rows are counted, not refused. A gate that is missed ends with exit code 3. --passed FILE is there only after
    a run in which all gates passed: it is what a build tool can wait for.
    """
    from ..auditing.auditor import audit as run
    from ..auditing.writing import check_files, remove_passed, write_page, write_passed, write_words

    if missing_words is not None and options["corpus"] is None and options["counts"] is None:
        raise UsageError("missing-words-alone", "no word can be missing", hint="add --corpus FILES or --counts FILE")
    if passed is not None and not options["min"] and not options["max"]:
        raise UsageError("passed-alone", "there are no gates to pass", hint="add --min or --max")
    inputs = [*sources, *(options["corpus"] or ()), options["counts"], options["tokenizer"]]
    check_files(html, missing_words, passed, inputs, if_exists)
    if passed is not None:
        remove_passed(passed)
    with warnings_said():
        found = run(*sources, progress=not quiet, **options)
    if html is not None:  # first: it takes longest and needs a package, and leaves no other file if it fails
        write_page(found, html, command=_command(), if_exists=if_exists)
    if missing_words is not None:
        write_words(found, missing_words, if_exists=if_exists)
    if passed is not None and found.ok:
        write_passed(found, passed)
    if with_json:  # last, so that an error before it is the only line
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


def _show(found: Audit) -> None:
    """The page, in colour on a terminal."""
    import os
    import shutil
    import sys

    if sys.stdout is not None and sys.stdout.isatty():
        tell(found.page(width=shutil.get_terminal_size().columns, colour=os.environ.get("TERM") != "dumb"))
    else:
        tell(found.page())
