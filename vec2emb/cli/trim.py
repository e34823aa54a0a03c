"""`vec2emb trim`: a model whose vocabulary has only the tokens that a corpus needs."""

from __future__ import annotations

from typing import Any

import click

from ..choices import ENCODING_ERRORS, REPLACE
from ..errors import printable
from .output import HeadedCommand, emit, option, tell, warnings_said

TOKENS, PROOF, OUTPUT, MACHINE = "Tokens", "Proof", "Output", "Machine"


@click.command(
    cls=HeadedCommand,
    short_help="Cut a model's vocabulary to the tokens that a corpus needs.",
    epilog="Example:\n  vec2emb trim xlm-roberta-base -o xlm-r-de --corpus 'texts/*.txt' --min-count 3\n"
    "  vec2emb trim xlm-roberta-base -o xlm-r-de --corpus texts/ --max-size 50000 --min identical=0.999",
)
@click.argument("model")
@option(TOKENS, "--corpus", multiple=True, metavar="PATH",
        help="A file, folder or quoted pattern of texts whose tokens are kept; may be repeated.")  # fmt: skip
@option(TOKENS, "--counts", metavar="FILE",
        help="Counts of the model's tokens instead, from `vec2emb vocab --tokenizer hf:MODEL/tokenizer.json "
             "--save-counts FILE`. A corpus then serves for the proof alone.")  # fmt: skip
@option(TOKENS, "--keep", metavar="FILE",
        help="Tokens to keep in any case, one per line, as the vocabulary writes them.")  # fmt: skip
@option(TOKENS, "--min-count", type=int, metavar="N", default=1, show_default=True,
        help="Drop tokens that are used less often.")  # fmt: skip
@option(TOKENS, "--max-size", type=int, metavar="N",
        help="Keep at most N tokens, all included; the most frequent first.")  # fmt: skip
@option(TOKENS, "--field", metavar="NAME",
        help="JSON key or Parquet column that holds the text.  [default: text]")  # fmt: skip
@option(TOKENS, "--encoding-errors", type=click.Choice(list(ENCODING_ERRORS)), default="error",
        show_default=True, help="What to do at text that is not UTF-8.")  # fmt: skip
@option(PROOF, "--sample", type=int, metavar="N", default=10_000, show_default=True,
        help="Number of texts of the corpus to encode with both tokenizers.")  # fmt: skip
@option(PROOF, "--min", "min_", multiple=True, metavar="FIGURE=NUMBER",
        help="Minimum for a figure: identical (share of sampled texts with the same tokens as before) or coverage "
             "(share of the corpus's tokens that are kept); may be repeated.")  # fmt: skip
@option(OUTPUT, "-o", "--output", required=True, metavar="OUT", help="Folder to write.")
@option(OUTPUT, "--pad-to-multiple-of", type=int, metavar="N", default=1, show_default=True,
        help="Round the rows of the table up to a multiple of N.")  # fmt: skip
@option(OUTPUT, "--if-exists", type=click.Choice(REPLACE), default="error", show_default=True,
        help="What to do about an earlier result at OUT.")  # fmt: skip
@option(MACHINE, "--threads", type=int, metavar="N", help="Threads that encode.  [default: one a core]")
@option(MACHINE, "--json", "with_json", is_flag=True, help="Print what was done as one line of JSON.")
@option(MACHINE, "--quiet", is_flag=True, help="Neither progress nor summary.")
def trim(
    model: str, corpus: tuple[str, ...], min_: tuple[str, ...], with_json: bool, quiet: bool, **options: Any
) -> None:
    """Write MODEL, a folder of transformers or sentence-transformers, with the tokens that matter and no others.

    Special, added, byte and single-character tokens are kept in any case, and so is what kept BPE tokens are built of.
    Texts whose tokens are all kept give the same tokens and hidden states as before. If a gate is missed, nothing is
    written and the exit code is 3.
    """
    from ..trimming import trim as run
    from ..trimming.result import summary

    with warnings_said():
        done = run(model, corpus=corpus or None, min=min_, progress=not quiet, **options)
    if with_json:
        emit(done.to_dict())
    elif not quiet:
        tell(printable(summary(done)))
