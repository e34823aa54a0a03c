"""`vec2emb similar`: the nearest neighbours of words in a bundle."""

from __future__ import annotations

import click

from ..options.commands import SIMILAR
from .options import HeadedCommand, options_of, token
from .output import show_all, warnings_said


@click.command(
    cls=HeadedCommand,
    context_settings={"ignore_unknown_options": True},  # -0 is a word
    short_help="The nearest neighbours of words in a bundle.",
    epilog="Example:\n  vec2emb similar glove-50d paris berlin --top 5",
)
@click.argument("bundle")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@options_of(SIMILAR)
def similar(bundle: str, words: tuple[str, ...], top: int, with_json: bool) -> None:
    """List for each WORD the tokens of BUNDLE whose vectors point the same way, by cosine.

    Padding and rows that were drawn are left out.
    """
    from ..querying.neighbours import similar as run

    with warnings_said():
        found = run(bundle, *map(token, words), top=top)
    show_all("words", found, with_json)
