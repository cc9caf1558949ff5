"""One random condition with subqueries in one command, held against SELECTs of Spark."""

from __future__ import annotations

import random  # noqa: TID251 - a case is its seed: the same chance each time it is run
from collections import Counter
from pathlib import Path

import deltalake
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from optimist.core import DeltaLog
from random_subqueries import other_rows, own_rows, random_condition

__all__ = ["COMMANDS", "run_case"]

_DEFAULTS = "spark.databricks.delta.properties.defaults."
_SOURCE = "(SELECT k, max(w) + 100 AS w FROM r GROUP BY k) s"
Row = tuple[object, ...]
COMMANDS = ("delete", "update", "merge", "merge on", "insert")


def run_case(spark: SparkSession, folder: Path, chance: random.Random, command: str) -> None:
    """Run a command on a random table, and compare what it leaves."""
    path, other = str(folder / "own"), str(folder / "other")
    given = {
        f"{_DEFAULTS}{name}": chance.choice(["true", "false"])
        for name in ("enableDeletionVectors", "enableChangeDataFeed")
    }
    log = DeltaLog.for_path(path, given)
    log.append(own_rows(chance), partition_by=chance.choice([None, ["p"]]))
    log.append(own_rows(chance))
    DeltaLog.for_path(other, {}).append(other_rows(chance))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW r AS SELECT * FROM delta.`{other}`")
    try:
        _compare(spark, path, chance, command)
    finally:
        spark.catalog.dropTempView("r")


def _compare(spark: SparkSession, path: str, chance: random.Random, command: str) -> None:
    own = f"delta.`{path}`"
    condition = random_condition(chance, own)
    before = _rows(path)
    try:
        wanted = _wanted(spark, own, command, condition, before)
    except PySparkException:
        wanted = None  # Spark itself can't evaluate it
    try:
        spark.sql(_statement(own, command, condition))
    except PySparkException:
        assert wanted is None, condition
        wanted = before
    assert wanted is not None, condition
    assert _rows(path) == wanted, condition


def _statement(own: str, command: str, condition: str) -> str:
    merge = f"MERGE INTO {own} t USING {_SOURCE} ON t.id = s.k"
    return {
        "delete": f"DELETE FROM {own} t WHERE {condition}",
        "update": f"UPDATE {own} t SET a = a + 10 WHERE {condition}",
        "merge": f"{merge} WHEN MATCHED AND {condition} THEN UPDATE SET a = s.w",
        "merge on": f"{merge} AND ({condition}) WHEN MATCHED THEN UPDATE SET a = s.w "
        "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.k, s.w)",
        "insert": f"{merge} AND ({condition}) "
        "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.k, s.w)",
    }[command]


def _wanted(
    spark: SparkSession, own: str, command: str, condition: str, before: Counter[Row]
) -> Counter[Row]:
    """The rows that the command should leave."""

    def found(sql: str) -> Counter[Row]:
        return Counter(map(tuple, spark.sql(sql).collect()))

    if command in ("delete", "update"):
        gone = found(f"SELECT id, a, p FROM {own} t WHERE {condition}")
        new = Counter({(i, _plus(a), p): n for (i, a, p), n in gone.items()})
        return before - gone + (new if command == "update" else Counter())
    pairs = spark.sql(
        f"SELECT t.id, t.a, t.p, s.k, s.w FROM {own} t JOIN {_SOURCE} ON t.id = s.k "
        f"WHERE {condition}"
    ).collect()
    gone = Counter(tuple(row[:3]) for row in pairs)
    new = Counter((row[0], row[4], row[2]) for row in pairs)
    met = {row[3] for row in pairs}
    alone = spark.sql(f"SELECT k, w FROM {_SOURCE}").collect()
    added = Counter((row[0], row[1], None) for row in alone if row[0] not in met)
    if command == "insert":
        return before + added
    return before - gone + new + (added if command == "merge on" else Counter())


def _plus(value: object) -> object:
    return value + 10 if isinstance(value, int) else None


def _rows(path: str) -> Counter[Row]:
    """The table as another engine reads it."""
    engine = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    table = pa.table(engine.execute("SELECT id, a, p FROM t").read_all())
    return Counter(tuple(row.values()) for row in table.to_pylist())
