"""`vec2emb trim`: a model whose vocabulary has only the tokens that a corpus needs."""

from __future__ import annotations

from typing import Any

import click

from ..errors import printable
from ..options.commands import TRIM
from .options import HeadedCommand, options_of
from .output import emit, tell, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="Cut a model's vocabulary to the tokens that a corpus needs.",
    epilog="Example:\n  vec2emb trim xlm-roberta-base -o xlm-r-de --corpus 'texts/*.txt' --min-count 3\n"
    "  vec2emb trim xlm-roberta-base -o xlm-r-de --corpus texts/ --max-size 50000 --min identical=0.999",
)
@click.argument("model")
@options_of(TRIM)
def trim(model: str, output: str, with_json: bool, quiet: bool, **options: Any) -> None:
    """Write MODEL, a folder of transformers or sentence-transformers, with the tokens that matter and no others.

    Special, added, byte and single-character tokens are kept in any case, and so is what kept BPE tokens are built of.
    Texts whose tokens are all kept give the same tokens and hidden states as before. If a gate is missed, nothing is
    written and the exit code is 3.
    """
    from ..trimming import trim as run
    from ..trimming.result import summary

    with warnings_said():
        done = run(model, output, progress=not quiet, **options)
    if with_json:
        emit(done.to_dict())
    elif not quiet:
        tell(printable(summary(done)))
