"""Run by test_drop_in_connect.py in a process of its own: prints what happened as JSON lines.

A session of Spark Connect can't live beside a classic one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from unittest.mock import patch

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as sf

from connect_process import kind_of, tell
from optimist.core import DeltaLog
from optimist.spark import DeltaTable, disable, enable, read
from optimist.spark.arrow.plane import ArrowPlane
from optimist.spark.commands.maintenance import vacuum
from read_back import ids


def rows(frame):
    return [list(row) for row in frame.collect()]


def tell_frames(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/frames"
    source = spark.range(6).selectExpr("id", "id % 2 AS p")
    source.write.format("delta").partitionBy("p").save(path)
    tell("errors if it exists", kind_of(lambda: source.write.format("delta").save(path)))
    source.write.format("delta").mode("ignore").save(path)
    source.where("id = 0").write.mode("append").save(path, format="DELTA")
    tell("saved", ids(spark.read.format("delta").load(path)))
    overwrite = source.where("id > 3").write.format("delta").mode("overwrite")
    overwrite.option("replaceWhere", "id > 2").option("userMetadata", "x").save(path)
    tell("replaced", ids(spark.read.format("delta").option("path", path).load()))
    tell("a version", ids(spark.read.format("delta").option("versionAsOf", 0).load(path)))
    tell("a version in the path", ids(spark.read.load(f"{path}@v1", format="delta")))
    tell("ignored options", ids(spark.read.option("inferSchema", True).format("delta").load(path)))
    feed = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", 0)
    tell("no feed", kind_of(lambda: feed.load(path)))
    tell("by name", ids(spark.read.table(f"delta.`{path}`")))
    tell("by spark.table", ids(spark.table(f"delta.`{path}`")))
    tell("saveAsTable of a path", source.write.mode("append").saveAsTable(f"delta.`{path}`"))
    source.where("id = 9").writeTo(f"delta.`{path}`").append()
    source.where("p = 1").writeTo(f"delta.`{path}`").overwritePartitions()
    tell("after writeTo", ids(spark.table(f"delta.`{path}`")))
    tell("a schema", kind_of(lambda: spark.read.schema("id long").format("delta").load(path)))
    tell("two paths", kind_of(lambda: spark.read.format("delta").load([path, path])))
    tell("no path", kind_of(lambda: spark.read.format("delta").load()))
    tell("a name", kind_of(lambda: source.write.format("delta").saveAsTable("t")))
    source.write.format("parquet").save(f"{folder}/parquet")
    tell("other formats", spark.read.format("parquet").load(f"{folder}/parquet").count())


def tell_writers(spark: SparkSession, folder: str) -> None:
    name, other = f"delta.`{folder}/written`", f"delta.`{folder}/clustered`"
    source = spark.range(4).selectExpr("id", "CAST(id % 2 AS INT) AS p", "id AS n")
    to = source.writeTo(name).using("delta").partitionedBy("p").tableProperty("comment", "rows")
    to.tableProperty("delta.appendOnly", "false").create()
    tell("created twice", kind_of(lambda: source.writeTo(name).create()))
    detail = DeltaTable.forName(spark, name).detail().collect()[0]
    tell("created as", [detail.partitionColumns, detail.description, dict(detail.properties)])
    tell("history of create", spark.sql(f"DESCRIBE HISTORY {name}").collect()[0].operation)
    tell("other rows", kind_of(lambda: source.writeTo(name).overwrite(sf.col("p") == 1)))
    source.where("id = 3").writeTo(name).overwrite(sf.col("p") == 1)
    tell("overwritten", ids(spark.table(name)))
    tell("to nothing", kind_of(lambda: source.writeTo(f"delta.`{folder}/none`").append()))
    tell("by an expression", kind_of(lambda: to.partitionedBy(sf.years("id")).createOrReplace()))
    source.where("id = 1").writeTo(name).createOrReplace()
    tell("replaced by writeTo", [spark.table(name).columns, ids(spark.table(name))])
    tell("nothing to replace", kind_of(lambda: source.writeTo(other).replace()))
    by_id = source.write.format("delta").clusterBy("id")
    by_id.save(f"{folder}/clustered")
    by_id.mode("append").save(f"{folder}/clustered")
    tell("clustered", spark.sql(f"DESCRIBE DETAIL {other}").collect()[0].clusteringColumns)
    unlike = source.write.format("delta").clusterBy("n").mode("append")
    tell("clustered otherwise", kind_of(lambda: unlike.save(f"{folder}/clustered")))
    spark.sql("SELECT 7 AS a, '8' AS b, 9 AS c").write.insertInto(name)
    spark.sql("SELECT 7 AS a, '8' AS b, 9 AS c").write.mode("overwrite").insertInto(name)
    tell("insertInto", rows(spark.table(name)))
    tell("insertInto of too few", kind_of(lambda: spark.range(1).write.insertInto(name)))
    tell("a name of others", kind_of(lambda: source.writeTo("t").using("delta").create()))


INSERTS = {
    "into": ("INTO {t} SELECT 1, 'a', 0", [[1, "a", 0]]),
    "values": ("INTO TABLE {t} VALUES (2, 'b', '1'), (:x, 'c', '1')", [[2, "b", 1], [3, "c", 1]]),
    "columns": ("INTO {t} (p, id) VALUES (1, 4)", [[4, None, 1]]),
    "by name": ("INTO {t} BY NAME SELECT 5L AS id, 0 AS p", [[5, None, 0]]),
    "partition": ("INTO {t} PARTITION (p = '2') SELECT 6, 'f'", [[6, "f", 2]]),
    "from itself": ("INTO {t} SELECT id + 10, s, p FROM {t} WHERE id = 1", [[11, "a", 0]]),
    "a table of others": ("INTO {t} FROM v SELECT id, s, 5", [[100, "v", 5]]),
    "overwrite partition": ("OVERWRITE {t} PARTITION (p = 5) VALUES (7, 'g')", None),
    "replace where": (
        "INTO {t} REPLACE WHERE id >= 5 AND p IS DISTINCT FROM 9 SELECT 8L, 'h', 3",
        None,
    ),
    "evolution": (
        "WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 9 AS id, 1 AS p, 'x' AS new",
        None,
    ),
}


def tell_inserts(spark: SparkSession, folder: str) -> None:
    name = f"delta.`{folder}/inserted`"
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {name} (id BIGINT, s STRING COMMENT 'text', p INT) "
        "PARTITIONED BY (p)"
    )
    spark.sql("SELECT 100L AS id, 'v' AS s").createOrReplaceTempView("v")
    known: list[list[object]] = []
    for case, (text, added) in INSERTS.items():
        spark.sql(f"INSERT {text.format(t=name)}", {"x": 3})
        found = [list(row) for row in spark.table(name).orderBy("id").collect()]
        if added is not None:
            known = sorted([*known, *added])
            assert found == known, (case, found, known)
        tell(f"inserted {case}", found if added is None else len(found))
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    with_new = "WITH u AS (SELECT 20 AS id, 'u' AS s) INSERT OVERWRITE"
    spark.sql(f"{with_new} {name} SELECT id, s, 1, 'n' FROM u")
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    tell("inserted dynamically", ids(spark.table(name)))
    spark.sql(f"INSERT OVERWRITE {name} SELECT id, s, 1, s FROM {{df}}", df=spark.table("v"))
    tell("inserted over all", rows(spark.table(name)))
    refusals = {
        "too few": f"INSERT INTO {name} VALUES (1, 'a')",
        "unknown column": f"INSERT INTO {name} (id, nope) VALUES (1, 2)",
        "column twice": f"INSERT INTO {name} (id, ID) VALUES (1, 2)",
        "list too short": f"INSERT INTO {name} (id) VALUES (1, 2)",
        "no partition": f"INSERT INTO {name} PARTITION (s = 1) VALUES (1, 2)",
        "no table": f"INSERT INTO delta.`{folder}/none` SELECT 1",
        "does not match": f"INSERT INTO {name} REPLACE WHERE id = 1 VALUES (2, 'a', 1, 'b')",
        "does not fit": f"INSERT INTO {name} VALUES ('x', 'a', 1, 'b')",
        "no query": f"INSERT INTO {name} REPLACE WHERE id = 1",
        "several": f"FROM v INSERT INTO {name} SELECT id, s, 1, s INSERT INTO {name} SELECT 1",
    }
    for case, text in refusals.items():
        tell(f"insert: {case}", kind_of(lambda text=text: spark.sql(text)))


def tell_tables(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/made"
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5), "
        "st STRUCT<a: INT, b: DECIMAL(10, 2) COMMENT 'two'> NOT NULL COMMENT 'both', "
        "day DATE, year INT GENERATED ALWAYS AS (year(day)), s STRING DEFAULT 'none') USING delta "
        f"PARTITIONED BY (year) COMMENT 'made' LOCATION '{path}' TBLPROPERTIES ("
        "'delta.feature.allowColumnDefaults' = 'supported', delta.columnMapping.mode = 'name')"
    )
    insert = (
        f"INSERT INTO {name} (st, day) VALUES (named_struct('a', 1, 'b', 2.5), DATE'2026-11-23')"
    )
    spark.sql(insert)
    found = spark.sql(f"SELECT id, st.b, year, s FROM {name}").collect()
    tell("made", [str(value) for value in found[0]])
    changes = [
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true', a.b = 1)",
        "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS (a.b, 'none')",
        "ALTER TABLE {t} ADD COLUMNS (n INT COMMENT 'number' FIRST, st.c ARRAY<INT> AFTER a)",
        "ALTER TABLE {t} ADD COLUMN m MAP<STRING, STRUCT<x: INT>>",
        "ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT",
        "ALTER TABLE {t} CHANGE COLUMN n COMMENT 'a number'",
        "ALTER TABLE {t} CHANGE n n BIGINT COMMENT 'the number' AFTER id",
        "ALTER TABLE {t} ALTER COLUMN st DROP NOT NULL",
        "ALTER TABLE {t} ALTER COLUMN s SET DEFAULT 'x, y'",
        "ALTER TABLE {t} RENAME COLUMN st.b TO `b 2`",
        "ALTER TABLE {t} DROP COLUMNS (m)",
        "ALTER TABLE {t} DROP COLUMN IF EXISTS m",
        "ALTER TABLE {t} ADD CONSTRAINT small CHECK (n < 100 OR n IS NULL)",
        "COMMENT ON TABLE {t} IS 'changed'",
    ]
    for change in changes:
        spark.sql(change.format(t=name))
    tell("altered", spark.table(name).schema.simpleString())
    tell("altered comments", [f.metadata.get("comment") for f in spark.table(name).schema])
    spark.sql(insert.replace("'b'", "'b 2'"))
    spark.sql(f"INSERT INTO {name} (s, day) VALUES (DEFAULT, DEFAULT), ('y', DATE'2026-01-01')")
    tell("altered default", sorted(row.s for row in spark.table(name).collect()))
    numbered = f"INSERT INTO {name} (id, s) VALUES (DEFAULT, 'z')"
    tell("insert: numbered default", kind_of(lambda: spark.sql(numbered)))
    tell_shown(spark, name)
    spark.sql(f"TRUNCATE TABLE {name}")
    tell("truncated", spark.table(name).count())
    spark.sql(f"CREATE OR REPLACE TABLE {name} CLUSTER BY (id) AS SELECT id FROM range(3)")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT 1 AS other")
    tell("replaced as select", [spark.table(name).columns, ids(spark.table(name))])
    operations = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 3").collect()
    tell("told as", [row.operation for row in operations])
    refusals = {
        "there": f"CREATE TABLE {name} (id INT)",
        "elsewhere": f"CREATE TABLE {name} (id INT) LOCATION '{path}2'",
        "buckets": f"CREATE TABLE {name} (id INT) PARTITIONED BY (bucket(4, id))",
        "like": f"CREATE TABLE {name} LIKE v",
        "a key": f"CREATE TABLE {name} (id INT, PRIMARY KEY (id))",
        "columns of a query": f"CREATE TABLE {name} (id INT) AS SELECT 1",
        "no type": f"CREATE TABLE delta.`{path}2` (id WRONG)",
        "no column": f"ALTER TABLE {name} DROP COLUMN nope",
        "no action": f"ALTER TABLE {name} ALTER COLUMN id",
        "no property": f"ALTER TABLE {name} UNSET TBLPROPERTIES ('nope')",
        "rename": f"ALTER TABLE {name} RENAME TO u",
        "location": f"ALTER TABLE {name} SET LOCATION '/x'",
        "truncate": f"TRUNCATE TABLE delta.`{path}2`",
    }
    for case, text in refusals.items():
        tell(f"table: {case}", kind_of(lambda text=text: spark.sql(text)))


def tell_shown(spark: SparkSession, name: str) -> None:
    told = {
        "describe": f"DESCRIBE TABLE {name}",
        "columns": f"SHOW COLUMNS IN {name}",
        "partitions": f"SHOW PARTITIONS {name}",
        "a property": f"SHOW TBLPROPERTIES {name} ('delta.enableTypeWidening')",
    }
    for case, text in told.items():
        tell(f"shown: {case}", rows(spark.sql(text)))
    ((_, missing),) = rows(spark.sql(f"SHOW TBLPROPERTIES {name} (no.such)"))
    tell("shown: no property", missing.replace(name, "{}"))
    (created,) = rows(spark.sql(f"SHOW CREATE TABLE {name}"))[0]
    tell(
        "shown: created", [f"TABLE {name}" in created, "GENERATED ALWAYS AS (year(day))" in created]
    )
    properties = dict(rows(spark.sql(f"show tblproperties {name}")))
    tell("shown: properties", ["comment" in properties, properties["delta.columnMapping.mode"]])
    refusals = {
        "extended": f"DESCRIBE EXTENDED {name}",
        "a partition": f"SHOW PARTITIONS {name} PARTITION (year = 2026)",
        "tables": f"SHOW TABLES IN {name}",
    }
    for case, text in refusals.items():
        tell(f"shown: {case}", kind_of(lambda text=text: spark.sql(text)))


def tell_queries(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/queries"
    spark.range(3).write.format("delta").save(path)
    spark.range(3, 5).write.format("delta").mode("append").save(path)
    name = f"delta.`{path}`"
    at = DeltaTable.forPath(spark, path).history().collect()
    first, last = at[-1]["timestamp"], at[0]["timestamp"]
    queries = {
        "a query": f"SELECT id FROM {name} ORDER BY id",
        "a version by SQL": f"SELECT id FROM {name} VERSION AS OF 0 AS t WHERE t.id > 0 ORDER BY 1",
        "a version in the name": f"SELECT max(id) FROM delta.`{path}@v0`",
        "a join": f"SELECT a.id, b.id FROM {name} a LEFT JOIN {name} VERSION AS OF '0' b "
        "ON a.id = b.id WHERE a.id IN (0, 4) ORDER BY a.id",
        "a CTE": f"WITH t AS (SELECT * FROM {name}) SELECT count(*) FROM t, {name}",
        "a subquery": f"SELECT 1 WHERE EXISTS (SELECT 1 FROM {name} WHERE id = 4)",
        "its own qualifier": f"SELECT {name}.id FROM {name} WHERE {name}.id = 4",
        "the rest is kept": f"SELECT '{{}} delta.`/x`' /* {{ */, map('a', id)['a'] FROM {name} "
        "WHERE id = 0",
        "a union": f"(SELECT id FROM {name} WHERE id = 1) UNION ALL (TABLE {name}) ORDER BY 1 DESC "
        "LIMIT 1",
        "a time": f"SELECT count(*) FROM {name} TIMESTAMP AS OF "
        f"timestamp'{first}' + INTERVAL 0 SECOND",
        "explained": f"EXPLAIN SELECT * FROM {name}",
    }
    for told, query in queries.items():
        found = rows(spark.sql(query))
        tell(told, len(found) if told == "explained" else found)
    tell("a named parameter", rows(spark.sql(f"SELECT id FROM {name} WHERE id = :x", {"x": 3})))
    tell(
        "places",
        rows(
            spark.sql(
                f"SELECT ? AS a, max(id) FROM {name} TIMESTAMP AS OF ? WHERE id <= ?",
                args=["a", last, 3],
            )
        ),
    )
    frame = spark.range(4, 6)
    joined = spark.sql("SELECT f.id FROM {f} f JOIN " + name + " t ON f.id = t.id", f=frame)
    tell("a frame", rows(joined))
    spark.sql(
        f"CREATE OR REPLACE TEMP VIEW v (number) AS SELECT id FROM {name} WHERE id > :x", {"x": 2}
    )
    tell("a temporary view", rows(spark.sql("SELECT number FROM v ORDER BY 1")))
    spark.sql("CREATE TABLE plain (id LONG) USING parquet")
    spark.sql(f"INSERT INTO plain SELECT id FROM {name} WHERE id < 2")
    tell("into a table of others", ids(spark.table("plain")))
    spark.sql("DROP TABLE plain")


PRUNED = {  # queries over a table, and which columns, filter and limit its frames are read with
    "SELECT id FROM {t} ORDER BY id": [["id"], "TRUE", None],
    "SELECT sum(st.a) FROM {t} u WHERE u.p = 1 AND s LIKE 'n%' AND hash(id) <> 0": [
        ["st.a", "p", "s", "id"],
        "p = 1 AND s LIKE 'n%'",
        None,
    ],
    "SELECT count(*) FROM {t}": [[], "TRUE", None],
    "SELECT count(1), max(st.in.`x y`) FROM {t} WHERE st.in.`x y` > 3": [
        ["st.in.x y"],
        "st.`in`.`x y` > 3",
        None,
    ],
    "SELECT * FROM {t} WHERE id = ? OR d > 11 ORDER BY id": [None, "id = 7 OR d > 11", None],
    "SELECT a.id, b.s FROM {t} a JOIN {t} b ON a.id = b.st.a ORDER BY 1": [
        ["id", "s", "st.a"],
        "TRUE",
        None,
    ],
    "SELECT id FROM {t} o WHERE EXISTS (SELECT 1 FROM {t} i WHERE i.id = o.id + 1) ORDER BY 1": [
        ["id"],
        "TRUE",
        None,
    ],
    "SELECT count(DISTINCT id) FROM (SELECT id FROM {t} LIMIT 3)": [["id"], "TRUE", 3],
    "SELECT _metadata.row_index >= 0, id FROM {t} WHERE id = 4": [
        ["id", "_metadata"],
        "id = 4",
        None,
    ],
}


def windowed(frame):
    place = sf.row_number().over(Window.partitionBy("p").orderBy(sf.desc("id")))
    return frame.select("id", place.alias("r"))


FRAMES = {  # see test_sent_needs.py for what is read
    "a column that is not chosen": lambda t: t.select("id").where(t.p == 2).orderBy("s"),
    "a column made anew": lambda t: t.withColumn("id", sf.col("id") + 1).where("id = 4 AND p < 9"),
    "a window": lambda t: windowed(t).where("id > 4").select("r"),
    "rows of rows": lambda t: t.select(sf.explode(sf.array("p", "p")).alias("e")).where("e = 1"),
    "groups": lambda t: t.where("id > 2").groupBy("p").agg(sf.sum("st.a"), sf.count("*")),
    "a self-join": lambda t: (
        t.alias("a").join(t.alias("b"), sf.expr("a.id = b.st.a")).select("b.s")
    ),
    "a union": lambda t: t.select("id").union(t.where("p = 1").select(t.st.a)),
    "a frame in SQL": lambda t: t.sparkSession.sql(
        "SELECT s FROM {f} WHERE p = 0", f=t.where("id > 3")
    ),
    "any rows": lambda t: t.select("id").limit(3).agg(sf.count("id")),
}


def message_of(call) -> str:
    try:
        call()
    except PySparkException as error:
        return str(error)
    return ""


def export(frame, path: str) -> int:
    frame.select("id").write.parquet(path)
    return frame.sparkSession.read.parquet(path).count()


def tell_following(spark: SparkSession, folder: str) -> None:
    """Frames read the newest version of their table, but where one was chosen or kept."""
    path = f"{folder}/followed"
    spark.range(6).selectExpr("id", "id AS n").write.format("delta").save(path)
    frame, table = spark.read.format("delta").load(path), DeltaTable.forPath(spark, path)
    some, fixed = frame.select("id"), spark.read.format("delta").load(f"{path}@v0")
    stays = read(spark, path)
    table.delete("id = 0")
    both = frame.join(some.alias("s"), "id")
    tell("followed", [ids(some), ids(both), fixed.count(), stays.count()])
    frame.cache()
    tell("cached", frame.count())
    table.delete("id = 1")
    kept = [frame.count(), some.join(frame, "id").count()]
    frame.unpersist()
    tell("while it is cached, and after", [*kept, frame.count()])
    frame.where("id > 2").write.format("delta").mode("overwrite").save(path)
    tell("written over itself", ids(frame))
    merged = table.alias("t").merge(frame.alias("u"), "t.id = u.id")
    merged.whenMatchedDelete(frame["n"] == 3).execute()
    tell("merged with itself", ids(some))
    spark.range(1).selectExpr("id").write.format("delta").mode("overwrite").option(
        "overwriteSchema", True
    ).save(path)
    tell("without its column", kind_of(frame.collect))


def log_files(path: str, condition: str) -> list[Path]:
    """The data files whose partitions match."""
    files = DeltaLog.for_path(path).snapshot().scan(condition).files
    return [Path(path) / name for name in files["path"].to_pylist()]


def tell_pruning(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/pruned"
    source = spark.range(12).selectExpr(
        "id",
        "concat(if(id % 3 = 0, 'n', 'm'), id) AS s",
        "CAST(id AS DECIMAL(38, 0)) AS d",
        "named_struct('a', id + 1, 'in', named_struct('x y', id, 'z', 'z')) AS st",
        "CAST(id % 3 AS INT) AS p",
    )
    mapped = source.write.format("delta").option("delta.columnMapping.mode", "name")
    mapped.partitionBy("p").save(path)
    spark.read.format("delta").load(path).createOrReplaceTempView("whole")
    needs, scan = [], ArrowPlane.scan_needed

    def noted(self, snapshot, needed, **more):
        needs.append(needed)
        return scan(self, snapshot, needed, **more)

    ArrowPlane.scan_needed = noted
    args = {"args": [7]}
    for number, (query, wanted) in enumerate(PRUNED.items()):
        needs.clear()
        given = args if "?" in query else {}
        found = rows(spark.sql(query.format(t=f"delta.`{path}`"), **given))
        (needed, *_) = needs
        columns = needed.columns
        columns = None if columns is None else sorted(".".join(way) for way in columns)
        told = [columns, str(needed.predicate), needed.limit]
        assert told == [wanted[0] and sorted(wanted[0]), *wanted[1:]], (query, told)
        over_all = query if "_metadata" not in query else "SELECT true, 4"
        expected = rows(spark.sql(over_all.format(t="whole"), **given))
        assert found == expected, (query, found, expected)
        tell(f"pruned {number}", len(found))
    ArrowPlane.scan_needed = scan
    frames = spark.read.format("delta").load(path), spark.table("whole")
    for name, make in FRAMES.items():
        pruned, whole = (sorted(map(str, rows(make(frame)))) for frame in frames)
        assert pruned == whole, (name, pruned, whole)
        tell(f"frames: {name}", len(pruned))
    few = frames[0].where("p = 1 AND s <> 'a'").select("id", "st.a")._explain_string("extended")
    read_columns = re.findall(r"Relation\w*\[(.*?)\]", few)[-1]
    tell("columns of a frame", re.findall(r"(\w+)#", read_columns))
    tell("an unknown name", "`st`" in message_of(lambda: frames[0].select("nope").collect()))
    for file in log_files(path, "p <> 1"):
        file.unlink()
    name = f"delta.`{path}`"
    left = spark.sql(f"SELECT count(id) FROM {name} WHERE p = 1 AND s <> 'a'")
    tell("files that are skipped", rows(left))
    tell("files that are not", kind_of(lambda: rows(spark.sql(f"SELECT sum(id) FROM {name}"))))
    tell("files that a frame skips", frames[0].where("p = 1").where("id >= 0").count())
    tell("files that it does not", kind_of(lambda: frames[0].select("id").collect()))
    tell("rows for another format", export(frames[0].where("p = 1"), f"{folder}/exported"))
    fields = spark.sql(f"SELECT count(st.in.z) FROM {name} WHERE p = 1")
    tell("a field of a renamed struct", rows(fields))
    tell("fields by columns", read(spark, path, columns=["st.in.z", "p"]).where("p = 1").columns)


def tell_changes(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/changes"
    writer = spark.range(6).selectExpr("id", "'old' AS s").write.format("delta")
    writer.option("delta.enableChangeDataFeed", "true").save(path)
    name = f"delta.`{path}`"
    tell("deleted", rows(spark.sql(f"DELETE FROM {name} AS t WHERE t.id >= :low", {"low": 5})))
    tell("updated", rows(spark.sql(f"UPDATE {name} SET s = upper('new') WHERE id IN (?, 1)", [0])))
    merged = spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {name} t "
        f"USING (SELECT id + 1 AS id, 'm' AS s, 7 AS n FROM {name} VERSION AS OF 0) u "
        "ON t.id = u.id WHEN MATCHED AND u.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED AND u.id > 5 THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = concat(t.s, '!')"
    )
    tell("merged", rows(merged))
    tell("after the merge", rows(spark.sql(f"SELECT * FROM {name} ORDER BY id")))
    spark.sql("CREATE OR REPLACE TEMP VIEW source AS SELECT 0L AS id, 's' AS s")
    by_name = f"MERGE INTO {name} t USING source ON t.id = source.id WHEN MATCHED THEN DELETE"
    tell("merged by a name", rows(spark.sql(by_name)))
    feed = f"SELECT _change_type, count(*) FROM table_changes('{name}', 0, 2) GROUP BY 1 ORDER BY 1"
    tell("table_changes", rows(spark.sql(feed)))
    by_path = f"SELECT count(*) FROM table_changes_by_path('{path}', :v)"
    tell("table_changes by path", rows(spark.sql(by_path, {"v": 4})))


def tell_statements(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/changes"
    name = f"delta.`{path}`"
    tell("history", [row["version"] for row in spark.sql(f"DESC HISTORY {name} LIMIT 2").collect()])
    tell("detail", spark.sql(f"DESCRIBE DETAIL '{path}'").collect()[0]["location"] == path)
    spark.range(3).write.parquet(f"{path}-parquet")
    refusals = {
        "OPTIMIZE": f"OPTIMIZE {name}",
        "ANALYZE": f"ANALYZE TABLE {name} COMPUTE DELTA STATISTICS",
        "VACUUM": f"VACUUM '{path}' RETAIN 1 HOURS",
        "RESTORE": f"RESTORE {name} TO VERSION AS OF 0",
        "CLONE": f"CREATE TABLE delta.`{path}-shallow` SHALLOW CLONE {name}",
        "CLONE, deep": f"CREATE TABLE delta.`{path}-deep` DEEP CLONE {name} VERSION AS OF 1",
        "CLONE of files": f"CREATE TABLE delta.`{path}-files` DEEP CLONE parquet.`{path}-parquet`",
        "CLONE to a name": f"CREATE TABLE t SHALLOW CLONE {name}",
        "CONVERT": f"CONVERT TO DELTA parquet.`{path}-nothing`",
        "CONVERT of a name": "CONVERT TO DELTA t",
        "DROP FEATURE": f"ALTER TABLE {name} DROP FEATURE nothing",
        "wrong": f"OPTIMIZE {name} ZORDR BY id",
        "history of a name": "DESCRIBE HISTORY t",
        "create": "CREATE TABLE t (id INT) USING delta",
        "CTAS": f"CREATE OR REPLACE TABLE t USING delta AS SELECT * FROM {name}",
        "create a name": "CREATE TABLE IF NOT EXISTS t USING delta LOCATION '/x' AS SELECT 1",
        "a view that stays": f"CREATE VIEW v2 AS SELECT * FROM {name}",
        "a script": f"BEGIN SELECT * FROM {name}; END",
        "execute": f"EXECUTE IMMEDIATE 'SELECT * FROM delta.`{path}`'",
        "show": f"SHOW TABLE EXTENDED IN x LIKE delta.`{path}`",
        "gone": f"SELECT * FROM delta.`{folder}/nothing`",
        "explain": f"EXPLAIN OPTIMIZE {name}",
        "of the server": "SELECT * FROM delta_like_name",
    }
    for told, text in refusals.items():
        tell(told, kind_of(lambda text=text: spark.sql(text)))


def tell_vacuum(spark: SparkSession, folder: str) -> None:
    """Files are deleted by a job of the server's, as one request of 1,000 is no job."""
    path = Path(folder, "vacuumed")
    spark.range(3).write.format("delta").save(str(path))
    for number in range(1001):
        (path / f"{number}.parquet").touch()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.conf.set("spark.databricks.delta.vacuum.parallelDelete.enabled", "true")
    with patch.object(vacuum, "delete_here", None):
        spark.sql(f"VACUUM '{path}' RETAIN 0 HOURS")
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    tell("left by a VACUUM", len(list(path.glob("[0-9]*.parquet"))))
    newest = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0]
    tell("history of a VACUUM", [newest.operation, newest.operationMetrics["numDeletedFiles"]])
    tell("rows after a VACUUM", ids(spark.table(f"delta.`{path}`")))


def tell_clients(spark: SparkSession, folder: str) -> None:
    """What a client is told when a table, a session or another client is in its way."""
    path = f"{folder}/clients"
    spark.range(3).write.format("delta").save(path)
    frame = spark.read.format("delta").load(path)
    Path(path).rename(f"{path}_moved")
    tell("a table that is gone", kind_of(frame.collect))
    Path(f"{path}_moved").rename(path)
    place = f"sc://{spark.client._builder.endpoint}"
    other = enable(SparkSession.builder.remote(place).create())
    other.sql(f"INSERT INTO delta.`{path}` VALUES (3)")
    tell("two clients", [ids(client.table(f"delta.`{path}`")) for client in (spark, other)])
    late = read(other, path)
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (4)")
    tell(
        "an overwrite that is late",
        kind_of(lambda: late.write.mode("overwrite").save(path, format="delta")),
    )
    other.client.release_session()
    for name, call in {
        "lost: a query": lambda: other.sql(f"SELECT * FROM delta.`{path}`").collect(),
        "lost: a write": lambda: other.sql(f"INSERT INTO delta.`{path}` SELECT 5"),
    }.items():
        try:
            call()
        except PySparkException as error:
            tell(name, "SESSION_CLOSED" in str(error) and len(str(error)) < 300)
    tell("after the loss", ids(spark.table(f"delta.`{path}`")))


def main(folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    tell("enabled", enable(enable(spark)) is spark)
    tell_frames(spark, folder)
    tell_writers(spark, folder)
    tell_inserts(spark, folder)
    tell_tables(spark, folder)
    tell_queries(spark, folder)
    tell_pruning(spark, folder)
    tell_following(spark, folder)
    tell_vacuum(spark, folder)
    tell_clients(spark, folder)
    tell_changes(spark, folder)
    tell_statements(spark, folder)
    disable(spark)
    disable(spark)
    read = spark.read.format("delta")
    tell("disabled", kind_of(lambda: read.load(f"{folder}/frames").collect()) != "nothing")
    tell("SQL of others", rows(spark.range(1).select(sf.lit("delta"))))
    spark.stop()


main(sys.argv[1])
