"""Transactions per second of threads that append to one table, each for itself and in groups."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, replace

import pyarrow as pa

from locations import Location, emulated_location
from optimist.core import DeltaLog
from slow_wire import slow_wire

__all__ = ["DELAY_S", "GroupResult", "measure_groups"]

DELAY_S = 0.05
_GROUPED = {"optimist.commit.group.enabled": "true"}
_ENDPOINT = "fs.s3a.endpoint"


@dataclass(frozen=True, slots=True)
class GroupResult:
    """So many threads with so many appends each.

    Attributes:
        versions: How many versions they made.
        failures: Error class -> number of appends that ended in it.
        wrong: Rows that are missing or there twice.
    """

    threads: int
    is_grouped: bool
    appends: int
    versions: int
    failures: dict[str, int]
    wrong: int
    seconds: float

    @property
    def appends_per_s(self) -> float:
        """Successful appends per second, all threads together."""
        return (self.appends - sum(self.failures.values())) / self.seconds


def measure_groups(*, threads: int, appends: int) -> list[GroupResult]:
    """One thread, many without groups, and many with, on the emulated S3 behind a slow wire."""
    near = emulated_location("s3")
    with slow_wire(near.ours[_ENDPOINT], DELAY_S) as endpoint:
        far = replace(near, ours={**near.ours, _ENDPOINT: endpoint})
        return [
            _measure(far.table("one"), 1, appends, is_grouped=False),
            _measure(far.table("each"), threads, max(1, appends // 10), is_grouped=False),
            _measure(far.table("groups"), threads, appends, is_grouped=True),
        ]


def _measure(location: Location, threads: int, appends: int, *, is_grouped: bool) -> GroupResult:
    options = {**location.ours, **(_GROUPED if is_grouped else {})}
    log = DeltaLog.for_path(location.url, options)
    first = log.append(_row(-1, -1))
    assert first is not None
    failures: Counter[str] = Counter()
    barrier = threading.Barrier(threads + 1)

    def work(thread: int) -> None:
        barrier.wait()
        for number in range(appends):
            try:
                log.append(_row(thread, number), txn=(f"thread {thread}", number))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a result
                failures[type(error).__name__] += 1

    started = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for thread in started:
        thread.start()
    barrier.wait()
    started_s = time.perf_counter()
    for thread in started:
        thread.join()
    seconds = time.perf_counter() - started_s
    rows = log.to_arrow()
    found = Counter(zip(rows["thread"].to_pylist(), rows["number"].to_pylist(), strict=True))
    expected = Counter({(t, n): 1 for t in range(threads) for n in range(appends)})
    expected[-1, -1] = 1
    wrong = (found - expected).total() + (expected - found).total() - failures.total()
    versions = log.snapshot().version - first.version
    return GroupResult(
        threads, is_grouped, threads * appends, versions, dict(failures), wrong, seconds
    )


def _row(thread: int, number: int) -> pa.Table:
    return pa.table({"thread": [thread], "number": [number]})
