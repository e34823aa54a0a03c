"""Command lines from the definitions of options: one click option for each, under its heading."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ..errors import UsageError
from ..options.definition import REQUIRED, Option

F = TypeVar("F", bound=Callable[..., object])

FILES = ("SOURCE", "SOURCE...", "CORPUS...", "BUNDLE", "CHECKPOINT", "PATH", "FILE", "OUT", "FOLDER")
# Spellings that were removed, with what to use.
REPLACED = {"--force": "--if-exists replace", "--preset": "--position-preset"}

HEADINGS = (
    "Input", "Words", "Corpus", "Tokens", "Proof", "Rows", "Special tokens", "Method", "Positions", "Sinusoidal table",
    "Learned table", "Checkpoint", "Training", "Gates", "Output", "Folders", "Names", "Machine",
)  # fmt: skip


class HeadedCommand(click.Command):
    """A command whose options stand under headings, and whose files a shell completes."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            named = parameter.metavar or (parameter.name or "").upper()
            if parameter.type is click.STRING and named in FILES:
                parameter.type = click.Path()  # text as before, but of a file

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            instead = REPLACED.get(error.option_name, "")
            if any(instead.split(" ")[0] in parameter.opts for parameter in self.params):
                raise UsageError("option-replaced", f"{error.option_name} was removed", hint=f"use {instead}") from None
            raise

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        headings: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                headings[getattr(parameter, "heading", "Machine")].append(record)
        for heading, records in headings.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            # As it is: a command that is wrapped cannot be copied.
            formatter.write(f"\n{self.epilog}\n")


class _HeadedOption(click.Option):
    def __init__(self, *args: Any, heading: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading


def options_of(options: tuple[Option, ...]) -> Callable[[F], F]:
    """Decorate a command with the options that a command line can have, in their order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            if option.only != "python":
                command = _decorator(option)(command)
        return command

    return decorate


def _decorator(option: Option, **more: object) -> Callable[[F], F]:
    flags = option.flags or (f"--{option.name.replace('_', '-')}",)
    usual = "" if option.usual is None else f"  [default: {option.usual}]"
    settings: dict[str, object] = {
        "help": option.help + usual, "metavar": option.metavar, "multiple": option.repeated,
        "required": option.default is REQUIRED,
    }  # fmt: skip
    if option.default is not REQUIRED:
        settings["default"] = None if option.default is ... else option.default
        settings["show_default"] = option.default not in (None, False, (), ...)
    if option.repeated:
        settings["callback"] = lambda context, parameter, value: value or option.default
    if option.bare is not None:
        settings |= {"is_flag": False, "flag_value": option.bare}
    if option.type.parse == "flag":
        settings["is_flag"] = True
    else:
        settings["type"] = click.Choice(option.choices) if option.choices else _TYPES[option.type.parse]
    return click.option(*flags, option.name, cls=_HeadedOption, heading=option.heading, **{**settings, **more})


def eager(option: Option, act: Callable[[click.Context, click.Parameter, bool], None]) -> Callable[[F], F]:
    """Decorate a command with a flag that does something else instead."""
    return _decorator(option, is_eager=True, expose_value=False, callback=act)


def token(text: str) -> str:
    """A token from the command line, which is in UTF-8 whatever encoding the system expects there."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


_TYPES: dict[str, Callable[[str], object]] = {"text": str, "token": token, "int": int, "float": float}


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
