"""delta-spark, in an environment and a process of its own: its jars fit another PySpark than ours.

Spark resolves the jars by their Maven coordinates. The environment is made once, in `build/`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["DELTA_SPARK", "PYSPARK", "SESSION", "measure_delta_spark", "run_delta_spark"]

PYSPARK = "4.1.4"
DELTA_SPARK = "io.delta:delta-spark_4.1_2.13:4.4.0"
"""The newest delta-spark, and the newest PySpark that it has jars for."""

ENVIRONMENT = Path(__file__).resolve().parent.parent / "build" / "bench-delta-spark"
SESSION: Mapping[str, str] = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    # A heap that does not grow meanwhile: else whoever comes first is measured growing it.
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-Xms4g",
}
"""The conf of a session in which commands are measured, the same for every engine."""
_SESSION = f"""
import sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.config(map={dict(SESSION)!r})
    .config("spark.jars.packages", sys.argv[1])
    .config("spark.jars.excludes", "org.slf4j:slf4j-api")  # Spark has its own
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
"""
_MEASURED = """
import json, time

times = {}
for what, each in json.load(open(sys.argv[2])).items():
    times[what] = []
    for statement in each:
        started = time.perf_counter()
        spark.sql(statement).collect()
        times[what].append(time.perf_counter() - started)
json.dump(times, open(sys.argv[3], "w"))
"""


def measure_delta_spark(statements: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
    """Run SQL statements in order, and return the seconds of each, by the same names.

    Raises:
        RuntimeError: The environment could not be made, or the process failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        plan, answers = Path(scratch, "plan.json"), Path(scratch, "answers.json")
        plan.write_text(json.dumps({what: list(each) for what, each in statements.items()}))
        run_delta_spark(_MEASURED, [str(plan), str(answers)])
        found: dict[str, list[float]] = json.loads(answers.read_text())
        return found


def run_delta_spark(work: str, arguments: Sequence[str]) -> None:
    """Run a text of Python that finds a session of delta-spark as `spark`.

    Args:
        work: The text; it needs nothing but PySpark and Delta's Python package.
        arguments: What it finds as `sys.argv[2:]`.

    Raises:
        RuntimeError: The environment could not be made, or the process failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        _run([_python(), "-c", _SESSION + work, DELTA_SPARK, *arguments], cwd=scratch)


def _python() -> str:
    python = ENVIRONMENT / "bin" / "python"
    ready = ENVIRONMENT / "ready-with-delta"
    if not ready.exists():
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        delta = f"delta-spark=={DELTA_SPARK.rpartition(':')[2]}"
        _run([str(python), "-m", "pip", "install", "--quiet", f"pyspark=={PYSPARK}", delta])
        ready.touch()
    return str(python)


def _run(command: Sequence[str], cwd: str | None = None) -> None:
    ours = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr[-4000:], file=sys.stderr)
        raise RuntimeError(f"{' '.join(command[:2])} ended with {done.returncode}.")
