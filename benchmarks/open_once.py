"""Open one table, or append to it; print times and peak memory. Run once per measurement.

`python benchmarks/open_once.py ENGINE open|files|find|append|plan PATH` prints one line of JSON:
wall time of the work alone, CPU time of the whole process with its imports.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engines import load_engine

__all__ = ["peak_mib"]


def main(engine_name: str, what: str, path: str) -> None:
    """Measure in this process and print the result."""
    engine = load_engine(engine_name)
    steps: dict[str, Callable[[], Callable[[], int]]] = {
        "open": lambda: partial(engine.open_table, path),
        "files": lambda: partial(engine.list_files, path),
        "find": lambda: partial(engine.find, path),
        "append": lambda: partial(engine.append_row, path),
        "plan": partial(engine.planner, path),
    }
    work = steps[what]()
    started_s = time.perf_counter()
    answer = work()
    seconds = time.perf_counter() - started_s
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = used.ru_utime + used.ru_stime
    found = {"answer": answer, "seconds": seconds, "cpu_s": cpu_s, "peak_mib": peak_mib()}
    print(json.dumps(found))


def peak_mib() -> float:
    """Return the most memory that this process has had so far."""
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
