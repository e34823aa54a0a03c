"""`vec2emb export`: a bundle to what other programs read."""

from __future__ import annotations

from typing import Any

import click

from ..options.commands import EXPORT
from .options import HeadedCommand, options_of
from .output import show, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="A bundle to a file of vectors, or a folder of other libraries.",
    epilog="Example:\n  vec2emb export glove-50d --to huggingface -o glove-50d-hf --model-card\n"
    "  vec2emb export glove-50d --to word2vec-binary -o glove-50d.bin.gz\n"
    "  vec2emb export glove-50d --to glove -o glove-50d.txt --specials drop\n"
    "  vec2emb export glove-50d --to shards -o glove-50d-shards --shard-size 5GB",
)
@click.argument("bundle")
@options_of(EXPORT)
def export(bundle: str, to: str, path: str, with_json: bool, quiet: bool, **options: Any) -> None:
    """Write the table of BUNDLE as other programs read it, exactly.

    A file of vectors is read back and compared before it appears.
    """
    from ..exporting.exporter import export as run

    with warnings_said():
        done = run(bundle, to, path, progress=not quiet, **options)
    show(done, with_json, quiet)
