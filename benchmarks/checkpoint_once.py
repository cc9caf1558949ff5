"""Write one checkpoint and print seconds and peak memory; `checkpoints.py` runs it.

`python benchmarks/checkpoint_once.py ENGINE PATH` prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import deltalake

from engines import OURS
from open_once import peak_mib
from optimist.core import DeltaLog


def main(engine: str, path: str) -> None:
    """Measure in this process and print the result."""
    write = _our_checkpoint if engine == OURS else _their_checkpoint
    seconds, num_files = write(path)
    print(json.dumps({"num_files": num_files, "seconds": seconds, "peak_mib": peak_mib()}))


def _our_checkpoint(path: str) -> tuple[float, int | None]:
    log = DeltaLog.for_path(path)
    log.snapshot()
    started_s = time.perf_counter()
    last = log.checkpoint()
    return time.perf_counter() - started_s, last.num_of_add_files


def _their_checkpoint(path: str) -> tuple[float, int | None]:
    table = deltalake.DeltaTable(path)
    started_s = time.perf_counter()
    table.create_checkpoint()
    seconds = time.perf_counter() - started_s
    hint = json.loads((Path(path) / "_delta_log" / "_last_checkpoint").read_text())
    return seconds, hint.get("numOfAddFiles", hint["size"] - 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
