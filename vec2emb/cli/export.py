"""`vec2emb export`: a bundle to a file of vectors that other programs read."""

from __future__ import annotations

import click

from .output import HeadedCommand, emit, option, tell, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="A bundle back to a file of vectors.",
    epilog="Example:\n  vec2emb export glove-50d --to word2vec-binary -o glove-50d.bin.gz\n"
    "  vec2emb export glove-50d --to glove -o glove-50d.txt --specials drop",
)
@click.argument("bundle")
@option("Output", "--to", required=True, type=click.Choice(["word2vec", "word2vec-binary", "glove"]),
        help="word2vec is text with a header, glove text without one.")  # fmt: skip
@option("Output", "-o", "--output", required=True, metavar="FILE",
        help="The file; .gz, .bz2, .xz and .zst compress it.")  # fmt: skip
@option("Output", "--specials", type=click.Choice(["keep", "drop"]), default="keep", show_default=True,
        help="What to do with the special tokens.")  # fmt: skip
@option("Output", "--if-exists", type=click.Choice(["error", "replace"]), default="error", show_default=True,
        help="What to do about a file that is there.")  # fmt: skip
@option("Machine", "--json", "with_json", is_flag=True, help="Print the result as one line of JSON.")
@option("Machine", "--quiet", is_flag=True, help="Neither progress nor summary.")
def export(bundle: str, to: str, output: str, specials: str, if_exists: str, with_json: bool, quiet: bool) -> None:
    """Write the table of BUNDLE as a file of vectors, exactly.

    The file is read back and compared before it appears.
    """
    from ..exporting import export as run

    with warnings_said():
        done = run(bundle, to, output, specials=specials, if_exists=if_exists, progress=not quiet)
    if with_json:
        emit(done.to_dict())
    elif not quiet:
        tell(str(done))
