"""Run the command line: `python -m optimist.cli`, or `optimist`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from optimist.cli.exit_codes import MISUSE, PIPE_CLOSED
from optimist.core.imports import import_by_need

__all__ = ["main"]

_MISSING = (
    "The command optimist needs the packages typer and rich. Install them with: "
    "pip install 'optimist[cli]'\n"
)


class _WithoutPandas(MetaPathFinder):
    """Hides pandas, which Arrow loads wherever it is installed, and no command needs.

    Loading it takes longer than all else that a command does.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - named by the base class
        target: ModuleType | None = None,  # noqa: ARG002 - named by the base class
    ) -> None:
        """Raise the error of a package that is not installed, for pandas only."""
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)


def main() -> None:
    """Run the command that the arguments of this process name, and end the process."""
    sys.meta_path.insert(0, _WithoutPandas())
    try:
        app = import_by_need("optimist.cli.app")
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(_MISSING)
        sys.exit(MISUSE)
    status = app.run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes again at its end, and would report the error then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = PIPE_CLOSED
    sys.exit(status)


if __name__ == "__main__":
    main()
