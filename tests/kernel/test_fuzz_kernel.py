"""Blocks by the thousand, made by the C++ driver out of nothing and out of real files: both kernels agree on them.

The driver itself runs under sanitizers (`.ci/run`); here its inputs go through the twin.

    pytest tests/kernel/test_fuzz_kernel.py --fuzz 1000000 --fuzz-seed 1
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from conftest import Fuzz
from helpers import sample_files
from programs import compiled
from stories import record_story, text_story

from vec2emb._kernel import reference

native = pytest.importorskip("vec2emb._kernel._native", exc_type=ImportError)


class Input(NamedTuple):
    """A block, and all that is asked of it."""

    data: bytes
    binary: bool
    dim: int
    width: int
    utf8: bool
    unit_norm: bool
    seen_too: bool
    big_endian: bool
    nonfinite: int
    limit: float


def next_input(stream: IO[bytes]) -> Input | None:
    """The next one that the driver printed."""
    line = stream.readline().split()
    if not line:
        return None
    binary, dim, width, utf8, unit_norm, seen_too, big_endian, nonfinite = map(int, line[:8])
    data = stream.read(int(line[9]))
    flags = bool(utf8), bool(unit_norm), bool(seen_too), bool(big_endian)
    return Input(data, bool(binary), dim, width, *flags, nonfinite, float(line[8]))


def agrees(input: Input) -> bool:
    """Whether native loops of both kinds tell what the twin tells."""
    if input.binary:
        data, _, dim, width, utf8, unit_norm, _, big_endian, nonfinite, limit = input
        options = data, dim, width, big_endian, utf8, nonfinite, unit_norm, limit
        return record_story(native, *options) == record_story(reference, *options)
    options_of_text = (
        input.data, input.dim, input.utf8, input.nonfinite, input.unit_norm, input.limit, input.seen_too,
    )  # fmt: skip
    expected = text_story(reference, *options_of_text)
    for loops in ("portable", "best"):
        native.set_simd(loops)
        if text_story(native, *options_of_text) != expected:
            return False
    return True


def test_both_kernels_tell_the_same_of_the_drivers_blocks(fuzz: Fuzz, tmp_path: Path) -> None:
    count = fuzz.count(1_500, 100_000)
    driver = compiled("driver", tmp_path)
    command = list(map(str, [driver, "print", fuzz.seed, count, *sample_files()]))
    done = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while (input := next_input(process.stdout)) is not None:
            assert agrees(input), f"--fuzz 1 --fuzz-seed {fuzz.seed + done}: {input}"
            done += 1
    assert done == count
