"""What the commands share: options under headings, errors and warnings as people and programs read them."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ..errors import UsageError, Vec2embError, Vec2embWarning
from ..options.choices import BAD_ROWS, BINARY_DTYPES, BYTE_ORDERS, ENCODING_ERRORS, NONFINITE

F = TypeVar("F", bound=Callable[..., Any])

FILES = ("SOURCE", "SOURCE...", "CORPUS...", "BUNDLE", "CHECKPOINT", "PATH", "FILE", "OUT", "FOLDER")


class HeadedCommand(click.Command):
    """A command whose options stand under headings, and whose files a shell completes."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            named = parameter.metavar or (parameter.name or "").upper()
            if parameter.type is click.STRING and named in FILES:
                parameter.type = click.Path()  # text as before, but of a file

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        headings: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                headings.setdefault(getattr(parameter, "heading", "Machine"), []).append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            # As it stands: a command that is wrapped can not be copied.
            formatter.write(f"\n{self.epilog}\n")


class _HeadedOption(click.Option):
    def __init__(self, *args: Any, heading: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading


def option(heading: str, *names: str, **settings: Any) -> Callable[[F], F]:
    """`click.option` under a heading."""
    return click.option(*names, cls=_HeadedOption, heading=heading, **settings)


# As every command that reads a file of vectors has them.
_READING: dict[str, dict[str, Any]] = {
    "allow-pickle": {
        "is_flag": True, "help": "Open a .kv or .model of gensim: a pickle, which can run any code.",
    },
    "dim": {"type": int, "metavar": "N", "help": "Values a row, where no header says so."},
    "limit": {"type": int, "metavar": "N", "help": "Read the first N rows only."},
    "encoding": {"metavar": "NAME", "default": "utf-8", "show_default": True, "help": "Encoding of the tokens."},
    "encoding-errors": {
        "type": click.Choice(list(ENCODING_ERRORS)), "default": "error", "show_default": True,
        "help": "What to do at a token that is not in the encoding.",
    },
    "binary-dtype": {
        "type": click.Choice(BINARY_DTYPES),
        "help": "Type of the values of Word2Vec binary.  [default: float32, checked]",
    },
    "byte-order": {"type": click.Choice(BYTE_ORDERS), "help": "Of the same.  [default: little, checked]"},
    "bad-rows": {
        "type": click.Choice(BAD_ROWS), "default": "error", "show_default": True,
        "help": "What to do at a faulty row.",
    },
    "nonfinite": {
        "type": click.Choice(NONFINITE), "default": "error", "show_default": True,
        "help": "What to do at nan and inf.",
    },
}  # fmt: skip


def reading_options(heading: str, *names: str) -> Callable[[F], F]:
    """Options that say how a file of vectors is read, under a heading, in the order of their names."""

    def decorate(command: F) -> F:
        for name in reversed(names):
            command = option(heading, f"--{name}", **_READING[name])(command)
        return command

    return decorate


def refuse_both(name: str, flag: str) -> None:
    """Refuse an option beside the flag that makes it meaningless.

    Raises:
        UsageError: both were given.
    """
    context = click.get_current_context()
    given = [context.get_parameter_source(one) is ParameterSource.COMMANDLINE for one in (name, flag)]
    if all(given):
        one, other = (f"--{part.replace('_', '-')}" for part in (name, flag))
        raise UsageError("options-exclude", f"{one} and {other} exclude each other", hint="leave one of the two out")


def token(text: str) -> str:
    """A token from the command line, which is in UTF-8 whatever encoding the system expects there."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


def emit(value: dict[str, Any]) -> None:
    """One JSON object on one line of stdout."""
    import json

    click.echo(json.dumps(value, ensure_ascii=True))


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

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if isinstance(message, Vec2embWarning):
                say(f"warning[{message.code}]: {message}")
            else:
                usual(message, category, *place, **more)

        warnings.simplefilter("always", Vec2embWarning)
        warnings.showwarning = show
        yield
