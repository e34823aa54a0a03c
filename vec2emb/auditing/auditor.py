"""`audit`: from sources, a corpus and bounds to a result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..conversion.reading_pass import ReadOptions
from ..errors import InputError, UsageError
from ..io.progress import ProgressLike
from ..io.sources import SourceLike
from ..io.urls import is_url, label_of
from ..options.commands import AUDIT
from ..options.definition import check
from .gates import Gate, checked, parse_gates
from .outcome import Audit
from .results import SCHEMA, SCHEMA_VERSION, Corpus, InputFile, Source

if TYPE_CHECKING:
    from ..corpus import TokenCounts
    from .coverage import Counted
    from .streaming import Streamed

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Bounds = Mapping[str, float] | Iterable[str]


def audit(
    *sources: SourceLike,
    corpus: Paths | None = None,
    counts: str | os.PathLike[str] | Mapping[str, int] | TokenCounts | None = None,
    tokenizer: str = "whitespace",
    lowercase: bool = False,
    field: str | None = None,
    examples: int = 0,
    min: Bounds = (),
    max: Bounds = (),
    member: str | None = None,
    allow_pickle: bool = False,
    format: str = "auto",
    dim: int | None = None,
    limit: int | None = None,
    encoding: str = "utf-8",
    binary_dtype: str | None = None,
    byte_order: str | None = None,
    encoding_errors: str = "error",
    threads: int | None = None,
    progress: ProgressLike = False,
) -> Audit:
    """Say what is in files of vectors or bundles, what of a corpus they cover, and what to do about it.

    A faulty row ends nothing: it is counted. No vector is kept in memory; a row takes 17 bytes and its token.

    Args:
        sources: what to look at: all that `vec2emb.convert` takes, and bundles; several are compared.
        corpus: files, folders and patterns of a text whose words are looked up; counted once for all sources.
        counts: instead of it: counts that were saved, {token: count}, or what `count_tokens` returned.
        tokenizer, lowercase, field: how the corpus is counted, as for `vec2emb.count_tokens`.
        examples: for each of the most frequent missing words, how many lines of the corpus to show.
        min, max: bounds of figures: {"coverage.tokens": 0.95}, or ["coverage.tokens=0.95"]. Each source must keep each.
        member, allow_pickle, format, dim, limit, encoding, encoding_errors, binary_dtype, byte_order: of sources, as
            for `vec2emb.convert`; they apply to each, and `encoding_errors` to the corpus, too.
        threads: workers; one a core by default.
        progress: True for the usual display, or a function of (bytes done, bytes in all).

    Returns:
        All figures; `to_dict()` is what `--json` prints. A gate that is missed raises nothing: look at `ok`.

    Raises:
        InputError: a source is no file of vectors and no bundle, its bytes end early, or it has no rows.
        UsageError: arguments contradict each other, or a gate names no figure.
        MissingPackageError: a package of the extra `corpus` is needed and not there.
    """
    given = check(AUDIT, locals())
    if not sources:
        raise UsageError("no-source", "there is nothing to audit", hint="name a file of vectors or a bundle")
    if corpus is not None and counts is not None:
        raise UsageError("corpus-and-counts", "the words come from a corpus or from counts, not from both")
    if examples and corpus is None:
        raise UsageError("examples-alone", "only a corpus has lines to show", hint="add --corpus FILES")
    gates = [*parse_gates("min", min), *parse_gates("max", max)]
    _check_gates(gates, corpus is not None or counts is not None)
    options = ReadOptions.of(given, bad_rows="skip", nonfinite="keep")
    _check_sources(sources, options, corpus is not None)
    streamed = [_stream(source, options) for source in sources]
    counted, facts = _count(corpus, counts, tokenizer, lowercase, field, encoding_errors, threads, progress)
    found = [_look_at(source, counted) for source in streamed]
    if examples and corpus is not None:
        from .examples import with_examples

        found = with_examples(found, corpus, examples, tokenizer, lowercase, field)
    from ..version import __version__
    from .comparing import compare_all

    comparisons = compare_all(streamed, options)
    result = Audit(SCHEMA, SCHEMA_VERSION, __version__, found, facts, comparisons, [], 0)
    results = checked(gates, result)
    return replace(result, gates=results, gates_missed=sum(not gate.ok for gate in results))


def _check_gates(gates: Iterable[Gate], with_corpus: bool) -> None:
    for gate in gates:
        if gate.path.startswith("coverage.") and not with_corpus:
            raise UsageError(
                "gate-without-corpus", f"{gate.path} needs a corpus", hint="add --corpus FILES or --counts FILE"
            )


def _check_sources(sources: Sequence[SourceLike], options: ReadOptions, with_corpus: bool) -> None:
    """Open each before any is read, so that a mistake in the last shows at once; not what can be opened but once."""
    from ..formats.matrix.recognition import is_bundle
    from .streaming import check_is_vectors, lasts

    for source in sources:
        if is_bundle(source) or not (isinstance(source, str | os.PathLike) and lasts(source)):
            continue
        try:
            check_is_vectors(source, options)
        except InputError as error:
            if with_corpus and len(sources) > 1 and error.code != "cannot-open":
                error.hint = "if this is corpus, quote its pattern, as the shell spreads it out: --corpus '*.txt'"
            raise


def _stream(source: SourceLike, options: ReadOptions) -> Streamed:
    from ..formats.matrix.recognition import is_bundle
    from .streaming import stream_bundle, stream_file

    if is_bundle(source):
        return stream_bundle(os.fspath(source))  # type: ignore[arg-type]
    return stream_file(source, options)


def _look_at(source: Streamed, counted: Counted | None) -> Source:
    from .coverage import cover
    from .health import health_of

    return Source(
        source.name, source.kind, source.format, source.compression, source.member, source.files,  # type: ignore[arg-type]
        health_of(source), None if counted is None else cover(source, counted),
    )  # fmt: skip


def _count(
    corpus: Paths | None,
    counts: str | os.PathLike[str] | Mapping[str, int] | TokenCounts | None,
    tokenizer: str,
    lowercase: bool,
    field: str | None,
    encoding_errors: str,
    threads: int | None,
    progress: ProgressLike,
) -> tuple[Counted | None, Corpus | None]:
    """The words to look up, the most frequent first, and where they come from."""
    if corpus is None and counts is None:
        return None, None
    from ..corpus import TokenCounts, count_tokens
    from ..corpus.inputs import find_inputs
    from .streaming import measured

    files: list[InputFile] = []
    if corpus is not None:
        paths = [corpus] if isinstance(corpus, str | os.PathLike) else list(corpus)
        counted = count_tokens(
            paths, tokenizer=tokenizer, lowercase=lowercase, field=field, encoding_errors=encoding_errors,
            threads=threads, progress=progress,
        )  # fmt: skip
        inputs = [(label_of(one.path), one.path if os.path.isfile(one.path) else None) for one in find_inputs(paths)]
        files = [measured(path, name) for name, path in inputs]
    elif isinstance(counts, str | os.PathLike):
        counted = TokenCounts.load(counts)
        path = os.fspath(counts)
        files = [measured(None if is_url(path) else path, label_of(path))]
    else:
        assert counts is not None
        counted = TokenCounts.of(counts) if isinstance(counts, Mapping) else counts
    total = int(counted.counts.sum()) if len(counted.counts) else 0
    if not total:
        raise InputError("no-tokens", "the corpus has no tokens, so nothing can be covered")
    return counted, Corpus(total, len(counted.counts), counted.tokenizer, counted.lowercase, files)
