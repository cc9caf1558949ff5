"""The command line as a whole: its commands, and what all of them have in common."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_type_hints

import typer

from optimist.cli import by_need
from optimist.cli.commands import checking, doing, looking
from optimist.cli.commands.arguments import OutputForm
from optimist.cli.confs import gathered_options
from optimist.cli.exit_codes import FINE, MISUSE
from optimist.cli.failures import exit_code_of, tell
from optimist.cli.session import Session
from optimist.core.errors import TableNotFoundError
from optimist.core.imports import own_version

__all__ = ["COMMANDS", "app", "run"]

_VALUE = re.compile(r"=.*", re.DOTALL)
"""What may be a secret in a wrong call, such as `optimist count URL fs.azure.account.key=...`."""

COMMANDS: tuple[Callable[..., int], ...] = (*looking.COMMANDS, *doing.COMMANDS, *checking.COMMANDS)

Confs = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="An option of the table or its store, as for Spark. May be repeated.",
    ),
]
ConfFile = Annotated[
    str | None,
    typer.Option(
        "--conf-file", metavar="PATH", help="A file of options, one a line: better for secrets."
    ),
]
Output = Annotated[OutputForm, typer.Option("--output", "-o", help="The form of the answer.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error came from.")]


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, and return its exit code."""
    if not arguments:
        arguments = ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without UTF-8 shows escapes
            stream.reconfigure(errors="backslashreplace")
    try:
        done = app(list(arguments), standalone_mode=False, prog_name="optimist")
    except typer.Abort:
        tell("Nothing was done.")
        return MISUSE
    except typer.TyperException as error:
        told = _VALUE.sub("=***", error.format_message())
        tell(f"{told} Type `optimist --help` for the commands.")
        return MISUSE
    return done if isinstance(done, int) else FINE


def _build() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(_optimist)
    for command in COMMANDS:
        name = command.__name__.replace("_", "-")
        app.command(name)(_with_common_options(command))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"optimist {own_version()}\n")
        raise typer.Exit(FINE)


def _optimist(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Look at Delta tables, keep them in order and check them, without Spark.

    A table is named by its path or URL. Options for its store come from the variable OPTIMIST_CONF,
    the file of --conf-file or OPTIMIST_CONF_FILE, and --conf. The exit code is 0 if all is well, 1
    if the command found something, 2 if the call is wrong, 3 if the table can't be read or written.
    """


def _with_common_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command with the options of all commands, in place of its session."""

    def start(
        *,
        conf: Confs = None,
        conf_file: ConfFile = None,
        output: Output = OutputForm.TABLE,
        debug: Debug = False,
        **given: Any,
    ) -> int:
        def work() -> int:
            options = gathered_options(conf or (), conf_file, os.environ)
            try:
                with by_need.opening_bar():
                    return command(Session(options, output is OutputForm.JSON), **given)
            except TableNotFoundError as error:
                raise by_need.with_nearest(error, options) from error

        return exit_code_of(work, is_debugging=debug)

    own = [*inspect.signature(command).parameters.values()][1:]
    common = inspect.signature(start).parameters.values()
    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in (*own, *(one for one in common if one.name != "given"))
    ]
    hints = get_type_hints(command, include_extras=True) | get_type_hints(
        start, include_extras=True
    )
    wrapped: Any = start
    wrapped.__signature__ = inspect.Signature(
        [each.replace(annotation=hints[each.name]) for each in parameters]
    )
    wrapped.__annotations__ = {each.name: hints[each.name] for each in parameters}
    wrapped.__doc__ = command.__doc__
    wrapped.__name__ = command.__name__
    return start


app = _build()
