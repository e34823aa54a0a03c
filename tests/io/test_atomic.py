"""One way to write for every kind of output: killed at any step, the next run removes what was left."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from helpers import FIXTURES
from safetensors.numpy import save_file
from stopping import KilledError, stopped_at, unsynced

import vec2emb
from vec2emb.auditing import page
from vec2emb.auditing.outcome import Audit
from vec2emb.auditing.writing import write_page, write_words
from vec2emb.bundle.download import cached
from vec2emb.corpus import TokenCounts, build_vocab
from vec2emb.editing.checkpoints import resize_positions
from vec2emb.io import atomic

__all__ = ["unsynced"]  # a fixture

pytestmark = pytest.mark.usefixtures("unsynced")

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
TABLE = "embeddings.position_embeddings.weight"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the runs read: a corpus, a bundle, a checkpoint."""
    given = tmp_path_factory.mktemp("given")
    (given / "corpus.txt").write_text("the of zyzzyva zyzzyva\n")
    vec2emb.convert(SAMPLE, given / "bundle", limit=4)
    (given / "model").mkdir()
    save_file({TABLE: np.ones((6, 3), np.float32)}, given / "model" / "model.safetensors")
    (given / "model" / "config.json").write_text('{"max_position_embeddings": 6}')
    return given


@pytest.fixture(scope="module")
def audited(given: Path) -> Audit:
    return vec2emb.audit(SAMPLE, corpus=given / "corpus.txt")


Writer = Callable[[Path, Path, Audit, bool], object]  # given, place, audit, replacing

# Each writes `out` and what belongs to it into a place, anew if it is there.
KINDS: dict[str, Writer] = {
    "page": lambda given, at, audited, replacing: write_page(audited, at / "out.html"),
    "missing-words": lambda given, at, audited, replacing: write_words(audited, at / "out.tsv"),
    "vocab": lambda given, at, audited, replacing: build_vocab(
        given / "corpus.txt", at / "out.txt", if_exists="replace" if replacing else "error"
    ),
    "vocab-and-counts": lambda given, at, audited, replacing: build_vocab(
        given / "corpus.txt", at / "out.txt", save_counts=at / "out.tsv", if_exists="replace" if replacing else "error"
    ),
    "counts-tsv": lambda given, at, audited, replacing: TokenCounts.of({"a": 2, "b": 1}).save(
        at / "out.tsv", replace=replacing
    ),
    "counts-parquet": lambda given, at, audited, replacing: TokenCounts.of({"a": 2, "b": 1}).save(
        at / "out.parquet", replace=replacing
    ),
    "vocabulary": lambda given, at, audited, replacing: vec2emb.Vocabulary(["a", "b"]).to_file(
        at / "out.txt", replace=replacing
    ),
    "row-report": lambda given, at, audited, replacing: vec2emb.convert(
        SAMPLE, at / "out", limit=3, row_report=at / "rows.jsonl", if_exists="replace" if replacing else "error"
    ),
    "export-file": lambda given, at, audited, replacing: vec2emb.export(
        given / "bundle", "vocab-json", at / "out.json", if_exists="replace" if replacing else "error"
    ),
    "export-folder": lambda given, at, audited, replacing: vec2emb.export(
        given / "bundle", "huggingface", at / "out", if_exists="replace" if replacing else "error"
    ),
    "export-shards": lambda given, at, audited, replacing: vec2emb.export(
        given / "bundle", "shards", at / "out", shard_size=5000, if_exists="replace" if replacing else "error"
    ),
    "checkpoint-file": lambda given, at, audited, replacing: resize_positions(
        given / "model" / "model.safetensors", at / "out.safetensors", to=9, method="tile", replace=replacing
    ),
    "checkpoint-folder": lambda given, at, audited, replacing: resize_positions(
        given / "model", at / "out", to=9, method="tile", replace=replacing
    ),
}


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("replacing", [False, True], ids=["fresh", "replace"])
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_step_it_leaves_old_or_new_and_the_next_run_leaves_nothing_hidden(
    kind: str, replacing: bool, given: Path, audited: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "html_page", lambda *_, **__: f"<html>{page.GENERATOR}a page</html>")
    write = KINDS[kind]
    (tmp_path / "whole").mkdir()
    write(given, tmp_path / "whole", audited, False)
    whole = contents(tmp_path / "whole")
    step, finished, hidden = 0, False, 0
    while not finished:
        step += 1
        assert step < 120
        place = tmp_path / str(step)
        place.mkdir()
        if replacing:
            write(given, place, audited, False)
        able = step % 4 != 0  # now and then on a system that can neither exchange nor link
        finished = stopped_at(step, "killed", able, lambda: write(given, place, audited, replacing))  # noqa: B023
        left = contents(place)
        hidden += any(name.startswith(".") for name in os.listdir(place))
        for name, data in left.items():
            if not name.startswith("."):
                assert data == whole[name]
        if left.keys() == whole.keys() and not replacing:
            write(given, place, audited, True)  # it was published before it was killed
        else:
            # Of two files one may be there, which is no fault of the next run.
            write(given, place, audited, replacing or any(not name.startswith(".") for name in left))
        assert contents(place) == whole
        assert not [name for name in os.listdir(place) if name.startswith(".")]
    assert step > 5  # the calls were counted
    assert hidden > 1


def test_a_download_that_is_killed_at_any_step(given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory: Any = fsspec.filesystem("memory")
    memory.store.clear()
    memory.put(str(given / "bundle"), "/b", recursive=True)
    step, finished = 0, False
    while not finished:
        step += 1
        assert step < 60
        place = tmp_path / str(step)
        monkeypatch.setenv("VEC2EMB_CACHE", str(place))
        finished = stopped_at(step, "killed", True, lambda: cached("memory://b"))
        folder = cached("memory://b")
        assert contents(Path(folder)) == contents(given / "bundle")
        assert os.listdir(place) == [os.path.basename(folder)]
    assert step > 10


@pytest.mark.parametrize("how", ["killed", "interrupted", "fails"])
def test_a_file_of_another_program_is_never_lost(how: str, tmp_path: Path) -> None:
    """A new file never takes the place of one that was written meanwhile."""
    for step in range(1, 40):
        place = tmp_path / str(step)
        place.mkdir()
        target = place / "v.txt"

        def meanwhile() -> None:
            with atomic.new_output(str(target), lambda: atomic.check_file(str(target), replace=False)) as file:  # noqa: B023
                file.write(b"ours")
                target.write_bytes(b"theirs")  # noqa: B023

        with contextlib.suppress(KilledError):
            if stopped_at(step, how, step % 2 == 0, meanwhile):
                break
        assert not target.exists() or target.read_bytes() == b"theirs"
        vec2emb.Vocabulary(["a"]).to_file(target, replace=True)
        assert os.listdir(place) == ["v.txt"]
    assert target.read_bytes() == b"theirs"


def test_what_is_open_when_a_command_is_stopped_is_removed(tmp_path: Path) -> None:
    """A signal may come between two steps, when no `with` block has the output yet."""
    output = atomic.AtomicFile(str(tmp_path / "x"), "x", lambda: None)
    output.__enter__()
    assert len(os.listdir(tmp_path)) == 2
    atomic.close_open()
    atomic.close_open()
    assert os.listdir(tmp_path) == []
