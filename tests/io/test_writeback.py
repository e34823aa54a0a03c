"""A file on its way to the disk: what is synced when, and that no failure is lost."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import vec2emb
from vec2emb.errors import OutputError
from vec2emb.io import writeback
from vec2emb.io.writeback import WriteBack


class Disk:
    """Counts syncs; fails from the `fails_at`th on, and says so once, as Linux does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails_at: int | None = None) -> None:
        self.syncs: list[str] = []
        self._fails_at = fails_at
        self.synced = threading.Event()
        for name in ("fdatasync", "fsync"):
            monkeypatch.setattr(os, name, self._called(name), raising=False)

    def _called(self, name: str) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            self.syncs.append(name)
            if len(self.syncs) == self._fails_at:
                self.synced.set()
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.synced.set()

        return sync


def test_a_small_file_is_synced_once_and_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, threads = Disk(monkeypatch), threading.active_count()
    back = WriteBack(0)
    back.wrote(writeback.STEP - 1)
    assert threading.active_count() == threads
    back.finish()
    assert disk.syncs == ["fsync"]


def test_a_large_file_is_synced_meanwhile_and_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, threads = Disk(monkeypatch), threading.active_count()
    back = WriteBack(0)
    for _ in range(3):
        disk.synced.clear()
        back.wrote(writeback.STEP)
        assert disk.synced.wait(10)
    back.finish()
    assert disk.syncs == ["fdatasync"] * 3 + ["fsync"]
    assert threading.active_count() == threads


def test_a_failure_of_long_ago_is_raised_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch, fails_at=1)
    back = WriteBack(0)
    back.wrote(writeback.STEP)
    assert disk.synced.wait(10)
    back.wrote(writeback.STEP)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        back.finish()
    assert disk.syncs == ["fdatasync"]


def test_closing_ends_the_thread_and_syncs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, threads = Disk(monkeypatch), threading.active_count()
    back = WriteBack(0)
    back.wrote(writeback.STEP)
    assert disk.synced.wait(10)
    back.close()
    back.wrote(writeback.STEP)
    assert (disk.syncs, threading.active_count()) == (["fdatasync"], threads)
    back.close()


def test_where_no_thread_can_be_had_all_is_synced_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    disk = Disk(monkeypatch)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    back = WriteBack(0)
    back.wrote(writeback.STEP)
    back.finish()
    assert disk.syncs == ["fsync"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_disk_that_fails_midway_leaves_no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    source = tmp_path / "v.txt"
    source.write_text("".join(f"w{i} 1 2 3 4\n" for i in range(50)))
    monkeypatch.setattr(writeback, "STEP", 64)
    Disk(monkeypatch, fails_at=1)
    before = threading.active_count()
    with pytest.raises(OutputError, match="the output cannot be written") as caught:
        vec2emb.convert(source, tmp_path / "out", dtype=dtype)
    assert caught.value.code == "write-failed"
    assert os.listdir(tmp_path) == ["v.txt"]
    assert threading.active_count() == before
