"""Run a script that was written for Delta's jar, unchanged: `python -m optimist.spark script.py`.

The command `optimist-python` does the same and can stand where Spark wants a Python: set
`spark.pyspark.driver.python` to it, and `spark-submit` runs every script this way.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from optimist.spark import compat

__all__ = ["main"]

_USAGE = "Usage: python -m optimist.spark (script.py | -m module) [arguments ...]\n"


def main() -> None:
    """Install `compat`, then run the script or module of the command line as Python would.

    Raises:
        ConfigError: There is another package `delta`; see `optimist.spark.compat.install`.
    """
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if is_module:
        del arguments[0]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(_USAGE)
    compat.install()
    sys.argv = arguments
    if is_module:
        sys.path[0] = str(Path.cwd())
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
