"""What all tests share: both kernels, and slow tests only where they are asked for."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import pytest

import vec2emb
from vec2emb import _kernel

KERNELS = ("native", "reference")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests that need minutes or a large file too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))


def _import_everything() -> None:
    """So that no module takes its kernel later than the fixture changes it."""
    for module in pkgutil.walk_packages(vec2emb.__path__, "vec2emb."):
        if module.name not in ("vec2emb.__main__", "vec2emb._kernel._native"):
            importlib.import_module(module.name)


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test under each kernel: every module of the package gets the functions of that one."""
    name = str(request.param)
    if name == "native":
        functions = pytest.importorskip("vec2emb._kernel._native", exc_type=ImportError)
    else:
        functions = importlib.import_module("vec2emb._kernel.reference")
    _import_everything()
    names = set(_kernel.__all__) - {"NAME", "WHY_SLOW"}
    for module in [m for path, m in sys.modules.items() if path.startswith("vec2emb") and "reference" not in path]:
        if module is not functions:
            for function in names & vars(module).keys():
                monkeypatch.setattr(module, function, getattr(functions, function))
    monkeypatch.setattr(_kernel, "NAME", name)
    return name


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
