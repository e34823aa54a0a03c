"""The C++ programs of `tests/kernel/native`, compiled."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import ROOT

SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compiled(name: str, folder: Path, *options: str) -> Path:
    """Compile `tests/kernel/native/NAME.cpp` into a folder; skip the test where there is no compiler for it."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"there is no {compiler[0]}")
    program = folder / name
    source = ROOT / "tests" / "kernel" / "native" / f"{name}.cpp"
    command = [*compiler, "-std=c++20", "-ffp-contract=off", "-Wall", "-Wextra", "-pthread", *options]
    subprocess.run([*command, "-I", ROOT / "vec2emb" / "_kernel", source, "-o", program], check=True)
    return program
