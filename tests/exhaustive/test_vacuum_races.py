"""A VACUUM without retention, again and again, beside writers that do all kinds of things."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from itertools import count

import pyarrow as pa
import pytest

from optimist.core import DeltaLog

OPTIONS = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.optimist.conflict.retry": "true",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
}
STEPS = 12


def rows(first: int, num: int, by: int = 0) -> pa.Table:
    ids = range(first, first + num)
    return pa.table({"id": pa.array(ids, pa.int64()), "by": pa.array([by] * num, pa.int64())})


def work(path: str, number: int) -> None:
    """Append 12 times 30 rows; of each append delete 10 rows, change 10, and merge 10 more."""
    log = DeltaLog.for_path(path, OPTIONS)
    for step in range(STEPS):
        first = number * 1_000_000 + step * 100
        log.append(rows(first, 30))
        within = f"id >= {first} AND id < "
        log.delete(f"{within}{first + 10}")
        log.update(set={"by": "1"}, predicate=f"{within}{first + 20}")
        more = log.merge(rows(first + 30, 10, by=2), predicate=["id"])
        more.when_not_matched_insert_all().execute()


def vacuum_until(path: str, is_over: Callable[[], bool]) -> int:
    log = DeltaLog.for_path(path, OPTIONS)
    for number in count(1):
        log.vacuum(0)
        if is_over():
            return number
    raise AssertionError


def ensure_nothing_is_lost(path: str, writers: int) -> None:
    found = DeltaLog.for_path(path, OPTIONS).to_arrow().sort_by("id")
    expected = [
        (number * 1_000_000 + step * 100 + place, 1 if place < 20 else 0 if place < 30 else 2)
        for number in range(writers)
        for step in range(STEPS)
        for place in range(10, 40)
    ]
    assert list(zip(*(found[name].to_pylist() for name in ("id", "by")), strict=True)) == expected


@pytest.mark.timeout(600)
@pytest.mark.parametrize("make", [threading.Thread, multiprocessing.get_context("spawn").Process])
def test_a_vacuum_without_retention_loses_nothing_of_running_writers(make, tmp_path):
    path, writers = str(tmp_path / "table"), 4
    DeltaLog.for_path(path, OPTIONS).append(rows(-1, 0))
    workers = [make(target=work, args=(path, number)) for number in range(writers)]
    for worker in workers:
        worker.start()
    vacuum_until(path, lambda: not any(worker.is_alive() for worker in workers))
    for worker in workers:
        worker.join()
    ensure_nothing_is_lost(path, writers)
