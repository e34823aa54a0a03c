"""The command line as people and programs meet it: exit codes, what is on which stream, signals."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from children import usual_signals
from helpers import FIXTURES, run

import vec2emb
from vec2emb import cli
from vec2emb.bundle.publication import Publication, Target

ROWS = b"The 0.5 -1.25 2\nof 1 0.25 -0.75\nand -0.5 0.125 0.0625\n"


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The object on the last line of stdout."""
        assert self.out.endswith("\n")
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


Call = Callable[..., Done]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command in this process, which is fast; signal handlers stay as they are."""
    monkeypatch.setattr("vec2emb.io.interrupts.install", lambda: None)

    def run_here(*words: object) -> Done:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        captured = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, captured.out, captured.err)

    return run_here


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "v.txt"
    path.write_bytes(ROWS)
    return path


# Success.


def test_convert(call: Call, source: Path, tmp_path: Path) -> None:
    done = call("convert", source, "-o", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'out'}: 5 rows x 3, float32, written in ")
    assert lines[1:5] == [
        f"  from {source}: glove, 3 rows",
        "  row 0: <pad> (padding, zeros)",
        "  row 1: <unk> (unknown, mean)",
        "  trains: nothing is frozen",
    ]


@pytest.mark.parametrize("options", [[], ["--freeze"], ["--no-pad"]])
def test_the_last_lines_load_what_was_written(options: list[str], call: Call, source: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = call("convert", source, "-o", tmp_path / "o'ut.safetensors", *options)
    namespace: dict[str, Any] = {}
    exec(done.out.split("\n\n")[-1], namespace)
    embedding, vocab = namespace["embedding"], namespace["vocab"]
    assert embedding.weight[vocab["and"]].tolist() == [-0.5, 0.125, 0.0625]
    assert embedding.weight.requires_grad is ("--freeze" not in options)
    assert embedding.padding_idx == (None if "--no-pad" in options else 0)


def test_json(call: Call, source: Path, tmp_path: Path) -> None:
    done = call("convert", source, "-o", tmp_path / "out", "--json")
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert done.out.isascii()
    facts = done.json
    assert facts["path"] == str(tmp_path / "out")
    assert (facts["rows"], facts["dim"], facts["file_rows"]) == (5, 3, 3)
    assert (facts["padding_idx"], facts["unk_idx"], facts["warnings"]) == (0, 1, [])


def test_json_with_warnings(call: Call, source: Path, tmp_path: Path) -> None:
    source.write_bytes(ROWS + b"\xe4\xb8\xad 1 2 3\nThe 1 2 3\n\n" + b"x 1 2 3")
    done = call("convert", source, "-o", tmp_path / "out", "--json")
    assert done.code == 0
    assert [(w["code"], w["count"], w["line"]) for w in done.json["warnings"]] == [
        ("duplicate-tokens", 1, 5), ("blank-line", 1, 6), ("missing-last-lf", 1, 7),
    ]  # fmt: skip
    assert [line.split(":")[0] for line in done.err.splitlines()] == [
        "warning[duplicate-tokens]", "warning[blank-line]", "warning[missing-last-lf]",
    ]  # fmt: skip


def test_quiet(call: Call, source: Path, tmp_path: Path) -> None:
    assert call("convert", source, "-o", tmp_path / "out", "--quiet") == (0, "", "")
    source.write_bytes(ROWS[:-1])
    done = call("convert", source, "-o", tmp_path / "two", "--quiet")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        f"warning[missing-last-lf]: {source}, line 3: the last row has no line feed; is the file whole?\n"
    )


def test_inspect(call: Call, source: Path) -> None:
    done = call("inspect", source)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{source}: vectors\n")
    assert "first tokens: 'The' 'of' 'and'" in done.out
    facts = call("inspect", source, "--count", "--json").json
    assert (facts["rows"], facts["rows_are"], facts["dim"], facts["duplicates"]) == (3, "counted", 3, 0)
    assert facts["first_tokens"] == ["The", "of", "and"]


def test_help(call: Call) -> None:
    done = call("--help")
    assert (done.code, done.err) == (0, "")
    assert [line.split()[0] for line in done.out.split("Commands:\n")[1].splitlines()][:2] == ["convert", "inspect"]
    for command in ("convert", "inspect"):
        done = call(command, "--help")
        assert done.code == 0
        assert "Example:" in done.out
        assert f"vec2emb {command} " in done.out
    for heading in ("Input", "Rows", "Special tokens", "Output", "Machine"):
        assert f"\n{heading}:\n" in call("convert", "-h").out


def test_version(call: Call) -> None:
    assert call("--version").out.startswith(f"vec2emb {vec2emb.__version__}, ")


# Failure.

USAGE: dict[str, tuple[list[object], str, str]] = {
    "two sources": (["convert", "v.txt", "out"], "second-argument", "was -o meant? -o out"),
    "two sources and -o": (["convert", "v.txt", "x", "-o", "out"], "second-argument", "found x"),
    "no output": (["convert", "v.txt"], "output-missing", "-o FOLDER or -o NAME.safetensors"),
    "output .txt": (["convert", "v.txt", "-o", "out.txt"], "output-suffix", "-o FOLDER or -o NAME.safetensors"),
    "output .pt": (["convert", "v.txt", "-o", "out.PT"], "output-suffix", "found out.PT"),
    "pad is unk": (["convert", "v.txt", "-o", "out", "--pad", "<unk>"], "special-twice", "'<unk>'"),
    "no unk": (["convert", "v.txt", "-o", "out", "--no-unk", "--unk-init", "mean"], "unk-init-alone", "--no-unk"),
    "init": (["convert", "v.txt", "-o", "out", "--unk-init", "ones"], "unknown-init", "found 'ones'"),
    "limit": (["convert", "v.txt", "-o", "out", "--limit", "0"], "limit-range", "found 0"),
    "threads": (["convert", "v.txt", "-o", "out", "--threads", "-1"], "threads-range", "found -1"),
    "dim": (["convert", "v.txt", "-o", "out", "--dim", "0"], "dim-range", "found 0"),
    "no number": (["convert", "v.txt", "-o", "out", "--dim", "x"], "usage", "'x' is not a valid integer"),
    "choice": (["convert", "v.txt", "-o", "out", "--dtype", "int8"], "usage", "'int8' is not one of"),
    "no option": (["convert", "v.txt", "--nothing"], "usage", "--nothing"),
    "no source": (["convert", "-o", "out"], "source-missing", "no SOURCE given"),
    "no command": (["transmogrify"], "usage", "transmogrify"),
    "inspect dim": (["inspect", "v.txt", "--dim", "0"], "dim-range", "found 0"),
}


@pytest.mark.parametrize("name", USAGE)
def test_usage(name: str, call: Call, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, code, text = USAGE[name]
    monkeypatch.chdir(source.parent)
    done = call(*words)
    assert (done.code, done.out) == (2, "")
    assert text in done.err
    if code != "usage":
        assert done.err.startswith(f"error[{code}]: ")
    done = call(*words, "--json")
    assert (done.code, done.out.count("\n")) == (2, 1)
    assert (done.json["error"]["code"], done.json["error"]["exit_code"]) == (code, 2)
    assert text in done.json["error"]["message"]
    assert os.listdir(source.parent) == ["v.txt"]


def test_too_little_memory(call: Call, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("vec2emb.conversion.pipeline.convert", exhausted)
    done = call("convert", source, "-o", source.parent / "out", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "out-of-memory")
    assert done.err.startswith("error[out-of-memory]: ")


def test_no_command_at_all(call: Call) -> None:
    done = call()
    assert done.code == 2
    assert "Usage: vec2emb" in done.out + done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pad", "<p>", "--no-pad"], "--pad and --no-pad exclude each other"),
        (["--no-unk", "--unk", "<u>"], "--unk and --no-unk exclude each other"),
    ],
)
def test_options_that_make_another_meaningless(
    options: list[str], words: str, call: Call, source: Path, tmp_path: Path
) -> None:
    done = call("convert", source, "-o", tmp_path / "out", *options)
    assert done.code == 2
    assert done.err.startswith(f"error[options-exclude]: {words}; leave one of the two out\n")
    assert not (tmp_path / "out").exists()


def test_input_at_fault(call: Call, source: Path, tmp_path: Path) -> None:
    source.write_bytes(ROWS + b"x 1 2\n")
    done = call("convert", source, "-o", tmp_path / "out")
    assert (done.code, done.out) == (1, "")
    message, guide = done.err.splitlines()
    assert message == (
        f"error[row-width]: {source}, line 4: the row has too few values: expected 3 after the token "
        "(as in most rows), found 2 in 'x 1 2'; --bad-rows skip leaves such rows out"
    )
    assert guide == "  see docs/how-to/my-file-does-not-load.md#row-width"
    done = call("convert", source, "-o", tmp_path / "out", "--json")
    assert (done.code, done.out.count("\n")) == (1, 1)
    assert done.json == {
        "error": {
            "code": "row-width",
            "message": message.removeprefix("error[row-width]: "),
            "path": str(source),
            "line": 4,
            "record": None,
            "offset": len(ROWS),
            "expected": "3 after the token (as in most rows)",
            "found": "2 in 'x 1 2'",
            "hint": "--bad-rows skip leaves such rows out",
            "exit_code": 1,
        }
    }
    assert os.listdir(tmp_path) == ["v.txt"]
    assert call("inspect", source, "--count").code == 1
    assert call("convert", source, "-o", tmp_path / "out", "--bad-rows", "skip").code == 0


def test_strict(call: Call, source: Path, tmp_path: Path) -> None:
    source.write_bytes(ROWS + b"The 1 2 3\n\n" + b"x 1 2 3\n")
    done = call("convert", source, "-o", tmp_path / "out", "--strict")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error[duplicate-tokens]: {source}, line 4: 1 row of a token that the file has already")
    assert "(and 1 more kinds of warning)" in done.err or "(and 1 more kind of warning)" in done.err
    assert os.listdir(tmp_path) == ["v.txt"]


def test_output_at_fault(call: Call, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("convert", source, "-o", out, "--quiet").code == 0
    done = call("convert", source, "-o", out)
    assert done.code == 1
    assert done.err.startswith(f"error[target-exists]: {out}: a bundle is there already")
    assert call("convert", source, "-o", out, "--if-exists", "keep").code == 0
    assert call("convert", source, "-o", out, "--if-exists", "replace").code == 0
    done = call("convert", source, "-o", tmp_path)
    assert (done.code, done.err[:27]) == (1, "error[target-not-a-bundle]:")


def test_check_missed(call: Call, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call("convert", source, "-o", out)
    assert call("inspect", out).code == 0
    vocab = out / "vocab.txt"
    vocab.write_bytes(vocab.read_bytes().replace(b"The", b"Teh"))
    done = call("inspect", out)
    assert done.code == 3
    assert "FAILED: digest of vocab.txt" in done.out
    done = call("inspect", out, "--json")
    assert done.code == 3
    assert done.json["ok"] is False


def test_try_again(call: Call, source: Path, tmp_path: Path) -> None:
    """Another run is writing the same bundle."""
    lock = os.open(Publication(Target(tmp_path / "out")).lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        done = call("convert", source, "-o", tmp_path / "out", "--json")
    finally:
        os.close(lock)
    assert (done.code, done.json["error"]["code"], done.json["error"]["exit_code"]) == (4, "target-busy", 4)
    assert call("convert", source, "-o", tmp_path / "out").code == 0


# What tokens hold never reaches a terminal raw.

RED = b"\x1b[31mred\x07"


def test_escapes(call: Call, source: Path, tmp_path: Path) -> None:
    name = tmp_path / "\x1b[2Jclear.txt"
    name.write_bytes(ROWS + RED + b" 1 2 3\n" + RED + b" 1 2 3\n\xe2\x80\xae 1 2 3\n")
    outputs = [
        call("convert", name, "-o", tmp_path / "out", "--special", RED.decode() + "=mean", "--special", "\u202e"),
        call("convert", name, "-o", tmp_path / "two", "--duplicates", "error"),
        call("convert", name, "-o", tmp_path / "two", "--strict"),
        call("inspect", name, "--count"),
        call("inspect", name),
        call("inspect", tmp_path / "out"),
        call("inspect", name, "--json"),
    ]
    name.write_bytes(ROWS + RED + b" x y z\n")
    outputs.append(call("convert", name, "-o", tmp_path / "two"))
    name.write_bytes(RED + b" x y z\n")
    outputs.append(call("convert", name, "-o", tmp_path / "two"))
    assert [done.code for done in outputs] == [0, 1, 1, 0, 0, 0, 0, 1, 1]
    for done in outputs:
        text = done.out + done.err
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert r"\x1b[31mred\x07" in outputs[0].out
    assert r"\x1b[31mred\x07" in outputs[1].err
    assert outputs[6].json["first_tokens"][3] == RED.decode()


# Streams.


@pytest.mark.parametrize("data", [ROWS, b"3 3\n" + ROWS, gzip.compress(ROWS)], ids=["glove", "word2vec", "gzip"])
def test_standard_input(data: bytes, source: Path, tmp_path: Path) -> None:
    vec2emb.convert(source, tmp_path / "file")
    done = run("convert", "-", "-o", tmp_path / "pipe", "--json", stdin=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["source"] == "<stdin>"
    for name in ("model.safetensors", "vocab.txt"):
        assert (tmp_path / "pipe" / name).read_bytes() == (tmp_path / "file" / name).read_bytes()


def test_standard_input_is_empty_or_closed(tmp_path: Path) -> None:
    done = run("convert", "-", "-o", tmp_path / "out", stdin=b"")
    assert (done.returncode, done.stderr[:32]) == (1, b"error[empty-file]: <stdin>: the ")
    command = f"exec {sys.executable} -m vec2emb convert - -o {tmp_path / 'out'} <&-"
    closed = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60)
    assert closed.returncode == 1
    assert closed.stderr.splitlines()[0] == b"error[cannot-open]: <stdin>: standard input is closed"
    assert os.listdir(tmp_path) == []


def test_nobody_reads_the_output(source: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "vec2emb", "inspect", str(source)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_installed_command(source: Path, tmp_path: Path) -> None:
    command = shutil.which("vec2emb", path=os.path.dirname(sys.executable))
    if command is None:
        pytest.skip("vec2emb is not installed here")
    done = subprocess.run([command, "inspect", str(source), "--json"], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout)["rows"] == 3


def test_fixtures_of_the_documentation(call: Call, tmp_path: Path) -> None:
    done = call("convert", FIXTURES / "glove.6B.50d.sample.txt", "-o", tmp_path / "glove", "--json")
    assert (done.code, done.json["rows"], done.json["dim"]) == (0, 252, 50)
    done = call("convert", FIXTURES / "fr.fasttext.sample.vec", "-o", tmp_path / "fr", "--json")
    assert (done.code, done.json["rows"], done.json["dim"]) == (0, 22, 300)


# Signals, while a writer stalls.

LONG = b"".join(b"w%d 0.5 -1.25 2\n" % i for i in range(20_000))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device on this system")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["inspect", "nowhere", "--json"],
        ["inspect", FIXTURES / "glove.6B.50d.sample.txt", "--json"],
        ["convert", "--help"],
    ],
)
def test_output_that_cannot_be_written_is_one_line_of_error(words: list[object], unbuffered: str) -> None:
    command = [sys.executable, "-m", "vec2emb", *map(str, words)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}
        )
    assert done.returncode == 1
    first, *more = done.stderr.decode().splitlines()
    assert first == "error[disk-full]: standard output cannot be written (No space left on device)"
    assert len(more) == 1


class Stalled:
    """A process that converts what a writer gives it, who wrote something, and then nothing more."""

    def __init__(self, folder: Path, data: bytes, *options: str, fifo: bool = False) -> None:
        self._folder = folder
        source: str | Path = "-"
        if fifo:
            source = folder / "fifo"
            os.mkfifo(source)
        command = [sys.executable, "-m", "vec2emb", "convert", str(source), "-o", str(folder / "out"), *options]
        pipe = subprocess.PIPE
        env = {**os.environ, "VEC2EMB_BLOCK_BYTES": "4096"}
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, preexec_fn=usual_signals
        )
        assert self.process.stdin is not None
        self._writer = os.open(source, os.O_WRONLY) if fifo else os.dup(self.process.stdin.fileno())
        with contextlib.suppress(BrokenPipeError):  # a reader that needs no more
            os.write(self._writer, data)

    def __enter__(self) -> Stalled:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        os.close(self._writer)
        self.process.communicate()

    def wait_for_reading(self) -> None:
        """Until the conversion has begun and waits for its writer: its hidden folder is there."""
        _wait_for_hidden_folder(self._folder)
        assert self.process.poll() is None

    def end(self) -> tuple[int, bytes, bytes]:
        """Exit code, stdout and stderr; the writer still stalls."""
        code = self.process.wait(10)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return code, self.process.stdout.read(), self.process.stderr.read()


def _wait_for_hidden_folder(folder: Path) -> None:
    end = time.monotonic() + 30
    while not list(folder.glob(".vec2emb-*")) and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.3)


SIGNALS = [
    (signal.SIGINT, 130, "interrupted"),
    (signal.SIGTERM, 143, "terminated"),
    (signal.SIGHUP, 129, "terminated"),
]


@pytest.mark.parametrize(("number", "code", "word"), SIGNALS)
@pytest.mark.parametrize(
    ("data", "options", "fifo"),
    [
        (LONG, ["--threads", "3"], False),
        (LONG, ["--threads", "1", "--json"], True),
        (gzip.compress(LONG * 20)[:400_000], ["--threads", "3"], False),
        (LONG[:100], [], False),
    ],
    ids=["pipe", "fifo", "gzip", "detecting"],
)
def test_signals(
    number: int, code: int, word: str, data: bytes, options: list[str], fifo: bool, tmp_path: Path
) -> None:
    with Stalled(tmp_path, data, *options, fifo=fifo) as stalled:
        stalled.wait_for_reading()
        stalled.process.send_signal(number)
        exit_code, out, err = stalled.end()
    # click ends the line of a terminal on which ^C stands.
    assert (exit_code, err.strip()) == (code, f"{word}: nothing was left behind".encode())
    if "--json" in options:
        assert json.loads(out)["error"] == {"code": word, "message": "nothing was left behind", "exit_code": code}
    else:
        assert out == b""
    assert os.listdir(tmp_path) == (["fifo"] if fifo else [])


def test_a_fault_does_not_wait_for_the_writer(tmp_path: Path) -> None:
    with Stalled(tmp_path, LONG + b"\nx y z w\n" + LONG[:60_000], "--threads", "3") as stalled:
        code, _, err = stalled.end()
    assert (code, err[:21]) == (1, b"error[not-a-numeral]:")
    assert os.listdir(tmp_path) == []


def test_a_limit_does_not_wait_for_the_writer(tmp_path: Path) -> None:
    with Stalled(tmp_path, LONG, "--threads", "3", "--limit", "5000", "--quiet") as stalled:
        assert stalled.end() == (0, b"", b"")
    assert len(vec2emb.load(tmp_path / "out")) == 5002


def test_ctrl_c_in_a_script(tmp_path: Path) -> None:
    """In a library call KeyboardInterrupt arrives as ever; nothing is left behind, no thread either."""
    program = (
        "import sys, threading, vec2emb\n"
        "try: vec2emb.convert('-', sys.argv[1], threads=3)\n"
        "except KeyboardInterrupt: print(threading.active_count())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "out")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, preexec_fn=usual_signals) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        os.write(process.stdin.fileno(), LONG)
        _wait_for_hidden_folder(tmp_path)
        process.send_signal(signal.SIGINT)
        assert (process.wait(10), process.stdout.read()) == (0, b"1\n")
    assert os.listdir(tmp_path) == []


def test_commands_are_listed_as_they_call_themselves() -> None:
    context = click.Context(cli.group)
    for name, text in cli.COMMANDS.items():
        command = cli.group.get_command(context, name)
        assert command is not None
        assert (command.name, command.short_help) == (name, text)
    assert cli.group.get_command(context, "no-such") is None
