"""Small things that several tests use."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from vec2emb import Vec2embWarning
from vec2emb.bundle.manifest import Manifest
from vec2emb.bundle.reader import Bundle

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"

T = TypeVar("T")


def collected(call: Callable[[], T]) -> tuple[T, list[Vec2embWarning]]:
    """The result of a call, and our warnings, in order; any other warning is an error as ever."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", Vec2embWarning)
        result = call()
    return result, [entry.message for entry in caught if isinstance(entry.message, Vec2embWarning)]


def digest_of(*files: Path | bytes) -> str:
    """The digest of a file by its definition; of several, that of a table in these shards."""
    digests = []
    for file in files:
        data = file if isinstance(file, bytes) else file.read_bytes()
        pieces = [hashlib.sha256(data[at : at + (8 << 20)]).digest() for at in range(0, len(data), 8 << 20)]
        digests.append(hashlib.sha256(b"".join(pieces)).digest())
    return digests[0].hex() if len(files) == 1 else hashlib.sha256(b"".join(digests)).hexdigest()


def manifest_of(bundle: Path) -> Manifest:
    """What a bundle records."""
    return Bundle(bundle).manifest


def ways(
    monkeypatch: pytest.MonkeyPatch, blocks: Sequence[str] = ("16", "64", ""), threads: Sequence[int] = (1, 3)
) -> Iterator[int]:
    """Every block size with every number of threads, which it yields: one test for all, where there are many files."""
    for block in blocks:
        for count in threads:
            print(f"blocks of {block or 'the usual'} bytes, {count} threads")  # shown if the test fails
            with monkeypatch.context() as patch:
                if block:
                    patch.setenv("VEC2EMB_BLOCK_BYTES", block)
                yield count


def bits(vectors: Any) -> list[list[int]]:
    """float32 as their bits, so that -0 and 0 differ and nan equals itself."""
    return [[int(value) for value in row] for row in np.asarray(vectors, np.float32).view(np.uint32)]


def run(
    *words: object, stdin: bytes | None = b"", env: dict[str, str] | None = None, module: Sequence[str] = ("vec2emb",)
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line as people do, in a process of its own."""
    command = [sys.executable, "-m", *module, *map(str, words)]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=60)


def sample_files() -> list[Path]:
    """The real samples and the cases made after public reports of bugs."""
    files = [*FIXTURES.glob("*.txt"), *FIXTURES.glob("*.vec"), *(FIXTURES / "cases").glob("*/*")]
    return sorted(path for path in files if path.is_file())


# Said by the process itself: what the system tells of a child is never less than what its parent had at the fork.
MEASURED = """
import re, sys
from vec2emb.cli import main
try:
    main(sys.argv[1:])
finally:
    print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


def peak_of(*words: str) -> int:
    """Run a command line that must succeed; the bytes of memory that it had at most."""
    done = subprocess.run([sys.executable, "-c", MEASURED, *words], capture_output=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout) * 1024
