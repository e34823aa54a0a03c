"""Write the rooms of docs/architecture.md: the floors of pyproject.toml, each module with its first sentence.

python docs/make/rooms.py           writes them
python docs/make/rooms.py --check   writes nothing, and ends with 1 if the page would change
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "vec2emb"
BEGIN, END = "<!-- rooms -->\n", "<!-- end of rooms -->\n"

# What each floor is for, by a module that stands there.
TITLES = {
    "__main__": "The door",
    "cli": "The command line",
    "auditing": "Audits",
    "pipeline": "What people call",
    "layouts": "What others load",
    "passes": "A pass over a source, a table, a report",
    "matrices": "Words with a matrix beside them",
    "bundle": "Bundles",
    "planning": "What is wanted",
    "engine": "Rows",
    "sources": "Bytes and files",
    "vocabulary": "Words and positions",
    "special": "Small things that many need",
    "errors": "The ground",
}


def first_sentence(module: str) -> str:
    """What a module says of itself, up to the first full stop."""
    path = PACKAGE / module / "__init__.py" if (PACKAGE / module).is_dir() else PACKAGE / f"{module}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    sentence = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) ", sentence)[0]


def rooms() -> str:
    """The floors from the top down, as a table each."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [floors] = [
        contract["layers"] for contract in settings["tool"]["importlinter"]["contracts"] if "layers" in contract
    ]
    lines = []
    for floor in floors:
        modules = re.split(r" [:|] ", floor)
        [title] = [title for name, title in TITLES.items() if name in modules]
        lines += [f"### {title}\n", "| room | its concern |", "|---|---|"]
        lines += [f"| `{module}` | {first_sentence(module).replace('|', '&#124;')} |" for module in modules]
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The page with its rooms as they are now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{rooms()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") != page():
            sys.exit("docs/architecture.md is not as the modules are: run python docs/make/rooms.py")
    else:
        PAGE.write_text(page(), encoding="utf-8")
