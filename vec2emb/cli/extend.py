"""`vec2emb extend`: a bundle with more words."""

from __future__ import annotations

from typing import Any

import click

from ..errors import UsageError
from ..options.choices import DUPLICATES, FORMATS, IF_EXISTS, NEW_MISSING
from .output import HeadedCommand, emit, option, reading_options, tell, token, warnings_said

WORDS, ROWS, TRAINING, OUTPUT, MACHINE = "Words", "Rows", "Training", "Output", "Machine"


@click.command(
    cls=HeadedCommand,
    short_help="A bundle with more words behind those it has.",
    epilog="Example:\n  vec2emb extend glove-50d --vocab words.txt --from glove.6B.50d.txt -o more\n"
    "  vec2emb extend glove-50d --tokens covid,brexit --missing normal -o more\n"
    "  vec2emb extend glove-50d --special '[MASK]' -o for-mlm",
)
@click.argument("bundle")
@option(WORDS, "--vocab", metavar="FILE", help="The new words: a text file, vocab.json or tokenizer.json; those that "
        "BUNDLE has already keep their rows.")  # fmt: skip
@option(WORDS, "--tokens", type=token, metavar="A,B,..", help="Or the new words themselves, with commas between them.")
@option(WORDS, "--special", "specials", type=token, multiple=True, metavar="TOKEN[=INIT]",
        help="A new special token; may be repeated. INIT is zeros, mean, normal, uniform or token:WORD.  "
             "[default INIT: normal]")  # fmt: skip
@option(WORDS, "--pad", type=token, metavar="TOKEN", help="A padding token, for a bundle that has none.")
@option(WORDS, "--unk", type=token, metavar="TOKEN", help="An unknown token, for a bundle that has none.")
@option(WORDS, "--unk-init", type=token, metavar="INIT", help="Row of the unknown token.  [default: mean]")
@option(ROWS, "--from", "source", metavar="SOURCE",
        help="A file of vectors with rows of the new words, of the same space as BUNDLE's.")  # fmt: skip
@option(ROWS, "--missing", type=click.Choice(NEW_MISSING),
        help="Row of a word that SOURCE lacks; needed without SOURCE.  [default: normal]")  # fmt: skip
@option(ROWS, "--seed", type=int, default=0, show_default=True, help="Seed of the random rows.")
@option(ROWS, "--member", metavar="NAME", help="Of an archive, the member to read.")
@reading_options(ROWS, "allow-pickle")
@option(ROWS, "--format", type=click.Choice(FORMATS), default="auto",
        show_default=True, help="What SOURCE is.")  # fmt: skip
@reading_options(ROWS, "encoding", "encoding-errors", "binary-dtype", "byte-order")
@option(ROWS, "--duplicates", type=click.Choice(DUPLICATES), default="first", show_default=True,
        help="Which row of a token that stands twice in SOURCE.")  # fmt: skip
@reading_options(ROWS, "bad-rows", "nonfinite")
@option(ROWS, "--unit-norm/--no-unit-norm", default=None,
        help="Scale rows of SOURCE to length 1.  [default: as those of BUNDLE were]")  # fmt: skip
@option(TRAINING, "--train-rows", metavar="ROWS", default="added", show_default=True,
        help="Record which rows train from now on: added, keep (as before), all, none, new, or a FILE of "
             "words.")  # fmt: skip
@option(OUTPUT, "-o", "--output", required=True, metavar="OUT", help="A folder, or NAME.safetensors.")
@option(OUTPUT, "--if-exists", type=click.Choice(IF_EXISTS), default="error", show_default=True,
        help="What to do about a bundle at OUT.")  # fmt: skip
@option(OUTPUT, "--strict", is_flag=True, help="Make every warning an error.")
@option(MACHINE, "--threads", type=int, metavar="N", help="Workers.  [default: one a core]")
@option(MACHINE, "--json", "with_json", is_flag=True, help="Print what was done as one line of JSON.")
@option(MACHINE, "--quiet", is_flag=True, help="Neither progress nor summary.")
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
    if with_json:
        emit(done.to_dict())
    elif not quiet:
        tell(summary(done))


def summary(done: Any) -> str:
    """The result in a few lines."""
    from ..errors import printable

    stays = ", was there already, the same" if done.kept_existing else ""
    lines = [
        f"{done.path}: {done.rows:,} rows x {done.dim}, {done.added:,} of them new, from row {done.first} on{stays}"
    ]
    lines += [f"  row {s.id}: {s.token} ({s.role}, {s.init})" for s in done.specials]
    if done.from_source:
        lines.append(f"  {done.from_source:,} from {done.source.name}")
    if done.missing:
        lines.append(f"  {done.missing:,} set by {done.missing_init}")
    if done.present:
        lines.append(f"  {done.present:,} of the words were there already and keep their rows")
    how = {"all": "nothing is frozen", "none": "nothing; all is frozen"}
    rows = f"{done.training_rows:,} row{'' if done.training_rows == 1 else 's'}"
    what = how.get(done.train, f"{rows}; recorded, not part of a state dict")
    return printable("\n".join([*lines, f"  trains: {what}"]))
