"""Statements and calls on one table by one of its spellings, held against a model of its rows.

A spelling is a path or a name, with or without a version, a partition or a view in between. By most
spellings most changes are refused, and then nothing may have changed, nor may another table be
there; by the others the rows of the table are those of the model, and no other table has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable, write
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["CATALOG_SPELLINGS", "CHANGES", "PATH_SPELLINGS", "changes_by", "failures"]

TABLES = ("t", "o")
FIRST = [(0, 0), (1, 1)]
ROWS = [*FIRST, (2, 0), (3, 1)]
OTHER = [(7, 0), (8, 1)]
Rows = list[tuple[int, int]]


@dataclass(frozen=True)
class Spelling:
    """How a statement names the table.

    Attributes:
        sql: The name in SQL; `{t}` is the table's path, `{o}` the other table's.
        path: What a call is given that takes a path; None if there is none.
        view: What the name is a view of, if it is one; a frame's view if it is no query.
        takes: Which kinds of changes are done by it: those of `rows`, `inserts`, and `all`.
        changes: Which table it names.
        hides: Whether the view hides the table's name, which never means a view in `saveAsTable`.
    """

    sql: str
    path: str | None = None
    view: str | None = None
    takes: frozenset[str] = frozenset()
    changes: str = "t"
    hides: bool = False


ALL = frozenset({"rows", "inserts", "saves", "all"})
_NEWEST = "@20991231000000000"
PATH_SPELLINGS = {
    "path": Spelling("delta.`{t}`", "{t}", takes=ALL),
    "slashes": Spelling("DELTA.`{t}//`", "{t}//", takes=ALL),
    "scheme": Spelling("delta.`file:{t}`", "file:{t}", takes=ALL),
    "version": Spelling("delta.`{t}@v0`", "{t}@v0"),
    "newest version": Spelling("delta.`{t}@v1`", "{t}@v1"),
    "capital": Spelling("delta.`{t}@V1`", "{t}@V1"),
    "version and slash": Spelling("delta.`{t}@v1/`", "{t}@v1/"),
    "scheme and version": Spelling("delta.`file:{t}@v1`", "file:{t}@v1"),
    "time": Spelling("delta.`{t}" + _NEWEST + "`", "{t}" + _NEWEST),
    "partition": Spelling("delta.`{t}/p=1`", "{t}/p=1"),
    "partition and version": Spelling("delta.`{t}/p=1@v0`", "{t}/p=1@v0"),
    "view": Spelling("seen", view="SELECT * FROM delta.`{t}`", takes=frozenset({"rows"})),
    "view of a version": Spelling("seen", view="SELECT * FROM delta.`{t}@v0`"),
    "view of a partition": Spelling("seen", view="SELECT * FROM delta.`{t}/p=1`"),
}
CATALOG_SPELLINGS = {
    **PATH_SPELLINGS,
    "name": Spelling("t", takes=ALL),
    "database": Spelling("Shop.T", takes=ALL),
    "catalog": Spelling("spark_catalog.`shop`.t", takes=ALL),
    "version of a name": Spelling("`t@v0`"),
    "view of a frame": Spelling("seen", view="{t}", takes=frozenset({"rows", "inserts"})),
    "view of a name": Spelling("seen", view="SELECT * FROM shop.t", takes=frozenset({"rows"})),
    "hidden": Spelling(
        "t",
        view="SELECT * FROM delta.`{o}`",
        takes=frozenset({"rows"}),
        changes="o",
        hides=True,
    ),
}


@dataclass(frozen=True)
class Change:
    """A statement or call.

    Attributes:
        kind: What a spelling must take.
        run: Runs it, given the session, the spelling in SQL and as a path.
        apply: What it makes of the rows.
        by_path: It takes a path.
    """

    kind: str
    run: Callable[[Any, str, str], object]
    apply: Callable[[Rows], Rows] = lambda rows: rows
    by_path: bool = False


def sql(text: str) -> Callable[[Any, str, str], object]:
    return lambda spark, name, path: spark.sql(text.format(name)).collect()


def made(spark: Any) -> Any:
    return spark.sql("SELECT 9L AS id, 1L AS p")


def inserted(rows: Rows) -> Rows:
    return [*rows, (9, 1)]


def replaced(rows: Rows) -> Rows:
    return [(9, 1)]


def with_partition_replaced(rows: Rows) -> Rows:
    return [*(row for row in rows if row[1] != 1), (9, 1)]


def without_ones(rows: Rows) -> Rows:
    return [row for row in rows if row[0] != 1]


def moved(rows: Rows) -> Rows:
    return [(number + 100, p) if number == 3 else (number, p) for number, p in rows]


def merged(rows: Rows) -> Rows:
    ids = [number for number, _ in rows]
    kept = [row for row in rows if row[0] != 1]
    return kept if 1 in ids else [*kept, (1, 1)]


def none(rows: Rows) -> Rows:
    return []


_MERGE = (
    "MERGE INTO {} AS x USING (SELECT 1L AS id, 1L AS p) AS y ON x.id = y.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
)


def merge_by(table: Any, spark: Any) -> None:
    source = spark.sql("SELECT 1L AS id, 1L AS p").alias("y")
    merge = table.alias("x").merge(source, "x.id = y.id").whenMatchedDelete()
    merge.whenNotMatchedInsertAll().execute()


def named(work: Callable[[Any, Any], object]) -> Callable[[Any, str, str], object]:
    return lambda spark, name, path: work(DeltaTable.forName(spark, name), spark)


def placed(work: Callable[[Any, Any], object]) -> Callable[[Any, str, str], object]:
    return lambda spark, name, path: work(DeltaTable.forPath(spark, path), spark)


CHANGES: Mapping[str, Change] = {
    "DELETE": Change("rows", sql("DELETE FROM {} WHERE id = 1"), without_ones),
    "DELETE under an alias": Change("rows", sql("DELETE FROM {} x WHERE x.id = 1"), without_ones),
    "UPDATE": Change("rows", sql("UPDATE {} SET id = id + 100 WHERE id = 3"), moved),
    "MERGE": Change("rows", sql(_MERGE), merged),
    "INSERT": Change("inserts", sql("INSERT INTO {} VALUES (9, 1)"), inserted),
    "INSERT BY NAME": Change("inserts", sql("INSERT INTO {} BY NAME SELECT 1L p, 9L id"), inserted),
    "INSERT with columns": Change("inserts", sql("INSERT INTO {} (p, id) VALUES (1, 9)"), inserted),
    "INSERT OVERWRITE": Change("inserts", sql("INSERT OVERWRITE {} VALUES (9, 1)"), replaced),
    "INSERT PARTITION": Change(
        "inserts", sql("INSERT INTO {} PARTITION (p = 1) VALUES (9)"), inserted
    ),
    "REPLACE WHERE": Change(
        "all", sql("INSERT INTO {} REPLACE WHERE p = 1 SELECT 9L, 1L"), with_partition_replaced
    ),
    "TRUNCATE": Change("all", sql("TRUNCATE TABLE {}"), none),
    "OPTIMIZE": Change("all", sql("OPTIMIZE {}")),
    "OPTIMIZE WHERE": Change("all", sql("OPTIMIZE {} WHERE p = 1")),
    "VACUUM": Change("all", sql("VACUUM {}")),
    "RESTORE": Change("all", sql("RESTORE TABLE {} TO VERSION AS OF 0"), lambda rows: FIRST),
    "REORG": Change("all", sql("REORG TABLE {} APPLY (PURGE)")),
    "GENERATE": Change("all", sql("GENERATE symlink_format_manifest FOR TABLE {}")),
    "ANALYZE": Change("all", sql("ANALYZE TABLE {} COMPUTE DELTA STATISTICS")),
    "properties": Change("all", sql("ALTER TABLE {} SET TBLPROPERTIES ('a' = 'b')")),
    "COMMENT": Change("all", sql("COMMENT ON TABLE {} IS 'all'")),
    "comment of a column": Change("all", sql("ALTER TABLE {} ALTER COLUMN id COMMENT 'i'")),
    "constraint": Change("all", sql("ALTER TABLE {} DROP CONSTRAINT IF EXISTS c")),
    "CLUSTER BY": Change("all", sql("ALTER TABLE {} CLUSTER BY NONE")),
    "writeTo": Change("all", lambda spark, name, _: made(spark).writeTo(name).append(), inserted),
    "writeTo.overwrite": Change(
        "all",
        lambda spark, name, _: made(spark).writeTo(name).overwrite(sf.col("p") == 1),
        with_partition_replaced,
    ),
    "writeTo.overwritePartitions": Change(
        "all",
        lambda spark, name, _: made(spark).writeTo(name).overwritePartitions(),
        with_partition_replaced,
    ),
    "insertInto": Change(
        "inserts", lambda spark, name, _: made(spark).write.insertInto(name), inserted
    ),
    "insertInto over": Change(
        "inserts", lambda spark, name, _: made(spark).write.insertInto(name, True), replaced
    ),
    "saveAsTable": Change(
        "saves",
        lambda spark, name, _: (
            made(spark).write.format("delta").mode("append").saveAsTable(name)
        ),
        inserted,
    ),
    "saveAsTable over": Change(
        "saves",
        lambda spark, name, _: (
            made(spark).write.format("delta").mode("overwrite").saveAsTable(name)
        ),
        replaced,
    ),
    "forName.delete": Change("all", named(lambda table, _: table.delete("id = 1")), without_ones),
    "forName.update": Change(
        "all", named(lambda table, _: table.update("id = 3", {"id": "id + 100"})), moved
    ),
    "forName.merge": Change("all", named(merge_by), merged),
    "forName.optimize": Change("all", named(lambda table, _: table.optimize().executeCompaction())),
    "forName.restore": Change(
        "all", named(lambda table, _: table.restoreToVersion(0)), lambda rows: FIRST
    ),
    "forPath.delete": Change(
        "all", placed(lambda table, _: table.delete("id = 1")), without_ones, by_path=True
    ),
    "forPath.merge": Change("all", placed(merge_by), merged, by_path=True),
    "forPath.optimize": Change(
        "all", placed(lambda table, _: table.optimize().executeCompaction()), by_path=True
    ),
    "save": Change(
        "all",
        lambda spark, _, path: made(spark).write.format("delta").mode("append").save(path),
        inserted,
        by_path=True,
    ),
    "write over": Change(
        "all",
        lambda spark, _, path: write(made(spark), path, mode="overwrite"),
        replaced,
        by_path=True,
    ),
}  # fmt: skip


def changes_by(name: str) -> list[str]:
    """The changes that can be tried by a spelling.

    `saveAsTable` makes a table of the name of a view, unless there is one.
    """
    spelling = CATALOG_SPELLINGS[name]
    makes_another = spelling.view is not None and not spelling.hides
    return [
        name
        for name, change in CHANGES.items()
        if (spelling.path is not None or not change.by_path)
        and not (makes_another and change.kind == "saves")
    ]


def rows_of(path: Path) -> Rows:
    """The rows, by a handle that knows nothing of what this process has done."""
    found = DeltaLog.for_path(str(path), {}).to_arrow().select(["id", "p"]).to_pylist()
    return sorted((row["id"], row["p"]) for row in found)


def directories(folder: Path) -> set[str]:
    """Where there are tables."""
    return {str(log.parent.relative_to(folder)) for log in folder.rglob("_delta_log")}


def make(folder: Path) -> None:
    """The table, of two versions, and the other one."""
    for name, commits in {"t": (ROWS[:2], ROWS[2:]), "o": (OTHER,)}.items():
        log = DeltaLog.for_path(str(folder / name), {})
        for rows in commits:
            ids, partitions = zip(*rows, strict=True)
            log.append(pa.table({"id": ids, "p": partitions}), partition_by=["p"])


def failures(spark: Any, folder: Path, name: str, changes: Sequence[str]) -> list[object]:
    """The changes by a spelling that do not do what the model does, each with what is wrong."""
    spelling = CATALOG_SPELLINGS[name]
    make(folder)
    is_classic = not is_connect(spark)
    if is_classic:
        spark.sql(f"CREATE DATABASE shop LOCATION '{folder}/shop'")
        spark.sql("USE shop")
        spark.sql(f"CREATE TABLE t USING delta LOCATION '{folder}/t'")
    fill = {"t": str(folder / "t"), "o": str(folder / "o")}
    if spelling.view is not None:
        _make_view(spark, spelling.sql, spelling.view.format(**fill))
    try:
        told = ((change, _failure(spark, folder, spelling, change)) for change in changes)
        return [(change, problem) for change, problem in told if problem is not None]
    finally:
        if spelling.view is not None:
            spark.catalog.dropTempView(spelling.sql)
        if is_classic:
            spark.sql("USE default")
            spark.sql("DROP DATABASE shop CASCADE")


def _make_view(spark: Any, name: str, of: str) -> None:
    if of.startswith("SELECT"):
        spark.sql(f"CREATE TEMPORARY VIEW {name} AS {of}")
    else:
        spark.read.format("delta").load(of).createTempView(name)


def _failure(spark: Any, folder: Path, spelling: Spelling, name: str) -> str | None:
    change, fill = CHANGES[name], {"t": str(folder / "t"), "o": str(folder / "o")}
    before = {table: rows_of(folder / table) for table in TABLES}
    places, changed = directories(folder), spelling.changes
    # To a client of Spark Connect a view is only for reading.
    is_meant = change.kind in spelling.takes and not (spelling.view and is_connect(spark))
    if change.kind == "saves" and spelling.hides:
        is_meant, changed = True, "t"
    try:
        change.run(spark, spelling.sql.format(**fill), (spelling.path or "").format(**fill))
    except (OptimistError, PySparkException) as error:
        is_done, told = False, f"{type(error).__name__}: {error}"[:300]
    else:
        is_done, told = True, "done"
    expected = dict(before)
    if is_meant:
        expected[changed] = sorted(change.apply(before[changed]))
    now = {table: rows_of(folder / table) for table in TABLES}
    if is_done != is_meant or now != expected or directories(folder) != places:
        return f"{told}; {now} for {expected}; {directories(folder) - places}"
    return None
