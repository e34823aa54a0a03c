"""Builds the C++ side of the comparison with `std::from_chars`, as the package's own kernel is built."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from timing import run

ROOT = Path(__file__).resolve().parents[1]


def compiler() -> str | None:
    """The system's C++ compiler, if there is one."""
    return shutil.which(os.environ.get("CXX", "c++"))


def flags() -> list[str]:
    """What the package's kernel is compiled with, out of CMakeLists.txt.

    Raises:
        SystemExit: they do not stand there as they did.
    """
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    options = re.search(r"target_compile_options\(_native PRIVATE ((?:-[^)\s]+\s*)+)\)", text)
    standard = re.search(r"target_compile_features\(_native PRIVATE cxx_std_(\d+)\)", text)
    if options is None or standard is None:
        raise SystemExit("CMakeLists.txt does not say how the kernel is compiled in the way that is read here")
    return [f"-std=c++{standard[1]}", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", *options[1].split()]


def build(folder: Path, more: Sequence[str] = ()) -> Path:
    """Compile into a folder; `more` flags come last.

    Raises:
        SystemExit: there is no compiler, or it fails.
    """
    program, cxx = folder / "from_chars", compiler()
    if cxx is None:
        raise SystemExit("there is no C++ compiler")
    source, headers = ROOT / "benchmarks" / "from_chars.cpp", ROOT / "vec2emb" / "_kernel"
    run([cxx, *flags(), *more, "-I", str(headers), str(source), "-o", str(program)], folder)
    return program
