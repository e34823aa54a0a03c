"""URLs whose other end, or whose copies on this machine, go wrong: nothing is lost, and whose fault it is is said."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pytest
from helpers import FIXTURES

import vec2emb
from vec2emb import Vec2embError, cli
from vec2emb.bundle import download
from vec2emb.bundle.download import cached
from vec2emb.errors import InputError, OutputError, TryAgainError, UsageError
from vec2emb.io.atomic import AtomicOutput
from vec2emb.io.remote import files, open_remote, uploads
from vec2emb.io.remote.facts import Digest, digest_of
from vec2emb.io.remote.spooling import spooled

pytestmark = pytest.mark.usefixtures("short_pauses", "downloads")

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system of `memory://`, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


def refusal(call: Callable[[], object]) -> Vec2embError:
    with pytest.raises(Vec2embError) as caught:
        call()
    return caught.value


# Uploads.


@pytest.mark.parametrize("error", [OSError("503"), KeyboardInterrupt()], ids=["network", "interrupt"])
@pytest.mark.parametrize("after", ["_send", "upload"])
@pytest.mark.parametrize("limit", [3, None], ids=["replaced", "new"])
def test_tensors_that_are_there_stay(
    limit: int | None, after: str, error: BaseException, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails when the store has taken the tensors takes nothing back: the new bundle is whole."""
    if limit is not None:
        vec2emb.convert(GLOVE, "memory://a", limit=limit)
    real, info = getattr(uploads, after), type(memory).info

    def failing(*arguments: Any, **named: Any) -> Any:
        raise error

    def sent(system: Any, local: str, path: str, *label: str) -> None:
        real(system, local, path, *label)
        if not path.endswith("model.safetensors"):
            return
        if after == "_send":
            raise error
        monkeypatch.setattr(type(memory), "info", failing)

    step = "vec2emb.bundle.upload.upload" if after == "upload" else "vec2emb.io.remote.uploads._send"
    monkeypatch.setattr(step, sent)
    with pytest.raises((TryAgainError, KeyboardInterrupt)):
        vec2emb.convert(GLOVE, "memory://a", if_exists="replace")
    monkeypatch.setattr(type(memory), "info", info)
    assert len(vec2emb.load("memory://a")) == 252
    assert vec2emb.verify("memory://a").ok


def test_tensors_that_were_cut_by_the_store(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = uploads._send

    def cut(system: Any, local: str, path: str) -> None:
        real(system, local, path)
        if path.endswith("model.safetensors"):
            system.pipe_file(path, system.cat_file(path)[:-1])

    with monkeypatch.context() as patch:
        patch.setattr(uploads, "_send", cut)
        error = refusal(lambda: vec2emb.convert(GLOVE, "memory://a"))
    assert (type(error), error.code) == (TryAgainError, "upload-cut")
    assert refusal(lambda: vec2emb.load("memory://a")).code == "bundle-damaged"
    assert vec2emb.convert(GLOVE, "memory://a", if_exists="replace").rows == 252


@pytest.mark.parametrize("url", ["memory://b/glove.safetensors", "memory://b/glove"])
def test_what_is_there_is_kept_if_it_is_the_same(url: str, memory: Any) -> None:
    vec2emb.convert(GLOVE, url, limit=5)
    before = dict(memory.find("/b", detail=True))
    assert vec2emb.convert(GLOVE, url, limit=5, if_exists="keep").kept_existing
    error = refusal(lambda: vec2emb.convert(GLOVE, url, limit=4, if_exists="keep"))
    assert error.code == "target-differs"
    end = "glove.safetensors, glove.vocab.txt" if url.endswith("s") else "model.safetensors, vocab.txt"
    assert error.found is not None
    assert error.found.endswith(end)
    assert dict(memory.find("/b", detail=True)) == before


def test_no_folder_for_temporary_files(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def mkdtemp(**_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", mkdtemp)
    error = refusal(lambda: vec2emb.convert(GLOVE, "memory://a"))
    assert (type(error), error.code) == (OutputError, "disk-full")
    assert str(error) == (
        "memory://a: a copy of it to upload cannot be written (No space left on device); "
        "set TMPDIR to a folder with room"
    )


# What is too large for memory.


def test_settings_that_are_too_large(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/a/vec2emb.json", b'{"format_version": 1}' + b" " * 2000)
    memory.pipe_file("/a/model.safetensors", b"")
    for module in ("download", "upload"):
        monkeypatch.setattr(f"vec2emb.bundle.{module}.MAX_CONFIG", 1000)
    error = refusal(lambda: vec2emb.load("memory://a"))
    assert (type(error), error.code) == (InputError, "download-too-large")
    assert str(error) == (
        "memory://a/vec2emb.json: the file is too large to be taken into memory: expected at most 1,000 bytes, "
        "found 2,021"
    )
    asked: list[int | None] = []
    real = type(memory).cat_file

    def cat_file(self: Any, path: str, start: int | None = None, end: int | None = None, **more: Any) -> Any:
        asked.append(end)
        return real(self, path, start, end, **more)

    monkeypatch.setattr(type(memory), "cat_file", cat_file)
    memory.pipe_file("/a/vec2emb.json", b'{"a": "' + b" " * 2000 + b'", "format_version": 1}')
    assert refusal(lambda: vec2emb.convert(GLOVE, "memory://a", if_exists="replace")).code == "target-not-a-bundle"
    assert asked == [1000]


def test_words_that_never_end(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/words.txt", b"a\n" * 3000)
    memory.pipe_file("/line.txt", b"a" * 5000)
    memory.pipe_file("/words.json", json.dumps(["a" * 5000]).encode())
    monkeypatch.setattr("vec2emb.words.vocabulary_file.MAX_LINE", 4000)
    assert refusal(lambda: vec2emb.Vocabulary.from_file("memory://line.txt")).code == "line-too-long"
    monkeypatch.setattr("vec2emb.words.vocabulary_file.MAX_BYTES", 4500)
    for name in ("words.txt", "words.json"):
        error = refusal(lambda: vec2emb.convert(GLOVE, "memory://out", vocab=f"memory://{name}"))  # noqa: B023
        assert (error.code, error.path) == ("list-too-long", f"memory://{name}")


def test_reading_all_is_reading_all(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/a", bytes(range(100)))
    monkeypatch.setattr(files, "_LARGEST_WHOLE", 90)
    with open_remote("memory://a") as file:
        file.seek(9)
        assert refusal(file.read).code == "download-too-large"
        file.seek(10)
        assert file.read() == bytes(range(10, 100))
        assert file.read() == b""


# Copies on this machine.


def test_a_cache_that_cannot_be_written(
    memory: Any, downloads: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vec2emb.convert(GLOVE, "memory://a", limit=3)
    downloads.write_text("a file")
    assert cli.run(["similar", "memory://a", "the"]) == 1
    assert capsys.readouterr().err.startswith(
        f"error[target-exists]: {downloads}: the download cannot be written (File exists); "
        "set VEC2EMB_CACHE to a folder with room that can be written to"
    )
    downloads.unlink()

    def full(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vec2emb.bundle.download.open", full, raising=False)
    for call in (vec2emb.load, vec2emb.verify):
        error = refusal(lambda: call("memory://a"))  # noqa: B023
        assert (type(error), error.code) == (OutputError, "disk-full")
    assert list(downloads.iterdir()) == []


def leftover(downloads: Path, name: str) -> Path:
    """What a run leaves that is killed while it downloads, and its lock file."""
    output = AtomicOutput(str(downloads / name), name, lambda: None)
    (downloads / output.hidden).mkdir(parents=True)
    (downloads / output.hidden / "vocab.txt").write_text("half")
    Path(output.lock).touch()
    return Path(output.lock)


def test_what_killed_runs_left_is_removed(memory: Any, downloads: Path) -> None:
    """Whatever they downloaded; not what a live run downloads, nor what is not ours."""
    vec2emb.convert(GLOVE, "memory://a", limit=3)
    leftover(downloads, "left")
    lock = leftover(downloads, "live")
    (downloads / "other").mkdir()
    descriptor = os.open(lock, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        folder = cached("memory://a")
    finally:
        os.close(descriptor)
    kept = {path.name for path in downloads.iterdir()}
    assert kept == {os.path.basename(folder), lock.name, lock.with_suffix(".tmp").name, "other"}


@pytest.mark.parametrize("age", [3600, 2 * 86_400])
def test_without_locks_what_is_a_day_old_is_removed(
    age: int, memory: Any, downloads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    vec2emb.convert(GLOVE, "memory://a", limit=3)
    lock = leftover(downloads, "left")
    os.utime(lock, (time.time() - age,) * 2)
    monkeypatch.setattr(fcntl, "flock", no_locks)
    folder = cached("memory://a")
    left = {lock.name, lock.with_suffix(".tmp").name} if age == 3600 else set()
    assert {path.name for path in downloads.iterdir()} == {os.path.basename(folder)} | left


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no-locks"])
def test_two_runs_that_download_the_same(
    locks: bool, memory: Any, downloads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one waits for the first, and downloads nothing; without locks both download."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    vec2emb.convert(GLOVE, "memory://a", limit=3)
    if not locks:
        monkeypatch.setattr(fcntl, "flock", no_locks)
    fill, fills, both = download._fill, [], threading.Barrier(2, timeout=20)

    def filling(*arguments: Any) -> None:
        fills.append(arguments)
        if not locks:
            both.wait()
        fill(*arguments)

    monkeypatch.setattr(download, "_fill", filling)
    with ThreadPoolExecutor(2) as pool:
        folders = {*pool.map(cached, ["memory://a"] * 2)}
    assert len(fills) == (1 if locks else 2)
    assert [str(path) for path in downloads.iterdir()] == [*folders]
    assert len(vec2emb.load("memory://a")) == 5


@pytest.mark.parametrize("size", ["1e999", "-1e999", '"x"', "null"])
def test_settings_without_a_size(size: str, memory: Any) -> None:
    vec2emb.convert(GLOVE, "memory://a", limit=3)
    config = json.loads(memory.cat_file("/a/vec2emb.json"))
    config["files"]["vocab.txt"]["bytes"] = "SIZE"
    memory.pipe_file("/a/vec2emb.json", json.dumps(config).replace('"SIZE"', size).encode())
    assert refusal(lambda: vec2emb.load("memory://a")).code == "bundle-config"


def read_of(data: bytes) -> Callable[[memoryview], int]:
    left = bytearray(data)

    def read(view: memoryview) -> int:
        count = min(len(left), len(view))
        view[:count] = left[:count]
        del left[:count]
        return count

    return read


def test_the_limit_of_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEC2EMB_SPOOL_BYTES", "2 KB")
    with spooled(read_of(bytes(2000)), "x", None) as file:
        assert file.read() == bytes(2000)
    assert refusal(lambda: spooled(read_of(bytes(2001)), "x", None)).code == "download-too-large"
    monkeypatch.setenv("VEC2EMB_SPOOL_BYTES", "much")
    error = refusal(lambda: spooled(read_of(b""), "x", None))
    assert (type(error), error.code) == (UsageError, "vec2emb-spool-bytes-range")
    assert str(error) == "VEC2EMB_SPOOL_BYTES cannot be so: expected such as 512MB or 2GiB, found 'much'"


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, "disk-full"), (errno.EROFS, "cannot-write")])
def test_copies_that_cannot_be_written(number: int, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    error = refusal(lambda: spooled(read_of(b"a"), "https://a/v.zip", 1))
    assert (type(error), error.code) == (OutputError, code)
    assert str(error).endswith(f"cannot be written ({os.strerror(number)}); set TMPDIR to a folder with room")


# Servers.


def test_a_server_that_is_connected_to_at_once() -> None:
    """fsspec's ftp connects when the file system is made."""
    error = refusal(lambda: vec2emb.read_vectors("ftp://user:hidden@127.0.0.1:1/v.txt"))
    assert (type(error), error.code, error.exit_code) == (TryAgainError, "network", 4)
    assert "hidden" not in str(error)


def test_checksums_in_their_own_notation() -> None:
    """Those of nothing: RFC 1321, appendix A.5, and FIPS 180."""
    md5, sha256 = (
        "d41d8cd98f00b204e9800998ecf8427e", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    )  # fmt: skip
    assert digest_of("md5", "1B2M2Y8AsgTpgAmY7PhCfg==") == Digest("md5", md5)
    assert digest_of("sha256", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=") == Digest("sha256", sha256)
    assert digest_of("md5", md5.upper(), is_hex=True) == Digest("md5", md5)
    for text in (md5, sha256, "", "AAAA", "1B2M2Y8AsgTpgAmY7PhCfg", "é"):
        assert digest_of("md5", text) is None
    for text in (f"{md5}-3", md5[:-1], sha256, ""):
        assert digest_of("md5", text, is_hex=True) is None
