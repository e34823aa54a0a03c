"""Counting as a graph of tasks, for Dask: on its local schedulers, on a cluster, or on Ray through `ray.util.dask`.

Each task reads some pieces of the corpus and gives a table for each bucket of tokens; merges form a tree for each
bucket; the last of them writes a file. All are pure functions: whatever a lost worker had done is done again elsewhere,
with the same outcome. The process that asked puts the files in order: through the scheduler go settings and names of
files, nothing else.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import TryAgainError, UsageError, Vec2embError, needed
from ..io.remote import filesystem
from ..io.urls import is_url
from ..options.threads import worker_count
from .counts import TokenCounts
from .inputs import Input, Piece, cut
from .merging import merge_files
from .settings import Settings
from .tables import arrow
from .tasks import count_pieces, merge_tables, write_table

if TYPE_CHECKING:
    from types import ModuleType

    from dask.delayed import Delayed

PIECE = 64 << 20  # bytes that a task counts at least, where there is more than one
TASKS = 2000  # of counting at most, unless the pieces grew too large for that
LARGEST = 1 << 30
BUCKET = 1 << 30  # bytes of corpus for each bucket
BUCKETS = 64
FAN_IN = 8
TIMEOUT = "30s"  # to reach the scheduler

LOCAL = ("synchronous", "threads", "processes")
_HERE = ("inproc://", "tcp://127.0.0.1:", "tcp://localhost:", "tcp://[::1]:", "127.0.0.1:", "localhost:")


def count_on_cluster(
    inputs: list[Input],
    settings: Settings,
    memory: int,
    scheduler: object,
    parts: str | os.PathLike[str] | None,
    show: Callable[[int], None] | None,
) -> TokenCounts:
    """Count by Dask; the arguments are those of `count_tokens`.

    Raises:
        InputError: a fault of the corpus.
        UsageError: the scheduler is none, or runs elsewhere and there is no folder that all see.
        MissingPackageError: dask is not there.
        TryAgainError: the scheduler does not answer, or too many workers were lost.
    """
    arrow()
    if any(one.path == "-" for one in inputs):
        raise UsageError("stdin-on-cluster", "standard input cannot be read by tasks", hint="save it as a file first")
    total = sum(one.size or 0 for one in inputs)
    groups = list(_groups(inputs, min(max(total // TASKS, PIECE), LARGEST)))
    buckets = min(max(total // BUCKET, 1), BUCKETS)
    with _run_of(scheduler) as run, _shared(parts, run.is_here) as shared, tempfile.TemporaryDirectory() as here:
        topic = f"vec2emb-{uuid.uuid4().hex}"
        done = _Done([size for _, size in groups], show)
        files = run(_graph([pieces for pieces, _ in groups], settings, buckets, shared, topic), topic, done)
        if is_url(shared):
            system, path = filesystem(shared)
            paths = [os.path.join(here, name) for name in files]
            system.get([f"{path}/{name}" for name in files], paths)
        else:
            paths = [os.path.join(shared, name) for name in files]
        return merge_files(paths, here, memory, worker_count(None), settings)


def _groups(inputs: list[Input], size: int) -> Iterator[tuple[list[Piece], int]]:
    """What each task reads, and its bytes: small files together, packed ones alone, large ones in pieces."""
    waiting: list[Piece] = []
    held = 0
    for one in inputs:
        one = one if is_url(one.path) else one._replace(path=os.path.abspath(one.path))
        if one.size is None or one.size > size or one.is_packed:
            pieces = list(cut([one], size))
            share = (one.size or 0) // len(pieces) if pieces else 0
            yield from (([piece], share) for piece in pieces)
            continue
        waiting.append(Piece(one.path, one.kind))
        held += one.size
        if held >= size:
            yield waiting, held
            waiting, held = [], 0
    if waiting:
        yield waiting, held


def _graph(groups: list[list[Piece]], settings: Settings, buckets: int, folder: str, topic: str) -> list[Delayed]:
    """The task that writes each bucket, and below it all others."""
    from dask.delayed import delayed

    count, merge, write = (delayed(function, pure=False) for function in (count_pieces, merge_tables, write_table))
    common = delayed(settings, name=f"{topic}-settings")
    counted = [
        count(pieces, common, buckets, topic, number, dask_key_name=f"{topic}-count-{number}")
        for number, pieces in enumerate(groups)
    ]
    written = []
    for bucket in range(buckets):
        level = [tables[bucket] for tables in counted]
        while len(level) > FAN_IN:
            level = [merge(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
        written.append(write(level, folder, bucket))
    return written


class _Done:
    """How much is done; a task that is done twice counts once."""

    def __init__(self, sizes: list[int], show: Callable[[int], None] | None) -> None:
        self._sizes = sizes
        self._show = show
        self._numbers: set[int] = set()

    def add(self, number: int) -> None:
        if self._show is not None and number not in self._numbers:
            self._numbers.add(number)
            self._show(sum(self._sizes[number] for number in self._numbers))


class Run(Protocol):
    """Runs a graph; `is_here` says whether its workers see the files of this machine."""

    is_here: bool

    def __call__(self, graph: list[Delayed], topic: str, done: _Done) -> list[str]: ...


@contextlib.contextmanager
def _run_of(scheduler: object) -> Iterator[Run]:
    """What runs a graph on a scheduler."""
    with needed("dask", "dask", "the engine dask"):
        import dask.callbacks
    if isinstance(scheduler, str) and scheduler not in LOCAL and ":" not in scheduler:
        raise UsageError(
            "unknown-scheduler", "there is no such scheduler", expected=f"{', '.join(LOCAL)} or the address of one",
            found=repr(scheduler),
        )  # fmt: skip
    if scheduler is None:
        with contextlib.suppress(ImportError, ValueError):  # ValueError: there is no client
            from distributed import get_client

            scheduler = get_client()
    if scheduler is None or scheduler in LOCAL or callable(scheduler):
        yield _Local(dask, scheduler or "threads")
        return
    if not isinstance(scheduler, str):
        yield _Distributed(scheduler)
        return
    with needed("distributed", "dask", "a Dask cluster"):
        import distributed
    try:
        connect: Any = distributed.Client  # whose functions have no types
        client = connect(scheduler, set_as_default=False, timeout=TIMEOUT)
    except (OSError, TimeoutError) as error:
        raise TryAgainError("scheduler-silent", f"the scheduler does not answer ({error})", path=scheduler) from error
    except ValueError as error:
        raise UsageError("unknown-scheduler", f"the address cannot be read ({error})", found=scheduler) from None
    with client:
        yield _Distributed(client)


class _Local:
    """Dask's schedulers of this machine, or any function that takes a graph and keys."""

    is_here = True

    def __init__(self, dask: ModuleType, scheduler: object) -> None:
        self._dask = dask
        self._scheduler = scheduler

    def __call__(self, graph: list[Delayed], topic: str, done: _Done) -> list[str]:
        prefix = f"{topic}-count-"

        def note(key: object, *_: object) -> None:
            if isinstance(key, str) and key.startswith(prefix):
                done.add(int(key.removeprefix(prefix)))

        try:
            with self._dask.callbacks.Callback(posttask=note):
                return list(self._dask.compute(*graph, scheduler=self._scheduler))
        except Vec2embError as error:
            # From another process it comes in a wrapping of Dask's, which knows the traceback there.
            raise getattr(error, "exception", error) from None


class _Distributed:
    """A cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.is_here = client.scheduler.address.startswith(_HERE)

    def __call__(self, graph: list[Delayed], topic: str, done: _Done) -> list[str]:
        from distributed.scheduler import KilledWorker

        client = self._client
        client.subscribe_topic(topic, lambda event: done.add(event[1]))
        futures = client.compute(graph)
        try:
            return list(client.gather(futures))
        except KilledWorker as error:
            raise TryAgainError(
                "workers-lost", f"one task after another lost its worker ({error})", hint="give the workers more memory"
            ) from error
        finally:
            client.cancel(futures)
            client.unsubscribe_topic(topic)


@contextlib.contextmanager
def _shared(parts: str | os.PathLike[str] | None, is_here: bool) -> Iterator[str]:
    """A folder of our own that the workers and this process see; gone afterwards."""
    if parts is None:
        if not is_here:
            raise UsageError(
                "parts-missing",
                "the workers run elsewhere, and must leave their counts where this process finds them",
                hint="name a folder or URL that all of them see with parts= or --parts",
            )
        with tempfile.TemporaryDirectory(prefix="vec2emb-counts-") as folder:
            yield folder
        return
    above, name = os.fspath(parts), f"vec2emb-counts-{uuid.uuid4().hex}"
    if is_url(above):
        system, path = filesystem(above.rstrip("/"))
        try:
            system.makedirs(f"{path}/{name}", exist_ok=True)
            yield f"{above.rstrip('/')}/{name}"
        finally:
            with contextlib.suppress(FileNotFoundError):
                system.rm(f"{path}/{name}", recursive=True)
        return
    folder = os.path.abspath(os.path.join(above, name))
    os.makedirs(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
