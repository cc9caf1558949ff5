"""Statements and calls over names of the catalog, for a classic session and for Spark Connect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable

__all__ = ["named_answers"]

_SIZED = ("clone", "deep clone", "restore", "clone files", "clone partitions")
"""What answers with sizes of files, which differ between the planes."""

_CREATED = {
    "create": "CREATE TABLE t (id BIGINT, s STRING COMMENT 'text') USING delta",
    "create elsewhere": "CREATE TABLE IF NOT EXISTS t USING delta LOCATION '/x' AS SELECT 1 AS a",
    "create again": "CREATE TABLE t (id INT) USING delta",
    "create if not exists": "CREATE TABLE IF NOT EXISTS t (id INT) USING delta",
    "insert": "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "located": "CREATE TABLE other.u (id BIGINT, p INT) USING delta PARTITIONED BY (p) "
    "LOCATION '{folder}/u' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "partition": "INSERT INTO other.u PARTITION (p = 3) VALUES (1), (2)",
    "adopted": "CREATE TABLE v USING delta LOCATION '{folder}/u'",
    "as select": "CREATE TABLE c USING delta AS SELECT id, id * 2 AS v FROM t",
    "replaced from itself": "CREATE OR REPLACE TABLE c USING delta AS SELECT id FROM c",
    "replace nothing": "REPLACE TABLE nothing (id INT) USING delta",
    "no database": "CREATE TABLE nowhere.t (id INT) USING delta",
    "odd name": "CREATE TABLE `t.x` (id INT) USING delta",
    "like": "CREATE TABLE l LIKE t",
    "like in another format": "CREATE TABLE l_of_files LIKE t USING parquet",
    "clone": "CREATE TABLE s SHALLOW CLONE other.u",
    "deep clone": "CREATE TABLE d DEEP CLONE t LOCATION '{folder}/d'",
    "no columns": "CREATE TABLE empty USING delta",
    "fails midway": "CREATE TABLE m USING delta AS SELECT id, 1 / (id - 1) AS v FROM t",
    "fails midway again": "CREATE TABLE m USING delta AS SELECT id, 1 / (id - 1) AS v FROM t",
    "then made": "CREATE TABLE m USING delta AS SELECT id, 1 / (id + 1) AS v FROM t",
    "foreign": "CREATE TABLE pq USING parquet AS SELECT id FROM t",
    "foreign parts": "CREATE TABLE parts (a INT, b INT) USING parquet PARTITIONED BY (b) "
    "COMMENT 'words'",
    "like others": "CREATE TABLE like_parts LIKE parts USING delta",
    "a partition": "INSERT INTO parts VALUES (1, 2), (3, 4)",
    "clone files": "CREATE TABLE cloned SHALLOW CLONE pq",
    "clone partitions": "CREATE TABLE cloned_parts SHALLOW CLONE parts",
    "of csv": "CREATE TABLE csv_files USING csv AS SELECT id FROM t",
    "clone a view": "CREATE TABLE cloned_view SHALLOW CLONE hides",
    "moved": "CREATE TABLE moved (id BIGINT, p INT) USING delta LOCATION '{folder}/moved'",
    "set location": "ALTER TABLE moved SET LOCATION '{folder}/u'",
    "location of other columns": "ALTER TABLE moved SET LOCATION '{folder}/d'",
    "location of nothing": "ALTER TABLE moved SET LOCATION '{folder}/nothing'",
    "view": "CREATE TEMP VIEW hides AS SELECT 7 AS seven",
    "hidden": "CREATE TABLE hides (id INT) USING delta",
}
_READ = {
    "all": "SELECT * FROM T",
    "before columns": "SELECT t.id, t.s FROM t WHERE t.id > 1",
    "whole name": "SELECT other.u.id, spark_catalog.other.u.p FROM other.u",
    "short name": "SELECT u.* FROM spark_catalog.other.u",
    "join": "SELECT t.id, x.p FROM t JOIN other.u AS x USING (id)",
    "self join": "SELECT a.id, b.id FROM t a, t b WHERE a.id = b.id + 1",
    "nested": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM other.u WHERE other.u.id = t.id)",
    "expression": "WITH t AS (SELECT id FROM t WHERE id = 2) SELECT * FROM t",
    "union": "TABLE s UNION ALL (SELECT * FROM other.u)",
    "a version": "SELECT * FROM t VERSION AS OF 0",
    "sample": "SELECT t.id FROM t TABLESAMPLE (100 PERCENT) WHERE t.id = 3",
    "changes": "SELECT id, p, _change_type FROM table_changes('other.u', 1)",
    "cloned files": "SELECT * FROM cloned",
    "cloned partitions": "SELECT b, a FROM cloned_parts",
    "at the other location": "SELECT * FROM moved",
    "computed name": "SELECT u.id FROM IDENTIFIER('other' || '.u') AS u",
    "name of an expression": "WITH x AS (SELECT id FROM IDENTIFIER('t')) TABLE x",
    "immediate": "EXECUTE IMMEDIATE 'SELECT id FROM t WHERE id > 1'",
    "describe a column": "DESCRIBE t s",
    "describe no column": "DESCRIBE TABLE t nothing",
    "a foreign table": "SELECT pq.id FROM pq JOIN t USING (id)",
    "a view": "SELECT * FROM hides",
    "behind the view": "SELECT * FROM names.hides",
    "no table": "SELECT * FROM nothing",
    "no such database": "SELECT * FROM nowhere.t",
    "describe": "DESCRIBE t",
    "describe a query": "DESCRIBE QUERY SELECT t.id, s AS name FROM t WHERE id = 1",
    "describe a query of a name": "DESC WITH q AS (SELECT id FROM t) SELECT * FROM q",
    "like others, shown": "SHOW CREATE TABLE like_parts",
    "show columns": "SHOW COLUMNS IN other.u",
    "show create": "SHOW CREATE TABLE other.u",
    "show partitions": "SHOW PARTITIONS other.u",
    "show tables": "SHOW TABLES",
}
_VIEWS = {
    "keep a view": "CREATE VIEW seen AS SELECT id, s FROM t WHERE id > 1",
    "keep it again": "CREATE VIEW seen AS SELECT id FROM t",
    "keep it if it is new": "CREATE VIEW IF NOT EXISTS seen AS SELECT id FROM t",
    "keep a view of names": "CREATE VIEW pairs (a COMMENT 'one', b) COMMENT 'both' "
    "TBLPROPERTIES ('as' = 'x') AS SELECT t.id, u.id FROM t JOIN other.u AS u ON t.id = u.id + 1",
    "keep a view of a star": "CREATE VIEW stars AS SELECT * FROM t",
    "keep a view of views": "CREATE OR REPLACE VIEW other.both AS WITH q AS (SELECT id FROM "
    "names.seen) SELECT q.id, names.pq.id + 1 AS p FROM q JOIN names.pq ON q.id = names.pq.id",
    "keep a view of no column": "CREATE VIEW wrong AS SELECT nothing FROM t",
    "keep a view of itself": "CREATE OR REPLACE VIEW seen AS SELECT * FROM seen",
    "keep a view of a temporary one": "CREATE VIEW wrong AS SELECT * FROM hides, t",
    "kept view": "SELECT * FROM seen",
    "view by its name": "SELECT names.seen.id FROM names.seen",
    "view of names": "SELECT p.b, p.a FROM pairs AS p",
    "view of a star": "SELECT stars.* FROM stars",
    "view of views": "SELECT both.p, both.id FROM other.both",
    "view in a join": "SELECT t.id, seen.s FROM t LEFT JOIN seen USING (id)",
    "view in a subquery": "SELECT id FROM t WHERE id IN (SELECT id FROM seen)",
    "elsewhere": "USE other",
    "hides a name": "CREATE TEMP VIEW t AS SELECT 'hidden' AS id",
    "view from elsewhere": "SELECT * FROM names.seen UNION ALL SELECT b, 'p' FROM names.pairs",
    "view of views from elsewhere": "SELECT * FROM both",
    "hides no name": "DROP VIEW t",
    "back again": "USE names",
    "version of a view": "SELECT * FROM seen VERSION AS OF 0",
    "changes of a view": "SELECT * FROM table_changes('seen', 0)",
    "into a view": "INSERT INTO seen VALUES (9, 'i')",
    "describe a view": "DESCRIBE pairs",
    "columns of a view": "SHOW COLUMNS IN pairs",
    "another query": "ALTER VIEW pairs AS SELECT p FROM other.u",
    "view of another query": "SELECT * FROM pairs",
    "delete by a view": "DELETE FROM l WHERE id IN (SELECT id FROM seen)",
    "merge a view": "MERGE INTO l USING seen ON l.id = seen.id "
    "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (seen.id, seen.s)",
    "merged a view": "SELECT * FROM l",
    "wider": "ALTER TABLE l ADD COLUMNS (more INT)",
    "keep a wider view": "CREATE VIEW wide AS SELECT * FROM l",
    "wider again": "ALTER TABLE l ADD COLUMNS (even_more INT)",
    "a view keeps its columns": "SELECT * FROM wide",
    "from a view": "CREATE TABLE from_view USING delta AS SELECT * FROM other.both",
    "made from a view": "SELECT * FROM from_view",
    "drop a view": "DROP VIEW pairs",
    "no view": "SELECT * FROM pairs",
}
_CONVERTED = {
    "files": "CREATE TABLE ext USING parquet LOCATION '{folder}/ext' AS SELECT id FROM t",
    "files in parts": "CREATE TABLE ext_parts (id INT, p INT) USING parquet PARTITIONED BY (p) "
    "OPTIONS ('compression' = 'zstd') COMMENT 'words' TBLPROPERTIES ('option.mine' = '1') "
    "LOCATION '{folder}/ext_parts'",
    "rows in parts": "INSERT INTO ext_parts VALUES (1, 2), (3, 4)",
    "convert by others": "CONVERT TO DELTA ext_parts PARTITIONED BY (id INT)",
    "convert": "CONVERT TO DELTA ext",
    "convert parts": "CONVERT TO DELTA names.ext_parts",
    "convert again": "CONVERT TO DELTA ext",
    "convert a view": "CONVERT TO DELTA seen",
    "convert nothing": "CONVERT TO DELTA nothing",
    "convert others": "CONVERT TO DELTA csv_files",
    "into converted": "INSERT INTO ext_parts VALUES (5, 6)",
    "converted": "SELECT ext.id FROM ext",
    "converted parts": "SELECT * FROM ext_parts",
    "partitions of converted": "SHOW PARTITIONS ext_parts",
    "properties of converted": "SHOW TBLPROPERTIES ext_parts",
    "no other names": "SHOW TABLES LIKE 'ext*'",
}
_CHANGED = {
    "delete": "DELETE FROM t WHERE t.id = 1",
    "update": "UPDATE other.u SET other.u.p = other.u.p + 1 WHERE u.id IN (SELECT id FROM t)",
    "merge": "MERGE INTO t USING other.u ON t.id = other.u.id "
    "WHEN MATCHED THEN UPDATE SET t.s = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)",
    "merge a name of its own": "MERGE INTO names.t AS x USING names.t ON x.id = t.id "
    "WHEN MATCHED AND t.id = 3 THEN UPDATE SET s = concat(x.s, t.s)",
    "after changes": "SELECT * FROM t",
    "after changes of u": "SELECT * FROM other.u",
    "overwrite": "INSERT OVERWRITE c SELECT id + 10 FROM c",
    "replace where": "INSERT INTO c REPLACE WHERE id = 11 SELECT 11L",
    "overwritten": "SELECT * FROM c",
    "add column": "ALTER TABLE t ADD COLUMNS (x INT)",
    "properties": "ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')",
    "constraint": "ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)",
    "constraint of others": "ALTER TABLE pq ADD COLUMNS (x INT)",
    "comment": "COMMENT ON TABLE t IS 'words'",
    "altered": "DESCRIBE t",
    "shown properties": "SHOW TBLPROPERTIES t ('k')",
    "optimize others": "OPTIMIZE pq",
    "restore": "RESTORE TABLE c TO VERSION AS OF 0",
    "restored": "SELECT * FROM c",
    "truncate": "TRUNCATE TABLE d",
    "truncated": "SELECT count(*) FROM d",
    "into others": "INSERT INTO pq SELECT id, 1 FROM t",
    "others": "SELECT count(*) FROM pq",
    "rename": "ALTER TABLE c RENAME TO c2",
    "renamed": "SELECT * FROM c2",
    "name before": "SELECT * FROM c",
    "drop": "DROP TABLE c2",
    "drop again": "DROP TABLE c2",
    "drop if exists": "DROP TABLE IF EXISTS c2",
    "drop located": "DROP TABLE v",
    "still there": "SELECT count(*) FROM other.u",
    "made anew": "CREATE TABLE c2 USING delta AS SELECT 5 AS five",
    "of the new table": "SELECT * FROM c2",
}


def _calls(spark: SparkSession) -> dict[str, Callable[[], object]]:
    rows = spark.range(3)

    def saved(mode: str, name: str = "w") -> Callable[[], object]:
        return lambda: rows.write.format("delta").mode(mode).saveAsTable(name)

    return {
        "saveAsTable": saved("error"),
        "saveAsTable again": saved("error"),
        "saveAsTable ignored": saved("ignore"),
        "saveAsTable append": saved("append"),
        "saved": lambda: spark.table("w"),
        "saveAsTable overwrite": lambda: (
            spark.range(9, 10).write.format("delta").mode("overwrite").saveAsTable("names.w")
        ),
        "saveAsTable new": saved("overwrite", "w2"),
        "insertInto": lambda: rows.write.insertInto("w"),
        "writeTo append": lambda: spark.range(7, 8).writeTo("names.w").append(),
        "writeTo overwrite": lambda: spark.range(8, 9).writeTo("w").overwrite(sf.col("id") == 7),
        "written": lambda: spark.read.table("names.W").where("w.id > 1"),
        "writeTo create": lambda: rows.writeTo("w3").using("delta").create(),
        "writeTo create again": lambda: rows.writeTo("w3").using("delta").create(),
        "writeTo replace": lambda: spark.range(1).writeTo("w3").using("delta").replace(),
        "writeTo nothing": lambda: rows.writeTo("w4").using("delta").replace(),
        "to nothing": lambda: rows.writeTo("w4").append(),
        "replaced": lambda: spark.table("w3"),
        "a version": lambda: spark.read.option("versionAsOf", 0).table("w"),
        "forName": lambda: DeltaTable.forName(spark, "w").toDF().where("w.id = 9"),
        "forName delete": lambda: DeltaTable.forName(spark, "names.w").delete("w.id = 0") and None,
        "delete by others": lambda: (
            DeltaTable.forName(spark, "w").delete("id IN (SELECT id + 1 FROM w WHERE w.id = 1)")
            and None
        ),
        "update by others": lambda: (
            DeltaTable.forName(spark, "w3").update(
                "EXISTS (SELECT 1 FROM names.t WHERE t.id = 1)", {"id": "(SELECT max(id) FROM t)"}
            )
            and None
        ),
        "merge by others": lambda: (
            DeltaTable.forName(spark, "w3")
            .alias("w")
            .merge(spark.range(3).alias("s"), "s.id = w.id")
            .whenNotMatchedInsert("s.id IN (SELECT id FROM t)", {"id": "s.id"})
            .execute()
            and None
        ),
        "changed by others": lambda: spark.table("w3"),
        "left by others": lambda: spark.table("w"),
        "another format": lambda: rows.write.format("parquet").saveAsTable("w"),
        "another format, ignored": lambda: (
            rows.write.format("parquet").mode("ignore").saveAsTable("w")
        ),
        "another format, overwritten": lambda: (
            spark.table("w").write.format("parquet").mode("overwrite").saveAsTable("w")
        ),
        "kept its format": lambda: spark.table("w"),
        "over files": saved("error", "pq"),
        "over files, ignored": saved("ignore", "pq"),
        "over files, appended": saved("append", "names.pq"),
        "over a view": saved("error", "seen"),
        "over a view, ignored": saved("ignore", "seen"),
        "over a view, appended": saved("append", "seen"),
        "createTable": lambda: spark.catalog.createTable(
            "made", source="delta", schema=rows.schema, description="words"
        ),
        "createTable again": lambda: spark.catalog.createTable("made", source="delta"),
        "forName of a view": lambda: DeltaTable.forName(spark, "hides"),
        "forName of nothing": lambda: DeltaTable.forName(spark, "nothing"),
        "forName of others": lambda: DeltaTable.forName(spark, "pq"),
        "isDeltaTable": lambda: [DeltaTable.isDeltaTable(spark, n) for n in ("w", "pq", "no")],
        "builder": lambda: (
            DeltaTable.create(spark)
            .tableName("names.b")
            .addColumn("id", "INT")
            .execute()
            .detail()
            .select("name", "partitionColumns")
        ),
        "clone": lambda: DeltaTable.forName(spark, "w").clone("w5", isShallow=True).toDF(),
        "a view": lambda: spark.table("seen").where("seen.id = 2"),
        "a view read": lambda: spark.read.table("other.both"),
        "a version of a view": lambda: spark.read.option("versionAsOf", 0).table("seen"),
        "into a view": lambda: rows.write.insertInto("seen"),
        "columns of a view": lambda: [each[:4] for each in spark.catalog.listColumns("seen")],
        "listColumns": lambda: [tuple(each) for each in spark.catalog.listColumns("t")],
        "getTable": lambda: list(spark.catalog.getTable("w"))[:5],
        "tableExists": lambda: [spark.catalog.tableExists(n) for n in ("w", "no")],
        "listTables": lambda: sorted(each.name for each in spark.catalog.listTables("names")),
    }


def named_answers(spark: SparkSession, folder: str) -> Iterator[tuple[str, object]]:
    """Return what each statement and call answers in an enabled session, by its name."""
    spark.sql(f"CREATE DATABASE names LOCATION '{folder}/names'")
    spark.sql(f"CREATE DATABASE other LOCATION '{folder}/other'")
    spark.sql("USE names")
    for part in (_CREATED, _READ, _VIEWS, _CONVERTED):
        for case, text in part.items():
            text = text.format(folder=folder)
            yield case, _answer(partial(_run, spark, case, text), folder)
    for case, call in _calls(spark).items():
        yield f"call: {case}", _answer(call, folder)
    for case, text in _CHANGED.items():
        yield case, _answer(partial(_run, spark, case, text), folder)


def _run(spark: SparkSession, case: str, text: str) -> object:
    rows = spark.sql(text)
    return len(rows.collect()) if case in _SIZED else rows


def _answer(call: Callable[[], object], folder: str) -> object:
    try:
        found = call()
        if hasattr(found, "collect"):
            found = sorted([str(value) for value in row] for row in found.collect())
    except OptimistError as error:
        return f"{type(error).__name__} {error.kind}"
    except PySparkException as error:
        return f"{error.getCondition()}"
    return re.sub(re.escape(folder), "", str(found))
