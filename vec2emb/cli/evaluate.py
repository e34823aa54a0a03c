"""`vec2emb evaluate`: the scores of a bundle on sets of word similarity and analogies."""

from __future__ import annotations

import click

from .output import HeadedCommand, emit, option, tell, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="Scores of a bundle on word similarity and analogies.",
    epilog="Example:\n  vec2emb evaluate glove-50d\n"
    "  vec2emb evaluate glove-50d --set questions-words --restrict 30000",
)
@click.argument("bundle")
@option("Input", "--set", "sets", multiple=True, metavar="NAME", default=["wordsim353", "simlex999"],
        show_default=True,
        help="wordsim353, simlex999, questions-words (minutes), or a file of that form; may be repeated.")  # fmt: skip
@option("Input", "--restrict", type=click.IntRange(1), default=300_000, show_default=True, metavar="N",
        help="Only the first N tokens take part.")  # fmt: skip
@option("Machine", "--json", "with_json", is_flag=True, help="Print the scores as one line of JSON.")
def evaluate(bundle: str, sets: tuple[str, ...], restrict: int, with_json: bool) -> None:
    """Score BUNDLE through gensim's own evaluation; its package holds the sets.

    To see that a table still means something after a conversion, as float16, or with rows of length 1.
    """
    from ..querying.evaluation import evaluate as run

    with warnings_said():
        scores = run(bundle, sets, restrict=restrict)
    if with_json:
        emit({"scores": [score.to_dict() for score in scores]})
    else:
        tell("\n".join(map(str, scores)))
