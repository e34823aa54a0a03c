"""`vec2emb vocab`: the most frequent tokens of a corpus, as a vocabulary."""

from __future__ import annotations

from typing import Any

import click

from ..options.commands import VOCAB
from .options import HeadedCommand, options_of
from .output import show, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="The vocabulary of a corpus.",
    epilog="Example:\n  vec2emb vocab corpus/ -o vocab.txt --min-count 5 --save-counts counts.parquet\n"
    "  vec2emb vocab 'wiki/*.jsonl.gz' -o vocab.txt --tokenizer bert --lowercase --max-size 100000\n"
    "  vec2emb vocab s3://bucket/text -o vocab.txt --engine dask --scheduler tcp://host:8786 --parts s3://bucket/tmp",
)
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS...")
@options_of(VOCAB)
def vocab(corpus: tuple[str, ...], output: str, with_json: bool, quiet: bool, **options: Any) -> None:
    """Write the tokens of CORPUS, the most frequent first, those of one count by their bytes; no special tokens.

    CORPUS is files, folders, quoted patterns or URLs: text, JSON lines (.jsonl) and Parquet, each compressed or not, or
    - for standard input. The same tokens in the same order come out of any number of threads, tasks and workers.
    """
    from ..corpus import build_vocab

    with warnings_said():
        report = build_vocab(corpus, output, progress=not quiet, **options)
    show(report, with_json, quiet)
