"""Check what is in source distributions and in the wheels that were built from them."""

from __future__ import annotations

import sys
import tarfile
import zipfile

SUFFIXES = (".py", ".pyi", ".so", "/py.typed", "/page.css", "/page.js")
NEEDED = ("CHANGELOG.md", "CMakeLists.txt", "LICENSE", "README.md", "constraints.txt", "pyproject.toml")
STARTS_AND_ENDS = (("vec2emb/_kernel/", ".hpp"), ("vec2emb/_kernel/", ".cpp"), ("tests/", ".py"), ("fixtures/", ""))


def check_source(path: str) -> None:
    """It can be built and tested without the repository."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names.issuperset(NEEDED), set(NEEDED) - names
    for start, end in STARTS_AND_ENDS:
        assert any(name.startswith(start) and name.endswith(end) for name in names), (start, end)
    odd = [name for name in names if name.startswith((".venv", "build/", "dist/"))]
    assert not odd, odd


def check_wheel(path: str) -> None:
    """It holds the package, its kernel and its types, and no C++."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    package = [name for name in names if not name.startswith("vec2emb-") and not name.endswith("/")]
    odd = [name for name in package if not (name.startswith("vec2emb/") and name.endswith(SUFFIXES))]
    assert not odd, odd
    assert "vec2emb/py.typed" in package
    assert sum(name.startswith("vec2emb/_kernel/_native.") and name.endswith(".so") for name in package) == 1
    assert not path.endswith("-any.whl"), path


for path in sys.argv[1:]:
    print(path.rpartition("/")[2])
    (check_wheel if path.endswith(".whl") else check_source)(path)
