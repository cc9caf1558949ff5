"""Tables that commands without Spark change, with vectors and without, partitioned or not."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from command_rows import ROW_TYPE, Row, as_table
from optimist.core import DeltaLog

DEFAULTS = "spark.databricks.delta.properties.defaults."


class Fate(enum.Enum):
    """What becomes of rows that are deleted, and how the table is laid out."""

    VECTORS = (True, ())
    COPIES = (False, ())
    VECTORS_IN_PARTITIONS = (True, ("p",))
    COPIES_IN_PARTITIONS = (False, ("s", "p"))

    @property
    def has_vectors(self) -> bool:
        return self.value[0]

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self.value[1]


FEED = {"enableChangeDataFeed": "true"}
PROPERTIES = st.sampled_from([{}, FEED, FEED, {**FEED, "columnMapping.mode": "id"}])
"""Properties under which rows are changed alike."""


def opened(path: Path, *, has_vectors: bool, **properties: str) -> DeltaLog:
    given = {"enableDeletionVectors": str(has_vectors).lower(), **properties}
    return DeltaLog.for_path(str(path), {f"{DEFAULTS}{k}": v for k, v in given.items()})


def make(path: Path, fate: Fate, files: list[list[Row]], **properties: str) -> DeltaLog:
    """A table with an append for each list of rows."""
    log = opened(path, has_vectors=fate.has_vectors, **properties)
    for rows in files:
        log.append(as_table(rows), partition_by=fate.partition_by)
    return log


def live_rows(log: DeltaLog) -> list[Row]:
    return log.to_arrow().to_pylist()


def changes_since(log: DeltaLog, version: int, schema: pa.Schema = ROW_TYPE) -> Counter[str]:
    """The changes after a version, as `counted_changes` has them."""
    if log.snapshot().version == version:
        return Counter()
    names = [*log.snapshot().schema.names, "_change_type"]
    rows = log.changes(columns=names, starting_version=version + 1).to_pylist()
    return counted_changes(((row.pop("_change_type"), row) for row in rows), schema)


def counted_changes(
    changes: Iterable[tuple[str, Row]], schema: pa.Schema = ROW_TYPE
) -> Counter[str]:
    """Kinds with rows, in a form that can be counted."""
    found: Counter[str] = Counter()
    for kind, row in changes:
        (one,) = as_table([row], schema).to_pylist()
        found[f"{kind} {sorted(one.items())!r}"] += 1
    return found


def metrics_of(log: DeltaLog, *names: str) -> tuple[int, ...]:
    found: Any = log.history(1)[0].info.operation_metrics
    return tuple(int(found[name]) for name in names)


def sixty_rows(path: Path, *, has_vectors: bool, **properties: str) -> DeltaLog:
    """Three files of twenty rows; the ids of a file follow each other."""
    log = opened(path, has_vectors=has_vectors, **properties)
    for first in range(0, 60, 20):
        ids = range(first, first + 20)
        log.append(
            pa.table(
                {
                    "id": pa.array(ids, pa.int64()),
                    "p": pa.array([i % 3 for i in ids], pa.int32()),
                    "s": [f"n{i}" for i in ids],
                }
            )
        )
    return log
