"""`vec2emb convert`: a file of vectors to a bundle."""

from __future__ import annotations

from typing import Any

import click

from ..errors import UsageError
from ..options.choices import DUPLICATES, FORMATS, IF_EXISTS, MISSING, SPECIALS_AT
from ..positions.key_styles import PRESETS, STYLES
from .output import HeadedCommand, emit, option, reading_options, refuse_both, tell, token, warnings_said

INPUT, WORDS, ROWS, SPECIALS, OUTPUT, MACHINE = "Input", "Words", "Rows", "Special tokens", "Output", "Machine"
POSITIONS, TRAINING = "Positions", "Training"


@click.command(
    cls=HeadedCommand,
    short_help="A file of word vectors to a bundle that PyTorch loads.",
    epilog="Example:\n  vec2emb convert glove.6B.50d.txt -o glove-50d\n"
    "  zcat wiki.vec.gz | vec2emb convert - -o wiki --limit 200000 --dtype float16\n"
    "  vec2emb convert GoogleNews-vectors-negative300.bin.gz -o news --vocab words.txt --case-fallback",
)
@click.argument("source")
@click.argument("extra", nargs=-1, metavar="")
@option(INPUT, "--member", metavar="NAME",
        help="Of an archive, the member to read; of an .npz, the array of vectors.  "
             "[default: its only table, or that of --dim]")  # fmt: skip
@option(INPUT, "--sha256", metavar="HEX", help="SHA-256 that SOURCE must have, as it lies there.")
@reading_options(INPUT, "allow-pickle")
@option(INPUT, "--format", type=click.Choice(FORMATS), default="auto",
        show_default=True,
        help="What SOURCE is: word2vec has a header (fastText .vec too), glove has none.")  # fmt: skip
@reading_options(INPUT, "dim", "limit", "encoding", "encoding-errors", "binary-dtype", "byte-order")
@option(WORDS, "--vocab", metavar="FILE",
        help="Line i of FILE is row i; also a vocab.json or tokenizer.json. Padding and unknown keep their lines, "
             "or go in front if FILE has neither.")  # fmt: skip
@option(WORDS, "--corpus", multiple=True, metavar="PATH",
        help="Instead of --vocab: the words are the tokens of a text, the most frequent first. A file (text, .jsonl, "
             "Parquet), folder, quoted pattern or URL; may be repeated.")  # fmt: skip
@option(WORDS, "--min-count", type=int, metavar="N", default=1, show_default=True,
        help="Of --corpus, leave out tokens that come less often.")  # fmt: skip
@option(WORDS, "--max-size", type=int, metavar="N", help="Of --corpus, keep at most N tokens.")
@option(WORDS, "--tokenizer", metavar="NAME", default="whitespace", show_default=True,
        help="Of --corpus: whitespace, bert, regex:PATTERN or hf:FILE.")  # fmt: skip
@option(WORDS, "--field", metavar="NAME", help="Of --corpus, the key or column that holds text.  [default: text]")
@option(WORDS, "--missing", type=click.Choice(MISSING),
        default="normal", show_default=True,
        help="Row of a word of --vocab or --corpus that SOURCE lacks; subword composes it of its n-grams, as a "
             "fastText .bin can.")  # fmt: skip
@option(WORDS, "--only", metavar="FILE", help="Keep just the words of FILE, in the order of SOURCE.")
@option(WORDS, "--case-fallback", is_flag=True,
        help="A word that SOURCE lacks takes its lower-case, capitalised or upper-case spelling.")  # fmt: skip
@option(WORDS, "--lowercase", is_flag=True,
        help="Lower-case the tokens of SOURCE and --corpus; the lower-case row of SOURCE wins.")  # fmt: skip
@option(ROWS, "--duplicates", type=click.Choice(DUPLICATES), default="first", show_default=True,
        help="Which row of a token that stands twice.")  # fmt: skip
@reading_options(ROWS, "bad-rows", "nonfinite")
@option(ROWS, "--unit-norm", is_flag=True, help="Scale each row to length 1; rows of zeros stay.")
@option(
    SPECIALS,
    "--pad",
    type=token,
    metavar="TOKEN",
    default="<pad>",
    show_default=True,
    help="Padding token; its row is zero.",
)
@option(SPECIALS, "--no-pad", is_flag=True, help="No padding token.")
@option(SPECIALS, "--unk", type=token, metavar="TOKEN", default="<unk>", show_default=True, help="Unknown token.")
@option(SPECIALS, "--no-unk", is_flag=True, help="No unknown token.")
@option(SPECIALS, "--unk-init", type=token, metavar="INIT",
        help="Row of the unknown token: zeros, mean, normal, uniform or token:WORD.  "
             "[default: the file's own, else mean]")  # fmt: skip
@option(SPECIALS, "--special", "specials", type=token, multiple=True, metavar="TOKEN[=INIT]",
        help="A further special token; may be repeated.  [default INIT: the file's own, else normal]")  # fmt: skip
@option(SPECIALS, "--specials-at", type=click.Choice(SPECIALS_AT), default="start", show_default=True,
        help="Where the special tokens stand.")  # fmt: skip
@option(SPECIALS, "--seed", type=int, default=0, show_default=True, help="Seed of the random rows.")
@option(POSITIONS, "--positions", type=click.Choice(["none", "learned", "sinusoidal"]), default="none",
        show_default=True, help="Add a table of positions; `vec2emb positions` has more to choose.")  # fmt: skip
@option(POSITIONS, "--max-positions", type=int, metavar="N", help="How many positions a text may use.")
@option(POSITIONS, "--position-preset", type=click.Choice(list(PRESETS)), help="Whose sinusoids.  [default: vaswani]")
@option(POSITIONS, "--freeze-positions/--train-positions", "freeze_positions", default=None,
        help="Record whether they train.  [default: a learned table does, a sinusoidal one does not]")  # fmt: skip
@option(POSITIONS, "--scale", metavar="SCALE", default="none", show_default=True,
        help="What the module multiplies words by: none, sqrt-dim, unit-rms, match-positions or a number; stored rows "
             "stay as they are.")  # fmt: skip
@option(TRAINING, "--train-rows", metavar="ROWS",
        help="Record which rows train: all, none, new (special tokens that were set, and missing words), or a FILE of "
             "words.  [default: all]")  # fmt: skip
@option(TRAINING, "--freeze", is_flag=True, help="Short for --train-rows none.")
@option(
    OUTPUT,
    "-o",
    "--output",
    metavar="OUT",
    help="A folder, or NAME.safetensors; also at a URL, as s3://BUCKET/NAME.  [required]",
)
@option(OUTPUT, "--dtype", type=click.Choice(["float32", "float16", "bfloat16"]), default="float32", show_default=True,
        help="Type of the stored rows.")  # fmt: skip
@option(OUTPUT, "--shard-size", metavar="SIZE",
        help="Cut the table into shards, as PyTorch's distributed checkpoint has them: files of at most SIZE, such as "
             "5GB.  [default: one file]")  # fmt: skip
@option(OUTPUT, "--key-style", type=click.Choice(list(STYLES)), default="plain", show_default=True,
        help="Whose names the tensors have.")  # fmt: skip
@option(OUTPUT, "--word-key", metavar="KEY", help="Name of the word table.  [default: that of the style]")
@option(OUTPUT, "--position-key", metavar="KEY", help="Name of the position table.  [default: that of the style]")
@option(OUTPUT, "--tied-head", metavar="KEY", help="Name of the output head that shares the word table, recorded.")
@option(OUTPUT, "--license", metavar="SPDX", help="Licence of the vectors, recorded.")
@option(OUTPUT, "--source-url", metavar="URL", help="Where SOURCE came from, recorded.")
@option(OUTPUT, "--if-exists", type=click.Choice(IF_EXISTS), default="error", show_default=True,
        help="What to do about a bundle at OUT; keep succeeds if it is the one this conversion gives.")  # fmt: skip
@option(OUTPUT, "--force", is_flag=True, help="Short for --if-exists replace.")
@option(OUTPUT, "--expect", metavar="FACTS",
        help="Fail unless rows=N,dim=N,digest=H,sha256=H hold; the last two of model.safetensors.")  # fmt: skip
@option(OUTPUT, "--row-report", metavar="FILE", help="JSON lines: each row that is not simply the file's own.")
@option(OUTPUT, "--dry-run", is_flag=True, help="Read and select, write nothing; numbers are not checked.")
@option(OUTPUT, "--strict", is_flag=True, help="Make every warning an error.")
@option(MACHINE, "--threads", type=int, metavar="N", help="Workers.  [default: one a core]")
@option(MACHINE, "--json", "with_json", is_flag=True, help="Print the report as one line of JSON.")
@option(MACHINE, "--quiet", is_flag=True, help="Neither progress nor summary.")
def convert(
    source: str,
    extra: tuple[str, ...],
    output: str | None,
    no_pad: bool,
    no_unk: bool,
    force: bool,
    corpus: tuple[str, ...],
    freeze_positions: bool | None,
    with_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Turn SOURCE, a file of word vectors, into a bundle that PyTorch loads.

    SOURCE is a path or URL, compressed or not, or - for standard input: rows of text or Word2Vec binary, a fastText
    model, an .npz, a bundle, or a folder of sentence-transformers or model2vec. The bundle is a safetensors state
    dict, its vocabulary, row for row, and its settings.
    """
    from ..conversion.pipeline import convert as run

    if extra:
        raise UsageError(
            "second-argument", "there is one SOURCE", found=" ".join(extra), hint=f"was -o meant? -o {extra[0]}"
        )
    if output is None and not options["dry_run"]:
        raise UsageError("output-missing", "where to?", expected="-o FOLDER or -o NAME.safetensors")
    for name, flag in (("pad", "no_pad"), ("unk", "no_unk"), ("if_exists", "force")):
        refuse_both(name, flag)
    if corpus:
        options["corpus"] = corpus
    if no_pad:
        options["pad"] = None
    if no_unk:
        options["unk"] = None
    if freeze_positions is not None:
        options["train_positions"] = not freeze_positions
    if force:
        options["if_exists"] = "replace"
    with warnings_said():
        report = run(source, output, progress=not quiet, **options)
    if with_json:
        emit(report.to_dict())
    elif not quiet:
        tell(summary(report))


def summary(report: Any) -> str:
    """The result in a few lines, the last of them Python that loads it."""
    lines = [_headline(report), _origin(report)]
    lines += [f"  row {s.id}: {s.token} ({s.role}, {s.init})" for s in report.specials]
    if report.id_shift is not None:
        lines.append(f"  ids: your line{f' + {report.id_shift}' if report.id_shift else ''} (lines counted from 0)")
    for count, noun, what in (
        (report.missing, "word", f"of the vocabulary not in the file, set by {report.missing_init}"),
        (report.absent, "word", "to keep not in the file"),
        (report.fallbacks, "word", "with the row of another spelling"),
        (report.merged, "row", "made one with another by lower-casing"),
        (report.nonfinite, "row", "with nan or inf"),
    ):
        if count:
            lines.append(f"  {count:,} {noun}{'' if count == 1 else 's'} {what}")
    if report.all_lowercase:
        lines.append("  all tokens are lower-case: lower-case your text, too, or encode(tokens, lookup='lower')")
    lines += norms(report)
    lines.append(_training(report))
    if report.advice:
        lines.append(f"  {report.advice}")
    if not report.dry_run:
        lines += ["", *_python(report)]
    from ..errors import printable

    return printable("\n".join(lines))


def norms(report: Any) -> list[str]:
    """Positions, and how long words and positions are, of a report on either."""
    scale = f", words times {report.scale.factor:.4g} ({report.scale.kind})" if report.scale else ""
    if report.positions is None:
        return [f"  scale{scale.replace(',', ':', 1)}"] if scale else []
    table = report.positions
    front = f" from row {table.offset} on" if table.offset else ""
    trains = "train" if table.trains else "are fixed"
    lines = [f"  {table.num:,} {table.kind} positions{front}, they {trains}{scale}"]
    if report.word_norm is not None:
        ratio = "" if report.norm_ratio is None else f"; scaled words : positions = {report.norm_ratio:.3g}"
        lines.append(f"  length of words {report.word_norm:.4g}, of positions {report.position_norm:.4g}{ratio}")
    return lines


def _training(report: Any) -> str:
    if report.train in ("new", "rows"):
        which = "the new ones" if report.train == "new" else "those of the list"
        return f"  trains: {which}, {report.training_rows:,} in all; recorded, not part of a state dict"
    return "  frozen: recorded, not part of a state dict" if report.frozen else "  trains: nothing is frozen"


def _headline(report: Any) -> str:
    table = f"{report.rows:,} rows x {report.dim}, {report.dtype}"
    if report.shards:
        table += f", {report.shards:,} shard{'' if report.shards == 1 else 's'}"
    if report.dry_run:
        return f"{table}, {report.bytes:,} bytes would be written"
    done = "was there already, the same" if report.kept_existing else "written"
    return f"{report.path}: {table}, {done} in {report.seconds:.2f} s"


def _origin(report: Any) -> str:
    compression = "" if report.compression == "none" else f", {report.compression}"
    limited = ", read up to the limit; the rest was not looked at" if report.limited else ""
    return f"  from {report.source}: {report.format}{compression}, {report.file_rows:,} rows{limited}"


def _python(report: Any) -> list[str]:
    """The lines that load what was written."""
    padding = f", padding_idx={report.padding_idx}" if report.padding_idx is not None else ""
    load = "load_text_embedding" if report.positions or report.scale else "load_embedding"
    elsewhere = "://" in report.path or report.shards
    if elsewhere or load != "load_embedding" or report.keys != ["weight"] or report.train in ("new", "rows"):
        return [
            "import vec2emb",
            f"from vec2emb.torch import {load}",
            f"embedding = {load}({report.path!r})",
            f"vocab = vec2emb.load({report.path!r}).vocab",
        ]
    return [
        "import torch, vec2emb",
        "from safetensors.torch import load_file",
        f"embedding = torch.nn.Embedding({report.rows}, {report.dim}{padding})",
        f"embedding.load_state_dict(load_file({report.model_path!r}))",
        *(["embedding.requires_grad_(False)"] if report.frozen else []),
        f"vocab = vec2emb.load({report.path!r}).vocab",
    ]
