"""The digest of a file: by its definition, by any number of threads, and while the file is being written."""

from __future__ import annotations

import hashlib
import os
import random
import threading
from pathlib import Path

import pytest

from vec2emb.io import digest
from vec2emb.io.digest import WrittenPieces, file_digest, reader


def by_definition(data: bytes, piece: int) -> str:
    """Ten lines of any language, in Python."""
    pieces = b""
    for start in range(0, len(data), piece):
        pieces += hashlib.sha256(data[start : start + piece]).digest()
    return hashlib.sha256(pieces).hexdigest()


@pytest.fixture
def piece(monkeypatch: pytest.MonkeyPatch) -> int:
    """Pieces of a few bytes, so that there are many; read in steps that do not divide them."""
    monkeypatch.setattr(digest, "PIECE", 64)
    monkeypatch.setattr(digest, "_STEP", 24)
    return 64


@pytest.mark.parametrize("size", [0, 1, (8 << 20) - 1, 8 << 20, (8 << 20) + 1])
def test_pieces_have_8_mib(tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    (tmp_path / "file").write_bytes(data)
    assert file_digest(str(tmp_path / "file")) == by_definition(data, 8 << 20)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 128, 1000])
def test_any_number_of_threads(tmp_path: Path, piece: int, size: int, threads: int) -> None:
    data = random.Random(size).randbytes(size)
    (tmp_path / "file").write_bytes(data)
    before = threading.active_count()
    assert file_digest(str(tmp_path / "file"), threads) == by_definition(data, piece)
    assert threading.active_count() == before


def test_a_file_that_cannot_be_read(tmp_path: Path, piece: int) -> None:
    (tmp_path / "file").write_bytes(bytes(1000))
    descriptor = os.open(tmp_path / "file", os.O_WRONLY)
    try:
        with pytest.raises(OSError, match="descriptor"):
            file_digest(descriptor, 3)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("early", [False, True])
def test_written_by_several_threads_in_any_order(tmp_path: Path, piece: int, early: bool) -> None:
    """Some bytes more than once, the last time late; the file is cut in the end."""
    rng = random.Random(early)
    for _ in range(20):
        data = rng.randbytes(rng.randrange(1, 2000))
        spans = [(at, min(at + 40, len(data))) for at in range(0, len(data), 40)]
        again = [(at, stop) for at, stop in spans if rng.random() < 0.3]
        todo = [(at, rng.randbytes(stop - at)) for at, stop in again] + [(at, data[at:stop]) for at, stop in spans]
        first = todo[: len(again)]
        rest = todo[len(again) :]
        rng.shuffle(rest)
        with open(tmp_path / "file", "w+b", buffering=0) as file:
            pieces = WrittenPieces(reader(file.fileno()))
            pieces.early = early
            lock = threading.Lock()

            def work(jobs: list[tuple[int, bytes]], pieces: WrittenPieces, file: int, lock: threading.Lock) -> None:
                while True:
                    with lock:
                        if not jobs:
                            return
                        at, part = jobs.pop()
                    os.pwrite(file, part, at)
                    pieces.wrote(at, len(part))

            for jobs in (first, rest):
                workers = [threading.Thread(target=work, args=(jobs, pieces, file.fileno(), lock)) for _ in range(3)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
            head = min(10, len(data))
            os.pwrite(file.fileno(), data[:head], 0)
            pieces.wrote(0, head)
            size = rng.randrange(len(data) + 1)
            os.ftruncate(file.fileno(), size)
            assert pieces.finish(size, 2) == by_definition(data[:size], piece)


def test_complete_pieces_are_hashed_while_the_file_is_written(tmp_path: Path, piece: int) -> None:
    with open(tmp_path / "file", "w+b", buffering=0) as file:
        read = []

        def noted(view: memoryview, offset: int) -> int:
            read.append(offset // 64)
            return os.preadv(file.fileno(), [view], offset)

        pieces = WrittenPieces(noted)
        pieces.early = True
        for at in range(0, 640, 32):
            os.pwrite(file.fileno(), bytes([at % 251]) * 32, at)
            pieces.wrote(at, 32)
        assert sorted(set(read)) == list(range(10))
        read.clear()
        os.pwrite(file.fileno(), b"header", 0)
        pieces.wrote(0, 6)
        assert pieces.finish(640) == by_definition((tmp_path / "file").read_bytes(), piece)
        assert set(read) == {0}
