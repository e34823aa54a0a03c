"""`vec2emb convert`: a file of vectors to a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..options.conversion import CONVERT
from .options import HeadedCommand, options_of, refuse_both
from .output import show, warnings_said

if TYPE_CHECKING:
    from ..conversion.report import Report
    from ..editing.attaching import Attached


@click.command(
    cls=HeadedCommand,
    short_help="A file of word vectors to a bundle that PyTorch loads.",
    epilog="Example:\n  vec2emb convert glove.6B.50d.txt -o glove-50d\n"
    "  zcat wiki.vec.gz | vec2emb convert - -o wiki --limit 200000 --dtype float16\n"
    "  vec2emb convert GoogleNews-vectors-negative300.bin.gz -o news --vocab words.txt --case-fallback",
)
@click.argument("source", required=False)
@click.argument("extra", nargs=-1, metavar="")
@options_of(CONVERT)
def convert(
    source: str | None,
    extra: tuple[str, ...],
    output: str | None,
    no_pad: bool,
    no_unk: bool,
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
        raise UsageError("output-missing", "no output given", hint="use -o FOLDER or -o NAME.safetensors")
    for name, flag in (("pad", "no_pad"), ("unk", "no_unk")):
        refuse_both(name, flag)
    for name, without in (("pad", no_pad), ("unk", no_unk)):
        options[name] = None if without else ... if options[name] is None else options[name]
    with warnings_said():
        report = run(source, output, progress=not quiet, **options)
    show(report, with_json, quiet, lambda: summary(report))


def summary(report: Report) -> str:
    """The result in a few lines, the last of them Python that loads it."""
    lines = [_headline(report), _origin(report)]
    lines += [f"  row {s.id}: {s.token} ({s.role}, {s.init})" for s in report.specials]
    replay = report.manifest.replay
    vocab = None if replay is None else replay.vocab
    if report.id_shift is not None and vocab is not None and vocab.corpus is None:  # words of a corpus have no lines
        lines.append(f"  ids: your line{f' + {report.id_shift}' if report.id_shift else ''} (lines counted from 0)")
    for count, noun, what in (
        (
            0 if report.format == "from-scratch" else report.missing,
            "word",
            f"of the vocabulary not in the file, set by {report.missing_init}"
            f"{_few(report.first_missing, report.missing)}",
        ),
        (report.absent, "word", f"to keep not in the file{_few(report.first_absent, report.absent)}"),
        (report.fallbacks, "word", "with the row of another spelling"),
        (report.merged, "row", "made one with another by lower-casing"),
        (report.nonfinite, "row", "with nan or inf"),
    ):
        if count:
            lines.append(f"  {count:,} {noun}{'' if count == 1 else 's'} {what}")
    if vocab is not None:
        absent = [name for name, row in (("padding", report.padding_idx), ("unknown", report.unk_idx)) if row is None]
        lines += [f"  no {name} token: the vocabulary has none" for name in absent]
    if report.all_lowercase and report.manifest.lookup == "exact":
        lines.append("  all tokens are lower-case: lower-case your text, too, or encode(tokens, lookup='lower')")
    lines += norms(report)
    lines.append(_training(report))
    if report.advice:
        lines.append(f"  {report.advice}")
    if not report.dry_run:
        lines += ["", *_python(report)]
    from ..errors import printable

    return printable("\n".join(lines))


def _few(names: list[str], count: int) -> str:
    """The first few of many words, after a colon."""
    from ..errors import shown

    return f": {', '.join(map(shown, names[:5]))}{', ..' if count > 5 else ''}"


def norms(report: Report | Attached) -> list[str]:
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


def _training(report: Report) -> str:
    if report.train in ("new", "rows"):
        which = "the new ones" if report.train == "new" else "those of the list"
        return f"  trains: {which}, {report.training_rows:,} in all; recorded, not part of a state dict"
    return "  frozen: recorded, not part of a state dict" if report.frozen else "  trains: nothing is frozen"


def _headline(report: Report) -> str:
    table = f"{report.rows:,} rows x {report.dim}, {report.dtype}"
    if report.shards:
        table += f", {report.shards:,} shard{'' if report.shards == 1 else 's'}"
    if report.dry_run:
        return f"{table}, {report.bytes:,} bytes would be written"
    done = "was there already, the same" if report.kept_existing else "written"
    return f"{report.path}: {table}, {done} in {report.seconds:.2f} s"


def _origin(report: Report) -> str:
    if report.format == "from-scratch":
        return f"  from scratch: {report.missing:,} words, set by {report.missing_init}"
    compression = "" if report.compression == "none" else f", {report.compression}"
    limited = ", read up to the limit; the rest was not looked at" if report.limited else ""
    return f"  from {report.source}: {report.format}{compression}, {report.file_rows:,} rows{limited}"


def _python(report: Report) -> list[str]:
    """The lines that load what was written."""
    padding = f", padding_idx={report.padding_idx}" if report.padding_idx is not None else ""
    load = "load_text_embedding" if report.positions or report.scale else "load_embedding"
    elsewhere = report.shards or "://" in (report.path or "")
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
