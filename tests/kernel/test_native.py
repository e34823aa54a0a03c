"""The C++ programs over the kernel alone: numerals against two other judges, and runs under the sanitizers.

pytest tests/kernel/test_native.py --slow --fuzz 10000000 --fuzz-seed 1
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import sysconfig
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from conftest import Fuzz
from helpers import ROOT, sample_files
from programs import SANITIZED, compiled


def said(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_table_of_powers_is_what_its_script_writes_and_what_it_says() -> None:
    kernel = ROOT / "vec2emb" / "_kernel"
    text = (kernel / "powers.hpp").read_text(encoding="utf-8")
    assert text == runpy.run_path(str(kernel / "make_powers.py"))["header"]()
    entries = re.findall(r"\{(0x\w+), 0x1p([+-]\d+)\},  // 1e(-?\d+)$", text, re.MULTILINE)
    lowest, highest = map(int, re.findall(r"(?:LOWEST|HIGHEST)_POWER = (-?\d+)", text))
    assert [int(power) for _, _, power in entries] == list(range(lowest, highest + 1))
    for digits, exponent, power in entries:
        significand, unit = int(digits, 16), Fraction(2) ** (int(exponent) - 64)
        assert significand.bit_length() == 63
        assert significand * unit <= Fraction(10) ** int(power) < (significand + 1) * unit


def test_numerals_are_what_strtod_and_python_say(fuzz: Fuzz, tmp_path: Path) -> None:
    """The kernel against `strtod`, and `strtod` against `numpy.float32(float(text))`: nearest float64, then float32."""
    count = fuzz.count(200_000, 10_000_000)
    numbers = compiled("numbers", tmp_path, "-O1")
    assert said(numbers, fuzz.seed, count).endswith("numerals, no difference\n")
    a_seed = 256  # numerals
    for first in range(0, count, 200_000):
        shown = said(numbers, "print", fuzz.seed + first // a_seed, min(count - first, 200_000)).split("\n")[:-1]
        texts, bits = zip(*(line.split(" ") for line in shown), strict=True)
        with np.errstate(over="ignore"):
            expected = np.array([float(text) for text in texts]).astype(np.float32).view(np.uint32)
        assert [text for text, found, wanted in zip(texts, bits, expected, strict=True) if int(found) != wanted] == []


@pytest.mark.slow
def test_random_blocks_under_the_sanitizers(fuzz: Fuzz, tmp_path: Path) -> None:
    count = fuzz.count(100_000, 1_000_000)
    driver = compiled("driver", tmp_path, "-O2", *SANITIZED)
    assert said(driver, fuzz.seed, count, *sample_files()) == f"{count} blocks, no difference\n"


@pytest.mark.slow
def test_many_threads_under_the_thread_sanitizer(fuzz: Fuzz, tmp_path: Path) -> None:
    threads = compiled("threads", tmp_path, "-O1", "-g", "-fsanitize=thread")
    assert said(threads, fuzz.seed, 300) == "300 rounds, no difference\n"


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has its lock")
def test_without_the_lock_of_python_the_import_warns() -> None:
    """The module does not declare that it can do without; Python then takes the lock, and says so."""
    code = "import vec2emb._kernel._native, sys; assert sys._is_gil_enabled()"
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "RuntimeWarning: The global interpreter lock (GIL) has been enabled" in done.stderr
