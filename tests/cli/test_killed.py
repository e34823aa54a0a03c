"""Every command that writes, ended at random moments: the old or the new output is there, whole, and nothing else."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from children import started
from helpers import FIXTURES
from safetensors.numpy import save_file

import vec2emb
from vec2emb import cli
from vec2emb.io import interrupts

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
TABLE = "embeddings.position_embeddings.weight"


# They read `given` and write to `out`.
COMMANDS = {
    "convert": "convert SAMPLE -o out/x",
    "convert-stem": "convert SAMPLE -o out/x.safetensors",
    "convert-shards": "convert SAMPLE -o out/x --shard-size 20000",
    "row-report": "convert SAMPLE -o out/x --row-report out/rows.jsonl",
    "vocab": "vocab given/text -o out/v.txt",
    "vocab-counts": "vocab given/text -o out/v.txt --save-counts out/c.tsv",
    "vocab-parquet": "vocab given/text -o out/v.txt --save-counts out/c.parquet",
    "audit": "audit given/bundle --corpus given/text --missing-words out/w.tsv",
    "audit-page": "audit given/bundle --corpus given/text --html out/a.html --missing-words out/w.tsv",
    "export-file": "export given/bundle --to word2vec -o out/x.txt.gz",
    "export-folder": "export given/bundle --to huggingface -o out/x",
    "export-shards": "export given/bundle --to shards -o out/x --shard-size 20000",
    "extend": "extend given/bundle --tokens xqz --missing normal -o out/x",
    "attach": "positions attach given/bundle --kind learned --max-positions 20 -o out/x",
    "resize": "positions resize given/model --to 90 --method tile -o out/x",
    "resize-file": "positions resize given/model/model.safetensors --to 90 --method tile -o out/x.safetensors",
}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = tmp_path_factory.mktemp("killed") / "given"
    given.mkdir()
    vec2emb.convert(SAMPLE, given / "bundle")
    (given / "text").write_text("the of and zyzzyva\n" * 1000)
    (given / "model").mkdir()
    rows = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    save_file({TABLE: rows, "other": np.ones((1000, 50), np.float32)}, given / "model" / "model.safetensors")
    return given


def contents(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not name.endswith(".html")}  # the foot holds the command


def hidden(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


def words_of(command: str, given: Path) -> list[str]:
    return command.replace("SAMPLE", str(SAMPLE)).replace("given/", f"{given}/").split()


@pytest.mark.parametrize(
    ("name", "times"),
    [pytest.param(name, 2, id=name) for name in COMMANDS if name != "audit-page"]  # drawing takes seconds
    + [pytest.param(name, 14, id=f"{name}-many", marks=pytest.mark.slow) for name in COMMANDS],
)
def test_ended_at_random_moments(
    name: str, times: int, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 16 commands the slow run ends 224 of them."""
    rng = random.Random(f"{name} {times}")
    words = words_of(COMMANDS[name], given)
    place = tmp_path / "out"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interrupts, "install", lambda: None)
    place.mkdir()
    assert cli.run([*words, "--quiet"]) == 0
    whole = contents(place)
    for turn in range(times):
        replacing = rng.random() < 0.5
        if not replacing:
            shutil.rmtree(place)
            place.mkdir()
        number = signal.SIGKILL if turn % 2 == 0 else rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        with started(*words, "--quiet", "--if-exists", "replace") as process:
            if rng.random() < 0.2:
                time.sleep(rng.random() * 0.4)  # while it starts
            else:
                while process.poll() is None and not hidden(place):
                    time.sleep(0.0005)
                time.sleep(rng.random() * 0.02)
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
        left = {path: data for path, data in contents(place).items() if not path.startswith(".")}
        if number != signal.SIGKILL:
            assert not hidden(place), err
            assert process.returncode in (0, -number, 128 + number) or b"__main__.py" not in err
        halves = name == "convert-stem" and number == signal.SIGKILL  # files of a stem cannot be replaced in one step
        assert halves or all(whole[path] == data for path, data in left.items())
        if replacing and not halves:
            assert left == whole

        assert cli.run([*words, "--quiet", "--if-exists", "replace"]) == 0  # in this process, which is quicker
        assert contents(place) == whole
        assert not hidden(place)
