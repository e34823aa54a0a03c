"""What the commands print: results, errors and warnings, as people and programs read them."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TextIO

import click

from ..errors import Vec2embError, Vec2embWarning
from ..typed import JsonReport


def emit(value: JsonReport) -> None:
    """One JSON object on one line of stdout."""
    import json

    click.echo(json.dumps(value, ensure_ascii=True))


class Result(Protocol):
    """What a library call gives, as a program and as a person reads it."""

    def to_dict(self) -> JsonReport: ...


def show(done: Result, with_json: bool, quiet: bool = False, text: Callable[[], str] | None = None) -> None:
    """Print a result: as JSON, or as text (its own, unless another is given) if it is not to be quiet."""
    if with_json:
        emit(done.to_dict())
    elif not quiet:
        tell(str(done) if text is None else text())


def show_all(name: str, found: Sequence[Result], with_json: bool) -> None:
    """Print several results, below one name in JSON."""
    if with_json:
        emit({name: [one.to_dict() for one in found]})
    else:
        tell("\n".join(map(str, found)))


def fail(error: Vec2embError, with_json: bool) -> int:
    """Say what is wrong; the exit code."""
    if with_json:
        emit({"error": {**error.to_dict(), "exit_code": error.exit_code}})
    say(f"error[{error.code}]: {error}\n  see {error.guide}")
    return error.exit_code


def stopped(how: str, number: int, with_json: bool) -> int:
    """Say that a signal of this number ended the run; the exit code."""
    exit_code = 128 + number
    if with_json:
        emit({"error": {"code": how, "message": "nothing was left behind", "exit_code": exit_code}})
    say(f"{how}: nothing was left behind")
    return exit_code


def say(text: str) -> None:
    """A line on stderr, whatever its encoding can show; nothing where it cannot be written."""
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    with contextlib.suppress(OSError):
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=True)


def tell(text: str) -> None:
    """A line on stdout, whatever its encoding can show."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


@contextlib.contextmanager
def warnings_said() -> Iterator[None]:
    """Show the library's warnings in our way, a line each."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def say_it(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
            line: str | None = None,
        ) -> None:  # fmt: skip
            if isinstance(message, Vec2embWarning):
                say(f"warning[{message.code}]: {message}")
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.simplefilter("always", Vec2embWarning)
        warnings.showwarning = say_it
        yield
