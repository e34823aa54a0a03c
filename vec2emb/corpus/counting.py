"""`count_tokens`: the tokens of a corpus and how often each comes."""

from __future__ import annotations

import os
from typing import Any

from ..errors import UsageError
from ..io.progress import Progress, ProgressLike, progress_of
from ..options.commands import COUNT_TOKENS
from ..options.definition import check
from ..options.sizes import parse_size
from .counts import TokenCounts
from .inputs import PathsLike, Piece, find_files
from .settings import Settings
from .splitting import splitter_of


def count_tokens(
    paths: PathsLike,
    *,
    tokenizer: str = "whitespace",
    lowercase: bool = False,
    field: str | None = None,
    encoding_errors: str = "error",
    engine: str = "local",
    memory: int | str = "1GB",
    threads: int | None = None,
    scheduler: Any = None,
    parts: str | os.PathLike[str] | None = None,
    progress: ProgressLike = False,
) -> TokenCounts:
    """Count the tokens of a corpus; the same counts in the same order, whatever the engine, threads and memory.

    Args:
        paths: files, folders, patterns and URLs, one or several: text, JSON lines (`.jsonl`, `.ndjson`, `.json`) and
            Parquet, each compressed or not; `-` is standard input.
        tokenizer: `whitespace` (what ASCII white space separates, as `bytes.split()` has it), `bert` (that, split
            further at Unicode white space and around each punctuation character), `regex:PATTERN` (the matches of an
            Oniguruma pattern in each line or field) or `hf:FILE` (what a tokenizer.json makes of each).
        lowercase: lower-case the tokens, as `str.lower` does.
        field: of JSON lines the key, of Parquet the column that holds text (`text` by default): a string, a list of
            strings, or null for none.
        encoding_errors: at a token that is not UTF-8 raise an `error`, or take it with U+FFFD (`replace`) or with the
            bytes written out (`escape`).
        engine: `local` counts by threads in this process, `dask` as a graph of tasks.
        memory: about how many bytes the counting may take here, as a number or as `512MB`, `4GiB`. What is more goes
            to temporary files and is merged from there.
        threads: of the local engine; as many as there are cores by default.
        scheduler: of Dask: `synchronous`, `threads`, `processes`, the address of a cluster's scheduler, or a
            `distributed.Client`. None takes the client that there is, else `threads`.
        parts: of Dask, a folder or URL that the workers and this process both see, for the counts on their way; needed
            where the scheduler runs elsewhere. By default a temporary folder.
        progress: True for the usual display, or a function of (bytes read, bytes in all or None).

    Raises:
        InputError: the corpus is at fault; the error says where and how.
        UsageError: an argument is.
        MissingPackageError: an extra is not installed.
        TryAgainError: the network fails.
    """
    check(COUNT_TOKENS, locals())
    if engine == "local" and (scheduler is not None or parts is not None):
        raise UsageError(
            "scheduler-alone", "only the engine dask has a scheduler", hint="add engine='dask' or --engine dask"
        )
    settings = Settings.of(tokenizer, lowercase, field, encoding_errors)
    splitter_of(settings)  # refuses what it cannot make, before anything is read
    limit = parse_size("memory", memory)
    inputs = find_files(paths)
    sizes = [one.size for one in inputs]
    size = None if None in sizes else sum(one for one in sizes if one is not None)
    with progress_of(progress, "corpus") as show:
        told = None if show is None else _Teller(show, size)
        if engine == "local":
            from .local import count_locally

            return count_locally((Piece(one.path, one.kind) for one in inputs), settings, limit, threads, told)
        from .cluster import count_on_cluster

        return count_on_cluster(inputs, settings, limit, scheduler, parts, told)


class _Teller:
    """Hands the bytes that are done to a progress function."""

    def __init__(self, show: Progress, size: int | None) -> None:
        self._show = show
        self._size = size

    def __call__(self, done: int) -> None:
        self._show(done, self._size)
