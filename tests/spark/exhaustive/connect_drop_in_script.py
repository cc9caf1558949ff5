"""Run by test_drop_in_connect.py in a process of its own: prints what happened as JSON lines.

A session of Spark Connect can't live beside a classic one.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from connect_process import ids, kind_of, tell
from optimist.spark import DeltaTable, disable, enable


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
    unbuilt = source.write.format("delta").mode("append").option("dataChange", "false")
    tell("an option of Delta that would be ignored", kind_of(lambda: unbuilt.save(path)))
    tell("a name", kind_of(lambda: source.write.format("delta").saveAsTable("t")))
    source.write.format("parquet").save(f"{folder}/parquet")
    tell("other formats", spark.read.format("parquet").load(f"{folder}/parquet").count())


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
    refusals = {
        "OPTIMIZE": f"OPTIMIZE {name}",
        "VACUUM": f"VACUUM '{path}' RETAIN 1 HOURS",
        "RESTORE": f"RESTORE {name} TO VERSION AS OF 0",
        "wrong": f"OPTIMIZE {name} ZORDR BY id",
        "history of a name": "DESCRIBE HISTORY t",
        "create": "CREATE TABLE t (id INT) USING delta",
        "CTAS": f"CREATE OR REPLACE TABLE t USING delta AS SELECT * FROM {name}",
        "create at a path": f"CREATE TABLE {name} (id INT) USING delta",
        "insert": f"INSERT INTO {name} SELECT 1",
        "a view that stays": f"CREATE VIEW v2 AS SELECT * FROM {name}",
        "a script": f"BEGIN SELECT * FROM {name}; END",
        "execute": f"EXECUTE IMMEDIATE 'SELECT * FROM delta.`{path}`'",
        "alter": f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')",
        "gone": f"SELECT * FROM delta.`{folder}/nothing`",
        "explain": f"EXPLAIN OPTIMIZE {name}",
        "of the server": "SELECT * FROM delta_like_name",
    }
    for told, text in refusals.items():
        tell(told, kind_of(lambda text=text: spark.sql(text)))


def main(folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    tell("enabled", enable(enable(spark)) is spark)
    tell_frames(spark, folder)
    tell_queries(spark, folder)
    tell_changes(spark, folder)
    tell_statements(spark, folder)
    disable(spark)
    disable(spark)
    read = spark.read.format("delta")
    tell("disabled", kind_of(lambda: read.load(f"{folder}/frames").collect()) != "nothing")
    tell("SQL of others", rows(spark.range(1).select(sf.lit("delta"))))
    spark.stop()


main(sys.argv[1])
