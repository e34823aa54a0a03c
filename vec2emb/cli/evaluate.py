"""`vec2emb evaluate`: the scores of a bundle on sets of word similarity and analogies."""

from __future__ import annotations

import click

from ..options.commands import EVALUATE
from .options import HeadedCommand, options_of
from .output import show_all, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="Scores of a bundle on word similarity and analogies.",
    epilog="Example:\n  vec2emb evaluate glove-50d\n"
    "  vec2emb evaluate glove-50d --set questions-words --restrict 30000",
)
@click.argument("bundle")
@options_of(EVALUATE)
def evaluate(bundle: str, sets: tuple[str, ...], restrict: int, with_json: bool) -> None:
    """Score BUNDLE through gensim's own evaluation; its package holds the sets.

    To see that a table still means something after a conversion, as float16, or with rows of length 1.
    """
    from ..querying.evaluation import evaluate as run

    with warnings_said():
        scores = run(bundle, sets, restrict=restrict)
    show_all("scores", scores, with_json)
