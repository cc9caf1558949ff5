"""A script in a process of its own: a session of Spark Connect can't live beside a classic one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from optimist.core.errors import OptimistError

__all__ = ["another_session", "environment", "kind_of", "results_of", "started", "tell"]

_MARK = "RESULT "
_TOO_BUSY = (
    "Timed out while waiting for the Python worker",
    "Python worker failed to connect back",
)
_STARTS = 4
_TESTS = Path(__file__).parents[2]
_SUPPORT = tuple(_TESTS / room / "support" for room in ("spark", "odd", "core"))


def environment(*, on_connect: bool) -> dict[str, str]:
    """What a script of the tests needs: our Python, what supports the tests, a server's port."""
    paths = [*map(str, _SUPPORT), os.environ.get("PYTHONPATH", "")]
    # A free port for the server: tests run side by side.
    port = {"SPARK_TESTING": "1"} if on_connect else {}
    return {
        **os.environ,
        **port,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def results_of(script: Path, folder: Path, *more: str, timeout_s: float = 840) -> dict[str, object]:
    """Run the script with the folder, and more, as its arguments: what it told, by name."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(folder), *more],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        cwd=folder,
        env=environment(on_connect=True),
    )
    lines = [line for line in done.stdout.splitlines() if _MARK in line]
    results = dict(json.loads(line.partition(_MARK)[2]) for line in lines)
    assert done.returncode == 0, (results, done.stderr[-3000:])
    return results


def another_session(spark):
    """Return another session of a client's server: before PySpark 4.3 only a builder makes one."""
    make = getattr(spark, "newSession", None)
    if make is not None:
        return make()
    return type(spark).builder.remote(f"sc://{spark.client._builder.endpoint}").create()


def started(start):
    """Start a query, which takes the server of a client ten seconds at most, or it gives up.

    It waits that long for a Python worker to come up. On a machine that runs other tests beside,
    that can be too short; nothing has begun then, and the query can be started again.
    """
    for _ in range(_STARTS - 1):
        try:
            return start()
        except Exception as error:
            if not any(text in str(error) for text in _TOO_BUSY):
                raise
    return start()


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
