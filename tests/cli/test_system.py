"""What the system does to a command: signals, closed outputs, little memory, odd environments. Never a traceback."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from children import ignored_signals, started
from helpers import FIXTURES, run

import vec2emb
from vec2emb import cli
from vec2emb.io import interrupts

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"


def shell(text: str, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[bytes]:
    program = f"exec {sys.executable} -m vec2emb {text}"
    return subprocess.run(["sh", "-c", program], capture_output=True, timeout=60, preexec_fn=limit)


# Outputs that are closed.


@pytest.mark.parametrize("command", ["audit {}", "audit {} --json"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_outputs(command: str, closed: str) -> None:
    done = shell(f"{command.format(SAMPLE)} {closed}")
    assert (done.returncode, done.stderr) == (0, b"")


def test_progress_without_stderr(tmp_path: Path) -> None:
    done = shell(f"convert {SAMPLE} -o {tmp_path / 'out'} 2>&-")
    assert done.returncode == 0
    assert len(vec2emb.load(tmp_path / "out")) == 252


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device on this system")
def test_errors_that_nobody_can_read(tmp_path: Path) -> None:
    assert shell("inspect nowhere 2>/dev/full").returncode == 1


# Faults of the system.


@pytest.fixture
def signals_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "install", lambda: None)


@pytest.mark.usefixtures("signals_stay")
@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (OSError(errno.EIO, "Input/output error", "/etc/x"), "system-error", "/etc/x: the system reports"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk-full", "No space left on device"),
        (MemoryError(), "out-of-memory", "not enough memory"),
        (RuntimeError("can't start new thread"), "out-of-memory", "not enough memory"),
        (ImportError("libx.so: failed to map segment"), "cannot-load", "libx.so: failed to map segment"),
    ],
)
def test_faults_of_the_system_are_not_taken_for_those_of_standard_output(
    error: Exception, code: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("vec2emb.checking.inspection.inspect", failing)
    assert cli.run(["inspect", str(SAMPLE), "--json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)["error"]
    assert found["code"] == code
    assert text in err
    assert "standard output" not in err


@pytest.mark.usefixtures("signals_stay")
def test_a_mistake_of_ours_is_still_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr("vec2emb.checking.inspection.inspect", failing)
    with pytest.raises(RuntimeError, match="a mistake"):
        cli.run(["inspect", str(SAMPLE)])


@pytest.mark.parametrize("megabytes", [48, 120, 150])
@pytest.mark.parametrize("command", ["convert", "audit", "vocab"])
def test_little_memory(command: str, megabytes: int, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    words = {"convert": f"convert {SAMPLE} -o {tmp_path / 'out'}", "audit": f"audit {SAMPLE}",
             "vocab": f"vocab {SAMPLE} -o {tmp_path / 'out'}"}  # fmt: skip
    done = shell(f"{words[command]} --json --quiet", limit)
    assert b"Traceback" not in done.stderr
    if b"OpenBLAS" in done.stderr or done.returncode not in (0, 1):
        return  # a library, or the interpreter, ended the process itself
    assert ("error" in json.loads(done.stdout)) == (done.returncode == 1)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("value", ["abc", "-5", "1e999"])
@pytest.mark.parametrize(
    ("name", "code"), [("VEC2EMB_BLOCK_BYTES", "vec2emb-block-bytes-range"), ("VEC2EMB_KERNEL", "kernel-choice")]
)
def test_environment_variables(name: str, code: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b\n")
    for words in (("convert", SAMPLE, "-o", tmp_path / "o"), ("vocab", tmp_path / "text", "-o", tmp_path / "v.txt")):
        done = run(*words, "--json", env={name: value})
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["code"] == code
        assert b"Traceback" not in done.stderr
    assert os.listdir(tmp_path) == ["text"]


def test_an_empty_environment_variable_is_none(tmp_path: Path) -> None:
    env = {"VEC2EMB_BLOCK_BYTES": "", "VEC2EMB_KERNEL": "", "VEC2EMB_SPOOL_BYTES": ""}
    assert run("convert", SAMPLE, "-o", tmp_path / "o", "--quiet", env=env).returncode == 0


# Signals.


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_while_it_starts_leave_no_traceback(number: signal.Signals, tmp_path: Path) -> None:
    for delay in (0.06, 0.1, 0.14, 0.18, 0.25, 0.35):
        with started("audit", SAMPLE, "--html", tmp_path / "a.html", "--quiet") as process:
            time.sleep(delay)
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
        # In its first moments Python itself is interrupted, before the first line of ours that could do anything.
        if b"__main__.py" in err:
            assert b"Traceback" not in err, err.decode()
        assert process.returncode in (0, -number, 128 + number, 1)
        assert os.listdir(tmp_path) in ([], ["a.html"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_the_parent_ignores_stay_ignored(number: signal.Signals, tmp_path: Path) -> None:
    """As under nohup and in the background: the run goes on to its end."""
    with started("convert", "-", "-o", tmp_path / "out", "--quiet", signals=ignored_signals) as process:
        assert process.stdin is not None
        process.stdin.write(b"a 1 2\n" * 3)
        process.stdin.flush()
        time.sleep(0.6)
        process.send_signal(number)
        time.sleep(0.1)
        _, err = process.communicate(b"b 3 4\n", timeout=20)
    assert process.returncode == 0, err
    assert len(vec2emb.load(tmp_path / "out")) == 4


@pytest.mark.parametrize(
    ("command", "number"), [("vocab", signal.SIGINT), ("audit", signal.SIGTERM), ("convert", signal.SIGHUP)]
)
@pytest.mark.parametrize("silent", [False, True], ids=["no-writer", "silent-writer"])
def test_a_pipe_as_corpus_ends_with_the_first_signal(
    command: str, number: signal.Signals, silent: bool, tmp_path: Path
) -> None:
    pipe, out = tmp_path / "pipe", tmp_path / "out"
    os.mkfifo(pipe)
    words = {"vocab": ["vocab", pipe, "-o", out], "audit": ["audit", SAMPLE, "--corpus", pipe],
             "convert": ["convert", SAMPLE, "--corpus", pipe, "-o", out]}  # fmt: skip
    with contextlib.ExitStack() as undo:
        process = undo.enter_context(started(*words[command], "--quiet"))
        if silent:
            writer = os.open(pipe, os.O_WRONLY)
            undo.callback(os.close, writer)
            os.write(writer, b"some text\n")
            time.sleep(0.2)
        else:
            time.sleep(0.8)
        assert process.poll() is None
        process.send_signal(number)
        _, err = process.communicate(timeout=10)
    word = b"interrupted" if number == signal.SIGINT else b"terminated"
    assert (process.returncode, err.strip()) == (128 + number, word + b": nothing was left behind")
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_pipe_as_corpus_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with started("vocab", pipe, "-o", tmp_path / "v.txt", "--quiet") as process:
        time.sleep(0.3)  # it waits for its writer
        with open(pipe, "wb", buffering=0) as writer:
            writer.write(b"b a\n")
            time.sleep(0.2)
            writer.write(b"a\n")
        assert process.wait(20) == 0
    assert (tmp_path / "v.txt").read_text() == "a\nb\n"


def test_held_back_signals_come_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {number: signal.getsignal(number) for number in interrupts._ENDING}
    done = []
    try:
        for number in before:
            signal.signal(number, signal.SIG_DFL)
        interrupts.install()

        def work() -> None:
            with interrupts.held_back():
                with interrupts.held_back():
                    signal.raise_signal(signal.SIGHUP)
                done.append("all of it")

        with pytest.raises(interrupts.Stopped) as caught:
            work()
        assert (done, caught.value.number) == (["all of it"], signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_signal_that_python_drops_is_sent_again() -> None:
    """An exception in a destructor goes nowhere, and the run would go on."""
    program = """
import signal, time
from vec2emb.io import interrupts
class Odd:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
interrupts.install()
try:
    odd = Odd()
    del odd
    time.sleep(20)
except interrupts.Stopped as stop:
    print("stopped", int(stop.number))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=10)
    assert (done.stdout, done.stderr) == (b"stopped 15\n", b"")
