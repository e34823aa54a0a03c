"""`vec2emb verify`: whether a bundle is whole, and is what its source gives."""

from __future__ import annotations

import click

from .output import HeadedCommand, emit, option, reading_options, tell, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="Whether a bundle is whole, and what its source gives.",
    epilog="Example:\n  vec2emb verify glove-50d\n  vec2emb verify glove-50d --rebuild glove.6B.50d.txt",
)
@click.argument("bundle")
@option("Input", "--source", metavar="FILE", help="Compare each row with what its word has in FILE.")
@option("Input", "--rebuild", metavar="FILE", help="Convert FILE again with the recorded options, and compare bytes.")
@reading_options("Input", "allow-pickle")
@option("Output", "--sha256", is_flag=True, help="Also print the SHA-256 of each file, as sha256sum does.")
@option("Machine", "--threads", type=int, metavar="N", help="Workers.  [default: one a core]")
@option("Machine", "--json", "with_json", is_flag=True, help="Print the checks as one line of JSON.")
@option("Machine", "--quiet", is_flag=True, help="No progress.")
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
            bundle, source, rebuild, sha256=sha256, allow_pickle=allow_pickle, threads=threads, progress=not quiet
        )  # fmt: skip
    if with_json:
        emit(found.to_dict())
    else:
        tell(str(found))
    return 0 if found.ok else 3
