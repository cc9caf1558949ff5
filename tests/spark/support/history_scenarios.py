"""Commands whose history two engines must tell alike: delta-spark, once, and ours.

It needs PySpark alone: `benchmarks/record_delta_spark.py` runs it beside Delta's jar, in another
environment, and writes what the jar told into `delta_spark_history.json`.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame, Row, SparkSession

__all__ = [
    "PROPERTIES",
    "SCENARIOS",
    "Done",
    "History",
    "Scenario",
    "Step",
    "merging",
    "vacuuming",
    "writing",
]

DATABASE = "told"
Step: TypeAlias = "str | Callable[[SparkSession, str, str], list[Row] | None]"
"""SQL in which `{t}` is the table by its path and `{n}` by its name; or a call with both."""
_VECTORS = "delta.enableDeletionVectors"
_FEED = "delta.enableChangeDataFeed"
_MAPPED = "delta.columnMapping.mode"
PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "plain": {_VECTORS: "false"},
    "vectors": {_VECTORS: "true"},
    "feed": {_VECTORS: "false", _FEED: "true"},
    "vectors and feed": {_VECTORS: "true", _FEED: "true"},
}
"""What the tables of the commands that change rows have."""
_TIME = re.compile(r"Time(Ms)?$")
_SIZE = re.compile(r"Bytes|Size|^size")
_ID = re.compile(r"#\d+L?")


@dataclass(frozen=True)
class Scenario:
    """Steps on a table, and what they tell in its history.

    Attributes:
        steps: What is run; only the commits of the last one are told.
        properties: Those of the table that is there before; None if there is none.
        partitioned: Whether that table is partitioned by `p`.
    """

    steps: Sequence[Step]
    properties: Mapping[str, str] | None = field(default_factory=dict)
    partitioned: bool = False


def rows(spark: SparkSession, first: int, end: int, files: int = 1) -> DataFrame:
    """Rows of which ten go into a file: `id`, `p` counts the files, `s` is a text."""
    numbers = spark.range(first, end, 1, files)
    return numbers.selectExpr("id", "CAST(id DIV 10 AS INT) AS p", "concat('n', id) AS s")


def writing(
    mode: str, first: int = 40, end: int = 50, *, by: str | None = None, **options: object
) -> Step:
    """`df.write.format("delta").save`."""

    def run(spark: SparkSession, path: str, name: str) -> None:
        writer = rows(spark, first, end).write.format("delta").mode(mode).options(**options)
        (writer if by is None else writer.partitionBy(by)).save(path)

    return run


def saving(mode: str, *, by: str | None = None, **options: object) -> Step:
    """`df.write.format("delta").saveAsTable`."""

    def run(spark: SparkSession, path: str, name: str) -> None:
        writer = rows(spark, 40, 50).write.format("delta").mode(mode).options(**options)
        (writer if by is None else writer.partitionBy(by)).saveAsTable(name)

    return run


def writing_to(how: str, *arguments: str) -> Step:
    """`df.writeTo`; the arguments are conditions."""

    def run(spark: SparkSession, path: str, name: str) -> None:
        from pyspark.sql.functions import expr

        writer = rows(spark, 10, 20).writeTo(name).using("delta")
        getattr(writer, how)(*map(expr, arguments))

    return run


_SOURCE = "(SELECT /*+ COALESCE(1) */ id, 1 AS p, 'new' AS s FROM range({first}, {end}))"
_MERGE = f"MERGE INTO {{{{t}}}} t USING {_SOURCE} s ON t.id = s.id "


def merging(clauses: str, first: int, end: int) -> str:
    """A MERGE of the rows with these ids."""
    return _MERGE.format(first=first, end=end) + clauses


_ALL_CLAUSES = """
WHEN MATCHED AND s.id = 28 THEN DELETE
WHEN MATCHED AND s.id < 30 THEN UPDATE SET s = s.s
WHEN NOT MATCHED AND s.id > 30 THEN INSERT (id, s) VALUES (s.id, s.s)
WHEN NOT MATCHED THEN INSERT *
WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET s = 'gone'
WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE
"""
_INSERT = "WHEN NOT MATCHED THEN INSERT *"

CHANGING: Mapping[str, Sequence[Step]] = {
    "DELETE of a range": ["DELETE FROM {t} WHERE id < 5"],
    "DELETE of scattered rows": ["DELETE FROM {t} WHERE id % 7 = 0"],
    "DELETE of a file": ["DELETE FROM {t} WHERE id < 10"],
    "DELETE of a file and a part": ["DELETE FROM {t} WHERE id < 15"],
    "DELETE of all that match": ["DELETE FROM {t} WHERE id >= 0"],
    "DELETE without a condition": ["DELETE FROM {t}"],
    "DELETE of nothing, by statistics": ["DELETE FROM {t} WHERE id = 999"],
    "DELETE of nothing, by the rows": ["DELETE FROM {t} WHERE id % 7 = 9"],
    "DELETE again": ["DELETE FROM {t} WHERE id < 5", "DELETE FROM {t} WHERE id BETWEEN 4 AND 6"],
    "DELETE of the rest": ["DELETE FROM {t} WHERE id < 5", "DELETE FROM {t} WHERE id < 10"],
    "UPDATE of a range": ["UPDATE {t} SET s = 'x' WHERE id < 5"],
    "UPDATE of scattered rows": ["UPDATE {t} SET s = 'x', p = p + 1 WHERE id % 7 = 0"],
    "UPDATE of a file": ["UPDATE {t} SET s = 'x' WHERE id < 10"],
    "UPDATE without a condition": ["UPDATE {t} SET s = 'x'"],
    "UPDATE of nothing": ["UPDATE {t} SET s = 'x' WHERE id = 999"],
    "UPDATE again": ["UPDATE {t} SET s = 'x' WHERE id < 5", "UPDATE {t} SET s = 'y' WHERE id = 9"],
    "MERGE, all clauses": [merging(_ALL_CLAUSES, 25, 33)],
    "MERGE, upsert": [merging(f"WHEN MATCHED THEN UPDATE SET * {_INSERT}", 25, 33)],
    "MERGE, inserts alone": [merging(_INSERT, 25, 33)],
    "MERGE, inserts of nothing": [merging(_INSERT, 25, 30)],
    "MERGE, updates alone": [merging("WHEN MATCHED THEN UPDATE SET s = s.s", 25, 33)],
    "MERGE, deletes alone": [merging("WHEN MATCHED THEN DELETE", 25, 33)],
    "MERGE, deletes of a file": [merging("WHEN MATCHED THEN DELETE", 20, 30)],
    "MERGE, nothing matches": [merging("WHEN MATCHED THEN UPDATE SET *", 50, 55)],
    "MERGE, by source": [merging("WHEN NOT MATCHED BY SOURCE THEN DELETE", 25, 33)],
    "MERGE, by source with a condition": [
        merging("WHEN NOT MATCHED BY SOURCE AND t.id > 20 THEN UPDATE SET s = 'z'", 25, 33)
    ],
    "MERGE with schema evolution": [
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT /*+ COALESCE(1) */ id, 7 AS more "
        "FROM range(28, 32)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * " + _INSERT
    ],
    "overwrite": [writing("overwrite")],
    "INSERT OVERWRITE": ["INSERT OVERWRITE {t} SELECT /*+ COALESCE(1) */ 1L, 1, 'x'"],
    "replaceWhere on rows": [writing("overwrite", replaceWhere="id >= 15", first=15, end=20)],
    "replaceWhere of nothing": [writing("overwrite", replaceWhere="id >= 40")],
    "REPLACE WHERE": [
        "INSERT INTO {t} REPLACE WHERE id BETWEEN 15 AND 16 SELECT /*+ COALESCE(1) */ 15L, 1, 'x'"
    ],
}
"""Run on tables of three files, with and without vectors and the change feed."""

PARTITIONED: Mapping[str, Sequence[Step]] = {
    "DELETE of a partition": ["DELETE FROM {t} WHERE p = 1"],
    "DELETE of no partition": ["DELETE FROM {t} WHERE p = 9"],
    "DELETE in a partition": ["DELETE FROM {t} WHERE p = 1 AND id % 7 = 0"],
    "UPDATE of a partition": ["UPDATE {t} SET s = 'x' WHERE p = 1"],
    "UPDATE of the partition's column": ["UPDATE {t} SET p = 5 WHERE id < 12"],
    "replaceWhere on a partition": [writing("overwrite", 10, 15, replaceWhere="p = 1")],
    "replaceWhere on an empty partition": [writing("overwrite", replaceWhere="p = 4")],
    "dynamic overwrite": [writing("overwrite", 10, 15, partitionOverwriteMode="dynamic")],
    "dynamic overwrite of a new one": [writing("overwrite", partitionOverwriteMode="dynamic")],
    "INSERT OVERWRITE of a partition": [
        "INSERT OVERWRITE {t} PARTITION (p = 1) (id, s) SELECT /*+ COALESCE(1) */ 1L, 'x'"
    ],
}
"""Run on tables of three partitions, with and without vectors."""

WRITES: Mapping[str, Sequence[Step]] = {
    "append": [writing("append")],
    "append of nothing": [writing("append", 40, 40)],
    "append, user metadata": [writing("append", userMetadata="mine")],
    "append that may merge schemas": [writing("append", mergeSchema=True)],
    "append of a column more": [
        lambda spark, path, name: (
            rows(spark, 40, 50)
            .selectExpr("*", "1 AS more")
            .write.format("delta")
            .mode("append")
            .option("mergeSchema", True)
            .save(path)
        )
    ],
    "overwrite of the schema": [
        lambda spark, path, name: (
            spark.range(0, 10, 1, 1)
            .write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", True)
            .save(path)
        )
    ],
    "ignore what is there": [writing("ignore")],
    "INSERT INTO": ["INSERT INTO {t} SELECT /*+ COALESCE(1) */ 1L, 1, 'x'"],
    "INSERT INTO of nothing": ["INSERT INTO {t} SELECT 1L, 1, 'x' WHERE false"],
}
"""Run on a table of three files."""

ALTERING: Mapping[str, Sequence[Step]] = {
    "SET TBLPROPERTIES": ["ALTER TABLE {t} SET TBLPROPERTIES (delta.appendOnly = true, a = 'b')"],
    "UNSET TBLPROPERTIES": [
        "ALTER TABLE {t} SET TBLPROPERTIES (a = 'b')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES (a)",
    ],
    "UNSET TBLPROPERTIES IF EXISTS": ["ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS (nope, a)"],
    "COMMENT ON TABLE": ["COMMENT ON TABLE {t} IS 'says'"],
    "ADD COLUMN": ["ALTER TABLE {t} ADD COLUMN x INT"],
    "ADD COLUMNS": [
        "ALTER TABLE {t} ADD COLUMNS (x INT COMMENT 'an x' FIRST, y STRUCT<a: INT> AFTER id)"
    ],
    "ADD COLUMN in a struct": [
        "ALTER TABLE {t} ADD COLUMN y STRUCT<a: INT>",
        "ALTER TABLE {t} ADD COLUMN y.b STRING COMMENT 'in' AFTER a",
    ],
    "DROP COLUMN": ["ALTER TABLE {t} DROP COLUMN s"],
    "DROP COLUMNS": ["ALTER TABLE {t} DROP COLUMNS (s, p)"],
    "RENAME COLUMN": ["ALTER TABLE {t} RENAME COLUMN s TO `a b`"],
    "ALTER COLUMN, comment": ["ALTER TABLE {t} ALTER COLUMN s COMMENT 'says'"],
    "ALTER COLUMN, type": ["ALTER TABLE {t} ALTER COLUMN p TYPE LONG"],
    "ALTER COLUMN, position": ["ALTER TABLE {t} ALTER COLUMN s FIRST"],
    "ALTER COLUMN, after": ["ALTER TABLE {t} ALTER COLUMN id AFTER p"],
    "ALTER COLUMN, not null": ["ALTER TABLE {t} ALTER COLUMN id SET NOT NULL"],
    "ALTER COLUMN, null": ["ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL"],
    "ALTER COLUMN, default": ["ALTER TABLE {t} ALTER COLUMN s SET DEFAULT 'x'"],
    "ALTER COLUMN, no default": [
        "ALTER TABLE {t} ALTER COLUMN s SET DEFAULT 'x'",
        "ALTER TABLE {t} ALTER COLUMN s DROP DEFAULT",
    ],
    "ALTER COLUMNS": ["ALTER TABLE {t} ALTER COLUMN id COMMENT 'a', s COMMENT 'b'"],
    "REPLACE COLUMNS": ["ALTER TABLE {t} REPLACE COLUMNS (id LONG, s STRING COMMENT 'c', z INT)"],
    "ADD CONSTRAINT": ["ALTER TABLE {t} ADD CONSTRAINT Small CHECK (id < 1000 AND p >= 0)"],
    "DROP CONSTRAINT": [
        "ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 1000)",
        "ALTER TABLE {t} DROP CONSTRAINT Small",
    ],
    "DROP CONSTRAINT IF EXISTS": ["ALTER TABLE {t} DROP CONSTRAINT IF EXISTS nope"],
}
"""Run on a table of three files with mapped columns, defaults and type widening."""
_ALTERED = {
    _VECTORS: "false",
    _MAPPED: "name",
    "delta.feature.allowColumnDefaults": "supported",
    "delta.enableTypeWidening": "true",
}

_NEW = "USING delta AS SELECT /*+ COALESCE(1) */ id, 'x' AS s FROM range(5)"
_MADE = "CREATE TABLE {n} (id LONG, s STRING) USING delta"
_COLUMNS = "(id LONG NOT NULL COMMENT 'a key', s STRING) USING delta"
_MORE = "PARTITIONED BY (s) COMMENT 'made' TBLPROPERTIES (delta.appendOnly = false, a = 'b')"
_SOURCE_OF_CLONE = f"CREATE TABLE delta.`{{path}}-source` {_NEW}"


def parquet_files(*by: str) -> Step:
    """Files of Parquet where the table is to be."""

    def run(spark: SparkSession, path: str, name: str) -> None:
        rows(spark, 0, 30, 3).write.partitionBy(*by).parquet(path)

    return run


CREATING: Mapping[str, Sequence[Step]] = {
    "CREATE TABLE": [f"CREATE TABLE {{n}} {_COLUMNS}"],
    "CREATE TABLE with more": [f"CREATE TABLE {{n}} {_COLUMNS} {_MORE}"],
    "CREATE TABLE by path": [f"CREATE TABLE {{t}} {_COLUMNS}"],
    "CREATE TABLE at a place": [f"CREATE TABLE {{n}} {_COLUMNS} LOCATION '{{path}}'"],
    "CREATE TABLE, clustered": ["CREATE TABLE {n} (id LONG, s STRING) USING delta CLUSTER BY (id)"],
    "CREATE TABLE IF NOT EXISTS": [_MADE, _MADE.replace("TABLE", "TABLE IF NOT EXISTS")],
    "CREATE TABLE AS SELECT": [f"CREATE TABLE {{n}} {_NEW}"],
    "CREATE TABLE AS SELECT, partitioned": [
        "CREATE TABLE {n} USING delta PARTITIONED BY (s) COMMENT 'made' TBLPROPERTIES (a = 'b') "
        "AS SELECT /*+ COALESCE(1) */ id, 'x' AS s FROM range(5)"
    ],
    "CREATE TABLE AS SELECT, clustered": [
        "CREATE TABLE {n} USING delta CLUSTER BY (id) AS SELECT /*+ COALESCE(1) */ id FROM range(5)"
    ],
    "CREATE TABLE AS SELECT by path": [f"CREATE TABLE {{t}} {_NEW}"],
    "CREATE OR REPLACE TABLE, new": [f"CREATE OR REPLACE TABLE {{n}} {_COLUMNS}"],
    "CREATE OR REPLACE TABLE": [
        f"CREATE TABLE {{n}} {_NEW}",
        f"CREATE OR REPLACE TABLE {{n}} {_COLUMNS}",
    ],
    "REPLACE TABLE": [f"CREATE TABLE {{n}} {_NEW}", f"REPLACE TABLE {{n}} {_COLUMNS} {_MORE}"],
    "REPLACE TABLE AS SELECT": [f"CREATE TABLE {{n}} {_NEW}", f"REPLACE TABLE {{n}} {_NEW}"],
    "CREATE OR REPLACE TABLE AS SELECT": [
        f"CREATE TABLE {{n}} {_NEW}",
        f"CREATE OR REPLACE TABLE {{n}} {_NEW}",
    ],
    "CREATE OR REPLACE TABLE AS SELECT, new": [f"CREATE OR REPLACE TABLE {{n}} {_NEW}"],
    "save, new": [writing("error")],
    "save, new and partitioned": [writing("append", by="p")],
    "save in mode overwrite, new": [writing("overwrite")],
    "save in mode ignore, new": [writing("ignore")],
    "saveAsTable, new": [saving("error")],
    "saveAsTable, new and partitioned": [saving("error", by="p")],
    "saveAsTable in mode append, new": [saving("append")],
    "saveAsTable in mode overwrite, new": [saving("overwrite")],
    "saveAsTable in mode ignore, new": [saving("ignore")],
    "saveAsTable in mode append": [saving("error"), saving("append")],
    "saveAsTable in mode overwrite": [saving("error"), saving("overwrite")],
    "saveAsTable in mode overwrite, with the schema": [
        saving("error"),
        saving("overwrite", overwriteSchema=True),
    ],
    "saveAsTable in mode overwrite, by replaceWhere": [
        saving("error", by="p"),
        saving("overwrite", replaceWhere="p = 4"),
    ],
    "saveAsTable in mode ignore": [saving("error"), saving("ignore")],
    "writeTo, create": [writing_to("create")],
    "writeTo, createOrReplace, new": [writing_to("createOrReplace")],
    "writeTo, createOrReplace": [writing_to("create"), writing_to("createOrReplace")],
    "writeTo, replace": [writing_to("create"), writing_to("replace")],
    "writeTo, append": [writing_to("create"), writing_to("append")],
    "writeTo, overwrite": [writing_to("create"), writing_to("overwrite", "id >= 10")],
    "writeTo, overwrite of all": [writing_to("create"), writing_to("overwrite", "true")],
    "writeTo, overwritePartitions": [writing_to("create"), writing_to("overwritePartitions")],
    "TRUNCATE TABLE": [f"CREATE TABLE {{n}} {_NEW}", "TRUNCATE TABLE {n}"],
    "CLUSTER BY": [
        "CREATE TABLE {n} (id LONG, s STRING) USING delta CLUSTER BY (id)",
        "ALTER TABLE {n} CLUSTER BY (s, id)",
    ],
    "CLUSTER BY NONE": [
        "CREATE TABLE {n} (id LONG, s STRING) USING delta CLUSTER BY (id)",
        "ALTER TABLE {n} CLUSTER BY NONE",
    ],
    "SYNC IDENTITY": [
        "CREATE TABLE {n} (id LONG, n LONG GENERATED BY DEFAULT AS IDENTITY) USING delta",
        "INSERT INTO {n} SELECT /*+ COALESCE(1) */ 1L, 10L",
        "ALTER TABLE {n} ALTER COLUMN n SYNC IDENTITY",
    ],
    "CLONE": [_SOURCE_OF_CLONE, "CREATE TABLE {t} SHALLOW CLONE delta.`{path}-source`"],
    "CLONE of an old version": [
        _SOURCE_OF_CLONE,
        "DELETE FROM delta.`{path}-source`",
        "CREATE OR REPLACE TABLE {t} SHALLOW CLONE delta.`{path}-source` VERSION AS OF 0",
    ],
    "CLONE with properties, of no rows": [
        f"CREATE TABLE delta.`{{path}}-source` {_COLUMNS}",
        "CREATE TABLE {t} SHALLOW CLONE delta.`{path}-source` TBLPROPERTIES ('x' = 'y')",
    ],
    "CLONE over a table without rows": [
        _SOURCE_OF_CLONE,
        f"CREATE TABLE {{t}} {_COLUMNS}",
        "CREATE OR REPLACE TABLE {t} SHALLOW CLONE delta.`{path}-source`",
    ],
    "CONVERT": [parquet_files(), "CONVERT TO DELTA parquet.`{path}`"],
    "CONVERT, partitioned": [
        parquet_files("p"),
        "CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p INT)",
    ],
    "CONVERT without statistics": [
        parquet_files(),
        "CONVERT TO DELTA parquet.`{path}` NO STATISTICS",
    ],
    "CONVERT of a Delta table": [f"CREATE TABLE {{t}} {_NEW}", "CONVERT TO DELTA parquet.`{path}`"],
}
"""Run where there is no table."""


def vacuuming(statement: str) -> Step:
    """A VACUUM without the check of its retention."""
    key = "spark.databricks.delta.retentionDurationCheck.enabled"

    def run(spark: SparkSession, path: str, name: str) -> list[Row]:
        spark.conf.set(key, "false")
        try:
            return spark.sql(statement.format(t=f"delta.`{path}`")).collect()
        finally:
            spark.conf.unset(key)

    return run


def _dropping(feature: str, *before: Step) -> Sequence[Step]:
    return [*before, f"ALTER TABLE {{t}} DROP FEATURE {feature}"]


def _setting(key: str, value: str) -> str:
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{key}' = '{value}')"


_CHECKED = "ALTER TABLE {t} ADD CONSTRAINT k CHECK (id >= 0)"
DROPPING: Mapping[str, Sequence[Step]] = {
    "DROP FEATURE columnMapping": _dropping("columnMapping", _setting(_MAPPED, "name")),
    "DROP FEATURE typeWidening": _dropping(
        "typeWidening",
        _setting("delta.enableTypeWidening", "true"),
        "ALTER TABLE {t} ALTER COLUMN p TYPE BIGINT",
    ),
    "DROP FEATURE rowTracking": _dropping(
        "rowTracking", _setting("delta.enableRowTracking", "true")
    ),
    "DROP FEATURE domainMetadata": _dropping(
        "domainMetadata", _setting("delta.feature.domainMetadata", "supported")
    ),
    "DROP FEATURE v2Checkpoint": _dropping(
        "v2Checkpoint", _setting("delta.checkpointPolicy", "v2")
    ),
    "DROP FEATURE inCommitTimestamp": _dropping(
        "inCommitTimestamp", _setting("delta.enableInCommitTimestamps", "true")
    ),
    "DROP FEATURE checkConstraints": _dropping(
        "checkConstraints", _CHECKED, "ALTER TABLE {t} DROP CONSTRAINT k"
    ),
    "DROP FEATURE vacuumProtocolCheck": _dropping(
        "vacuumProtocolCheck", _setting("delta.feature.vacuumProtocolCheck", "supported")
    ),
}
"""Run on a plain table."""

_SOME_GONE = ("DELETE FROM {t} WHERE id < 15", "INSERT INTO {t} VALUES (99, 9, 'x')")
CARING: Mapping[str, Sequence[Step]] = {
    "RESTORE": [*_SOME_GONE, "RESTORE TABLE {t} TO VERSION AS OF 1"],
    "RESTORE of nothing": ["RESTORE TABLE {t} TO VERSION AS OF 1"],
    "RESTORE to no rows": [*_SOME_GONE, "RESTORE TABLE {t} TO VERSION AS OF 0"],
    "VACUUM": [*_SOME_GONE, "VACUUM {t}"],
    "VACUUM without retention": [*_SOME_GONE, vacuuming("VACUUM {t} RETAIN 0 HOURS")],
    "VACUUM of a dry run": [*_SOME_GONE, vacuuming("VACUUM {t} RETAIN 0 HOURS DRY RUN")],
}
"""Run on tables without partitions, with vectors and without."""


def _scenarios() -> Iterator[tuple[str, Scenario]]:
    for what, properties in PROPERTIES.items():
        for name, steps in CHANGING.items():
            yield f"{name} ({what})", Scenario(steps, properties)
    for what in ("plain", "vectors"):
        for name, steps in PARTITIONED.items():
            yield f"{name} ({what})", Scenario(steps, PROPERTIES[what], partitioned=True)
    for what in ("plain", "vectors"):
        for name, steps in CARING.items():
            yield f"{name} ({what})", Scenario(steps, PROPERTIES[what])
    yield from ((name, Scenario(steps, PROPERTIES["plain"])) for name, steps in WRITES.items())
    yield from ((name, Scenario(steps, _ALTERED)) for name, steps in ALTERING.items())
    yield from ((name, Scenario(steps, None)) for name, steps in CREATING.items())
    yield from ((name, Scenario(steps, PROPERTIES["plain"])) for name, steps in DROPPING.items())


SCENARIOS: Mapping[str, Scenario] = dict(_scenarios())


@dataclass(frozen=True)
class Done:
    """What the last step of a scenario did.

    Attributes:
        path: The table.
        rows: What the step answered.
        commits: What it committed.
    """

    path: str
    rows: Sequence[Row]
    commits: Sequence[Path]

    @property
    def told(self) -> list[dict[str, object]]:
        """What the commits say of themselves."""
        return [_told(commit, self.path) for commit in self.commits]


class History:
    """Runs scenarios in a session, each on a table of its own."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder
        self._num_tables = 0
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE} LOCATION '{folder}/{DATABASE}'")

    def told(self, scenario: Scenario) -> list[dict[str, object]]:
        """What the commits of the last step say of themselves; an error tells its condition."""
        return self.run(scenario).told

    def run(self, scenario: Scenario) -> Done:
        """Run the steps on a table of their own."""
        self._num_tables += 1
        name = f"t{self._num_tables}"
        path = f"{self._folder}/{DATABASE}/{name}"
        if scenario.properties is not None:
            shutil.copytree(self._seed(scenario), path)
        for step in scenario.steps:
            seen = set(_commits(path))
            answer = self._run(step, path, f"{DATABASE}.{name}")
        return Done(path, answer, [commit for commit in _commits(path) if commit not in seen])

    def _run(self, step: Step, path: str, name: str) -> list[Row]:
        if isinstance(step, str):
            return self._spark.sql(step.format(t=f"delta.`{path}`", n=name, path=path)).collect()
        return list(step(self._spark, path, name) or ())

    def _seed(self, scenario: Scenario) -> str:
        """A table of three files, which is made once."""
        properties = scenario.properties or {}
        key = "-".join([*properties.values(), str(scenario.partitioned)])
        path = f"{self._folder}/seeds/{key}"
        if not Path(path).exists():
            given = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
            by = "PARTITIONED BY (p)" if scenario.partitioned else ""
            self._spark.sql(
                f"CREATE TABLE delta.`{path}` (id LONG, p INT, s STRING) USING delta {by} "
                f"TBLPROPERTIES ({given})"
            )
            rows(self._spark, 0, 30, 3).write.format("delta").mode("append").save(path)
        return path


def _commits(path: str) -> list[Path]:
    return sorted(Path(path, "_delta_log").glob("*.json"))


def _told(commit: Path, path: str) -> dict[str, object]:
    """What a commit says: times and sizes only by their names."""
    actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    metrics = info.get("operationMetrics", {})
    return {
        "operation": info["operation"],
        "parameters": {
            name: _ID.sub("", value).replace(path, "PATH") if isinstance(value, str) else value
            for name, value in info.get("operationParameters", {}).items()
        },
        "metrics": {
            name: None if _TIME.search(name) or _SIZE.search(name) else value
            for name, value in metrics.items()
        },
        "isBlindAppend": info.get("isBlindAppend"),
    }
