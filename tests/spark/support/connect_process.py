"""A script in a process of its own: a session of Spark Connect can't live beside a classic one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from optimist.core.errors import OptimistError

__all__ = ["kind_of", "results_of", "tell"]

_MARK = "RESULT "
_TESTS = Path(__file__).parents[2]
_SUPPORT = tuple(_TESTS / room / "support" for room in ("spark", "odd", "core"))


def results_of(script: Path, folder: Path) -> dict[str, object]:
    """Run the script with the folder as its argument: what it told, by name."""
    paths = [*map(str, _SUPPORT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "SPARK_TESTING": "1",  # a free port for the server: tests run side by side
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(folder)],
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
        cwd=folder,
        env=environment,
    )
    lines = [line for line in done.stdout.splitlines() if _MARK in line]
    results = dict(json.loads(line.partition(_MARK)[2]) for line in lines)
    assert done.returncode == 0, (results, done.stderr[-3000:])
    return results


def tell(name: str, value: object) -> None:
    """Say one result to the test that runs this script."""
    sys.stdout.write(_MARK + json.dumps([name, value], default=str) + "\n")
    sys.stdout.flush()


def kind_of(call) -> str:
    """How a call ends: the class of its error and, if it is one of ours, its kind."""
    try:
        call()
    except OptimistError as error:
        return f"{type(error).__name__} {error.kind}"
    except Exception as error:  # noqa: BLE001 - the test looks at what came
        return type(error).__name__
    return "nothing"
