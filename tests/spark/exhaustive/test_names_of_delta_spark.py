"""Names that Delta's own jar and our sessions share in a metastore of Hive, made by either.

It runs where `python benchmarks/record_delta_spark.py` has made the environment with Delta's jar.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_TOLD = runpy.run_path(str(_ROOT / "benchmarks" / "delta_spark.py"))
_JAR, _ENVIRONMENT = _TOLD["DELTA_SPARK"], _TOLD["ENVIRONMENT"]
_SCRIPT = Path(__file__).with_name("delta_spark_names_script.py")
_PROTOCOL = [["delta.minReaderVersion", "1"], ["delta.minWriterVersion", "2"]]
_NAMED = [[0, None], [1, None], [2, None]]
EXPECTED = {
    "view": [[1, 1]],
    "kept": [[1, 1], [2, 2]],
    "far": [[1]],
    "named": _NAMED,
    "cloned": [[1, 1], [2, 2]],
    "kept after": [[1, 1], [2, 2], [3, 1]],
    "far after": [[3, None]],
    "again after": _NAMED,
    "cloned after": _NAMED,
    "columns": ["id", "x"],
    "view after": [[3, 1]],
    "files": [[4]],
    "properties of files": [*_PROTOCOL, ["mine", "1"]],
    "hives": [[5, "a"]],
    "properties of hives": _PROTOCOL,
    "gone": False,
}
BY_THE_JAR = {
    **EXPECTED,
    # It also shows the options that the entry has for its files.
    "properties of files": [*EXPECTED["properties of files"], ["option.compression", "zstd"]],
}

pytestmark = pytest.mark.skipif(
    not (_ENVIRONMENT / "ready-with-delta").exists(),
    reason="python benchmarks/record_delta_spark.py makes the environment with Delta's jar",
)


def run(folder: Path, engine: str, *steps: str) -> dict[str, object]:
    """Run the steps in a session of the engine: what it saw of each other engine's tables."""
    ours = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    is_jar = engine == _JAR
    kept = {name: text for name, text in os.environ.items() if not is_jar or name not in ours}
    python = str(_ENVIRONMENT / "bin" / "python") if is_jar else sys.executable
    port = {"SPARK_TESTING": "1"} if engine == "client" else {}  # a free one for the server
    done = subprocess.run(
        [python, "-W", "ignore", str(_SCRIPT), str(folder), engine, *steps],
        env={**kept, **port, "PYSPARK_PYTHON": python},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, object] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line) if line.startswith("{") else {}
    return found


def test_each_engine_reads_and_changes_what_the_other_has_made(tmp_path):
    assert run(tmp_path, _JAR, "make jar", "make jars") == {}
    assert run(tmp_path, "classic", "use jar", "make own") == {"jar": EXPECTED}
    assert run(tmp_path, "client", "use jars", "make clients") == {"jars": EXPECTED}
    seen = run(tmp_path, _JAR, "use own", "use clients")
    assert seen == {"own": BY_THE_JAR, "clients": BY_THE_JAR}
