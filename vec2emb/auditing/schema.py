"""The JSON Schema of an audit, made of its types and their docstrings; the paths of all its numbers."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Iterator
from typing import Literal, Union, get_args, get_origin

from ..typed import JsonReport
from .outcome import Audit
from .results import SCHEMA, SCHEMA_VERSION

_ENTRY = re.compile(r"^    (\w[\w, ]*): (.*(?:\n {8,}.*)*)", re.MULTILINE)
_PLAIN: dict[object, JsonReport] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    types.NoneType: {"type": "null"},
}


def json_schema() -> JsonReport:
    """JSON Schema, draft 2020-12, of what `vec2emb audit --json` prints."""
    definitions: JsonReport = {}
    root = _of_class(Audit, definitions)
    root["properties"]["schema"]["const"] = SCHEMA
    root["properties"]["schema_version"]["const"] = SCHEMA_VERSION
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "vec2emb audit",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def figures(kind: object) -> Iterator[str]:
    """Dotted paths to all numbers below a type; `*` stands for any name, `#` for a place in a list."""
    yield from (path.removeprefix(".") for path in _figures(kind))


def _figures(kind: object) -> Iterator[str]:
    if kind in (int, float, bool):
        yield ""
    elif get_origin(kind) in (Union, types.UnionType):
        yield from dict.fromkeys(path for option in get_args(kind) for path in _figures(option))
    elif get_origin(kind) is list:
        yield from (f".#{path}" for path in _figures(get_args(kind)[0]))
    elif get_origin(kind) is dict:
        yield from (f".*{path}" for path in _figures(get_args(kind)[1]))
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind):
        for name, its in _fields(kind):
            yield from (f".{name}{path}" for path in _figures(its))


def _of_class(kind: type, definitions: JsonReport) -> JsonReport:
    documents = dict(_documented(kind))
    properties = {}
    for name, its in _fields(kind):
        properties[name] = {**_of_type(its, definitions), "description": documents.get(name, "")}
    return {
        "description": (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " "),
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _of_type(kind: object, definitions: JsonReport) -> JsonReport:
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of_type(option, definitions) for option in arguments]}
    if origin is list:
        return {"type": "array", "items": _of_type(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_type(arguments[1], definitions)}
    assert isinstance(kind, type)
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # a place, in case the type holds itself
        definitions[kind.__name__] = _of_class(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _fields(kind: type) -> Iterator[tuple[str, object]]:
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if not field.metadata.get("hidden"):
            yield field.name, hints[field.name]


def _documented(kind: type) -> Iterator[tuple[str, str]]:
    """The entries of a docstring's list of attributes."""
    _, _, listed = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    for names, text in _ENTRY.findall(listed):
        for name in names.split(", "):
            yield name, re.sub(r"\s+", " ", text)
