"""`vec2emb export`: a bundle to what other programs read."""

from __future__ import annotations

from typing import Any

import click

from ..options.choices import EXPORTS, REPLACE
from .output import HeadedCommand, emit, option, tell, warnings_said


@click.command(
    cls=HeadedCommand,
    short_help="A bundle to a file of vectors, or a folder of other libraries.",
    epilog="Example:\n  vec2emb export glove-50d --to huggingface -o glove-50d-hf --model-card\n"
    "  vec2emb export glove-50d --to word2vec-binary -o glove-50d.bin.gz\n"
    "  vec2emb export glove-50d --to glove -o glove-50d.txt --specials drop\n"
    "  vec2emb export glove-50d --to shards -o glove-50d-shards --shard-size 5GB",
)
@click.argument("bundle")
@option("Output", "--to", required=True, type=click.Choice(EXPORTS), metavar="FORMAT",
        help="A file of vectors: word2vec (text with a header), word2vec-binary, glove (text without one) or "
             "fasttext-vec. A list of words: vocab-json. Arrays of numpy: npz. A folder: huggingface, for "
             "sentence-transformers, model2vec and transformers at once, or model2vec, that one's own. shards: a "
             "bundle cut into files, as PyTorch's distributed checkpoint has them.")  # fmt: skip
@option("Output", "-o", "--output", required=True, metavar="OUT",
        help="The file, which .gz, .bz2, .xz and .zst compress, or the folder.")  # fmt: skip
@option("Output", "--specials", type=click.Choice(["keep", "drop"]), default="keep", show_default=True,
        help="What to do with the special tokens; folders need them.")  # fmt: skip
@option(
    "Output", "--shard-size", metavar="SIZE", help="Of shards: the largest that one of words may be.  [default: 5GB]"
)
@option("Output", "--if-exists", type=click.Choice(REPLACE), default="error", show_default=True,
        help="What to do about a file or an earlier export that is there.")  # fmt: skip
@option("Folders", "--normalize-module", is_flag=True, help="Scale texts to length 1 at the end.")
@option("Folders", "--model-card", is_flag=True, help="Write README.md from the recorded source and licence.")
@option("Machine", "--json", "with_json", is_flag=True, help="Print the result as one line of JSON.")
@option("Machine", "--quiet", is_flag=True, help="Neither progress nor summary.")
def export(bundle: str, to: str, output: str, with_json: bool, quiet: bool, **options: Any) -> None:
    """Write the table of BUNDLE as other programs read it, exactly.

    A file of vectors is read back and compared before it appears.
    """
    from ..exporting.exporter import export as run

    with warnings_said():
        done = run(bundle, to, output, progress=not quiet, **options)
    if with_json:
        emit(done.to_dict())
    elif not quiet:
        tell(str(done))
