"""Open one table and print seconds and peak memory; `opening.py` runs it once per measurement.

`python benchmarks/open_once.py ENGINE open|files PATH` prints one line of JSON.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from pathlib import Path

from engines import ENGINES


def main(engine_name: str, what: str, path: str) -> None:
    """Measure in this process and print the result."""
    engine = ENGINES[engine_name]
    work = {"open": engine.open_table, "files": engine.list_files}[what]
    started_s = time.perf_counter()
    answer = work(path)
    seconds = time.perf_counter() - started_s
    print(json.dumps({"answer": answer, "seconds": seconds, "peak_mib": _peak_mib()}))


def _peak_mib() -> float:
    # On Linux ru_maxrss starts at what the parent process had in memory; VmHWM starts at zero.
    status = Path("/proc/self/status")
    if status.exists():
        match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if match:
            return int(match.group(1)) / 1024
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    main(*sys.argv[1:])
