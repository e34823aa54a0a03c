"""A table that is larger than memory should have to be: its rows are right, beyond 4 GiB too, and memory stays small.

The full size needs a quarter of an hour and 16 GB of disk:

    pytest tests/conversion/test_big.py --slow
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers import peak_of

import vec2emb
from vec2emb._kernel import TokenIndex
from vec2emb.safetensors_files.header import read_header

DIM = 100
BODIES = 1009  # different vectors, a prime number: which of them a row has tells its place
SIZES = [pytest.param(30_000, id="some"), pytest.param(11_000_000, id="many", marks=pytest.mark.slow)]


def vectors() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """float64[BODIES, DIM], of the size of GloVe's values."""
    return np.round(np.random.default_rng(0).normal(0, 0.4, (BODIES, DIM)), 5)


def lines(rows: int, step: int = 10_000) -> Iterator[bytes]:
    """The file in pieces: row i is `wI` and the vector i mod BODIES."""
    bodies = [" " + " ".join(f"{value:.5f}" for value in vector) + "\n" for vector in vectors()]
    for start in range(0, rows, step):
        yield "".join(f"w{i}{bodies[i % BODIES]}" for i in range(start, min(start + step, rows))).encode()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """A folder that is emptied at once, not when pytest tidies up days later."""
    place = tmp_path / "room"
    place.mkdir()
    yield place
    shutil.rmtree(place)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells a process its peak")
@pytest.mark.parametrize("rows", SIZES)
def test_a_large_table_within_the_memory_bound(room: Path, rows: int) -> None:
    if shutil.disk_usage(room).free < rows * 1500:
        pytest.skip(f"needs {rows * 1500 >> 30} GiB of disk")
    source, target = room / "vectors.txt", room / "bundle"
    with source.open("wb") as file:
        for piece in lines(rows):
            file.write(piece)
    token_bytes = sum(len(f"w{i}\n") for i in range(rows))
    size = source.stat().st_size
    peak = peak_of("convert", str(source), "-o", str(target), "--quiet")
    bound = 80_000_000 + token_bytes + 40 * rows
    print(f"{rows:,} rows, {size:,} bytes, peak {peak:,} bytes, bound {bound:,}")
    assert peak <= bound
    source.unlink()

    # Every row, block by block; the last ones stand beyond 4 GiB if there are many.
    info = read_header(target / "model.safetensors")
    tensor = info.tensors["weight"]
    assert tensor.shape == (rows + 2, DIM)
    expected = vectors().astype(np.float32)
    with (target / "model.safetensors").open("rb") as file:
        file.seek(info.data_start + 2 * DIM * 4)
        for start in range(0, rows, 50_000):
            count = min(50_000, rows - start)
            block = np.frombuffer(file.read(count * DIM * 4), np.float32).reshape(count, DIM)
            np.testing.assert_array_equal(block, expected[np.arange(start, start + count) % BODIES])
        assert not file.read()
    with (target / "vocab.txt").open("rb") as file:
        assert [file.readline(), file.readline()] == [b"<pad>\n", b"<unk>\n"]
        for start in range(0, rows, 50_000):
            tokens = "".join(f"w{i}\n" for i in range(start, min(start + 50_000, rows))).encode()
            assert file.read(len(tokens)) == tokens
        assert not file.read()

    table = vec2emb.load(target)
    for i in (0, 1, rows // 2, rows - 1):
        assert table.vocab[f"w{i}"] == i + 2
        np.testing.assert_array_equal(table[f"w{i}"], expected[i % BODIES])


@pytest.mark.parametrize("count", [pytest.param(20_000, id="some"),
                                   pytest.param(10_000_000, id="many", marks=pytest.mark.slow)])  # fmt: skip
def test_an_index_of_many_tokens(count: int) -> None:
    index = TokenIndex()
    for i in range(count):
        assert index.add(b"%x" % (i * 2654435761)) == i
    assert len(index) == count
    for i in range(0, count, 997):
        token = b"%x" % (i * 2654435761)
        assert (index.get(token), index.token(i)) == (i, token)
    assert index.get(b"%x" % (count * 2654435761)) == -1
    view = TokenIndex.over(index.blob(0, count))
    assert (len(view), view.nbytes, view.first_duplicate) == (count, index.nbytes, None)
    assert all(view.get(b"%x" % (i * 2654435761)) == i for i in range(0, count, 997))
