"""The command line: one module a command, each options -> one library call -> output."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

import click

from ..errors import OutputError, UsageError, Vec2embError, printable, shown
from ..io import interrupts
from .output import fail, say, stopped

# In the order in which people need them. The texts stand here so that a command is loaded only when it is called; a
# test holds them equal to the commands' own.
COMMANDS = {
    "convert": "A file of word vectors to a bundle that PyTorch loads.",
    "inspect": "What a file of vectors or a bundle holds.",
    "vocab": "The vocabulary of a corpus.",
    "audit": "What is in a file of vectors, and what of a corpus it covers.",
    "explain": "Where the row of a word comes from, or why it has none.",
    "similar": "The nearest neighbours of words in a bundle.",
    "evaluate": "Scores of a bundle on word similarity and analogies.",
    "verify": "Whether a bundle is whole, and what its source gives.",
    "export": "A bundle to a file of vectors, or a folder of other libraries.",
    "extend": "A bundle with more words behind those it has.",
    "positions": "Attach, resize or show a position table.",
    "trim": "Cut a model's vocabulary to the tokens that a corpus needs.",
}


class _Main(click.Group):
    """A group whose commands are modules of this package, each with a command of its own name."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{name}", __name__), name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from .. import _kernel
    from ..version import __version__

    click.echo(f"vec2emb {__version__}, {_kernel.NAME} kernel")
    if _kernel.WHY_SLOW:
        click.echo(f"slow: {_kernel.WHY_SLOW}", err=True)
    context.exit()


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the version and the kernel.",
)
def group() -> None:
    """Turn pretrained word vectors into a PyTorch embedding, row for row with its vocabulary."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command line, by default that of the process, and raise SystemExit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(words: list[str]) -> int:
    """Run one command line: 0 done, 1 input or output at fault, 2 usage, 3 a check missed, 4 try again."""
    try:
        return _run(words, "--json" in words)
    except BrokenPipeError:
        # Whoever read our output has gone; do not fail again when it is flushed at exit.
        sys.stdout = None
        return 1
    except OSError as error:
        sys.stdout = None
        from ..io.filesystem import fault_of

        return fail(fault_of(error, None, "standard output", None), with_json=False)


def _run(words: list[str], with_json: bool) -> int:
    interrupts.install()
    try:
        _check_environment()
        # Not standalone: click would turn our exit codes into its own.
        result: object = group.main(args=words, prog_name="vec2emb", standalone_mode=False)
    except Vec2embError as error:
        return fail(error, with_json)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.UsageError as error:
        if with_json:
            return fail(UsageError("usage", error.format_message()), with_json)
        message = io.StringIO()
        error.show(message)
        say(printable(message.getvalue().rstrip()))
        return 2
    except (KeyboardInterrupt, click.Abort):
        return _stopped("interrupted", signal.SIGINT, with_json)
    except interrupts.Stopped as stop:
        return _stopped("terminated", stop.number, with_json)
    except (MemoryError, ImportError, RuntimeError, OSError) as error:
        return fail(_system_fault(error), with_json)
    return result if isinstance(result, int) else 0


def _check_environment() -> None:
    kernel = os.environ.get("VEC2EMB_KERNEL", "")
    if kernel not in ("", "native", "reference"):
        raise UsageError(
            "kernel-choice", "VEC2EMB_KERNEL must be native or reference", found=shown(kernel),
            hint="leave the environment variable out",
        )  # fmt: skip


def _stopped(how: str, number: int, with_json: bool) -> int:
    atomic = sys.modules.get("vec2emb.io.atomic")
    if atomic is not None:
        atomic.close_open()
    return stopped(how, number, with_json)


def _system_fault(error: Exception) -> Vec2embError:
    """What the system refused, as an error of ours; what is no such thing is raised again."""
    if isinstance(error, OSError):
        import traceback

        if any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__)):
            raise error  # of standard output
        code = "disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "system-error"
        path = None if error.filename is None else os.fsdecode(error.filename)
        return OutputError(code, f"the system reports: {error.strerror or error}", path=path)
    if isinstance(error, ImportError):
        first: BaseException = error
        while isinstance(first.__context__, ImportError):  # numpy says the reason on its twentieth line
            first = first.__context__
        return OutputError(
            "cannot-load", f"a part of the program cannot be loaded ({str(first).partition(chr(10))[0]})",
            hint="allow more memory (ulimit -v), or install vec2emb again",
        )  # fmt: skip
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        return OutputError("out-of-memory", "there is not enough memory for this; nothing was left behind")
    raise error
