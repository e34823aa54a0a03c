"""`vec2emb inspect`: what a file of vectors, a bundle or a safetensors file holds."""

from __future__ import annotations

from typing import Any

import click

from ..options.commands import INSPECT
from .options import HeadedCommand, options_of
from .output import show, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="What a file of vectors or a bundle holds.",
    epilog="Example:\n  vec2emb inspect glove.6B.50d.txt --count\n  vec2emb inspect glove-50d --json",
)
@click.argument("path")
@options_of(INSPECT)
def inspect(path: str, with_json: bool, quiet: bool, **options: Any) -> int:
    """Say what PATH, also a URL, holds: whatever `vec2emb convert` takes, or any safetensors file.

    A bundle's files are compared with their checksums; a check that fails ends with exit code 3.
    """
    from ..checking.inspection import inspect as run

    with warnings_said():
        found = run(path, progress=not quiet, **options)
    show(found, with_json)
    return 0 if found.ok else 3
