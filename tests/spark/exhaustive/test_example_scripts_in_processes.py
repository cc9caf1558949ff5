"""The example scripts in processes of their own, begun in the ways that a team begins them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

SCRIPTS = Path(__file__).with_name("example_scripts_in_one_process.py")
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # What the conf of the old jar may still say.
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def told(command: list[str], folder: Path, *names: str, **more: str) -> dict[str, str]:
    """What the scripts of these names print in one process, each by its name."""
    done = subprocess.run(
        [*command, str(SCRIPTS), str(folder), *names],
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1", **more},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def expected(*names: str) -> dict[str, str]:
    files = {name: SCRIPTS.parents[3] / "examples" / "drop_in" / f"{name}.txt" for name in names}
    return {name: file.read_text(encoding="utf-8") for name, file in files.items()}


@pytest.mark.parametrize("pinned", ["true", "false"])
def test_spark_submit_runs_them_by_one_conf_key(tmp_path, pinned):
    """Threads of Python need not be threads of the JVM; PySpark's own switch says which."""
    driver = tmp_path / "optimist-python"
    driver.write_text(f'#!/bin/sh\nexec {sys.executable} -W ignore -m optimist.spark "$@"\n')
    driver.chmod(0o755)
    conf = {**CONF, "spark.pyspark.driver.python": str(driver)}
    command = [str(SUBMIT), *(text for key in conf for text in ("--conf", f"{key}={conf[key]}"))]
    names = ("table_exists", "merge_pipelines", "in_batches")
    assert told(command, tmp_path, *names, PYSPARK_PIN_THREAD=pinned) == expected(*names)


def test_those_over_paths_run_on_connect(tmp_path):
    names = ("quick_start", "change_data_feed", "merge_pipelines")
    command = [sys.executable, "-W", "ignore", "-m", "optimist.spark"]
    assert told(command, tmp_path, *names, SPARK_REMOTE="local[2]") == expected(*names)
