"""Run the command line: `python -m optimist.cli`, or `optimist`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from optimist.cli.exit_codes import INTERRUPTED, MISUSE, PIPE_CLOSED, UNREADABLE
from optimist.core.imports import import_by_need

__all__ = ["main"]

_MISSING = (
    "The command optimist needs the packages typer and rich. Install them with: "
    "pip install 'optimist[cli]'\n"
)


_COLLECTED_EVERY = 100_000
"""Of new objects. By default Python looks for garbage a hundred times while modules are loaded, of
which nothing is garbage; that takes a tenth of the time of a short command."""


class _WithoutPandas:
    """Hides pandas, which Arrow loads wherever it is installed, and no command needs.

    Loading it takes longer than all else that a command does.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - named by the import system
        target: ModuleType | None = None,  # noqa: ARG002 - named by the import system
    ) -> None:
        """Raise the error of a package that is not installed, for pandas only."""
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)


def main() -> None:
    """Run the command that the arguments of this process name, and end the process."""
    gc.set_threshold(_COLLECTED_EVERY)
    sys.meta_path.insert(0, _WithoutPandas())
    _replace_closed_streams()
    try:
        status = _run()
    except KeyboardInterrupt:  # before the command began
        status = INTERRUPTED
    status = _flushed(status)
    gc.freeze()  # the interpreter looks for garbage at its end, too
    sys.exit(status)


def _replace_closed_streams() -> None:
    """Open what the caller has closed, as by `>&-`, so that each stream can be written to."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - it stays open to the end
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def _run() -> int:
    try:
        app = import_by_need("optimist.cli.app")
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(_MISSING)
        return MISUSE
    return int(app.run(sys.argv[1:]))


def _flushed(status: int) -> int:
    """Write the rest of the answer, and return the exit code, which tells if that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = PIPE_CLOSED
    except OSError as error:
        sys.stderr.write(f"optimist: The answer could not be written: {error.strerror}.\n")
        status = UNREADABLE
    else:
        return status
    # The interpreter flushes again at its end, and would report the error then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


if __name__ == "__main__":
    main()
