"""`vec2emb verify`: whether a bundle is whole, and is what its source gives."""

from __future__ import annotations

import click

from ..options.commands import VERIFY
from .options import HeadedCommand, options_of
from .output import show, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="Whether a bundle is whole, and what its source gives.",
    epilog="Example:\n  vec2emb verify glove-50d\n  vec2emb verify glove-50d --rebuild glove.6B.50d.txt",
)
@click.argument("bundle")
@options_of(VERIFY)
def verify(
    bundle: str, source: str | None, rebuild: str | None, allow_pickle: bool, sha256: bool, threads: int | None,
    with_json: bool, quiet: bool,
) -> int:  # fmt: skip
    """Check BUNDLE: that its files are whole and belong together, and where they come from.

    Each check is listed; one that fails ends with exit code 3.
    """
    from ..checking.verification import verify as run

    with warnings_said():
        found = run(
            bundle, source, rebuild == "" or rebuild, sha256=sha256, allow_pickle=allow_pickle, threads=threads,
            progress=not quiet,
        )  # fmt: skip
    show(found, with_json)
    return 0 if found.ok else 3
