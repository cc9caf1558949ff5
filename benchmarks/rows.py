"""Seconds to change rows of a table of 100 files, beside other engines and beside the bare reading.

| engine | what it is |
|---|---|
| `optimist` | our commands on Spark; by vectors, but for the append |
| `optimist, local` | our commands without Spark |
| `delta-spark` | the same statements in SQL, in a process and an environment of its own |
| `deltalake` | its commands; it writes no vectors, so on a table without |
| `plain` | Spark alone: a scan for the rows, a join of the same inputs, `write.parquet` |

Every engine has a copy of the table of its own, and every round changes other rows. The first
round warms up.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import deltalake
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from delta_spark import SESSION, measure_delta_spark
from optimist.core import DeltaLog
from optimist.spark import DeltaTable, write
from row_tables import Command, RowTables, commands_of

__all__ = [
    "MEASURED",
    "RATIO_TARGETS",
    "SECONDS_ROWS",
    "SECONDS_TARGETS",
    "RowResult",
    "measure_rows",
]

OURS, LOCAL, DELTA, THEIRS, PLAIN = (
    "optimist",
    "optimist, local",
    "delta-spark",
    "deltalake",
    "plain",
)
MEASURED: Mapping[str, tuple[str, ...]] = {
    "DELETE, range in one file": (OURS, LOCAL, DELTA, THEIRS, PLAIN),
    "DELETE, 0.1 % scattered": (OURS, LOCAL, DELTA, THEIRS, PLAIN),
    "UPDATE, 1 % scattered": (OURS, LOCAL, DELTA, THEIRS, PLAIN),
    "MERGE of 100,000 rows": (OURS, DELTA, THEIRS, PLAIN),
    "MERGE of 1,000 rows": (OURS, LOCAL, DELTA, THEIRS, PLAIN),
    "append of all rows": (OURS, DELTA, PLAIN),
}
"""Each measurement, and by whom; an engine that lacks the command is left out."""

RATIO_TARGETS: Mapping[tuple[str, str, str], float] = {
    ("DELETE, range in one file", LOCAL, THEIRS): 3.0,
    ("DELETE, 0.1 % scattered", OURS, PLAIN): 1.2,
    ("UPDATE, 1 % scattered", OURS, PLAIN): 1.5,
    ("MERGE of 100,000 rows", OURS, PLAIN): 2.0,
    ("MERGE of 100,000 rows", OURS, DELTA): 0.5,
    ("append of all rows", OURS, PLAIN): 1.15,
}
"""By measurement, engine of ours and other engine: how many times the other's time is enough."""
SECONDS_TARGETS: Mapping[tuple[str, str], float] = {
    ("DELETE, range in one file", LOCAL): 0.15,
    ("MERGE of 1,000 rows", LOCAL): 0.5,
}
"""By measurement and engine of ours, on a table of at most `SECONDS_ROWS` rows."""
SECONDS_ROWS = 4_000_000

Run = Callable[[Command], None]


@dataclass(frozen=True, slots=True)
class RowResult:
    """The time of one command on a table of so many rows; the first, warming round not counted."""

    engine: str
    what: str
    rows: int
    best_s: float
    median_s: float


def measure_rows(directory: Path, *, rows: int, rounds: int) -> Iterator[RowResult]:
    """Measure every command on a fresh table of `rows` rows, `rounds` times and once to warm up.

    Each result is given as soon as there is one: all of them take half an hour.

    Raises:
        RuntimeError: delta-spark could not be run.
    """
    tables = RowTables(directory / f"rows-{rows}", rows)
    spark = SparkSession.builder.config(map=dict(SESSION)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    plans = {what: commands_of(tables, what, rounds + 1) for what in MEASURED}
    for what, commands in plans.items():
        for engine in MEASURED[what]:
            run = _runner(spark, tables, engine, what)
            if run is not None:
                times = [_seconds(run, command) for command in commands]
                yield _result(engine, what, rows, times)
    spark.stop()
    statements = {
        what: _on_one_copy(tables, commands, f"delta-{number}")
        for number, (what, commands) in enumerate(plans.items())
    }
    for what, times in measure_delta_spark(statements).items():
        yield _result(DELTA, what, rows, times)


def _on_one_copy(tables: RowTables, commands: Sequence[Command], name: str) -> list[str]:
    table = tables.copy("vectors", name)
    return [command.sql(table) for command in commands]


def _runner(spark: SparkSession, tables: RowTables, engine: str, what: str) -> Run | None:
    """How an engine runs the commands of a measurement; None if it is measured elsewhere."""
    name = f"{engine}-{what}".replace(" ", "-").replace(",", "").replace("%", "")
    if engine == OURS:
        path = tables.copy("vectors", name)
        return lambda command: _ours(spark, path, command)
    if engine == LOCAL:
        log = DeltaLog.for_path(tables.copy("vectors", name))
        return lambda command: _local(log, command)
    if engine == THEIRS:
        table = deltalake.DeltaTable(tables.copy("plain", name))
        return lambda command: _theirs(table, command)
    if engine == PLAIN:
        target = str(tables.directory / name)
        return lambda command: _plain(spark, str(tables.parquet), command, target)
    return None


def _ours(spark: SparkSession, path: str, command: Command) -> None:
    table = DeltaTable.forPath(spark, path)
    if command.values is not None:
        table.update(command.where, dict(command.values))
    elif command.where is not None:
        table.delete(command.where)
    elif command.is_merge:
        source = spark.read.parquet(str(command.source))
        merge = table.alias("t").merge(source.alias("s"), "t.key = s.key")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    else:
        write(spark.read.parquet(str(command.source)), path, mode="append")


def _local(log: DeltaLog, command: Command) -> None:
    if command.values is not None:
        log.update(set=command.values, predicate=command.where)
    elif command.where is not None:
        log.delete(command.where)
    else:
        merge = log.merge(pq.read_table(command.source), ["key"])
        merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _theirs(table: deltalake.DeltaTable, command: Command) -> None:
    if command.values is not None:
        table.update(updates=dict(command.values), predicate=command.where)
    elif command.where is not None:
        table.delete(command.where)
    else:
        merge = table.merge(
            pq.read_table(command.source), "t.key = s.key", source_alias="s", target_alias="t"
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _plain(spark: SparkSession, parquet: str, command: Command, target: str) -> None:
    rows = spark.read.parquet(parquet)
    if command.where is not None:
        rows.where(command.where).count()
    elif command.is_merge:
        source = spark.read.parquet(str(command.source)).withColumnRenamed("value", "other")
        joined = source.join(rows.select("key", "value"), "key", "left")
        joined.selectExpr("sum(value)", "sum(other)", "count(*)").collect()
    else:
        rows.write.parquet(target, mode="overwrite")


def _seconds(run: Run, command: Command) -> float:
    started_s = time.perf_counter()
    run(command)
    return time.perf_counter() - started_s


def _result(engine: str, what: str, rows: int, times: Sequence[float]) -> RowResult:
    counted = times[1:]
    return RowResult(engine, what, rows, min(counted), statistics.median(counted))
