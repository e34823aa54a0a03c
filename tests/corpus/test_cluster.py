"""Counting by Dask: on its local schedulers, and on a cluster of real processes, one of which is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpora import check, zipf_text

from vec2emb import TokenCounts, count_tokens
from vec2emb.corpus import cluster
from vec2emb.errors import InputError, MissingPackageError, TryAgainError, UsageError

SIZE = 150_000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """Text in a large file and in small ones, packed, in JSON lines and in Parquet; and all of it in a row."""
    folder = tmp_path_factory.mktemp("corpus")
    texts = [zipf_text(SIZE, 5_000, seed) for seed in range(4)]
    (folder / "a.txt").write_bytes(texts[0])
    for i, start in enumerate(range(0, len(texts[1]), 15_000)):
        (folder / f"b{i:03}.txt").write_bytes(texts[1][start : start + 15_000])
    lines = texts[2].split(b"\n")
    pq.write_table(pa.table({"text": [line.decode() for line in lines]}), folder / "c.parquet", row_group_size=200)
    import gzip

    (folder / "d.txt.gz").write_bytes(gzip.compress(texts[3], 1))
    small = [texts[1][start : start + 15_000] for start in range(0, len(texts[1]), 15_000)]
    return folder, b"\n".join([texts[0], *small, *lines, texts[3]])


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tasks and buckets as a corpus of gigabytes has."""
    monkeypatch.setattr(cluster, "PIECE", 20_000)
    monkeypatch.setattr(cluster, "BUCKET", 150_000)
    monkeypatch.setattr(cluster, "FAN_IN", 3)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", None])
def test_same_bytes_as_local(corpus: tuple[Path, bytes], small_pieces: None, scheduler: str | None) -> None:
    folder, data = corpus
    seen: list[tuple[int, int | None]] = []
    counts = count_tokens(
        folder, encoding_errors="replace", engine="dask", scheduler=scheduler, progress=lambda *pair: seen.append(pair)
    )
    assert counts == count_tokens(folder, encoding_errors="replace", threads=1)
    assert counts.total == len(data.split())
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert {pair[1] for pair in seen} == {total}
    assert total - 100 < seen[-1][0] <= total


def test_processes(corpus: tuple[Path, bytes]) -> None:
    counts = count_tokens(corpus[0] / "a.txt", engine="dask", scheduler="processes", tokenizer="bert", lowercase=True)
    assert counts == count_tokens(corpus[0] / "a.txt", tokenizer="bert", lowercase=True)
    assert (counts.tokenizer, counts.lowercase) == ("bert", True)


def test_any_function_that_gets_a_graph(corpus: tuple[Path, bytes]) -> None:
    """As `ray.util.dask.ray_dask_get` is one."""
    from dask.local import get_sync

    counts = count_tokens(corpus[0] / "a.txt", engine="dask", scheduler=get_sync)
    check(counts, (corpus[0] / "a.txt").read_bytes().split())


def test_relative_paths_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "PIECE", 10)
    Path("a.jsonl").write_text('{"t": "a b"}\n{"t": "c d e f g h i j k l"}\n{"t": "m"}\n')
    check(count_tokens("a.jsonl", field="t", engine="dask"), "abcdefghijklm")
    check(count_tokens("*.jsonl", field="t", engine="dask", tokenizer="regex:[a-c]"), "abc")


def test_faults_come_through(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a b"}\n{}\n')
    for scheduler in ("synchronous", "threads", "processes"):
        with pytest.raises(InputError) as caught:
            count_tokens(tmp_path, engine="dask", scheduler=scheduler)
        assert (caught.value.code, caught.value.line) == ("field-missing", 2)
        assert str(caught.value).startswith(f"{tmp_path}/a.jsonl, line 2: the line has no field 'text'")


def test_parts_where_they_are_wanted(corpus: tuple[Path, bytes], tmp_path: Path, small_pieces: None) -> None:
    import fsspec

    expected = count_tokens(corpus[0] / "a.txt")
    assert count_tokens(corpus[0] / "a.txt", engine="dask", parts=tmp_path / "parts") == expected
    assert list((tmp_path / "parts").iterdir()) == []
    assert count_tokens(corpus[0] / "a.txt", engine="dask", parts="memory://parts") == expected
    system = fsspec.filesystem("memory")
    assert system.find("/parts") == []


def test_an_empty_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n")
    assert count_tokens(tmp_path, engine="dask") == TokenCounts.of({})


def test_what_cannot_be(corpus: tuple[Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="standard input cannot be read by tasks"):
        count_tokens("-", engine="dask")
    with pytest.raises(
        UsageError, match="expected synchronous, threads, processes or the address of one, found 'many'"
    ):
        count_tokens(corpus[0], engine="dask", scheduler="many")
    with pytest.raises(UsageError, match="the workers run elsewhere"), cluster._shared(None, is_here=False):
        pass
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(MissingPackageError, match=r"the engine dask needs dask; .*'vec2emb\[dask\]'"):
        count_tokens(corpus[0], engine="dask")


# A cluster.


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A scheduler, and two worker processes that are started anew when they die."""
    import dask
    import distributed

    make: Any = distributed.LocalCluster
    settings = {
        "temporary-directory": str(tmp_path_factory.mktemp("dask")),
        "distributed.worker.daemon": True,
        "distributed.admin.log-format": "%(message)s",
    }
    with dask.config.set(settings), make(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as running:  # fmt: skip
        yield running


def _kill_one(running: Any) -> int:
    """Kill the process of a worker, as the system does when memory runs out."""
    pid: int = next(iter(running.workers.values())).process.pid
    os.kill(pid, signal.SIGKILL)
    return pid


@pytest.mark.cluster
def test_two_workers_and_one_killed(
    corpus: tuple[Path, bytes], two_workers: Any, small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PIECE", 20_000)
    folder, _ = corpus
    address = two_workers.scheduler_address
    expected = count_tokens(folder, encoding_errors="replace")
    seen: list[int] = []
    counts = count_tokens(
        folder, encoding_errors="replace", engine="dask", scheduler=address, progress=lambda done, _: seen.append(done)
    )
    assert counts == expected
    assert bytes(counts.blob) == bytes(expected.blob)
    assert seen == sorted(seen)
    assert len(seen) > 10

    killed: list[int] = []

    def kill_midway(done: int, total: int | None) -> None:
        if not killed and total is not None and done > total / 4:
            killed.append(_kill_one(two_workers))

    counts = count_tokens(folder, encoding_errors="replace", engine="dask", scheduler=address, progress=kill_midway)
    assert killed
    assert counts == expected
    assert bytes(counts.blob) == bytes(expected.blob)
    _wait_for(lambda: len(two_workers.scheduler_info["workers"]) == 2)
    assert killed[0] not in {worker.process.pid for worker in two_workers.workers.values()}


@pytest.mark.cluster
def test_a_client_that_is_there_is_taken(corpus: tuple[Path, bytes], two_workers: Any) -> None:
    import distributed

    connect: Any = distributed.Client
    with connect(two_workers) as client:
        for scheduler in (None, client):
            counts = count_tokens(corpus[0] / "a.txt", engine="dask", scheduler=scheduler)
            check(counts, (corpus[0] / "a.txt").read_bytes().split())
        assert not client.futures
    (corpus[0].parent / "bad.jsonl").write_text("{\n")
    with pytest.raises(InputError, match="the line is no JSON"):
        count_tokens(corpus[0].parent / "bad.jsonl", engine="dask", scheduler=two_workers.scheduler_address)


@pytest.mark.cluster
def test_nobody_answers(corpus: tuple[Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "TIMEOUT", "1s")
    with pytest.raises(TryAgainError, match=r"^tcp://127\.0\.0\.1:1: the scheduler does not answer"):
        count_tokens(corpus[0], engine="dask", scheduler="tcp://127.0.0.1:1")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("vec2emb")]


def _wait_for(ready: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.1)
