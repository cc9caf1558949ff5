"""Conditions on partition columns of any kind, judged row by row, and what commands make of them.

The judge is Spark, over the same rows in a Parquet table without partitions: it knows nothing of a
log, of partition values as text, or of a tree of ours.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random  # noqa: TID251 - the same conditions each time

from pyspark.sql import SparkSession

from optimist.core import DeltaLog
from optimist.spark import DeltaTable, read, write

__all__ = ["COMMANDS", "LEAVES", "PartitionedTable", "random_conditions"]

COLUMNS = (
    "i INT, s STRING, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, m DECIMAL(9,2), f DOUBLE, b BOOLEAN,"
    " c CHAR(3)"
)
ROWS = (
    "(0, 1, 'a', DATE'2020-02-29', TIMESTAMP'2020-02-29 23:30:00', "
    "TIMESTAMP_NTZ'2020-02-29 23:30:00', 1.50, 0.5D, true, 'A')",
    "(1, 2, 'A', DATE'2021-01-01', TIMESTAMP'2021-01-01 00:00:00', "
    "TIMESTAMP_NTZ'2021-01-01 00:00:00', -1.50, double('NaN'), false, 'B')",
    "(2, -3, 'b ', DATE'2021-12-31', TIMESTAMP'2021-12-31 12:00:00.000001', "
    "TIMESTAMP_NTZ'1899-12-31 12:00:00.000001', 0.00, -0.0D, true, 'AB')",
    "(3, NULL, 'ä', DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59', "
    "TIMESTAMP_NTZ'2021-06-01 05:00:00', NULL, 1e300D, NULL, NULL)",
    "(4, 10, NULL, NULL, NULL, NULL, 12345.67, NULL, false, 'A')",
    "(5, 1, 'x%_y', DATE'2021-01-02', TIMESTAMP'2021-01-01 05:00:00', NULL, 1.49, 0.0D, NULL, 'a')",
)
LEAVES = (
    "year(d) = 2021",
    "d >= current_date() - 7",
    "d < current_date()",
    "upper(s) = 'A'",
    "s || '!' = 'a!'",
    "i % 2 = 0",
    "abs(i) > 1",
    "i + 1 = 2",
    "CAST(i AS STRING) LIKE '1%'",
    "coalesce(i, 0) = 0",
    "date_trunc('MONTH', t) = TIMESTAMP'2021-01-01 00:00:00'",
    "hour(t) = 0",
    "t < '2021-01-01'",
    "t = TIMESTAMP'2021-01-01 00:00:00'",
    "t IS NULL",
    "CAST(t AS DATE) = DATE'2021-01-01'",
    "n >= TIMESTAMP_NTZ'2021-01-01 00:00:00'",
    "CAST(n AS DATE) = '2020-02-29'",
    "c = 'A'",
    "c IN ('A', 'AB')",
    "c LIKE 'A%'",
    "length(c) = 3",
    "c <> 'A'",
    "m * 2 > 1",
    "m = 1.50",
    "m IN (1.5, 0)",
    "f = 0",
    "f > 0.5",
    "isnan(f)",
    "f = double('NaN')",
    "b",
    "NOT b",
    "b IS NULL",
    "i BETWEEN 1 AND 2",
    "i IN (1, 2)",
    "i NOT IN (1, NULL)",
    "i <=> NULL",
    "i IS NOT NULL",
    "s RLIKE '^[a-b]'",
    "s LIKE 'x\\\\%%'",
    "s > 'a'",
    "startswith(s, 'a')",
    "trim(s) = 'b'",
    "CASE WHEN i = 1 THEN s = 'a' ELSE d IS NULL END",
    "if(b, i, 0) = 1",
    "struct(i, s) = struct(1, 'a')",
    "array_contains(array(1, 2), i)",
    "exists(array(i, 7), x -> x = 1)",
    "try_divide(1, i) > 0",
    "concat_ws(',', s, i) = 'a,1'",
    "nullif(s, 'a') IS NULL",
    "i = 1 AND s = 'a'",
    "TRUE",
    "1 = 1",
    "FALSE",
    "CAST(NULL AS BOOLEAN)",
    "current_date() > '2000-01-01'",
)
COMMANDS = ("OPTIMIZE", "REORG", "DELETE", "replaceWhere")


def random_conditions(seed: int, count: int) -> list[str]:
    """Each leaf, and then trees of them."""
    source = Random(seed)

    def tree(depth: int) -> str:
        kind = source.choice(("leaf", "not", "and", "or")) if depth else "leaf"
        if kind == "leaf":
            return source.choice(LEAVES)
        if kind == "not":
            return f"NOT ({tree(depth - 1)})"
        return f"({tree(depth - 1)}) {kind.upper()} ({tree(depth - 1)})"

    return [*LEAVES, *(tree(3) for _ in range(count))]


@dataclass(frozen=True)
class PartitionedTable:
    """A row in each of two files of each partition, and the same rows without partitions.

    Attributes:
        spark: A session for which Delta is enabled.
        path: An empty directory.
    """

    spark: SparkSession
    path: Path
    names: list[str] = field(default_factory=lambda: [part.split()[0] for part in _parts()])

    def build(self) -> PartitionedTable:
        """Make both."""
        spark, original = self.spark, self.path / "original"
        spark.sql(f"CREATE TABLE judged (k INT, {COLUMNS}) USING parquet")
        spark.sql(f"INSERT INTO judged VALUES {', '.join(ROWS)}")
        spark.sql(
            f"CREATE TABLE delta.`{original}` (id INT, k INT, {COLUMNS}) USING delta "
            f"PARTITIONED BY (k, {', '.join(self.names)}) "
            "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
        for _ in range(2):
            spark.sql(
                f"INSERT INTO delta.`{original}` SELECT /*+ REPARTITION(1) */ e.id, judged.* "
                "FROM judged CROSS JOIN (SELECT explode(array(1, 2)) AS id) e"
            )
        spark.sql(f"DELETE FROM delta.`{original}` WHERE id = 1")  # a vector for each file
        return self

    def close(self) -> None:
        """Drop what the catalog has."""
        self.spark.sql("DROP TABLE judged")

    def matching(self, conditions: list[str]) -> list[set[int]]:
        """For each condition, the rows for which it is true, by their numbers."""
        asked = [f"({text}) <=> TRUE AS r{at}" for at, text in enumerate(conditions)]
        rows = self.spark.sql(f"SELECT k, {', '.join(asked)} FROM judged").collect()
        return [{row.k for row in rows if row[f"r{at}"]} for at in range(len(conditions))]

    def changed(self, command: str, condition: str) -> tuple[set[int], bool]:
        """The partitions of which a command removed files, and whether it was all of these."""
        path = str(self.path / "copy")
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.path / "original", path)
        log = DeltaLog.for_path(path)
        version = log.snapshot().version
        self._run(command, path, condition)
        removed = [] if log.snapshot().version == version else _removed(log, version + 1)
        return set(removed), all(removed.count(k) == 2 for k in removed)

    def _run(self, command: str, path: str, condition: str) -> None:
        if command == "OPTIMIZE":
            DeltaTable.forPath(self.spark, path).optimize().where(condition).executeCompaction()
        elif command == "REORG":
            self.spark.sql(f"REORG TABLE delta.`{path}` WHERE {condition} APPLY (PURGE)")
        elif command == "DELETE":
            DeltaTable.forPath(self.spark, path).delete(condition)
        else:
            none = read(self.spark, path).where("FALSE")
            write(none, path, mode="overwrite", replaceWhere=condition)


def _parts() -> list[str]:
    return COLUMNS.replace("(9,2)", "").split(", ")


def _removed(log: DeltaLog, version: int) -> list[int]:
    lines = Path(log.table_path, "_delta_log", f"{version:020}.json").read_text().splitlines()
    found = [json.loads(line)["remove"] for line in lines if '"remove"' in line]
    return [int(remove["partitionValues"]["k"]) for remove in found]
