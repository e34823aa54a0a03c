"""`trim`: a model with the tokens that a corpus needs, and no others."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable

import numpy as np

from ..corpus.inputs import PathsLike, find_files
from ..editing.checkpoint_files import read_json
from ..editing.checkpoints import check_target
from ..errors import CheckError, InputError, MissingPackageError, UsageError, shown
from ..io.atomic import AtomicOutput
from ..io.filesystem import writing
from ..io.progress import ProgressLike, progress_of
from ..io.urls import is_url, local_only, plain
from ..options.commands import TRIM
from ..options.definition import check
from ..typed import ModelSettings
from .counts import Corpus, read_counts
from .folders import MAPPING, RECORD, TOKENIZER, ModelFolder, open_model
from .proof import Proof
from .result import Bounds, CutTensor, Gate, Trimmed, parse_gates
from .rewriting import NewIds, Rewritten, new_ids_of, required_ids, rewrite
from .selection import Counts, Kept, choose, read_tokens
from .worker import run_apart
from .writing import write_mapping, write_model, write_record


def trim(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    corpus: PathsLike | None = None,
    counts: str | os.PathLike[str] | None = None,
    keep: str | os.PathLike[str] | Iterable[str] | None = None,
    min_count: int = 1,
    max_size: int | None = None,
    pad_to_multiple_of: int = 1,
    field: str | None = None,
    encoding_errors: str = "error",
    sample: int = 10_000,
    min: Bounds = (),
    if_exists: str = "error",
    threads: int | None = None,
    progress: ProgressLike = False,
) -> Trimmed:
    """Write a model whose vocabulary has only the tokens that matter.

    Special, added, byte and single-character tokens are kept in any case, and so is what kept BPE tokens are built of.
    A text whose tokens are all kept gives the same tokens and the same hidden states as before, to the bit. The new
    tokenizer is compared with the original one on a sample of the corpus; if a text of that kind differs, or a gate is
    missed, nothing is written.

    Args:
        model: a folder of transformers or sentence-transformers, with safetensors and a tokenizer.json.
        output: the folder to write. It is complete, or it is not there.
        corpus: texts whose tokens are kept, and which the proof is made with: as in `count_tokens`, but not standard
            input, as it is read twice.
        counts: a file with the counts of the model's tokens, as `vec2emb vocab --tokenizer hf:TOKENIZER --save-counts`
            writes it. With it, the corpus is used for the proof alone.
        keep: tokens to keep in any case: a list, or a file with one token per line, as the vocabulary writes them.
        min_count: drop tokens that are used less often.
        max_size: keep at most so many tokens, all included; the most frequent first.
        pad_to_multiple_of: round the rows of the table up to a multiple; the rows behind the last token repeat that of
            the least frequent one.
        field: of JSON lines the key, of Parquet the column that holds text (`text` by default).
        encoding_errors: at text that is not UTF-8: `error`, `replace` or `escape`.
        sample: how many texts of the corpus the proof encodes.
        min: gates, {figure: bound} or `FIGURE=NUMBER`: `identical` is the share of the sampled texts with the same
            tokens as before, `coverage` that of the corpus's running tokens that are kept.
        threads: for encoding; as many as there are cores by default.
        if_exists: `error`, or `replace` an earlier result.
        progress: True for the usual display, or a function of (bytes read, bytes in all or None).

    Raises:
        InputError: the model, the corpus or the counts are at fault, or the model's family is not known.
        UsageError: an argument is.
        OutputError: the output exists or cannot be written.
        CheckError: a gate was missed, or the proof failed.
        TryAgainError: another run writes there, or the process that encodes ended early.
        MissingPackageError: the `tokenizers` package is not installed.
    """
    check(TRIM, locals())
    gates = parse_gates(min)
    source, label = plain(os.fspath(model)), plain(os.fspath(output))
    local_only(source, "a model to trim")
    local_only(label, "a trimmed model")
    texts = None if corpus is None else _corpus(corpus, field, encoding_errors)
    _check_inputs(texts, counts, keep, gates)
    target = os.path.realpath(label)
    _check_early(source, target, if_exists)

    folder = open_model(source)
    wanted = _wanted(folder, keep)
    used, memory = _counts(folder, texts, counts, threads, progress)
    kept = choose(folder.tokenizer, used, wanted, min_count, max_size)
    _check_gate(gates, "coverage", _coverage(kept, used))
    ids = new_ids_of(folder, kept.ids, pad_to_multiple_of, _rarest(kept, used))
    files = rewrite(folder, ids)
    produced = {*files.contents, *files.copied, *map(folder.relative, folder.checkpoint.shards), RECORD, MAPPING}
    options = {"min_count": min_count, "max_size": max_size, "pad_to_multiple_of": pad_to_multiple_of}

    def check_free() -> None:
        check_target(folder.root, target, produced, if_exists == "replace", _open_result)

    with AtomicOutput(target, label, check_free) as staging, writing(label):
        write_model(folder, ids, files, staging.hidden)
        write_mapping(folder, ids, used, staging.path(MAPPING))
        proof = _prove(folder, ids, texts, sample, threads, staging.hidden)
        done = _result(folder, source, label, kept, ids, files, used, memory, proof)
        _check_gate(gates, "identical", done.identical)
        figures = {"tokens": done.tokens, "rows": done.rows, "coverage": done.coverage, "identical": done.identical}
        write_record(folder, options, figures, staging.path(RECORD))
        staging.publish()
    return done


def _corpus(corpus: PathsLike, field: str | None, encoding_errors: str) -> Corpus:
    files = tuple(find_files(corpus))
    for one in files:
        if one.size is None and not is_url(one.path):
            raise UsageError(
                "corpus-read-twice", "the corpus must be files, folders, patterns or URLs, as it is read twice",
                found="standard input" if one.path == "-" else f"a pipe or device: {one.path}",
                hint="write it to a file first",
            )  # fmt: skip
    return Corpus(files, field, encoding_errors)


def _check_inputs(corpus: Corpus | None, counts: object, keep: object, gates: list[Gate]) -> None:
    if corpus is None and counts is None and keep is None:
        raise UsageError(
            "nothing-to-keep", "something must say which tokens matter", hint="add corpus, counts or keep (--corpus ..)"
        )
    for gate in gates:
        if corpus is None and (counts is None or gate.figure == "identical"):
            raise UsageError(
                "gate-without-corpus", f"the figure {gate.figure} needs a corpus", hint="add corpus or --corpus"
            )
    if importlib.util.find_spec("tokenizers") is None:
        raise MissingPackageError.of("tokenizers", "corpus", "trimming a model")


def _check_early(model: str, target: str, if_exists: str) -> None:
    """Refuse a target before anything is read."""
    root = os.path.realpath(model)
    if target == root:
        raise UsageError("output-inside", "the output must not be the model itself", path=target)
    if if_exists == "error":
        check_target(root, target, set(), replace=False)


def _open_result(target: str) -> None:
    """Raise if a folder is not an earlier result."""
    if read_json(os.path.join(target, RECORD)) is None:
        raise InputError("not-found", f"no such file: {RECORD}", path=target)


def _wanted(model: ModelFolder, keep: str | os.PathLike[str] | Iterable[str] | None) -> set[int]:
    tokens = model.tokenizer.tokens
    found = {id for id in required_ids(model) if id < len(tokens) and tokens[id] is not None}
    return found if keep is None else found | read_tokens(keep, model.tokenizer)


def _counts(
    model: ModelFolder,
    corpus: Corpus | None,
    counts: str | os.PathLike[str] | None,
    threads: int | None,
    progress: ProgressLike,
) -> tuple[Counts, int]:
    """How often each id is used, and the memory of the process that counted."""
    size = len(model.tokenizer.tokens)
    if counts is not None:
        return read_counts(counts, model.tokenizer), 0
    if corpus is None:
        return np.zeros(size, np.int64), 0
    arguments = {"tokenizer": model.path(TOKENIZER), "size": size, "corpus": corpus}
    with progress_of(progress, "corpus") as show:
        done = run_apart("count", arguments, threads, show)
    found = np.frombuffer(done.value, np.int64)
    if not found.any():
        raise InputError("empty-corpus", "the corpus has no text")
    return found, done.memory


def _coverage(kept: Kept, counts: Counts) -> float | None:
    """The share of running tokens that were kept."""
    total = int(counts.sum())
    return int(counts[kept.ids].sum()) / total if total else None


def _rarest(kept: Kept, counts: Counts) -> int:
    """The least frequent token that was kept; of several the last."""
    backwards = kept.ids[::-1]
    return int(backwards[np.argmin(counts[backwards])])


def _check_gate(gates: list[Gate], figure: str, value: float | None) -> None:
    for gate in gates:
        if gate.figure == figure and (value is None or value < gate.bound):
            raise CheckError(
                "gate-missed",
                f"{figure} must be at least {gate.bound:g}; nothing was written",
                found="no counts" if value is None else f"{value:.6g}",
                hint="keep more tokens: raise --max-size, lower --min-count, or name them with --keep",
            )


def _prove(
    model: ModelFolder, ids: NewIds, corpus: Corpus | None, sample: int, threads: int | None, hidden: str
) -> Proof:
    """Compare the original and the new tokenizer.

    Raises:
        CheckError: a text that uses only kept tokens is encoded with other ones.
    """
    new = np.full(len(model.tokenizer.tokens), -1, np.int64)
    for old, now in ids.by_old.items():
        if old < len(new):
            new[old] = now
    arguments: ModelSettings = {
        "before": model.path(TOKENIZER),
        "after": os.path.join(hidden, model.relative(TOKENIZER)),
        "new_ids": new.tobytes(),
        "corpus": corpus,
        "sample": sample,
        "unknown": model.tokenizer.unknown_id,
    }
    done = run_apart("prove", arguments, threads, None)
    proof: Proof = done.value._replace(memory=done.memory)
    if proof.broken:
        raise CheckError(
            "trim-not-exact",
            "a text whose tokens are all kept must be encoded with the same tokens; nothing was written",
            path=model.path(TOKENIZER),
            found=f"other tokens for {shown(proof.broken[0])}",
            hint="this tokenizer has a rule that is not known here: please report it",
        )
    return proof


def _result(
    model: ModelFolder,
    label: str,
    output: str,
    kept: Kept,
    ids: NewIds,
    files: Rewritten,
    counts: Counts,
    memory: int,
    proof: Proof,
) -> Trimmed:
    tensors = tuple(
        CutTensor(key, model.relative(at), model.vocabulary.axes[key])
        for key, at in model.checkpoint.names()
        if key in model.vocabulary.axes
    )
    infos = [info for shard in model.checkpoint.shards.values() for info in shard.header.tensors.items()]
    before = sum(info.stop - info.start for _, info in infos)
    cut = sum(info.stop - info.start for key, info in infos if key in model.vocabulary.axes)
    old, new = ids.sizes.table
    return Trimmed(
        label,
        output,
        ids.sizes.tokens,
        ids.sizes.table,
        kept.always,
        kept.frequent,
        kept.built_from,
        _coverage(kept, counts),
        int((counts > 0).sum() - (counts[kept.ids] > 0).sum()),
        tensors,
        (before, before - cut + cut // max(1, old) * new),
        tuple(files.changes),
        tuple(files.copied),
        tuple(files.notes),
        memory,
        proof,
    )
