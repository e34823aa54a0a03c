"""`vec2emb positions`: the position table of a bundle or a checkpoint: attach, resize, show."""

from __future__ import annotations

from typing import Any

import click

from ..errors import printable
from ..options.choices import IF_EXISTS
from ..positions.key_styles import FREQUENCIES, INITS, LAYOUTS, METHODS, ODD, PRESETS, STYLES
from .convert import norms
from .output import HeadedCommand, emit, option, tell, warnings_said

POSITIONS, SINUSOIDAL, LEARNED, NAMES = "Positions", "A sinusoidal table", "A learned table", "Names"
METHOD, OUTPUT, MACHINE = "Method", "Output", "Machine"


@click.group(short_help="Attach, resize or show a position table.")
def positions() -> None:
    """Position tables of bundles, and of any safetensors checkpoint."""


@positions.command(
    cls=HeadedCommand,
    short_help="Give a bundle a position table.",
    epilog="Example:\n  vec2emb positions attach glove-50d --kind sinusoidal --max-positions 512\n"
    "  vec2emb positions attach glove-300d --kind learned --max-positions 512 --key-style bert -o for-bert",
)
@click.argument("bundle")
@option(POSITIONS, "--kind", type=click.Choice(["learned", "sinusoidal"]), required=True, help="What kind of table.")
@option(POSITIONS, "--max-positions", type=int, required=True, metavar="N", help="How many positions a text may use.")
@option(POSITIONS, "--offset", type=int, metavar="N",
        help="Rows in front of the first position.  [default: what key style or preset needs]")  # fmt: skip
@option(POSITIONS, "--padding", "padding_idx", type=int, metavar="ROW",
        help="Row for padding tokens, kept zero; positions then count the other tokens only.  [default: what key style "
             "or preset needs]")  # fmt: skip
@option(POSITIONS, "--freeze-positions/--train-positions", "freeze_positions", default=None,
        help="Record whether they train.  [default: a learned table does, a sinusoidal one does not]")  # fmt: skip
@option(POSITIONS, "--scale", metavar="SCALE",
        help="What the module multiplies words by: none, sqrt-dim, unit-rms, match-positions or a number.  "
             "[default: as recorded]")  # fmt: skip
@option(SINUSOIDAL, "--preset", type=click.Choice(list(PRESETS)), help="Whose sinusoids.  [default: vaswani]")
@option(SINUSOIDAL, "--layout", type=click.Choice(LAYOUTS), help="Order of the columns.  [default: the preset's]")
@option(SINUSOIDAL, "--frequencies", type=click.Choice(FREQUENCIES), help="Which waves.  [default: the preset's]")
@option(SINUSOIDAL, "--base", type=float, metavar="B", help="The longest wave has about 2 pi B rows.  [default: 10000]")
@option(SINUSOIDAL, "--odd", type=click.Choice(ODD), help="What to do about an odd width.  [default: the preset's]")
@option(SINUSOIDAL, "--start", type=float, metavar="X", help="Angle of row 0.  [default: 0]")
@option(LEARNED, "--init", type=click.Choice(INITS), help="First values.  [default: normal]")
@option(LEARNED, "--std", type=float, metavar="S", help="Their standard deviation.  [default: 0.02]")
@option(LEARNED, "--seed", type=int, metavar="N", help="Seed of the random numbers.  [default: 0]")
@option(NAMES, "--key-style", type=click.Choice(list(STYLES)), help="Whose names.  [default: as recorded]")
@option(NAMES, "--word-key", metavar="KEY", help="Name of the word table.")
@option(NAMES, "--position-key", metavar="KEY", help="Name of the position table.")
@option(OUTPUT, "-o", "--output", metavar="OUT", help="Where to write.  [default: in place of BUNDLE]")
@option(OUTPUT, "--if-exists", type=click.Choice(IF_EXISTS), default="error", show_default=True,
        help="What to do about a bundle at OUT.")  # fmt: skip
@option(MACHINE, "--json", "with_json", is_flag=True, help="Print what was done as one line of JSON.")
@option(MACHINE, "--quiet", is_flag=True, help="No summary.")
def attach(bundle: str, freeze_positions: bool | None, with_json: bool, quiet: bool, **options: Any) -> None:
    """Add a position table to BUNDLE, or replace the one it has.

    BUNDLE is written anew and replaced in one step; files of other programs in it are kept.
    """
    from ..editing.attaching import attach_positions

    if freeze_positions is not None:
        options["train_positions"] = not freeze_positions
    with warnings_said():
        done = attach_positions(bundle, **options)
    _say(done, with_json, quiet)


@positions.command(
    cls=HeadedCommand,
    short_help="Make a position table longer or shorter.",
    epilog="Example:\n  vec2emb positions resize bert-base --to 1024 --method hierarchical -o bert-1024",
)
@click.argument("checkpoint")
@option(METHOD, "--to", type=int, required=True, metavar="N", help="Usable positions of the result.")
@option(METHOD, "--method", type=click.Choice(METHODS), help="How to make rows.  [required unless a formula does]")
@option(METHOD, "--alpha", type=float, default=0.4, show_default=True, help="Of hierarchical.")
@option(METHOD, "--keep", type=int, default=20, show_default=True, help="Of stretch: rows that stay.")
@option(METHOD, "--align-corners", is_flag=True, help="Of linear and cubic: first and last row stay.")
@option(METHOD, "--seed", type=int, default=0, show_default=True, help="Of random.")
@option("Checkpoint", "--key", metavar="NAME", help="The one table to resize.  [default: all with a known name]")
@option("Checkpoint", "--offset", type=int, metavar="N",
        help="Rows in front of the first position.  [default: as configuration or names say]")  # fmt: skip
@option(OUTPUT, "-o", "--output", required=True, metavar="OUT", help="Where to write.")
@option(OUTPUT, "--if-exists", type=click.Choice(IF_EXISTS), default="error", show_default=True,
        help="What to do about an earlier result at OUT; keep is for bundles.")  # fmt: skip
@option(MACHINE, "--json", "with_json", is_flag=True, help="Print what was done as one line of JSON.")
@option(MACHINE, "--quiet", is_flag=True, help="No summary.")
def resize(checkpoint: str, output: str, with_json: bool, quiet: bool, **options: Any) -> None:
    """Resize the position tables of CHECKPOINT: a bundle, or a folder, file or index of safetensors.

    All other tensors are copied byte for byte, and the maximum length in config.json follows.
    """
    from ..editing.attaching import resize_positions

    with warnings_said():
        done = resize_positions(checkpoint, output, **options)
    _say(done, with_json, quiet)


@positions.command(
    cls=HeadedCommand,
    short_help="What a position table looks like.",
    epilog="Example:\n  vec2emb positions show bert-base",
)
@click.argument("path")
@option("Checkpoint", "--key", metavar="NAME", help="The one table to show.  [default: all with a known name]")
@option(MACHINE, "--json", "with_json", is_flag=True, help="Print the facts as one line of JSON.")
def show(path: str, key: str | None, with_json: bool) -> None:
    """Say what the position tables of PATH, a bundle or a checkpoint, look like."""
    from ..editing.attaching import describe_positions

    found = describe_positions(path, key)
    if with_json:
        emit({"path": path, "tables": [table.to_dict() for table in found]})
    else:
        tell(printable("\n".join(line for table in found for line in _shown(table))))


def _say(done: Any, with_json: bool, quiet: bool) -> None:
    if with_json:
        emit(done.to_dict())
    elif not quiet:
        tell(printable("\n".join(_of_bundle(done) if hasattr(done, "positions") else _of_checkpoint(done))))


def _of_bundle(done: Any) -> list[str]:
    return [f"{done.path}: {', '.join(done.keys)}", *norms(done)]


def _of_checkpoint(done: Any) -> list[str]:
    return [
        f"{done.out}: from {done.checkpoint}",
        *(f"  {table.key}: {table.before:,} positions to {table.after:,}" for table in done.tables),
        *(f"  {change.file}: {change.field} {change.before:,} to {change.after:,}" for change in done.changes),
        *(f"  note: {note}" for note in done.notes),
    ]


def _shown(table: Any) -> list[str]:
    facts = table.facts
    front = f" from row {table.offset} on" if table.offset else ""
    like = f", as {' or '.join(facts.presets)}" if facts.presets else ""
    nearest = f"; nearest to {facts.nearest}, off by {facts.error:.2g}" if facts.nearest and not facts.presets else ""
    low, middle, high = facts.norms
    lines = [
        f"{table.key}: {facts.rows:,} x {facts.dim} {facts.dtype}, {table.usable:,} positions{front}",
        f"  {facts.kind}{like}{nearest}",
        f"  lengths {low:.4g} to {high:.4g}, median {middle:.4g}",
    ]
    if facts.zero_rows or facts.nonfinite_rows:
        lines.append(f"  rows of zeros: {facts.zero_rows:,}, with nan or inf: {facts.nonfinite_rows:,}")
    if table.recorded is not None:
        lines.append(f"  recorded: {table.recorded.kind}, {'trains' if table.recorded.trains else 'fixed'}")
    return lines + [f"  note: {note}" for note in table.notes]
