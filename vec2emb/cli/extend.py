"""`vec2emb extend`: a bundle with more words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..options.commands import EXTEND
from .options import HeadedCommand, options_of
from .output import show, warnings_said

if TYPE_CHECKING:
    from ..editing.extending import Extension


@click.command(
    cls=HeadedCommand,
    short_help="A bundle with more words behind those it has.",
    epilog="Example:\n  vec2emb extend glove-50d --vocab words.txt --from glove.6B.50d.txt -o more\n"
    "  vec2emb extend glove-50d --tokens covid,brexit --missing normal -o more\n"
    "  vec2emb extend glove-50d --special '[MASK]' -o for-mlm",
)
@click.argument("bundle")
@options_of(EXTEND)
def extend(bundle: str, output: str, tokens: str | None, with_json: bool, quiet: bool, **options: Any) -> None:
    """Write BUNDLE with more words: its rows keep their ids and their bits, the new ones stand behind them."""
    from ..editing.extending import extend as run

    words = None if tokens is None else tokens.split(",")
    if words is not None and "" in words:
        raise UsageError(
            "tokens-form", "a word between commas is empty", found=repr(tokens),
            hint="words with commas in them come from a file: --vocab FILE",
        )  # fmt: skip
    with warnings_said():
        done = run(bundle, output, tokens=words, progress=not quiet, **options)
    show(done, with_json, quiet, lambda: summary(done))


def summary(done: Extension) -> str:
    """The result in a few lines."""
    from ..errors import printable

    stays = ", was there already, the same" if done.kept_existing else ""
    lines = [
        f"{done.path}: {done.rows:,} rows x {done.dim}, {done.added:,} of them new, from row {done.first} on{stays}"
    ]
    lines += [f"  row {s.id}: {s.token} ({s.role}, {s.init})" for s in done.specials]
    if done.from_source and done.source is not None:
        lines.append(f"  {done.from_source:,} from {done.source.name}")
    if done.missing:
        lines.append(f"  {done.missing:,} set by {done.missing_init}")
    if done.present:
        lines.append(f"  {done.present:,} of the words were there already and keep their rows")
    how = {"all": "nothing is frozen", "none": "nothing; all is frozen"}
    rows = f"{done.training_rows:,} row{'' if done.training_rows == 1 else 's'}"
    what = how.get(done.train, f"{rows}; recorded, not part of a state dict")
    return printable("\n".join([*lines, f"  trains: {what}"]))
