"""Runs that die, disks that fill up: nothing half done is left, and the next run succeeds."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from children import usual_signals

import vec2emb
from vec2emb.errors import InputError, OutputError

ROWS, DIM = 10_000, 50


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 MB of text."""
    path = tmp_path_factory.mktemp("source") / "vectors.txt"
    rng = random.Random(0)
    lines = [" ".join(f"{rng.uniform(-2, 2):.5f}" for _ in range(DIM)) for _ in range(100)]
    path.write_text("".join(f"word{i} {lines[i % 100]}\n" for i in range(ROWS)))
    return path


def state(target: Path) -> str:
    """`none`, `old` (two rows) or `new`; whatever loads is whole, or the test fails."""
    try:
        table = vec2emb.load(target)
    except InputError:
        return "none"
    if len(table) == 2:
        return "old"
    assert table.vectors.shape == (ROWS + 2, DIM)
    assert table["word9999"][0] != 0
    assert not table.vectors[0].any()
    np.testing.assert_array_equal(table.vectors[1], table.vectors[2:].mean(axis=0, dtype=np.float64).astype(np.float32))
    return "new"


def command(target: Path, *options: str) -> list[str]:
    words = ("convert", "-", "-o", str(target), "--if-exists", "replace", "--quiet", *options)
    return [sys.executable, "-m", "vec2emb", *words]


def kill_at_random(source: Path, target: Path, rng: random.Random, how: signal.Signals, options: list[str]) -> int:
    """Convert from a pipe that is slow now and then, and send a signal at a random moment."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command(target, *options), stdin=pipe, stderr=pipe, preexec_fn=usual_signals)
    # Half of the time in the middle of reading; else around the end, where things are moved.
    data = source.read_bytes()
    cut = rng.randrange(len(data)) if rng.random() < 0.5 else len(data)
    assert process.stdin is not None
    try:
        process.stdin.write(data[:cut])
        process.stdin.flush()
        if cut == len(data):
            process.stdin.close()
            time.sleep(rng.random() * 0.15)
        process.send_signal(how)
        process.wait(30)
    finally:
        process.kill()
        with process.stderr or open(os.devnull), process:
            pass
    return process.returncode


TIMES = [pytest.param(10, id="some"), pytest.param(200, id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("replacing", [False, True], ids=["fresh", "replace"])
def test_killed_at_random_moments(source: Path, tmp_path: Path, replacing: bool, times: int) -> None:
    rng, killed = random.Random(times), 0
    for i in range(times):
        place = tmp_path / str(i)
        place.mkdir()
        target = place / rng.choice(["glove", "glove.safetensors"])
        before = "none"
        if replacing:
            vec2emb.save(target, ["a", "b"], np.ones((2, DIM)))
            before = "old"
            if target.is_dir():
                (target / "tokenizer.json").write_text("{}")
        options = rng.choice([[], ["--threads", "1"], ["--threads", "3"]])
        code = kill_at_random(source, target, rng, signal.SIGKILL, options)
        found = state(target)
        # Files of one stem cannot be replaced in one step: half of them load as nothing, and the next run heals them.
        assert found in (before, "new") or (found == "none" and target.suffix == ".safetensors")
        assert found == "new" or code == -signal.SIGKILL
        killed += code == -signal.SIGKILL
        vec2emb.convert(source, target, if_exists="replace")
        assert state(target) == "new"
        names = [target.name] if target.suffix != ".safetensors" else [f"glove.{end}" for end in ENDS]
        assert sorted(os.listdir(place)) == names
        if replacing and target.is_dir():
            assert (target / "tokenizer.json").read_text() == "{}"
    assert killed >= times // 4


ENDS = ("safetensors", "vec2emb.json", "vocab.txt")


@pytest.mark.parametrize("times", [pytest.param(3, id="some"), pytest.param(200, id="many", marks=pytest.mark.slow)])
def test_killed_while_positions_are_resized(source: Path, tmp_path: Path, times: int) -> None:
    rng, killed = random.Random(times), 0
    bundle, text = tmp_path / "a" / "glove", (tmp_path / "words.txt")
    text.write_text("".join(source.read_text().splitlines(keepends=True)[:500]))
    vec2emb.convert(text, bundle, positions="learned", max_positions=64, scale="match-positions")
    words = np.array(vec2emb.load(bundle).vectors)
    for i in range(times):
        was, to = len(positions_of(bundle)), 64 + (i + 1) % 2 * 1000
        command = [
            "positions",
            "resize",
            bundle,
            "--to",
            to,
            "--method",
            "tile",
            "-o",
            bundle,
            "--if-exists",
            "replace",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "vec2emb", *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # Now and then while Python starts, and else around the writing, which its hidden folder tells of.
        if rng.random() < 0.2:
            time.sleep(rng.random() * 0.2)
        else:
            while process.poll() is None and not list(tmp_path.glob("a/.*.lock")):
                time.sleep(0.001)
            time.sleep(rng.random() * 0.03)
        process.kill()
        code = process.wait(30)
        killed += code == -signal.SIGKILL
        assert len(positions_of(bundle)) in ((to,) if code == 0 else (was, to))
        np.testing.assert_array_equal(vec2emb.load(bundle).vectors, words)
    assert killed >= times // 4
    vec2emb.resize_positions(bundle, bundle, to=64, method="truncate", if_exists="replace")
    assert len(positions_of(bundle)) == 64
    assert os.listdir(tmp_path / "a") == ["glove"]


def positions_of(bundle: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The position table; every value of it is a number."""
    table = vec2emb.load(bundle).positions
    assert table is not None
    assert np.isfinite(table).all()
    return np.asarray(table)


def test_a_temporary_folder_that_cannot_be_written_to_is_not_needed(source: Path, tmp_path: Path) -> None:
    """All that is written on the way lies beside the target."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("word1 word2 word1\n")
    environment = {**os.environ, "TMPDIR": "/nonexistent", "TMP": "/nonexistent", "TEMP": "/nonexistent"}
    for options in ([], ["--dtype", "bfloat16"], ["--corpus", str(corpus)]):
        with source.open("rb") as stdin:
            done = subprocess.run(
                [*command(tmp_path / "glove", *options)], stdin=stdin, capture_output=True, env=environment
            )
        assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["corpus.txt", "glove"]


def test_a_disk_that_fails_under_the_file_is_an_error_with_its_place(source: Path, tmp_path: Path) -> None:
    data = source.read_bytes()

    class Failing:
        at = 0

        def read(self, size: int = -1) -> bytes:
            if self.at >= 3_000_000:
                raise OSError(errno.EIO, "Input/output error")
            piece = data[self.at : min(self.at + size, 3_000_000)]
            self.at += len(piece)
            return piece

    for threads in (1, 3):
        with pytest.raises(InputError, match=r"byte 3000000: reading failed \(Input/output error\)") as caught:
            vec2emb.convert(Failing(), tmp_path / "glove", threads=threads)  # type: ignore[arg-type]
        assert caught.value.code == "read-failed"
        assert not os.listdir(tmp_path)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("replacing", [False, True], ids=["fresh", "replace"])
def test_terminated_or_interrupted_it_cleans_up_at_once_though_the_pipe_is_silent(
    source: Path, tmp_path: Path, replacing: bool, how: signal.Signals, code: int
) -> None:
    target = tmp_path / "a" / "glove"
    if replacing:
        vec2emb.save(target, ["a", "b"], np.ones((2, DIM)))
    pipe = subprocess.PIPE
    process = subprocess.Popen(command(target), stdin=pipe, stderr=pipe, preexec_fn=usual_signals)
    assert process.stdin is not None
    process.stdin.write(source.read_bytes()[: 2 << 20])
    process.stdin.flush()
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("a/.*.tmp/model.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(how)
    process.wait(10)  # the pipe stays open
    _, errors = process.communicate()
    assert process.returncode == code, errors
    assert b"nothing was left behind" in errors
    assert state(target) == ("old" if replacing else "none")
    assert [path.name for path in tmp_path.iterdir()] == (["a"] if replacing else [])
    if replacing:
        assert os.listdir(tmp_path / "a") == ["glove"]


# Full disks.


def full_after(limit: int) -> object:
    """An os.pwrite for a disk that takes so many bytes."""
    pwrite, left, lock = os.pwrite, [limit], threading.Lock()

    def limited(descriptor: int, data: bytes, offset: int) -> int:
        with lock:
            count = min(len(data), left[0])
            left[0] -= count
        if not count:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(descriptor, memoryview(data)[:count], offset)

    return limited


@pytest.mark.parametrize("limit", [0, 1 << 20, 10_002 * 200, 10_002 * 200 + 4000])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("replacing", [False, True], ids=["fresh", "replace"])
def test_a_full_disk_is_an_error_and_leaves_what_was(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replacing: bool, dtype: str, limit: int
) -> None:
    target = tmp_path / "a" / "glove"
    if replacing:
        vec2emb.save(target, ["a", "b"], np.ones((2, DIM)))
    threads = threading.active_count()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full_after(limit))
        with pytest.raises(OutputError, match="No space left on device") as caught:
            vec2emb.convert(source, target, dtype=dtype, if_exists="replace")
    assert caught.value.code == "disk-full"
    assert caught.value.path == str(target)
    assert state(target) == ("old" if replacing else "none")
    assert [path.name for path in tmp_path.iterdir()] == (["a"] if replacing else [])
    assert threading.active_count() == threads


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("name", ["glove", "glove.safetensors"])
def test_a_disk_that_is_really_full(source: Path, small_disk: Path, name: str) -> None:
    vec2emb.save(small_disk / name, ["a", "b"], np.ones((2, DIM)))
    with source.open("rb") as stdin:
        done = subprocess.run([*command(small_disk / name), "--json"], stdin=stdin, capture_output=True)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "disk-full"
    assert state(small_disk / name) == "old"
    assert not [path for path in small_disk.iterdir() if path.name.startswith(".")]
    # The volume itself is no place for a bundle: it cannot be replaced in one step.
    with pytest.raises(OutputError) as caught:
        vec2emb.convert(source, small_disk, if_exists="replace")
    assert caught.value.code == "target-is-a-mount"


def test_a_limit_on_the_size_of_files(source: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # beyond it Python gets EFBIG

    with source.open("rb") as stdin:
        done = subprocess.run(command(tmp_path / "glove"), stdin=stdin, capture_output=True, preexec_fn=limit)
    assert done.returncode == 1, done.stderr
    assert b"error[write-failed]" in done.stderr
    assert b"File too large" in done.stderr
    assert not os.listdir(tmp_path)


def test_a_sync_that_fails_is_no_success(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutputError, match="Input/output error") as caught:
        vec2emb.convert(source, tmp_path / "glove")
    assert caught.value.code == "write-failed"
    assert not os.listdir(tmp_path)


def test_the_next_run_after_a_kill_in_another_process_finds_a_free_lock(tmp_path: Path) -> None:
    """The lock belongs to the process: it goes with it, and a stale folder with a live name is never taken for one."""
    script = f"""
        import os, signal
        from vec2emb.bundle.publication import Publication, Target
        with Publication(Target({str(tmp_path / "glove")!r})) as publication:
            open(publication.path("model.safetensors"), "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)])
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 2  # the folder and its lock
    vec2emb.save(tmp_path / "glove", ["a", "b"], np.ones((2, 3)))
    assert os.listdir(tmp_path) == ["glove"]
