"""What a conversion costs before it begins: `vec2emb --version`, and the modules that a conversion imports."""

from __future__ import annotations

import sys
from pathlib import Path

from timing import run

# A command ends its process itself. Here that has to wait: for the names of the modules, or for more of them.
_MODULES = """
import os, sys
def end(code):
    print("\\n".join(name for name in sys.modules if not name.startswith("__m")), flush=True)
    leave(code)
leave, os._exit = os._exit, end
from vec2emb.__main__ import main
main()
"""

_VERSION = """
import os, sys
leave, os._exit = os._exit, lambda code: None
from vec2emb.__main__ import main
sys.argv[1:] = ["--version"]
main()
"""


def modules_of(arguments: list[str], folder: Path) -> list[str]:
    """The modules that are there when a command has run, in the order in which they came."""
    return run([sys.executable, "-c", _MODULES, *arguments], folder).split("\n")[:-1]


def code_of(modules: list[str]) -> str:
    """Python that does all that a command does before its work."""
    return _VERSION + "".join(f"import {module}\n" for module in modules) + "leave(0)\n"
