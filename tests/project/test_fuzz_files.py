"""Whole files, damaged: both kernels give the same table, or the same error, whatever the blocks and threads.

pytest tests/project/test_fuzz_files.py --fuzz 100000 --fuzz-seed 1
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import random
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import Fuzz, using
from helpers import FIXTURES, sample_files

import vec2emb
from vec2emb.errors import Vec2embError

BATCH = 25  # inputs for one kernel before the other gets the same ones

PIECES = [
    b"", b" ", b"  ", b"\t", b"\n", b"\n\n", b"\r\n", b"\r", b"nan", b"-inf", b"1e999", b"1e-999", b"x", b"1,5",
    b"\xff", b"\xc3", b"\0", b" 1", b" 1 2", b"the", b"0x10", b"1_0", b"\xef\xbb\xbf", b"3 3\n", b"--1", b"9" * 400,
    b"<unk>", b"</s>", b"99999999999999999999", b"0.1234567890123456789", b"\x1b[31m", b"\xe2\x80\xa8", b"PK\3\4",
    b"\x1f\x8b",
]  # fmt: skip
HEADERS = [b"0 0", b"1", b"-1 3", b"3 3", b"3 3 3", b"10 2", b"1000000000000000000 3", b"3 1000000000000000000",
           b"18446744073709551616 3", b"3.0 3", b"+3 3", b"03 03", b"3\t3", b" 3 3"]  # fmt: skip


def binary_of(rng: random.Random) -> bytes:
    """A Word2Vec binary file of a few records."""
    rows, dim, feed = rng.randrange(1, 8), rng.randrange(1, 6), rng.choice([b"", b"\n"])
    records = b"".join(
        rng.choice([b"the", b"of", b"\xc3\xa9", b"at"]) + b"%d " % i
        + struct.pack(f"<{dim}f", *(rng.uniform(-2, 2) for _ in range(dim))) + feed
        for i in range(rows)
    )  # fmt: skip
    return b"%d %d\n" % (rows, dim) + records


def packed(data: bytes, rng: random.Random) -> bytes:
    """The same in a coat that is seen through."""
    how = rng.choice(["gzip", "bz2", "zip", "tar"])
    if how == "gzip":
        return gzip.compress(data, 1, mtime=0)
    if how == "bz2":
        return bz2.compress(data, 1)
    file = io.BytesIO()
    if how == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("vectors.txt"), data)
    else:
        with tarfile.open(fileobj=file, mode="w") as tar:
            member = tarfile.TarInfo("vectors.txt")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return file.getvalue()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes, fields, lines or the header changed; cut; put together with itself."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(9)
        if how == 0:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif how == 1:
            data = data[:at]
        elif how == 2:
            data = data[:at] + rng.choice(PIECES) + data[at + rng.randrange(4) :]
        elif how == 3:
            data = rng.choice(HEADERS) + b"\n" + (data if rng.random() < 0.5 else data.partition(b"\n")[2])
        elif how == 4:  # a field
            fields = data.split(b" ")
            fields[rng.randrange(len(fields))] = rng.choice(PIECES)
            data = b" ".join(fields)
        elif how == 5:  # a line goes, comes twice, or changes places
            lines = data.split(b"\n")
            line = lines.pop(rng.randrange(len(lines)))
            for _ in range(rng.randrange(3)):
                lines.insert(rng.randrange(len(lines) + 1), line)
            data = b"\n".join(lines)
        elif how == 6:
            data = data.replace(
                *rng.choice([(b"\n", b"\r\n"), (b" ", b"\t"), (b"\n", b" \n"), (b".", b","), (b" ", b"  ")])
            )
        elif how == 7 and data:
            data = data[:at] + bytes([data[at % len(data)] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        else:
            data = data[at:] + data[:at] if rng.random() < 0.3 else data + data[at : at + 100]
    return data


def random_file(files: list[bytes], rng: random.Random) -> bytes:
    data = binary_of(rng) if rng.random() < 0.2 else rng.choice(files)
    if rng.random() < 0.9:  # short ones are quicker, and as odd
        data = b"".join(data.splitlines(keepends=True)[: rng.randrange(1, 12)])
    data = mutated(data, rng)
    if rng.random() < 0.1:
        data = packed(data, rng)
        if rng.random() < 0.5:
            data = mutated(data, rng)
    return data


def random_options(rng: random.Random) -> dict[str, Any]:
    choices: dict[str, list[Any]] = {
        "format": ["glove", "word2vec", "word2vec-binary"],
        "dim": [1, 2, 3, 50],
        "bad_rows": ["skip"],
        "nonfinite": ["keep", "zero"],
        "duplicates": ["last", "error"],
        "limit": [1, 2, 5],
        "unit_norm": [True],
        "encoding": ["latin-1", "cp1252"],
        "encoding_errors": ["replace", "escape"],
        "binary_dtype": ["float16", "float64"],
        "byte_order": ["big"],
        "strict": [True],
    }
    return {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.15}


def outcome(data: bytes, options: dict[str, Any], block: str, threads: int, place: Path) -> Any:
    """All that a caller can see: the table and its report, or the error. A call that raises anything else fails."""
    whole = len(data) % 4 == 0  # some go all the way to a bundle
    environment = {"VEC2EMB_BLOCK_BYTES": block} if block else {}
    with warnings.catch_warnings(record=True) as caught, mock.patch.dict(os.environ, environment):
        warnings.simplefilter("always")
        try:
            if whole:
                report = vec2emb.convert(io.BytesIO(data), place, threads=threads, if_exists="replace", **options)
                result: Any = {path.name: path.read_bytes() for path in place.iterdir()}
            else:
                table = vec2emb.read_vectors(io.BytesIO(data), threads=threads, **options)
                report, result = table.report, (table.vectors.tobytes(), bytes(table.vocab.blob))
        except Vec2embError as error:
            return type(error).__name__, error.to_dict()
    facts = {name: value for name, value in report.to_dict().items() if name != "seconds"}
    return result, facts, [str(entry.message) for entry in caught]


def test_damaged_files_are_the_same_to_both_kernels(fuzz: Fuzz, tmp_path: Path) -> None:
    pytest.importorskip("vec2emb._kernel._native", exc_type=ImportError)
    files = [path.read_bytes() for path in sample_files() if path.suffix != ".md"]
    assert any(len(data) > 50_000 for data in files), FIXTURES
    count, tables = fuzz.count(100, 10_000), 0
    for first in range(fuzz.seed, fuzz.seed + count, BATCH):
        inputs = []
        for seed in range(first, min(first + BATCH, fuzz.seed + count)):
            rng = random.Random(seed)
            inputs.append((random_file(files, rng), random_options(rng), rng.choice(["16", "64", "1000", ""]), seed))
        found = {}
        for name, threads in (("native", 3), ("native", 1), ("reference", 2)):
            with using(name):
                found[name, threads] = [
                    outcome(data, options, block if threads != 1 else "", threads, tmp_path / "bundle")
                    for data, options, block, _ in inputs
                ]
        for i, (data, options, block, seed) in enumerate(inputs):
            told = [outcomes[i] for outcomes in found.values()]
            assert told[0] == told[1] == told[2], f"--fuzz 1 --fuzz-seed {seed}: {data!r}, {options}, blocks of {block}"
            tables += not isinstance(told[0][0], str)
    assert tables > count // 50  # not all of them were damaged beyond reading
