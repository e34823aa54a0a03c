"""Digests in vec2emb.json: whatever order the rows were written in, and by whomever they are computed."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers import FIXTURES, ROOT, digest_of, run

import vec2emb
from vec2emb.io import digest
from vec2emb.io.digest import WrittenPieces

pytestmark = pytest.mark.filterwarnings("ignore::vec2emb.Vec2embWarning")

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
PIECE = 3000  # bytes, in the place of 8 MiB

OPTIONS: list[dict[str, Any]] = [
    {},
    {"unk_init": "mean", "specials_at": "end"},
    {"duplicates": "last"},
    {"lowercase": True},
    {"vocab": ["of", "nowhere", "the", "to"], "missing": "normal"},
    {"vocab": ["Of", "THE"], "case_fallback": True, "missing": "zeros"},
    {"only": ["the", "of"]},
    {"dtype": "float16", "positions": "sinusoidal", "max_positions": 9},
    {"shard_size": 9000},
    {"shard_size": 9000, "dtype": "bfloat16", "positions": "sinusoidal", "max_positions": 9},
]


@pytest.mark.parametrize("options", OPTIONS, ids=[", ".join(options) or "default" for options in OPTIONS])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_digest_is_that_of_the_bytes_that_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], threads: int
) -> None:
    monkeypatch.setattr(digest, "PIECE", PIECE)
    monkeypatch.setenv("VEC2EMB_BLOCK_BYTES", "2000")
    vec2emb.convert(SAMPLE, tmp_path / "b", threads=threads, **options)
    files = json.loads((tmp_path / "b" / "vec2emb.json").read_text())["files"]
    assert {*files, "vec2emb.json"} == {path.name for path in (tmp_path / "b").iterdir()}
    for name, record in files.items():
        data = (tmp_path / "b" / name).read_bytes()
        pieces = [hashlib.sha256(data[at : at + PIECE]).digest() for at in range(0, len(data), PIECE)]
        assert (record["bytes"], record["digest"]) == (len(data), hashlib.sha256(b"".join(pieces)).hexdigest()), name
    assert vec2emb.verify(tmp_path / "b").ok


def test_workers_hash_all_but_the_pieces_that_change_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows in the order of the file: the first piece, with the header and the special rows, and the last."""
    left: list[list[int]] = []
    missing = WrittenPieces.missing

    def noted(self: WrittenPieces, size: int) -> list[int]:
        left.append(missing(self, size))
        return left[-1]

    monkeypatch.setattr(WrittenPieces, "missing", noted)
    monkeypatch.setattr(digest, "PIECE", 5000)
    monkeypatch.setenv("VEC2EMB_BLOCK_BYTES", "2000")
    for threads in (1, 3):
        vec2emb.convert(SAMPLE, tmp_path / "b", threads=threads, if_exists="replace")
    size = 4096 + 252 * 200
    assert left == [[0, size // 5000]] * 2


def test_the_lines_in_the_specification_compute_it(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "bundle.md").read_text(encoding="utf-8")
    [lines] = re.findall(r'```python title="digest.py"\n(.*?)```', page, re.DOTALL)
    assert len(lines.splitlines()) <= 10
    names: dict[str, Any] = {}
    exec(lines, names)
    vec2emb.convert(SAMPLE, tmp_path / "b", shard_size=9000)
    files = json.loads((tmp_path / "b" / "vec2emb.json").read_text())["files"]
    for name, record in files.items():
        assert names["digest"](tmp_path / "b" / name) == record["digest"], name
    for size in (0, 8 << 20, (17 << 20) + 3):
        (tmp_path / "file").write_bytes(b"\x07" * size)
        assert names["digest"](tmp_path / "file") == digest.file_digest(str(tmp_path / "file"))


@pytest.mark.parametrize("options", [{}, {"shard_size": 9000}], ids=["file", "shards"])
def test_verify_prints_plain_sums_where_they_are_asked_for(tmp_path: Path, options: dict[str, Any]) -> None:
    bundle = tmp_path / "b"
    vec2emb.convert(SAMPLE, bundle, **options)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in bundle.iterdir()}
    assert vec2emb.verify(bundle).sha256 is None
    assert vec2emb.verify(bundle, sha256=True).sha256 == sums
    done = run("verify", bundle, "--sha256")
    assert (done.returncode, done.stderr) == (0, b"")
    printed = [line for line in done.stdout.decode().splitlines() if not line.startswith("ok: ")]
    assert sorted(printed) == sorted(f"{value}  {name}" for name, value in sums.items())
    assert json.loads(run("verify", bundle, "--sha256", "--json").stdout)["sha256"] == sums


def test_a_digest_is_no_sha256(tmp_path: Path) -> None:
    vec2emb.convert(SAMPLE, tmp_path / "b")
    model = tmp_path / "b" / "model.safetensors"
    plain, ours = hashlib.sha256(model.read_bytes()).hexdigest(), digest_of(model)
    vec2emb.convert(SAMPLE, tmp_path / "b", expect={"sha256": plain, "digest": ours}, if_exists="replace")
    for expect in ({"sha256": ours}, {"digest": plain}):
        with pytest.raises(vec2emb.errors.CheckError):
            vec2emb.convert(SAMPLE, tmp_path / "c", expect=expect)
        assert not (tmp_path / "c").exists()


def test_a_digest_that_is_none(tmp_path: Path) -> None:
    vec2emb.convert(SAMPLE, tmp_path / "b")
    path = tmp_path / "b" / "vec2emb.json"
    settings = json.loads(path.read_text())
    settings["files"]["model.safetensors"]["digest"] = "0" * 63 + "g"
    path.write_text(json.dumps(settings))
    with pytest.raises(vec2emb.errors.BundleError, match=r"digest must be 64 hexadecimal digits"):
        vec2emb.load(tmp_path / "b")
