"""What every format of vectors must keep, from a sample of it: CONTRIBUTING.md says how to add one."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helpers import bits, collected, ways

import vec2emb
from vec2emb.errors import InputError, UsageError
from vec2emb.options.choices import FORMATS

Rows = list[tuple[str, list[float]]]

# Exact in binary, and of several lengths in decimal; tokens that no format can fail to hold.
ROWS: Rows = [
    ("the", [0.5, -1.25, 2.0]),
    ("naïve", [1e-3, 16777216.0, -0.0]),
    ("\u3000", [3.4028234663852886e38, 1.401298464324817e-45, 7.0]),
    ("#1", [0.1, 0.2, 0.30000001192092896]),
]
DIM = 3


class Sample(NamedTuple):
    """A format, as somebody else's program writes it.

    Attributes:
        write: the bytes of a file of rows.
        broken: a file with a fault in row 2, whose error must have this code and place.
        options: what a reader has to be told beside the name of the format.
        found: whether a file is told by its looks.
    """

    write: Callable[[Rows], bytes]
    broken: tuple[bytes, str, dict[str, int]]
    options: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    found: bool = True


def text(rows: Rows) -> bytes:
    return "".join(f"{token} {' '.join(map(repr, values))}\n" for token, values in rows).encode()


def binary(rows: Rows) -> bytes:
    return b"%d %d\n" % (len(rows), DIM) + b"".join(t.encode() + b" " + struct.pack("<3f", *v) for t, v in rows)


SAMPLES: dict[str, Sample] = {
    "glove": Sample(text, (b"the 1 2 3\nof 1 x 3\nto 1 2 3\n", "not-a-numeral", {"line": 2})),
    "word2vec": Sample(
        lambda rows: b"%d %d\n" % (len(rows), DIM) + text(rows),
        (b"3 3\nthe 1 2 3\nof 1 2\nto 1 2 3\n", "row-width", {"line": 3}),
    ),
    "word2vec-binary": Sample(
        binary,
        (binary([("the", [1, 2, 3]), ("of", [1, float("inf"), 3]), ("to", [1, 2, 3])]), "non-finite", {"record": 2}),
    ),
}


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == set(FORMATS) - {"auto"}


@pytest.fixture(params=SAMPLES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(name: str, tmp_path: Path) -> Path:
    (tmp_path / "vectors").write_bytes(SAMPLES[name].write(ROWS))
    return tmp_path / "vectors"


def test_rows_come_out_as_they_are(name: str, path: Path, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for threads in ways(monkeypatch):
        options = SAMPLES[name].options
        table, _ = collected(lambda: vec2emb.read_vectors(path, format=name, threads=threads, **options))  # noqa: B023
        assert table.vocab.to_list() == [token for token, _ in ROWS]
        assert bits(table.vectors) == bits([values for _, values in ROWS])


def test_a_format_is_found_or_asked_for(name: str, path: Path) -> None:
    if SAMPLES[name].found:
        table, _ = collected(lambda: vec2emb.read_vectors(path))
        assert bits(table.vectors) == bits([values for _, values in ROWS])
        assert vec2emb.inspect(path).facts["format"] == name
    else:
        with pytest.raises(InputError):
            vec2emb.read_vectors(path)


def test_a_file_cut_anywhere_gives_no_wrong_row(name: str, path: Path) -> None:
    """An error, or a warning that the last line does not end, or rows that are those of the file."""
    data, whole = path.read_bytes(), [token for token, _ in ROWS]
    for size in range(len(data)):
        path.write_bytes(data[:size])
        try:
            table, found = collected(lambda: vec2emb.read_vectors(path, format=name, **SAMPLES[name].options))
        except InputError:
            continue
        tokens = table.vocab.to_list()
        if "missing-last-lf" in [warning.code for warning in found]:
            tokens.pop()
        assert tokens == whole[: len(tokens)]
        assert bits(table.vectors[: len(tokens)]) == bits([values for _, values in ROWS[: len(tokens)]])


def test_a_fault_is_named(name: str, path: Path, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, code, place = SAMPLES[name].broken
    path.write_bytes(data)
    for threads in ways(monkeypatch):
        with pytest.raises(InputError) as caught:
            vec2emb.read_vectors(path, format=name, threads=threads, **SAMPLES[name].options)
        assert caught.value.code == code
        assert {key: getattr(caught.value, key) for key in place} == place
        assert caught.value.path == str(path)


def test_a_bundle_is_the_same_compressed_or_not(name: str, path: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    for source in (path, packed):
        vec2emb.convert(source, tmp_path / f"from {source.name}", format=name, **SAMPLES[name].options)
    for file in ("model.safetensors", "vocab.txt"):
        assert (tmp_path / "from packed" / file).read_bytes() == (tmp_path / "from vectors" / file).read_bytes()
    assert vec2emb.verify(tmp_path / "from packed", source=path, rebuild=packed).ok


def test_the_command_line_has_it(
    name: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vec2emb.cli import main

    options = [f"--{key}={value}" for key, value in SAMPLES[name].options.items()]
    for command in (["convert", "-o", os.fspath(tmp_path / "out")], ["inspect"], ["audit"]):
        with pytest.raises(SystemExit) as ended:
            main([command[0], os.fspath(path), *command[1:], "--format", name, *options, "--quiet"])
        assert ended.value.code == 0, capsys.readouterr().err


def test_a_format_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        vec2emb.read_vectors(tmp_path / "v", format="nonesuch")
    assert caught.value.code == "unknown-format"
    assert caught.value.expected == " or ".join(FORMATS)
