"""`vec2emb explain`: the row of a word and where it comes from, or the spellings that are there instead."""

from __future__ import annotations

import click

from ..options.commands import EXPLAIN
from .options import HeadedCommand, options_of, token
from .output import show_all, warnings_said


@click.command(
    cls=HeadedCommand,
    context_settings={"ignore_unknown_options": True},  # -0 is a word
    short_help="Where the row of a word comes from, or why it has none.",
    epilog="Example:\n  vec2emb explain glove-50d the Paris naïve\n  vec2emb explain glove-50d -- -- <unk>",
)
@click.argument("bundle")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@options_of(EXPLAIN)
def explain(bundle: str, words: tuple[str, ...], with_json: bool) -> None:
    """Say for each WORD which row of BUNDLE it has and where that comes from.

    For a word that is not there: what encode() gives, which other spellings are there, and what would find them.
    """
    from ..bundle.table import load

    with warnings_said():
        table = load(bundle)
        found = [table.explain(token(word)) for word in words]
    show_all("words", found, with_json)
