"""What all tests share: both kernels, and slow tests only where they are asked for."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import vec2emb
from vec2emb import _kernel
from vec2emb._kernel import reference

# Torch's threads wait for each other at full speed, in each of several processes, for tables that are small.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", action="store_true", help="run the tests that start a Dask cluster, too")
    parser.addoption("--slow", action="store_true", help="run the tests that need minutes or a large file too")
    parser.addoption(
        "--fuzz", type=int, metavar="N", help="how many inputs each fuzz test makes; else a few, or with --slow many"
    )
    parser.addoption("--fuzz-seed", type=int, metavar="N", help="the seed of the first of them; else a random one")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))
            elif item.get_closest_marker("cluster") and not config.getoption("--cluster"):
                item.add_marker(pytest.mark.skip(reason="starts a cluster; run with --cluster or --slow"))


class Fuzz:
    """How many inputs a fuzz test makes, and the seed of the first; the seeds of the others follow it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        seed = config.getoption("--fuzz-seed")
        self.seed: int = random.SystemRandom().randrange(1 << 31) if seed is None else seed

    def count(self, everyday: int, slow: int) -> int:
        """What `--fuzz` says; else one of these two."""
        count: int | None = self._config.getoption("--fuzz")
        count = count or (slow if self._config.getoption("--slow") else everyday)
        print(f"{count} inputs; the same again: --fuzz {count} --fuzz-seed {self.seed}")  # shown if the test fails
        return count


@pytest.fixture
def fuzz(pytestconfig: pytest.Config) -> Fuzz:
    return Fuzz(pytestconfig)


@functools.cache
def _places() -> list[tuple[ModuleType, str]]:
    """Every module of the package that has a function of the kernel, with the function's name."""
    root = Path(vec2emb.__file__).parent
    names = set(reference.__all__)
    found = []
    for path in root.rglob("*.py"):
        if "_kernel import" in path.read_text(encoding="utf-8") and root / "_kernel" / "reference" not in path.parents:
            dotted = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
            module = importlib.import_module(dotted)
            found += [(module, name) for name in names if vars(module).get(name) is getattr(_kernel, name)]
    return found + [(_kernel, name) for name in names]


@contextlib.contextmanager
def using(name: str) -> Iterator[None]:
    """Every module of the package has the functions of this kernel for a while."""
    functions = importlib.import_module(f"vec2emb._kernel.{'_native' if name == 'native' else 'reference'}")
    with pytest.MonkeyPatch.context() as patch:
        for module, function in _places():
            patch.setattr(module, function, getattr(functions, function))
        patch.setattr(_kernel, "NAME", name)
        yield


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again over the network is tried again at once."""
    from vec2emb.io.remote import files, listing

    for module in (files, listing):
        monkeypatch.setattr(module, "PAUSE", 0.001)


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of downloads, which are each test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("VEC2EMB_CACHE", str(folder))
    return folder


@pytest.fixture(params=["native", "reference"])
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test under each kernel."""
    if request.param == "native":
        pytest.importorskip("vec2emb._kernel._native", exc_type=ImportError)
    with using(request.param):
        yield request.param


@pytest.fixture(params=["16", "64", ""], ids=["block16", "block64", "block"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with tiny blocks and with the usual ones."""
    if request.param:
        monkeypatch.setenv("VEC2EMB_BLOCK_BYTES", request.param)
    else:
        monkeypatch.delenv("VEC2EMB_BLOCK_BYTES", raising=False)
    return str(request.param)


@pytest.fixture(params=[1, 3], ids=["1thread", "3threads"])
def threads(request: pytest.FixtureRequest) -> int:
    """Run the test with one worker and with more than there are cores for."""
    return int(request.param)
