"""Which commits others overtook, as the table's history proves it (spec 1.10).

A commit says which version its transaction read. If that is not the version before its own, others
have landed in between: it was held against their commits, and landed after them. A transaction that
ended in a conflict leaves nothing in a log, so history cannot tell of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["OvertakenCommits", "overtaken_commits"]

_MOST_KINDS = 20
_OTHERS = "other operations"
_UNKNOWN = "unknown"
_PAIRS = pa.schema(
    [("operation", pa.string()), ("overtakenBy", pa.string()), ("times", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class OvertakenCommits:
    """The commits that others overtook.

    Attributes:
        facts: How many commits were looked at, and how many of them tell what they read.
        commits: One row per overtaken commit, newest first: `version`, `timestamp`, `operation`,
            `engineInfo`, `readVersion`, and `overtakenBy`, the number of commits in between.
        operations: How many times which operation was overtaken by which: `operation`,
            `overtakenBy`, `times`.
        hours: The hours in which commits were overtaken: `hour`, `commits`, `overtaken`.
    """

    facts: Mapping[str, object]
    commits: pa.Table
    operations: pa.Table
    hours: pa.Table


def overtaken_commits(history: pa.Table) -> OvertakenCommits:
    """Find the commits that others overtook.

    Args:
        history: The commits, newest first, as rows of DESCRIBE HISTORY.
    """
    read, versions = history.column("readVersion"), history.column("version")
    is_known = pc.and_(pc.greater_equal(read, -1), pc.less(read, versions))
    between = pc.subtract(pc.subtract(versions, read), 1)
    is_overtaken = pc.fill_null(pc.and_(is_known, pc.greater(between, 0)), False)
    columns = ["version", "timestamp", "operation", "engineInfo", "readVersion"]
    rows = history.select(columns).append_column("overtakenBy", between).filter(is_overtaken)
    facts = {
        "firstVersion": pc.min(versions).as_py(),
        "lastVersion": pc.max(versions).as_py(),
        "numCommits": history.num_rows,
        "numWithReadVersion": pc.sum(is_known, min_count=0).as_py(),
        "numOvertaken": rows.num_rows,
    }
    return OvertakenCommits(facts, rows, _pairs(history, rows), _by_hour(history, is_overtaken))


def _pairs(history: pa.Table, overtaken: pa.Table) -> pa.Table:
    """Count which operations were overtaken by which, as far back as the history goes."""
    others = _versions_by_operation(history)
    times: Counter[tuple[str, str]] = Counter()
    columns = (
        overtaken.column(name).to_pylist() for name in ("version", "operation", "readVersion")
    )
    for version, operation, read in zip(*columns, strict=True):
        for other, versions in others.items():
            found = bisect_left(versions, version) - bisect_right(versions, read)
            if found:
                times[operation or _UNKNOWN, other] += found
    rows = [(*pair, count) for pair, count in times.most_common()]
    return pa.table([list(each) for each in zip(*rows, strict=True)] or [[], [], []], schema=_PAIRS)


def _versions_by_operation(history: pa.Table) -> dict[str, list[int]]:
    """Return the ascending versions of each operation; rare ones count together."""
    operations = [name or _UNKNOWN for name in history.column("operation").to_pylist()]
    frequent = {name for name, _ in Counter(operations).most_common(_MOST_KINDS)}
    found: dict[str, list[int]] = {}
    for version, operation in zip(
        reversed(history.column("version").to_pylist()), reversed(operations), strict=True
    ):
        found.setdefault(operation if operation in frequent else _OTHERS, []).append(version)
    return found


def _by_hour(history: pa.Table, is_overtaken: pa.ChunkedArray) -> pa.Table:
    """Return the hours with overtaken commits, newest first; the times are UTC."""
    known = pc.cast(history.column("timestamp"), pa.timestamp("us", "UTC"))
    columns = [
        pc.floor_temporal(known, unit="hour"),
        pc.cast(is_overtaken, pa.int64()),
    ]
    rows = pa.table(columns, ["hour", "overtaken"]).group_by("hour", use_threads=False)
    sums = rows.aggregate([("overtaken", "count"), ("overtaken", "sum")])
    found = sums.rename_columns(["hour", "commits", "overtaken"])
    return found.filter(pc.greater(found.column("overtaken"), 0)).sort_by([("hour", "descending")])
