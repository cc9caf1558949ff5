"""A table is damaged and repaired while another thread writes to it: no row is lost, none doubled.

The clock of the repair takes every file for old, so nothing is spared because its writer may be at
work.
"""

from __future__ import annotations

import random  # noqa: TID251 - each seed damages the same files
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from checked_tables import LateClock, found, opened
from optimist.core import DeltaLog
from optimist.logstores import LocalLogStore

ROUNDS = 12
MOST_COMMITS = 150  # each check reads all of them


def damage(log: Path, choose: random.Random) -> None:
    kind = choose.choice(["checkpoint", "hint", "checksum", "nothing"])
    files = {
        "checkpoint": sorted(log.glob("*.checkpoint.parquet")),
        "hint": [log / "_last_checkpoint"],
        "checksum": sorted(log.glob("*.crc")),
        "nothing": [],
    }[kind]
    if files:
        file = choose.choice(files)
        file.write_bytes(file.read_bytes()[:100] if file.exists() else b"{")


@pytest.mark.parametrize("seed", range(2))
def test_a_repair_beside_a_writer_loses_no_row(tmp_path, seed):
    path, choose, is_over = tmp_path / "t", random.Random(seed), threading.Event()
    opened(path, checkpointInterval="3").append(pa.table({"x": [0]}))
    written = [0]
    failures: list[BaseException] = []

    def write() -> None:
        try:
            while len(written) < MOST_COMMITS and not is_over.is_set():
                number = written[-1] + 1
                DeltaLog(str(path), LocalLogStore()).append(pa.table({"x": [number]}))
                written.append(number)
        except BaseException as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(ROUNDS):
            damage(path / "_delta_log", choose)
            DeltaLog(str(path), LocalLogStore(), clock=LateClock()).fsck(repair=True)
    finally:
        is_over.set()
        writer.join()
    assert failures == []
    DeltaLog(str(path), LocalLogStore(), clock=LateClock()).fsck(repair=True)
    assert found(path) == []
    assert sorted(opened(path).to_arrow()["x"].to_pylist()) == written
