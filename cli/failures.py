"""Turns what a command raises into one line for people and an exit code."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Callable

from optimist.cli.exit_codes import INTERRUPTED, MISUSE, PIPE_CLOSED, UNREADABLE
from optimist.core.errors import OptimistError, UsageError
from optimist.core.errors.foreign_text import bounded, on_one_line
from optimist.core.secrets import without_secrets

__all__ = ["exit_code_of", "tell"]

_LONGEST = 2_000
_OF_THE_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""The errors of a full disk; those of a table's store have been translated before."""


def exit_code_of(command: Callable[[], int], *, is_debugging: bool) -> int:
    """Run a command, and return its exit code whatever happens. Errors become one line.

    Args:
        command: The command, which returns its exit code.
        is_debugging: Whether the traceback is shown, too.
    """
    try:
        return command()
    except KeyboardInterrupt:
        tell("Interrupted. If the command writes, look with `optimist history` what it has done.")
        return INTERRUPTED
    except BrokenPipeError:
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - the edge of the program: a bug is told in one line
        if is_debugging:
            sys.stderr.write(without_secrets(traceback.format_exc()))
        tell(_text_of(error))
        return MISUSE if isinstance(error, UsageError) else UNREADABLE


def _text_of(error: Exception) -> str:
    if isinstance(error, OptimistError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _OF_THE_OUTPUT:
        return f"The answer could not be written: {error.strerror}."
    told = f"{type(error).__name__}: {error}".rstrip(".")
    return f"{told}. This is an error in Optimist: --debug shows where it came from."


def tell(text: str) -> None:
    """Write one line to the errors' stream, without secrets and control characters."""
    line = on_one_line(bounded(without_secrets(text), _LONGEST))
    sys.stderr.write(f"optimist: {line}\n")
    sys.stderr.flush()
