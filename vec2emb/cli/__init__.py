"""The command line: one module a command, each options -> one library call -> output."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from ..errors import UsageError, Vec2embError
from .audit import audit
from .convert import convert
from .evaluate import evaluate
from .explain import explain
from .export import export
from .inspect import inspect
from .output import INTERRUPTED, TERMINATED, Terminated, fail, on_sigterm, stopped
from .positions import positions
from .similar import similar
from .verify import verify
from .vocab import vocab


class _Main(click.Group):
    """The commands in the order in which people need them."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from .. import __version__, _kernel

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


group.add_command(convert)
group.add_command(inspect)
group.add_command(vocab)
group.add_command(audit)
group.add_command(explain)
group.add_command(similar)
group.add_command(evaluate)
group.add_command(verify)
group.add_command(export)
group.add_command(positions)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 input or output at fault, 2 usage, 3 a check missed, 4 try again."""
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(_run(words))


def _run(words: list[str]) -> int:
    with_json = "--json" in words
    on_sigterm()
    try:
        # Not standalone: click would turn our exit codes into its own.
        result: Any = group.main(args=words, prog_name="vec2emb", standalone_mode=False)
    except Vec2embError as error:
        return fail(error, with_json)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.UsageError as error:
        if with_json:
            return fail(UsageError("usage", error.format_message()), with_json)
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        return stopped("interrupted", INTERRUPTED, with_json)
    except Terminated:
        return stopped("terminated", TERMINATED, with_json)
    except BrokenPipeError:
        # Whoever read our output has gone; do not fail again when it is flushed at exit.
        sys.stdout = None
        return 1
    return result if isinstance(result, int) else 0
