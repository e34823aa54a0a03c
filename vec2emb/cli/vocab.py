"""`vec2emb vocab`: the most frequent tokens of a corpus, as a vocabulary."""

from __future__ import annotations

from typing import Any

import click

from ..options.choices import ENCODING_ERRORS, REPLACE
from .output import HeadedCommand, emit, option, tell, warnings_said

CORPUS, OUTPUT, MACHINE = "Corpus", "Output", "Machine"


@click.command(
    cls=HeadedCommand,
    short_help="The vocabulary of a corpus.",
    epilog="Example:\n  vec2emb vocab corpus/ -o vocab.txt --min-count 5 --save-counts counts.parquet\n"
    "  vec2emb vocab 'wiki/*.jsonl.gz' -o vocab.txt --tokenizer bert --lowercase --max-size 100000\n"
    "  vec2emb vocab s3://bucket/text -o vocab.txt --engine dask --scheduler tcp://host:8786 --parts s3://bucket/tmp",
)
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS...")
@option(CORPUS, "--tokenizer", metavar="NAME", default="whitespace", show_default=True,
        help="whitespace (ASCII), bert (further at Unicode white space and around punctuation), regex:PATTERN (its "
             "matches) or hf:FILE (a tokenizer.json).")  # fmt: skip
@option(CORPUS, "--lowercase", is_flag=True, help="Lower-case the tokens.")
@option(CORPUS, "--field", metavar="NAME",
        help="Of JSON lines the key, of Parquet the column that holds text.  [default: text]")  # fmt: skip
@option(CORPUS, "--encoding-errors", type=click.Choice(list(ENCODING_ERRORS)), default="error",
        show_default=True, help="What to do at a token that is not UTF-8.")  # fmt: skip
@option(OUTPUT, "-o", "--output", required=True, metavar="FILE", help="One token a line.")
@option(OUTPUT, "--min-count", type=int, metavar="N", default=1, show_default=True,
        help="Leave out tokens that come less often.")  # fmt: skip
@option(OUTPUT, "--max-size", type=int, metavar="N", help="Keep at most N tokens.")
@option(OUTPUT, "--save-counts", metavar="FILE", help="The counts of all tokens: .parquet or .tsv.")
@option(OUTPUT, "--if-exists", type=click.Choice(REPLACE), default="error", show_default=True,
        help="What to do about a file that is there.")  # fmt: skip
@option(MACHINE, "--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True,
        help="Count by threads here, or as tasks of Dask.")  # fmt: skip
@option(MACHINE, "--scheduler", metavar="NAME",
        help="Of Dask: a cluster's address, or synchronous, threads, processes.  [default: threads]")  # fmt: skip
@option(MACHINE, "--parts", metavar="FOLDER",
        help="Of Dask: a folder or URL that the workers see, too, for the counts on their way.  "
             "[default: a temporary one]")  # fmt: skip
@option(MACHINE, "--memory", metavar="SIZE", default="1GB", show_default=True,
        help="About how much the counting may take; the rest goes to temporary files.")  # fmt: skip
@option(MACHINE, "--threads", type=int, metavar="N", help="Of local: workers.  [default: one a core]")
@option(MACHINE, "--json", "with_json", is_flag=True, help="Print the report as one line of JSON.")
@option(MACHINE, "--quiet", is_flag=True, help="Neither progress nor summary.")
def vocab(corpus: tuple[str, ...], output: str, with_json: bool, quiet: bool, **options: Any) -> None:
    """Write the tokens of CORPUS, the most frequent first, those of one count by their bytes; no special tokens.

    CORPUS is files, folders, quoted patterns or URLs: text, JSON lines (.jsonl) and Parquet, each compressed or not, or
    - for standard input. The same tokens in the same order come out of any number of threads, tasks and workers.
    """
    from ..corpus import build_vocab

    with warnings_said():
        report = build_vocab(corpus, output, progress=not quiet, **options)
    if with_json:
        emit(report.to_dict())
    elif not quiet:
        tell(str(report))
