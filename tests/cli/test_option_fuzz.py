"""Random command lines keep the promises of every command.

A known exit code, one line of JSON with `--json`, a message with every error, no exception, inputs that stay as they
are, and nothing left behind after an error.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
import numpy as np
import pytest

from vec2emb.cli import group
from vec2emb.cli import run as run_line
from vec2emb.io import interrupts

WORDS = ["the", "Paris", "naïve", "cat", "dog", ",", "1", "king", "queen", "the"]
SETUP = {
    "plain": "convert g.txt",
    "positions": "convert g.txt --positions learned --max-positions 6",
    "bert": "convert g.txt --positions sinusoidal --max-positions 6 --key-style bert --dtype float16",
    "ids": "convert g.txt --vocab vocab.json --fill-gaps",
    "bare": "convert g.txt --no-pad --no-unk --vocab words.txt --train-rows words.txt",
    "stem.safetensors": "convert g.txt --corpus corpus.txt --special [M]=mean",
    "shards": "convert g.txt --shard-size 4200",
    "extended": "extend plain --tokens new,newer --missing normal",
    "folder": "export positions --to huggingface",
    "bin": "export plain --to word2vec-binary",
    "npz.npz": "export plain --to npz",
}
BUNDLES = [name for name in SETUP if name not in ("bin", "npz.npz")]
VECTORS = ["g.txt", "g.txt.gz", "cut.gz", "bad.txt", "nan.txt", "latin.txt", "bin", "npz.npz", "plain", "ids"]
TEXTS = ["words.txt", "vocab.json", "corpus.txt", "corpus.jsonl", "bytes", "empty", "nothing"]
SHAPED = ["cat", "the", "<pad>", "<unk>", "", "no", "naïve", "\udcff", "a,b", "=", "[X]=normal", "[X]=token:cat"]
NUMBERS = ["0", "1", "2", "3", "4", "6", "9", "100", "-1", "99999999999999999999", "1.5", "nan", "1e400", "x", ""]
POOLS = {
    "--from --source --rebuild": VECTORS,
    "--vocab --only --corpus --counts --set --train-rows": [*TEXTS, "new", "all"],
    "--special --pad --unk --tokens": SHAPED,
    "--unk-init": ["zeros", "mean", "normal", "uniform", "token:cat", "token:", "x"],
    "--encoding": ["latin-1", "utf-16", "ascii", "rot13", "hex", "idna", "no", ""],
    "--tokenizer": ["whitespace", "bert", r"regex:\w+", "regex:(", "hf:vocab.json", "hf:nothing", "x", ""],
    "--expect": ["rows=11", "dim=4", "missing<=0", "digest=x", "rows=", ""],
    "--scale": ["none", "sqrt-dim", "unit-rms", "match-positions", "2", "0", "nan", "1e400", "x"],
    "--shard-size": ["4200", "1KB", "0", "5GB", "99999999999999999999999GB", "x"],
    "--memory": ["1GB", "10KB", "0", "x"],
    "--word-key --position-key --tied-head --key": ["weight", "a.b", "", "__metadata__"],
    "--min --max": ["health.duplicates=0", "coverage.tokens=0.5", "x=1", "=", "a", "health.rows=nan"],
    "--member": ["vectors", "x", ""],
    "--engine": ["local"],
    "--scheduler --parts": ["x"],
    "--threads": ["1", "1", "1", "2", "0", "x"],
    "--padding": ["0", "1", "9", "-1", "none", "x"],
    "--sha256 --license --source-url --field": ["", "x", "a\nb", "0" * 64, "text"],
}
VALUES = {name: values for names, values in POOLS.items() for name in names.split()}
OUTPUTS = {
    "--output": "", "--save-counts": ".tsv", "--row-report": ".jsonl", "--html": ".html", "--missing-words": ".tsv",
    "--passed": "",
}  # fmt: skip


def commands() -> dict[tuple[str, ...], click.Command]:
    found: dict[tuple[str, ...], click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found.update({(name, one): command.commands[one] for one in command.commands})
        else:
            found[name,] = command
    return found


def words_of_option(option: click.Option, chance: random.Random) -> list[str]:
    name = chance.choice([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [name]
    long = next(one for one in option.opts if one.startswith("--"))
    if long in OUTPUTS:
        value = chance.choice(["out/a", "out/b", "out/c/d", "plain/x", "g.txt", "g.txt/x", "", "."])
        value += OUTPUTS[long] or chance.choice(["", "", "", ".safetensors", ".gz", ".zst", ".npz", ".txt"])
    elif long not in VALUES and isinstance(option.type, click.Choice):
        value = str(chance.choice([*option.type.choices, *option.type.choices, "x"]))
    else:
        value = chance.choice(VALUES.get(long, NUMBERS))
    return [name, value]


def line(chance: random.Random) -> list[str]:
    """A random command line, most of whose options have values that they can have."""
    known = commands()
    name = chance.choice(list(known))
    arguments = [one for one in known[name].params if isinstance(one, click.Argument)][:1]
    options = [one for one in known[name].params if isinstance(one, click.Option)]
    chosen = [one for one in options if (one.required or "-o" in one.opts) and chance.random() < 0.95]
    chosen += chance.sample(options, min(len(options), chance.choice([0, 1, 1, 2, 2, 3, 4])))
    words = [word for one in dict.fromkeys(chosen) for word in words_of_option(one, chance)]
    if name == ("extend",):
        words += chance.choice(
            [["--tokens", "x,y", "--missing", "normal"], ["--vocab", "words.txt", "--from", "g.txt"]]
        )
    pool = VECTORS if name == ("convert",) else TEXTS if name == ("vocab",) else BUNDLES
    given = [chance.choice(pool if chance.random() < 0.8 else [*TEXTS, *VECTORS, "-", ""]) for _ in arguments]
    if name in (("explain",), ("similar",)):
        given += chance.sample(SHAPED, chance.choice([1, 2]))
    return [*name, *words, *given, *chance.choice([[], ["--json"], ["--json", "--quiet"]])]


def call(words: list[str]) -> tuple[int, str, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        code = run_line(words)
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    return code, buffer.getvalue().decode("utf-8", "surrogateescape"), err.getvalue()


def state(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with inputs of many kinds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interrupts, "install", lambda: None)  # pytest has handlers of its own
    seed = np.random.default_rng(0)
    rows = "".join(f"{word} {' '.join(f'{x:.4f}' for x in seed.normal(size=4))}\n" for word in WORDS).encode()
    contents = {
        "g.txt": rows, "g.txt.gz": gzip.compress(rows), "cut.gz": gzip.compress(rows)[:-20], "empty": b"",
        "bad.txt": rows + b"x 1 2\nz \xff 1 2 3 4\n", "nan.txt": rows + b"y nan 1 2 3\n",
        "bytes": bytes(range(256)) * 3,
        "latin.txt": rows + "café 1 2 3 4\n".encode("latin-1"), "words.txt": b"cat\ndog\nunicorn\n",
        "vocab.json": json.dumps({"cat": 3, "<unk>": 1, "<pad>": 0, "##s": 5}).encode(),
        "corpus.txt": b"the cat sat\nking , queen unicorn\n", "corpus.jsonl": b'{"text": "the cat"}\n{"text": 3}\n',
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    for name, words in SETUP.items():
        code, _, err = call([*words.split(), "-o", name])
        assert code == 0, (name, err)
    return tmp_path


def check(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(folder)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(before["g.txt"] or b"")))
    code, out, err = call(words)
    after = state(folder)
    assert code in (0, 1, 2, 3, 4)
    if "--json" in words and not {"--help", "-h", "--schema"} & {*words}:
        (one,) = out.splitlines()
        result = json.loads(one, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert ("error" in result) == (code in (1, 2, 4))
    if code in (1, 2, 4):
        assert err.strip()
        assert after == before
    assert "Traceback" not in err
    assert not [name for name in {*after} - {*before} if ".vec2emb-" in name]
    in_place = words[:2] == ["positions", "attach"] or "replace" in words
    assert in_place or {name: after.get(name, b"") for name in before} == before


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_random_command_lines(count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(count):
        words = line(random.Random(seed))
        try:
            check(words, folder, monkeypatch)
        except BaseException as error:
            error.add_note(f"seed {seed}: vec2emb {words}")
            raise
