"""Make dead files, remove them by one VACUUM, and print seconds and peak memory.

`python benchmarks/vacuum_once.py NUM_DEAD` prints one line of JSON. Memory should not depend on the
number: compare 10,000 with 1,000,000.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from open_once import peak_mib
from optimist.core import DeltaLog

_UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
_A_DIRECTORY = 1000


def main(num_dead: int) -> None:
    """Measure in this process and print the result."""
    with tempfile.TemporaryDirectory() as root:
        log = DeltaLog.for_path(f"{root}/table", _UNCHECKED)
        log.append(pa.table({"id": [1]}))
        _make_dead(Path(log.table_path), num_dead)
        before_mib = peak_mib()
        started_s = time.perf_counter()
        done = log.vacuum(0)
        seconds = time.perf_counter() - started_s
        found = {"num_files": done.num_files, "seconds": round(seconds, 1)}
        print(json.dumps({**found, "before_mib": before_mib, "peak_mib": peak_mib()}))


def _make_dead(table: Path, num_dead: int) -> None:
    for number in range(num_dead):
        folder = table / f"data-{number // _A_DIRECTORY:06}"
        if number % _A_DIRECTORY == 0:
            folder.mkdir()
        (folder / f"part-{number:09}-9b1d3f0e-7c51-4a37-8f0a-000000000000.parquet").touch()


if __name__ == "__main__":
    main(int(sys.argv[1]))
