"""`vec2emb inspect`: what a file of vectors, a bundle or a safetensors file holds."""

from __future__ import annotations

import click

from ..options.choices import FORMATS
from .output import HeadedCommand, emit, option, reading_options, tell, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="What a file of vectors or a bundle holds.",
    epilog="Example:\n  vec2emb inspect glove.6B.50d.txt --count\n  vec2emb inspect glove-50d --json",
)
@click.argument("path")
@option("Input", "--member", metavar="NAME",
        help="Of an archive, the member to read.  [default: its only table, or that of --dim]")  # fmt: skip
@option("Input", "--sha256", metavar="HEX", help="SHA-256 that a file of vectors must have, as it lies there.")
@reading_options("Input", "allow-pickle")
@option("Input", "--format", type=click.Choice(FORMATS), default="auto",
        show_default=True, help="What a file of vectors is.")  # fmt: skip
@reading_options("Input", "dim", "encoding")
@option("Input", "--count", is_flag=True, help="Read all of a file of vectors, to count rows and find odd ones.")
@option("Machine", "--json", "with_json", is_flag=True, help="Print the findings as one line of JSON.")
@option("Machine", "--quiet", is_flag=True, help="No progress.")
def inspect(
    path: str,
    member: str | None,
    sha256: str | None,
    allow_pickle: bool,
    format: str,
    dim: int | None,
    encoding: str,
    count: bool,
    with_json: bool,
    quiet: bool,
) -> int:
    """Say what PATH, also a URL, holds: whatever `vec2emb convert` takes, or any safetensors file.

    A bundle's files are compared with their checksums; a check that fails ends with exit code 3.
    """
    from ..checking.inspection import inspect as run

    with warnings_said():
        found = run(
            path, member=member, sha256=sha256, allow_pickle=allow_pickle, format=format, dim=dim, encoding=encoding,
            count=count, progress=not quiet,
        )  # fmt: skip
    if with_json:
        emit(found.to_dict())
    else:
        tell(str(found))
    return 0 if found.ok else 3
