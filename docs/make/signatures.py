"""Write the signatures of the public functions from the definitions of their options.

python docs/make/signatures.py           rewrites the signatures in vec2emb/; a new option also gets a line of docstring
python docs/make/signatures.py --check   writes nothing, and ends with 1 if a source would change
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDTH = 120

sys.path.insert(0, str(ROOT))
commands = importlib.import_module("vec2emb.options.commands")


def parameters(options: tuple[commands.Option, ...]) -> list[str]:  # type: ignore[name-defined]
    """The parameters of a signature, one each, with a star where the keywords begin."""
    found, star = [], False
    for option in options:
        if option.only == "cli":
            continue
        if option.kind == "keyword" and not star:
            found.append("*")
        star = star or option.kind in ("keyword", "variadic")
        default = "" if option.default is commands.REQUIRED else f" = {_shown(option.default)}"
        found.append(f"{'*' if option.kind == 'variadic' else ''}{option.name}: {option.type.annotation}{default}")
    return found


def _shown(value: object) -> str:
    if value is ...:
        return "..."
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return f"({', '.join(map(_shown, value))})" if isinstance(value, tuple) else repr(value)


def rewritten(text: str, name: str, options: tuple[commands.Option, ...]) -> str:  # type: ignore[name-defined]
    """A source whose function has the signature that its options give, and a line of docstring for each new one."""
    found = re.search(rf"^def {name}\((.*?)\) -> ([^\n]*):\n", text, re.DOTALL | re.MULTILINE)
    assert found is not None, name
    shown = [*parameters(options), *re.findall(r"\*\*\w+: \w+", found[1])]
    line = f"def {name}({', '.join(shown)}) -> {found[2]}:\n"
    if len(line) > WIDTH:
        line = f"def {name}(\n" + "".join(f"    {one},\n" for one in shown) + f") -> {found[2]}:\n"
    old = set(re.findall(r"(\w+): ", found[1]))
    head, body = text[: found.start()] + line, text[found.end() :]
    before = ""
    for option in options:
        if option.only != "cli" and option.name not in old:
            entry = f"        {option.name}: {option.help[:1].lower()}{option.help[1:]}\n"
            after = re.search(rf"^        (?:\w+, )*{before}(?:, \w+)*:.*\n(?:         .*\n)*", body, re.MULTILINE)
            if before and after is not None and after.start() < body.find('"""', 10):
                body = body[: after.end()] + entry + body[after.end() :]
        before = option.name
    return head + body


def main(check: bool) -> int:
    """Write the signatures, or compare them."""
    changed = 0
    for place, options in commands.FUNCTIONS.items():
        module, _, name = place.rpartition(".")
        path = ROOT / "vec2emb" / f"{module.replace('.', '/')}.py"
        old = path.read_text("utf-8")
        new = rewritten(old, name, options)
        if old != new:
            changed = 1
            if check:
                print(f"{path}: {name} is not as its options say", file=sys.stderr)
            else:
                path.write_text(new, "utf-8")
    return changed if check else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
