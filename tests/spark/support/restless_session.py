"""Commands that change rows while another thread changes the session, and what they may leave."""

from __future__ import annotations

import datetime as dt
import random  # noqa: TID251 - a case is its seed: the same chance each time it is run
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable, write
from table_contents import read_locally, values

__all__ = ["COMMANDS", "PROPERTIES", "ensure_one_choice"]

_NOON = dt.datetime(2024, 3, 1, 12, tzinfo=dt.timezone.utc)
_CHOSEN = "at >= '2024-03-01 18:00:00' AND CAST(s AS INT) > 0"
_BY_ZONE = (frozenset(range(6, 12)), frozenset({11}))
"""The rows that it chooses in UTC and in New York, by `id`."""
_CONFS = {
    "spark.sql.session.timeZone": ("UTC", "America/New_York"),
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.caseSensitive": ("true", "false"),
    "spark.sql.files.maxPartitionBytes": ("600", "128MB"),
    "spark.sql.leafNodeDefaultParallelism": ("1", "3"),
    "spark.sql.shuffle.partitions": ("1", "3"),
}
PROPERTIES = [
    {},
    {"delta.enableChangeDataFeed": "true"},
    {"delta.enableDeletionVectors": "true"},
]


def _delete(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).delete(_CHOSEN)


def _update(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).update(_CHOSEN, {"id": "id + 100"})


def _merge(spark: SparkSession, path: str) -> None:
    source = spark.range(4, 14).toDF("k").alias("s")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, f"id = k AND {_CHOSEN}")
    builder = builder.whenMatchedUpdate(set={"id": "id + 100"})
    builder.whenNotMatchedInsert(values={"id": "k + 1000"}).execute()


def _replace_where(spark: SparkSession, path: str) -> None:
    new = spark.sql("SELECT 50L AS id, TIMESTAMP '2024-03-01 23:59:00Z' AS at, '5' AS s")
    write(new, path, mode="overwrite", replaceWhere=_CHOSEN)


def _changed(chosen: frozenset[int]) -> set[int]:
    return {id + 100 for id in chosen}


COMMANDS = {
    "delete": (_delete, lambda _: set()),
    "update": (_update, _changed),
    "merge": (
        _merge,
        lambda chosen: _changed(chosen) | {k + 1000 for k in range(4, 14) if k not in chosen},
    ),
    "replace where": (_replace_where, lambda _: {50}),
}
"""What they run, and the new rows of a command that chose these rows of the table."""


@contextmanager
def _restless(spark: SparkSession, seed: int) -> Iterator[None]:
    """Another thread sets one conf after the other, until the end."""
    before = {key: spark.conf.get(key, None) for key in _CONFS}
    drawn, is_over = random.Random(seed), threading.Event()

    def change() -> None:
        while not is_over.wait(0.001):
            key = drawn.choice(list(_CONFS))
            spark.conf.set(key, drawn.choice(_CONFS[key]))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def ensure_one_choice(
    spark: SparkSession, path: str, command: str, properties: dict[str, str], seed: int
) -> None:
    """Run a command in a restless session: it chooses its rows once, or fails and changes none."""
    run, added = COMMANDS[command]
    drawn, log = random.Random(seed), DeltaLog.for_path(path, {})
    # In ANSI mode a text that is no number is an error, and else it is not chosen.
    odd = frozenset({11} if drawn.random() < 1 / 4 else ())
    ids = list(range(12))
    for start in range(0, 12, part := drawn.choice([3, 6, 12])):
        some = ids[start : start + part]
        hours = [_NOON + dt.timedelta(hours=id) for id in some]
        at = pa.array(hours, pa.timestamp("us", "UTC"))
        texts = ["x" if id in odd else "1" for id in some]
        log.append(pa.table({"id": pa.array(some, pa.int64()), "at": at, "s": texts}))
    if properties:
        log.alter.set_properties(properties)
    before = read_locally(path).sort_by("id")
    version = log.snapshot().version
    try:
        with _restless(spark, seed):
            run(spark, path)
    except (PySparkException, OptimistError):
        assert log.snapshot().version == version
        return
    after = read_locally(path).sort_by("id")
    found = set(after["id"].to_pylist())
    assert len(found) == after.num_rows
    possible = [each - odd for each in _BY_ZONE]
    chosen = [each for each in possible if found == (set(ids) - each) | added(each)]
    assert chosen, sorted(found)
    stay = [id not in chosen[0] for id in ids]
    untouched = after.filter(pa.array([id in ids for id in after["id"].to_pylist()]))
    assert values(untouched) == values(before.filter(pa.array(stay)))
