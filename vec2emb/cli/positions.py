"""`vec2emb positions`: the position table of a bundle or a checkpoint: attach, resize, show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import printable
from ..options.commands import ATTACH, DESCRIBE, RESIZE
from .convert import norms
from .options import HeadedCommand, options_of
from .output import emit, tell, warnings_said
from .output import show as show_result

if TYPE_CHECKING:
    from ..editing.attaching import Attached, ShownTable
    from ..editing.checkpoints import Resized


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
@options_of(ATTACH)
def attach(bundle: str, with_json: bool, quiet: bool, **options: Any) -> None:
    """Add a position table to BUNDLE, or replace the one it has.

    BUNDLE is written anew and replaced in one step; files of other programs in it are kept.
    """
    from ..editing.attaching import attach_positions

    with warnings_said():
        done = attach_positions(bundle, **options)
    show_result(done, with_json, quiet, lambda: _of_bundle(done))


@positions.command(
    cls=HeadedCommand,
    short_help="Make a position table longer or shorter.",
    epilog="Example:\n  vec2emb positions resize bert-base --to 1024 --method hierarchical -o bert-1024",
)
@click.argument("checkpoint")
@options_of(RESIZE)
def resize(checkpoint: str, output: str, with_json: bool, quiet: bool, **options: Any) -> None:
    """Resize the position tables of CHECKPOINT: a bundle, or a folder, file or index of safetensors.

    All other tensors are copied byte for byte, and the maximum length in config.json follows.
    """
    from ..editing.attaching import resize_positions
    from ..editing.checkpoints import Resized

    with warnings_said():
        done = resize_positions(checkpoint, output, **options)
    show_result(done, with_json, quiet, lambda: _of_checkpoint(done) if isinstance(done, Resized) else _of_bundle(done))


@positions.command(
    cls=HeadedCommand,
    short_help="What a position table looks like.",
    epilog="Example:\n  vec2emb positions show bert-base",
)
@click.argument("path")
@options_of(DESCRIBE)
def show(path: str, key: str | None, with_json: bool) -> None:
    """Say what the position tables of PATH, a bundle or a checkpoint, look like."""
    from ..editing.attaching import describe_positions

    found = describe_positions(path, key)
    if with_json:
        emit({"path": path, "tables": [table.to_dict() for table in found]})
    else:
        tell(printable("\n".join(line for table in found for line in _shown(table))))


def _of_bundle(done: Attached) -> str:
    return printable("\n".join([f"{done.path}: {', '.join(done.keys)}", *norms(done)]))


def _of_checkpoint(done: Resized) -> str:
    lines = [
        f"{done.out}: from {done.checkpoint}",
        *(f"  {table.key}: {table.before:,} positions to {table.after:,}" for table in done.tables),
        *(f"  {change.file}: {change.field} {change.before:,} to {change.after:,}" for change in done.changes),
        *(f"  note: {note}" for note in done.notes),
    ]
    return printable("\n".join(lines))


def _shown(table: ShownTable) -> list[str]:
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
