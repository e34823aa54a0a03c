"""Arguments are of the types that a signature says; anything else is an error at once, not a TypeError from within.

A type in an annotation is known here by what an object must be able to do; annotations with one that is not known are
for the function itself to check, as counts are, whose range it has to look at anyway.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")

Test = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    return isinstance(value, os.PathLike)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool_"  # numpy's, which is not loaded for this


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not _is_bool(value)


def _is_iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, bytes | bytearray)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_counts(value: Any) -> bool:
    return type(value).__name__ == "TokenCounts"  # which is not loaded for this


TEXT: tuple[Test, str] = _is_text, "a string"
PATH: tuple[Test, str] = _is_path, "a path"
BOOL: tuple[Test, str] = _is_bool, "True or False"
MANY: tuple[Test, str] = _is_iterable, "a list"

KINDS: dict[str, tuple[tuple[Test, str], ...]] = {
    "None": ((lambda value: value is None, "None"),),
    "str": (TEXT,),
    "float": ((_is_number, "a number"),),
    "bool": (BOOL,),
    "os.PathLike[str]": (PATH,),
    "Pathish": (TEXT, PATH),
    "WordsLike": (TEXT, PATH, MANY),
    "CorpusLike": (TEXT, PATH, MANY, (_is_counts, "counts")),
    "PathsLike": (TEXT, PATH, MANY),
    "TrainLike": (TEXT, PATH, MANY),
    "Iterable[SpecialLike]": (MANY,),
    "Iterable[str]": (MANY,),
    "ScaleLike": (TEXT, (_is_number, "a number")),
    "ExpectLike": (TEXT, (_is_mapping, "a mapping")),
    "ProgressLike": (BOOL, (callable, "a function")),
    "Lookup": (TEXT,),
}
"""What an annotation's name stands for: tests of which one must hold, each with what it asks for."""


def typed(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which raises UsageError where an argument cannot be of the type its annotation says."""
    annotations = function.__annotations__
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    kinds = {}
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        parts = str(annotations.get(name, "")).split(" | ")
        if all(part in KINDS for part in parts):
            kinds[name] = [kind for part in parts for kind in KINDS[part]]

    @wraps(function)
    def with_checks(*arguments: P.args, **named: P.kwargs) -> T:
        for name, value in (*zip(names, arguments, strict=False), *named.items()):
            if name in kinds and not any(holds(value) for holds, _ in kinds[name]):
                expected = " or ".join(dict.fromkeys(what for _, what in kinds[name]))
                raise UsageError("argument-type", f"{name} cannot be so", expected=expected, found=repr(value)[:60])
        return function(*arguments, **named)

    return with_checks
