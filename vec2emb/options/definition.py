"""What an option is, as data, and the check of a value against it. Nothing heavy is imported here.

A function and the command of the same purpose share one list of options (`commands.py`). The command line, the check of
types and values, the reference and what a bundle records follow from it; `docs/make/signatures.py` writes the
functions' signatures, and a test compares them.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import UsageError


class Type(NamedTuple):
    """The type of an argument.

    Attributes:
        annotation: as a signature says it.
        expected: as an error says it.
        holds: whether a value has the type, and is in range.
        parse: how the command line reads it: `text`, `token` (text in UTF-8), `int`, `float` or `flag`.
    """

    annotation: str
    expected: str
    holds: Callable[[Any], bool]
    parse: str = "text"

    def __or__(self, other: "Type") -> "Type":
        """Either of the two; the range of a whole number is told without its None."""
        return Type(
            f"{self.annotation} | {other.annotation}",
            self.expected if self.parse == "int" else f"{self.expected} or {other.expected}",
            lambda value: self.holds(value) or other.holds(value),
            self.parse,
        )

    def named(self, annotation: str) -> "Type":
        """The same type under the name of an alias."""
        return self._replace(annotation=annotation)


def whole(low: int | None = None, high: int | None = None) -> Type:
    """A whole number in a range that includes both ends; None leaves an end open."""
    expected = (
        "a whole number" if low is None else f"a whole number from {low}" if high is None else f"{low} to {high:,}"
    )

    def holds(value: Any) -> bool:
        fits = isinstance(value, int) and not isinstance(value, bool)
        return fits and (low is None or value >= low) and (high is None or value <= high)

    return Type("int", expected, holds, "int")


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool_"  # numpy's, which is not loaded for this


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not _is_bool(value)


def _is_many(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, bytes | bytearray)


def _is_tokenizer(value: Any) -> bool:
    return hasattr(value, "get_vocab")  # of `transformers` or `tokenizers`


def _is_counts(value: Any) -> bool:
    return type(value).__name__ == "TokenCounts"  # which is not loaded for this


NONE = Type("None", "None", lambda value: value is None)
USUAL = Type("EllipsisType", "... for the usual one", lambda value: value is ...)
TEXT = Type("str", "a string", lambda value: isinstance(value, str))
TOKEN = TEXT._replace(parse="token")
PATH = TEXT | Type("os.PathLike[str]", "a path", lambda value: isinstance(value, os.PathLike))
BOOL = Type("bool", "True or False", _is_bool, "flag")
NUMBER = Type("float", "a number", _is_number, "float")
MANY = Type("Iterable", "a list", _is_many)
MAPPING = Type("Mapping", "a mapping", lambda value: isinstance(value, Mapping))
FUNCTION = Type("Callable", "a function", callable)
TOKENIZER_OBJECT = Type("Tokenizer", "a tokenizer", _is_tokenizer)
COUNTS = Type("TokenCounts", "counts", _is_counts)


def checked_within(annotation: str) -> Type:
    """A type that the function itself looks at: it takes what no list of types here can name."""
    return Type(annotation, "", lambda value: True)


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


class Option(NamedTuple):
    """One option of functions and commands.

    Attributes:
        name: of the argument; with dashes, that of the command line.
        type: of the argument.
        help: what the command line says of it.
        default: of both; REQUIRED if there is none.
        choices: the values that there are, if they can be listed.
        code: of the error at a value that is out of range or none of the choices.
        heading: over it in a command's help.
        metavar: its value in a command's help.
        flags: its spellings on the command line, if not `--name`; with a slash, of a pair that says yes and no.
        usual: what the help says of a default that depends.
        kind: `keyword`, `positional`, or `variadic`, as signatures have it.
        repeated: whether the command line takes it several times.
        recorded: its name in the record of a conversion, whatever the argument is called; None to record nothing.
        bare: what the command line takes for the option without a value; None if it must have one.
        only: `python` or `cli` for an option that only one of the two has.
    """

    name: str
    type: Type
    help: str = ""
    default: object = None
    choices: tuple[str, ...] | None = None
    code: str | None = None
    heading: str = ""
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    usual: str | None = None
    kind: str = "keyword"
    repeated: bool = False
    recorded: str | None = None
    bare: str | None = None
    only: str | None = None

    def but(self, **changes: Any) -> "Option":
        """The same option as another command has it."""
        return self._replace(**changes)

    def check(self, value: object) -> None:
        """Refuse a value of another type, out of range, or that is none of the choices.

        Raises:
            UsageError: with the option's code, or `argument-type`.
        """
        own_code, expected = self.code or "argument-type", ""
        if not self.type.holds(value):
            own_code, expected = "argument-type" if self.choices else own_code, self.type.expected
        elif self.choices and value is not None and value not in self.choices:
            expected = " or ".join(self.choices)
        if expected:
            raise UsageError(own_code, f"{self.name} cannot be so", expected=expected, found=repr(value)[:60])


def check(options: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check arguments by name against their options, and return them.

    Raises:
        UsageError: the first that is refused.
    """
    for option in options:
        if option.name in given and option.only != "cli":
            values = given[option.name] if option.kind == "variadic" else (given[option.name],)
            for value in values:
                option.check(value)
    return dict(given)


def pick(fields: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a class of options has."""
    return {name: given[name] for name in fields if name in given}
