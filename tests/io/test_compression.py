"""Whatever a source is compressed with, the same bytes come out; what is cut, corrupt or too large is an error."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import types
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from helpers import FIXTURES, run

import vec2emb
from vec2emb.errors import InputError, MissingPackageError, SourceError
from vec2emb.io.sources import open_source

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
SMALL = b"the 0.5 -1.25\nof 1 0.25\nand -0.5 0.125\n"

CODECS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "bzip2": lambda data: bz2.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=1),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}
codecs = pytest.mark.parametrize("name", CODECS)


class Trickle(io.RawIOBase):
    """A file that is read in order and gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file = io.BytesIO(data)
        self._step = step

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(memoryview(buffer)[: self._step])


def decompressed(data: bytes, size: int = 1000, step: int | None = None) -> tuple[bytes, InputError | None]:
    """What comes out, read `size` bytes at a time, and the error it ends with."""
    file: Any = io.BytesIO(data) if step is None else Trickle(data, step)
    output = bytearray()
    try:
        with open_source(file) as source:
            while piece := source.read(size):
                output += piece
    except InputError as error:
        return bytes(output), error
    return bytes(output), None


def loaded(data: bytes) -> list[str]:
    """The rows of a table, or what it is refused with."""
    table = vec2emb.read_vectors(io.BytesIO(data))
    return [f"{token} {vector.tolist()}" for token, vector in zip(table.vocab.to_list(), table.vectors, strict=True)]


@pytest.fixture(params=["isal", "zlib"])
def zlib_in_use(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with the fast package and with the standard library."""
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    return str(request.param)


# What is whole.


@codecs
def test_found_by_content(name: str, zlib_in_use: str) -> None:
    with open_source(io.BytesIO(CODECS[name](SMALL))) as source:
        assert source.read(1000) == SMALL
        assert source.compression == name
        assert (source.advice is not None) == (name == "gzip" and zlib_in_use == "zlib")


@codecs
@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("step", [1, None])
def test_members_follow_each_other(name: str, size: int, step: int | None, zlib_in_use: str) -> None:
    compress = CODECS[name]
    data = compress(SMALL[:20]) + compress(b"") + bytes(8) + compress(SMALL[20:]) + bytes(500)
    assert decompressed(data, size, step) == (SMALL, None)


def test_zstd_frames_to_be_skipped() -> None:
    skipped = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"skip!"
    nothing = b"\x50\x2a\x4d\x18" + bytes(4)
    data = skipped + nothing + CODECS["zstd"](SMALL[:20]) + nothing + CODECS["zstd"](SMALL[20:]) + skipped
    for step in (1, 7, None):
        assert decompressed(data, step=step) == (SMALL, None)


@pytest.mark.parametrize("content_size", [False, True])
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("length", [0, 1, 255, 256, 66_000, 1_000_000])
def test_zstd_headers(length: int, content_size: bool, checksum: bool) -> None:
    """Every width of the content size, with a window or as a single segment."""
    content = random.Random(length).randbytes(length // 2) + bytes(length - length // 2)
    compressor = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=content_size)
    assert decompressed(compressor.compress(content), 100_000) == (content, None)
    stream = compressor.compressobj()
    data = b"".join([stream.compress(content), stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK), stream.flush()])
    assert decompressed(data, 100_000) == (content, None)


@codecs
def test_nothing_compressed(name: str) -> None:
    assert decompressed(CODECS[name](b"")) == (b"", None)
    with pytest.raises(InputError) as error:
        loaded(CODECS[name](b""))
    assert error.value.code == "empty-file"


@pytest.mark.parametrize("first", ["BZh", "BZh9", "(\N{DEGREE SIGN}/", "]", "PK"])
def test_a_token_is_no_magic(first: str) -> None:
    assert loaded(f"{first} 0.5 1\nof 1 2\n".encode())[0] == f"{first} [0.5, 1.0]"


# What is cut, corrupt, or followed by something.


@codecs
def test_cut_at_every_byte(name: str, zlib_in_use: str) -> None:
    data = CODECS[name](SMALL)
    for size in range(1, len(data)):
        with pytest.raises(InputError):
            loaded(data[:size])
        if size > 12:
            _, error = decompressed(data[:size])
            assert error is not None
            assert error.code == "compressed-data-cut"
            assert f"the {name} data end in the middle" in str(error)


@codecs
def test_cut_in_the_second_member(name: str, zlib_in_use: str) -> None:
    first, second = CODECS[name](SMALL[:14]), CODECS[name](SMALL[14:])
    for size in range(1, len(second)):
        output, error = decompressed(first + second[:size])
        assert output.startswith(SMALL[:14])
        assert error is not None
        assert error.code in ("compressed-data-cut", "compressed-data-corrupt")


def test_cut_without_a_checksum() -> None:
    data = zstandard.ZstdCompressor(write_checksum=False).compress(SMALL)
    assert decompressed(data) == (SMALL, None)
    for size in range(5, len(data)):
        _, error = decompressed(data[:size])
        assert error is not None
        assert error.code == "compressed-data-cut"


@codecs
def test_one_flipped_bit(name: str, zlib_in_use: str) -> None:
    """It is found, or stands where it means nothing, such as the time in a gzip header."""
    data = CODECS[name](SMALL)
    expected = loaded(data)
    harmless = 0
    for at in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        try:
            found = loaded(bytes(flipped))
        except InputError:
            continue
        assert found == expected
        harmless += 1
    assert harmless < 80


@codecs
@pytest.mark.parametrize("garbage", [b"x", b"\0\0x", b"the 1 2\n" * 5])
def test_trailing_garbage(name: str, garbage: bytes, zlib_in_use: str) -> None:
    output, error = decompressed(CODECS[name](SMALL) + garbage)
    assert output == SMALL
    assert error is not None
    assert error.code == "compressed-data-corrupt"
    assert "follow their end" in str(error)


@codecs
def test_what_a_corrupt_member_yields_never_depends_on_the_reader(name: str, zlib_in_use: str) -> None:
    rows = random.Random(0)
    content = b"".join(b"w%d %.7f %.7f\n" % (i, rows.random(), rows.random()) for i in range(40_000))
    data = bytearray(CODECS[name](content))
    data[len(data) * 9 // 10] ^= 0x55
    expected, error = decompressed(bytes(data))
    assert error is not None
    assert error.code == "compressed-data-corrupt"
    assert expected[:200_000] == content[:200_000]
    for size, step in ((7, None), (1 << 20, None), (999_983, 1_000), (3_000, 65_536)):
        again, other = decompressed(bytes(data), size, step)
        assert again == expected
        assert str(other) == str(error)


def test_compressed_twice() -> None:
    for inner, code in (
        ("gzip", "is-gzip-twice"),
        ("bzip2", "is-bzip2-twice"),
        ("xz", "is-xz-twice"),
        ("zstd", "is-zstd-twice"),
    ):
        with pytest.raises(InputError) as error:
            loaded(CODECS["xz"](CODECS[inner](SMALL)))
        assert error.value.code == code
        assert f"compressed twice, inside with {'Zstandard' if inner == 'zstd' else inner}" in str(error.value)


# What would take too much memory.


def rle_blocks(window: int, blocks: int) -> bytes:
    """A Zstandard frame that says four bytes for every 128 KiB of newlines."""
    size = 128 << 10
    middle = (1 << 1 | size << 3).to_bytes(3, "little") + b"\n"
    last = (1 | 1 << 1 | size << 3).to_bytes(3, "little") + b"\n"
    return b"\x28\xb5\x2f\xfd\0" + bytes([window - 10 << 3]) + middle * (blocks - 1) + last


def with_dictionary(data: bytes, code: int) -> bytes:
    """An xz stream that asks for another size of dictionary, with the checksum that this needs."""
    block = bytearray(data[12 : 12 + (data[12] + 1) * 4])
    assert block[2:4] == b"\x21\x01"  # the filter LZMA2, one byte of properties
    block[4] = code
    block[-4:] = zlib.crc32(block[:-4]).to_bytes(4, "little")
    return data[:12] + bytes(block) + data[12 + len(block) :]


def test_windows_up_to_128_mib() -> None:
    assert decompressed(rle_blocks(27, 2), 1 << 20) == (b"\n" * (256 << 10), None)
    assert decompressed(with_dictionary(lzma.compress(SMALL), 30)) == (SMALL, None)  # 128 MiB


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (rle_blocks(28, 2), "found 256 MiB"),
        (rle_blocks(41, 2), "found 2,097,152 MiB"),
        (with_dictionary(lzma.compress(SMALL), 32), "found a larger one"),
        (with_dictionary(lzma.compress(SMALL), 40), "found a larger one"),
        (b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\1\0\0", "found 1,048,576 MiB"),
    ],
    ids=["zstd", "zstd-largest", "xz", "xz-largest", "zstd-single-segment"],
)
def test_larger_windows_are_refused(data: bytes, found: str) -> None:
    output, error = decompressed(data)
    assert (output, type(error)) == (b"", SourceError)
    assert error is not None
    assert error.code == "window-too-large"
    assert "expected a window of at most 128 MiB" in str(error)
    assert found in str(error)


# The peak of this process alone: `ru_maxrss` starts with that of the process which started it.
MEASURE = """
import sys, warnings
import vec2emb, vec2emb.conversion.pipeline
warnings.simplefilter("ignore")
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
report = vec2emb.convert(sys.argv[1], sys.argv[2], threads=2)
print(report.file_rows, peak() - before)
"""
BOMB = b"the 0.5 -1.25\n" * (1 << 20)  # 14.7 MB; eight times as much comes out


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
@codecs
def test_bombs_stay_within_memory(name: str, tmp_path: Path) -> None:
    # bzip2 compresses such rows slowly, so it gets them in many streams.
    bomb = CODECS[name](BOMB[: len(BOMB) // 64]) * 512 if name == "bzip2" else CODECS[name](BOMB * 8)
    (tmp_path / "bomb").write_bytes(bomb)
    words = [sys.executable, "-c", MEASURE, str(tmp_path / "bomb"), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    rows, growth = map(int, done.stdout.split())
    assert rows == 8 << 20
    assert growth < 40 << 10, "KiB; 117 MB went through"


@pytest.mark.parametrize("bomb", [gzip.compress(bytes(256 << 20), 1), rle_blocks(17, 2048)], ids=["gzip", "zstd"])
def test_bombs_without_an_end_are_refused(bomb: bytes) -> None:
    """One row, or no row at all, in 256 MB: refused after its first pieces, and read through in pieces."""
    with open_source(io.BytesIO(bomb)) as source:
        buffer = bytearray(1 << 20)
        size = 0
        while count := source.readinto(memoryview(buffer)):
            size += count
    assert size == 256 << 20
    with pytest.raises(InputError):
        loaded(bomb)


# Packages that may be missing.


def test_without_the_fast_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    report = vec2emb.convert(io.BytesIO(gzip.compress(SMALL)), tmp_path / "out")
    assert report.advice == "gzip would be read about twice as fast with: pip install 'vec2emb[fast]'"
    with pytest.raises(MissingPackageError) as error:
        vec2emb.convert(io.BytesIO(CODECS["zstd"](SMALL)), tmp_path / "zstd")
    assert "pip install 'vec2emb[fast]'" in str(error.value)
    assert os.listdir(tmp_path) == ["out"]


def test_zstd_of_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.14 has one, whose decompressor is made anew for each frame."""

    class ZstdDecompressor:
        def __init__(self, options: dict[str, int]) -> None:
            assert options == {"window_log_max": 27}
            self._object = zstandard.ZstdDecompressor().decompressobj()

        @property
        def eof(self) -> bool:
            return self._object.eof

        def decompress(self, data: bytes) -> bytes:
            return self._object.decompress(data)

    module = types.ModuleType("compression.zstd")
    vars(module).update(
        ZstdDecompressor=ZstdDecompressor,
        ZstdError=zstandard.ZstdError,
        DecompressionParameter=types.SimpleNamespace(window_log_max="window_log_max"),
    )
    package = types.ModuleType("compression")
    package.zstd = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", package)
    monkeypatch.setitem(sys.modules, "compression.zstd", module)
    data = CODECS["zstd"](SMALL[:20]) + CODECS["zstd"](SMALL[20:])
    assert decompressed(data) == (SMALL, None)
    assert decompressed(data[:-1])[1] is not None


# What is said and written.


@codecs
def test_it_is_said(name: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"  # the suffix says nothing
    path.write_bytes(CODECS[name](SMALL))
    report = vec2emb.convert(path, tmp_path / "out")
    assert (report.compression, report.member) == (name, None)
    assert report.manifest.to_dict()["source"]["compression"] == name
    assert report.manifest.to_dict()["source"]["bytes"] == path.stat().st_size
    assert f"compression: {name}\n" in str(vec2emb.inspect(path))
    done = run("convert", path, "-o", tmp_path / "again")
    assert done.returncode == 0
    assert f"glove, {name}, 3 rows" in done.stdout.decode()


@codecs
def test_progress_counts_compressed_bytes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(CODECS[name](b"".join(b"w%d %.6f -0.5\n" % (i, i / 7) for i in range(100_000))))
    seen: list[tuple[int, int | None]] = []
    vec2emb.convert(path, tmp_path / "out", progress=lambda done, total: seen.append((done, total)))
    size = path.stat().st_size
    assert all(done <= size and total == size for done, total in seen)


@codecs
def test_corrupt_files_leave_nothing(name: str, tmp_path: Path) -> None:
    data = bytearray(CODECS[name](SAMPLE.read_bytes()))
    data[len(data) // 2] ^= 0xFF
    path = tmp_path / "in"
    path.write_bytes(data)
    done = run("convert", path, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert b"error[compressed-data-corrupt]" in done.stderr
    path.write_bytes(CODECS[name](SAMPLE.read_bytes())[:-9])
    done = run("convert", path, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert b"error[compressed-data-cut]" in done.stderr
    assert os.listdir(tmp_path) == ["in"]
