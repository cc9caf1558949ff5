"""Run by test_subqueries_connect.py: conditions with subqueries of a Spark Connect client."""

from __future__ import annotations

import random  # noqa: TID251 - a case is its seed: the same chance each time it is run
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from connect_process import kind_of, tell
from optimist.core import DeltaLog
from optimist.spark import DeltaTable, enable, read, write
from optimist.spark.commands.writing.data_writer import DataWriter
from subquery_runs import COMMANDS, run_case

_WRITE = DataWriter.write
_LAST = "id >= (SELECT max(x.id) FROM {} x)"
_SOURCE = "(SELECT explode(array(5L, 500L, 501L)) AS id)"
_MERGE = f"MERGE INTO {{}} t USING {_SOURCE} s ON t.id = s.id"


def rows(*given: tuple[int, int]) -> pa.Table:
    ids, numbers = zip(*given, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "a": pa.array(numbers, pa.int64())})


def made(path: Path) -> str:
    """A table of two files."""
    log = DeltaLog.for_path(str(path), {})
    log.append(rows((1, 1), (2, 2), (3, 3)))
    log.append(rows((4, 4), (5, 5)))
    return str(path)


def rows_of(path: str) -> list[list[int]]:
    found = DeltaLog.for_path(path, {}).to_arrow().select(["id", "a"]).to_pylist()
    return sorted([row["id"], row["a"]] for row in found)


def meeting(between: Callable[[], object]) -> None:
    """Run something between the write of the next command's files and its commit."""
    pending = [between]

    def write_then_meet(*arguments: object, **more: object) -> object:
        written = _WRITE(*arguments, **more)
        if pending:
            pending.pop()()
        return written

    DataWriter.write = write_then_meet


def problem(case: Callable[[], None]) -> str | None:
    try:
        case()
    except Exception as error:  # noqa: BLE001 - the test shows it
        return f"{type(error).__name__}: {error}"[:600]
    return None


def tell_random(spark: SparkSession, folder: Path, num_seeds: int) -> None:
    for command in COMMANDS:
        problems = {}
        for seed in range(num_seeds):
            place = folder / f"{command} {seed}"
            place.mkdir()
            chance = random.Random(f"{seed} {command}")
            found = problem(lambda: run_case(spark, place, chance, command))  # noqa: B023
            if found is not None:
                problems[seed] = found
        tell(command, problems)


def tell_refused(spark: SparkSession, folder: Path) -> None:
    path = made(folder / "refused")
    table = DeltaTable.forPath(spark, path)
    for name, condition in {
        "a star outside": "struct(*) IN (SELECT struct(1L, 1L))",
        "a random subquery": "id IN (SELECT CAST(rand() * 9 AS BIGINT))",
        "a column of its own": "id IN (SELECT nothing)",
    }.items():
        tell(name, kind_of(lambda: table.delete(condition)))  # noqa: B023
    source = spark.range(3).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id AND t.id IN (SELECT 1)")
    tell("an outer join", kind_of(merge.whenNotMatchedBySourceDelete().execute))
    asked = sf.col("id").isin(1) & spark.range(1).exists()
    tell("a column", kind_of(lambda: table.delete(asked)))
    replaced = rows_frame(spark).write.format("delta").mode("overwrite")
    replaced = replaced.option("replaceWhere", "id IN (SELECT 1)")
    tell("replaceWhere", kind_of(lambda: replaced.save(path)))
    tell("after the refusals", rows_of(path) == [[at, at] for at in range(1, 6)])


def rows_frame(spark: SparkSession):
    return spark.range(1, 2).selectExpr("id", "id AS a")


def tell_texts(spark: SparkSession, folder: Path) -> None:
    """What stands in the history, and what is left in the session."""
    path = made(folder / "texts")
    condition = f"id IN (SELECT max(x.id) FROM delta.`{path}` x) AND a > 1"
    spark.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")
    told = DeltaTable.forPath(spark, path).history(1).first()
    tell("the history", told.operationParameters["predicate"] == f'["{condition}"]')
    tell("views left", [view.name for view in spark.catalog.listTables() if view.isTemporary])
    tell("texts", rows_of(path))


def tell_paths(spark: SparkSession, folder: Path) -> None:
    """A statement without an alias names columns under the path of a table."""
    for name, sql in {
        "DELETE by path": "DELETE FROM {t} WHERE {t}.id = 2",
        "UPDATE by path": "UPDATE {t} SET a = {t}.a + 10 WHERE {t}.id > 4",
        "MERGE by path": "MERGE INTO {t} USING {q} ON {t}.id = {q}.id AND {q}.a < 3 "
        "WHEN MATCHED THEN UPDATE SET a = {q}.a + 10 WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "EXISTS by path": "DELETE FROM {t} WHERE EXISTS "
        "(SELECT 1 FROM {q} x WHERE x.id = {t}.id AND x.a > 2)",
    }.items():
        path, other = made(folder / name / "t"), made(folder / name / "q")
        spark.sql(sql.format(t=f"delta.`{path}`", q=f"delta.`{other}`"))
        tell(name, rows_of(path))


def tell_conflicts(spark: SparkSession, folder: Path) -> None:
    """A subquery over the table itself depends on the whole table."""
    far = rows((500, 0))
    for name, sql in {
        "DELETE": f"DELETE FROM {{}} WHERE {_LAST}",
        "UPDATE": f"UPDATE {{}} SET a = 99 WHERE {_LAST}",
        "MERGE": f"{_MERGE} WHEN MATCHED AND t.{_LAST} THEN UPDATE SET a = 99",
        "ON": f"{_MERGE} AND t.{_LAST} WHEN MATCHED THEN UPDATE SET a = 99",
        "a value": "UPDATE {} SET a = (SELECT max(x.id) FROM {} x) WHERE id = 5",
    }.items():
        path = made(folder / f"conflict {name}")
        named = f"delta.`{path}`"
        meeting(lambda: DeltaLog.for_path(path, {}).append(far))  # noqa: B023
        ended = kind_of(lambda: spark.sql(sql.format(named, named)))  # noqa: B023
        DataWriter.write = _WRITE
        is_kept = rows_of(path) == [[at, at] for at in range(1, 6)] + [[500, 0]]
        tell(f"{name} beside a commit", [ended, is_kept])
        spark.conf.set("spark.optimist.conflict.retry", "true")
        meeting(lambda: DeltaLog.for_path(path, {}).append(rows((501, 0))))  # noqa: B023
        ended = kind_of(lambda: spark.sql(sql.format(named, named)))  # noqa: B023
        DataWriter.write = _WRITE
        spark.conf.unset("spark.optimist.conflict.retry")
        tell(f"{name} again", [ended, rows_of(path)[4:]])


def tell_views(spark: SparkSession, folder: Path) -> None:
    """A view shows the version that its frame was made of."""
    path = made(folder / "views")
    read(spark, path).createOrReplaceTempView("old_rows")
    spark.sql(f"UPDATE delta.`{path}` SET a = a + 1 WHERE id = 3")
    table = DeltaTable.forPath(spark, path)
    condition = "id IN (SELECT id FROM old_rows WHERE a = 3)"
    tell("an old view", kind_of(lambda: table.delete(condition)))
    over = spark.range(9).selectExpr("id", "id AS a").where("id IN (SELECT id FROM old_rows)")
    tell("an overwrite", kind_of(lambda: write(over, path, mode="overwrite")))
    read(spark, path, versionAsOf=0).createOrReplaceTempView("old_rows")
    tell("a chosen version", kind_of(lambda: table.delete(condition)))
    tell("views", rows_of(path))
    read(spark, path).createOrReplaceTempView("old_rows")
    source = spark.range(9).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedDelete("s.id IN (SELECT max(id) FROM old_rows)").execute()
    tell("methods", rows_of(path))
    spark.catalog.dropTempView("old_rows")


def main(folder: str, num_seeds: str) -> None:
    spark = enable(SparkSession.builder.remote("local[2]").getOrCreate())
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    for tell_part in (tell_refused, tell_texts, tell_paths, tell_views, tell_conflicts):
        tell_part(spark, Path(folder))
    tell_random(spark, Path(folder), int(num_seeds))
    spark.stop()


main(*sys.argv[1:])
