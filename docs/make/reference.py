"""Write the pages of the reference from the help texts and the docstrings.

python docs/make/reference.py           writes docs/reference/{commands,python,positions,torch,formats}.md
python docs/make/reference.py --check   writes nothing, and ends with 1 if a page would change
"""

from __future__ import annotations

import difflib
import itertools
import logging
import re
import sys
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click
import griffe

import vec2emb
from vec2emb.cli import group

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
NOTICE = "<!-- Written by docs/make/reference.py from {}: change those, then run it. -->\n"

# The functions and classes of `import vec2emb`, by what people do with them.
PYTHON = {
    "Converting": ["convert", "Report", "inspect", "verify", "export"],
    "Bundles": ["extend", "load", "save", "Table", "Vocabulary"],
    "Files of vectors": ["read_vectors", "iter_vectors"],
    "Corpora": ["count_tokens", "build_vocab", "TokenCounts"],
    "Audits": ["audit"],
    "Positions": ["attach_positions", "resize_positions", "describe_positions"],
    "Models": ["trim"],
    "Looking around": ["similar", "evaluate"],
}
POSITIONS = ["sinusoidal", "rotation", "learned", "resize", "facts", "Facts"]
TORCH = [
    "load_embedding", "load_text_embedding", "embedding_bag", "PartlyFrozenEmbedding", "TextEmbedding", "Collate",
    "tie_head", "TiedHead", "tied_linear", "resize_embedding", "full_state_dict", "save_embedding",
]  # fmt: skip
FORMATS = {
    "Text: GloVe, Word2Vec, fastText": ["formats.text", "formats.text_writer", "formats.fasttext_writer"],
    "Word2Vec binary": ["formats.binary", "formats.binary_writer"],
    "Which one it is": ["formats.detection"],
    "Folders of other libraries": ["exporting.huggingface", "exporting.model2vec", "exporting.words"],
    "NumPy arrays (.npz)": ["exporting.arrays"],
}

# Classes that nobody but the package makes, with the methods by which it does.
OURS = {
    "Table": {"mapped", "of_arrays", "described"},
    "PartlyFrozenEmbedding": {"of_parts", "named_modules"},
    "Report": {"spelled", "describe_files"},
}

package = griffe.load("vec2emb", search_paths=[ROOT])


def commands_page() -> str:
    """Every command's help, as a terminal of 80 columns shows it."""
    lines = [NOTICE.format("the help texts"), "# Commands\n", "What `vec2emb COMMAND --help` prints.\n"]
    for name, command in _commands(group, "vec2emb"):
        with click.Context(command, info_name=name, terminal_width=80, help_option_names=["-h", "--help"]) as context:
            lines += [f"## {name}\n", f"```text\n{command.get_help(context)}\n```\n"]
    return "\n".join(lines)


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for child in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), child)
            assert found is not None
            yield from _commands(found, f"{name} {child}")


def python_page() -> str:
    """All that `import vec2emb` gives, and its errors."""
    named = {name for names in PYTHON.values() for name in names} | {"Vec2embError", "Vec2embWarning", "__version__"}
    assert named == set(vec2emb.__all__), "a public name has no place in PYTHON"
    lines = [NOTICE.format("the docstrings"), "# Python\n", "What `import vec2emb` gives. Nothing here prints.\n"]
    for heading, names in PYTHON.items():
        lines.append(f"## {heading}\n")
        for name in names:
            lines += _object(f"vec2emb.{name}", package[name], 3)
    errors = package["errors"]
    lines += ["## Errors\n", _prose(errors.docstring.value)]
    for name, member in errors.members.items():
        if not member.is_alias and member.is_class and not name.startswith("_"):
            lines += _object(f"vec2emb.errors.{name}", member, 3)
    return "\n".join(lines)


def positions_page() -> str:
    """The arithmetic of position tables."""
    module = package["positions"]
    lines = [NOTICE.format("the docstrings"), "# Position tables\n", "`from vec2emb import positions`\n"]
    lines.append(_prose(module.docstring.value))
    for name in POSITIONS:
        lines += _object(f"positions.{name}", module[name], 2)
    return "\n".join(lines)


def torch_page() -> str:
    """All that `import vec2emb.torch` gives."""
    assert set(TORCH) == {str(name) for name in package["torch"].exports}, "a public name has no place in TORCH"
    module = package["torch"]
    lines = [
        NOTICE.format("the docstrings"),
        "# PyTorch\n",
        "What `import vec2emb.torch` gives; it needs the extra `torch`.\n",
    ]
    for name in TORCH:
        lines += _object(f"vec2emb.torch.{name}", module[name], 2)
    return "\n".join(lines)


def formats_page() -> str:
    """The grammars, out of the modules that read and write them."""
    lines = [NOTICE.format("the docstrings of vec2emb/formats/"), "# Formats of vectors\n"]
    for heading, names in FORMATS.items():
        lines.append(f"## {heading}\n")
        lines += [_prose(package[name].docstring.value) for name in names]
    return "\n".join(lines)


def _object(shown: str, item: Any, level: int) -> list[str]:
    """A function or class: heading, signature, docstring; of a class its methods, too."""
    item = item.final_target if item.is_alias else item
    lines = [f"{'#' * level} {shown}\n"]
    if item.is_function or ("__init__" in item.members and item.name not in OURS):
        function = item if item.is_function else item["__init__"]
        name = shown.removeprefix("vec2emb.errors.")
        lines.append(f"<!-- shown: a signature -->\n```python\n{_signature(name, function)}\n```\n")
    lines += _docstring(item)
    if item.is_class:
        for name, member in item.members.items():
            if name.startswith("_") or not member.has_docstring or name in OURS.get(item.name, ()):
                continue
            if member.is_function:
                lines += _object(f"{item.name}.{name}", member, level + 1)
            elif "property" in member.labels:
                lines += [f"{'#' * (level + 1)} {item.name}.{name}\n", *_docstring(member)]
    return lines


def _signature(name: str, function: Any) -> str:
    parameters, star = [], False
    for parameter in function.parameters:
        if parameter.name == "self" or (parameter.name == "cls" and "classmethod" in function.labels):
            continue
        kind = parameter.kind.value
        if kind == "keyword-only" and not star:
            parameters.append("*")
        star = star or kind in ("keyword-only", "variadic positional")
        mark = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        annotation = f": {parameter.annotation}" if parameter.annotation is not None else ""
        default = f" = {parameter.default}" if parameter.default is not None and not mark else ""
        if not annotation:
            default = default.replace(" ", "")
        parameters.append(f"{mark}{parameter.name}{annotation}{default}")
    result = f" -> {function.returns}" if function.returns is not None and function.name != "__init__" else ""
    line = f"{name}({', '.join(parameters)}){result}"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){result}"


def _docstring(item: Any) -> list[str]:
    lines = []
    for section in item.docstring.parse("google", warnings=False) if item.docstring else ():
        if section.kind.value == "text":
            lines.append(_prose(section.value))
        else:
            show = _SECTIONS[section.kind.value]
            lines += [
                f"**{section.kind.value.capitalize()}**\n",
                *(f"- {_flat(show(entry))}" for entry in section.value),
                "",
            ]
    return lines


_SECTIONS: dict[str, Callable[[Any], str]] = {
    "parameters": lambda entry: f"{_names(entry.name)}: {entry.description}",
    "attributes": lambda entry: f"{_names(entry.name)}: {entry.description}",
    "raises": lambda entry: f"`{entry.annotation}`: {entry.description}",
    "returns": lambda entry: str(entry.description),
    "yields": lambda entry: str(entry.description),
}


def _names(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _prose(text: str) -> str:
    """A docstring as Markdown: what is indented in it becomes a block of text."""
    lines: list[str] = []
    for indented, group_of_lines in itertools.groupby(_lines(cleandoc(text)), key=lambda line: line.startswith("    ")):
        block = [line.removeprefix("    ") for line in group_of_lines]
        lines += ["", "```text", *block, "```", ""] if indented else block
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def _lines(text: str) -> list[str]:
    """Lines of a text; an empty one between two that are indented is one of them."""
    lines = text.split("\n")
    for number in range(1, len(lines) - 1):
        if not lines[number] and all(lines[number + step].startswith("    ") for step in (-1, 1)):
            lines[number] = "    "
    return lines


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "python.md": python_page,
    "positions.md": positions_page,
    "torch.md": torch_page,
    "formats.md": formats_page,
}


def main(check: bool) -> int:
    """Write the pages, or compare them with what is there."""
    logging.getLogger("griffe").setLevel(logging.ERROR)
    changed = 0
    for name, make in PAGES.items():
        path = FOLDER / name
        old, new = path.read_text("utf-8") if path.exists() else "", make().rstrip("\n") + "\n"
        if check:
            changed |= old != new
            sys.stdout.writelines(
                difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(path), "as it would be")
            )
        else:
            path.write_text(new, "utf-8")
    return changed


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
