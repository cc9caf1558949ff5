"""Run by test_names_on_connect.py in a process of its own: prints what happened as JSON lines."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from connect_process import another_session, kind_of, started, tell
from named_statements import named_answers
from optimist.spark import DeltaTable, enable, write
from read_back import ids


def own_sql(spark: SparkSession, text: str):
    """Run a statement as a client does that is not enabled."""
    return type(spark).sql(spark, text)


def tell_entries(spark: SparkSession, folder: Path) -> None:
    """What the catalog knows of a table, and statements whose names or texts are computed."""
    rows = spark.sql("DESCRIBE EXTENDED other.u").collect()
    told = {row["col_name"]: row["data_type"] for row in rows}
    names = ("id", "Namespace", "Table", "Type", "Location", "Provider", "Table Properties")
    tell("described", [told[name].replace(str(folder), "") for name in names])
    spark.sql("CREATE TABLE names.emptied USING delta AS SELECT 1L AS id")
    spark.sql("TRUNCATE TABLE IDENTIFIER('names' || '.emptied')")
    tell("emptied", ids(spark.table("names.emptied")))
    spark.sql("DECLARE text = 'INSERT INTO names.emptied VALUES (3)'")
    spark.sql("EXECUTE IMMEDIATE text")
    spark.sql("SET VAR text = 'TRUNCATE TABLE names.emptied'")
    tell("inserted", ids(spark.table("names.emptied")))
    spark.sql("EXECUTE IMMEDIATE text")
    tell("emptied by a variable", ids(spark.table("names.emptied")))


def tell_leftovers(spark: SparkSession, folder: Path) -> None:
    """Names without tables, and tables without names: what a kill leaves between the two."""
    own_sql(spark, "CREATE TABLE names.half USING delta")
    for case, text in {
        "read": "SELECT * FROM names.half",
        "written": "INSERT INTO names.half VALUES (1)",
        "described": "DESCRIBE names.half",
    }.items():
        tell(f"half: {case}", kind_of(lambda text=text: spark.sql(text)))
    tell("half: forName", kind_of(lambda: DeltaTable.forName(spark, "names.half")))
    tell("half: table", kind_of(lambda: spark.table("names.half")))
    spark.sql("CREATE TABLE IF NOT EXISTS names.half (id INT) USING delta")
    spark.sql("INSERT INTO names.half VALUES (1)")
    tell("half: made", ids(spark.table("names.half")))
    spark.sql("DROP TABLE names.half")
    tell("half: dropped", (folder / "names" / "half").exists())
    write(spark.range(2), str(folder / "nameless"))
    made = f"CREATE TABLE names.nameless (id BIGINT) USING delta LOCATION '{folder}/nameless'"
    tell("nameless: other columns", kind_of(lambda: spark.sql(made.replace("BIGINT", "INT"))))
    tell("nameless: not named", spark.catalog.tableExists("names.nameless"))
    spark.sql(made)
    tell("nameless: named", ids(spark.table("names.nameless")))


def tell_sessions(spark: SparkSession) -> None:
    """Two clients that make, rename and drop the same names."""
    other = enable(another_session(spark))
    other.sql("USE names")
    other.sql("CREATE TABLE shared USING delta AS SELECT 1L AS id")
    frame = spark.table("shared")
    tell("shared: read", ids(frame))
    tell("shared: taken", kind_of(lambda: spark.sql("CREATE TABLE shared (a INT) USING delta")))
    other.sql("DROP TABLE shared")
    tell("shared: gone", kind_of(lambda: spark.sql("SELECT * FROM shared").collect()))
    spark.sql("CREATE TABLE shared USING delta AS SELECT 2L AS id")
    tell("shared: anew", [ids(other.table("shared")), ids(frame)])
    other.sql("ALTER TABLE shared RENAME TO elsewhere")
    spark.sql("CREATE TABLE shared USING delta AS SELECT 3L AS id")
    tell("shared: renamed", [ids(spark.table("elsewhere")), ids(other.table("shared"))])
    last = enable(another_session(spark))  # which has not met the format
    last.sql("DROP TABLE names.elsewhere")
    tell("shared: dropped", spark.catalog.tableExists("names.elsewhere"))
    for each in (other, last):  # else they ask a server that is gone, when the process ends
        each.client.close()


def tell_refused(spark: SparkSession, folder: Path) -> None:
    spark.sql(
        f"CREATE TABLE hidden USING parquet LOCATION '{folder}/hidden' "
        "TBLPROPERTIES ('password' = 'x') AS SELECT 1 AS id"
    )
    for case, text in {
        "view of a path": "CREATE VIEW names.wrong AS SELECT * FROM delta.`{folder}/u`",
        "view of a version": "CREATE VIEW names.wrong AS SELECT * FROM t VERSION AS OF 0",
        "global view": "CREATE GLOBAL TEMPORARY VIEW wrong AS SELECT * FROM t",
        "script": "BEGIN SELECT * FROM t; END",
        "variable": "SET VAR x = (SELECT max(id) FROM t)",
        "json": "DESCRIBE EXTENDED t AS JSON",
        "truncating script": "BEGIN TRUNCATE TABLE IDENTIFIER('t'); END",
        "immediate using": "EXECUTE IMMEDIATE 'TRUNCATE TABLE IDENTIFIER(:n)' USING 't' AS n",
        "immediate into": "EXECUTE IMMEDIATE 'SELECT max(id) FROM t' INTO x",
        "cache": "CACHE TABLE t",
        "analyze": "ANALYZE TABLE t COMPUTE STATISTICS",
        "convert": "CONVERT TO DELTA pq",  # the catalog would delete its files with its entry
        "hidden property": "CONVERT TO DELTA hidden",
        "catalog": "CREATE TABLE lakehouse.names.t (id INT) USING delta",
        "two ways": "SELECT t.id, names.t.id FROM t",
    }.items():
        text = text.replace("{folder}", str(folder))
        tell(f"refused: {case}", kind_of(lambda text=text: spark.sql(text).collect()))
    over = spark.range(1).write.format("parquet").mode("overwrite")
    tell("refused: another format", kind_of(lambda: over.saveAsTable("t")))
    over = spark.range(1).write.format("delta").mode("overwrite")
    tell("refused: over another", kind_of(lambda: over.saveAsTable("pq")))
    tell("kept its format", ids(spark.table("t")))
    spark.sql("CREATE TEMP VIEW kept AS SELECT t.id FROM t")
    spark.sql("CACHE TABLE cached AS SELECT id FROM t")
    tell("views", [ids(spark.table("kept")), ids(spark.table("cached"))])
    tell("unnamed", kind_of(lambda: own_sql(spark, "SELECT * FROM t").collect()))
    tell(
        "unnamed write", kind_of(lambda: own_sql(spark, "INSERT INTO t VALUES (1, 'x')").collect())
    )


def tell_views(spark: SparkSession) -> None:
    """Views that the client reads itself, and settings under which it does not."""
    tell("view: unnamed", kind_of(lambda: own_sql(spark, "SELECT * FROM seen").collect()))
    spark.sql(
        "CREATE TABLE names.zoned USING delta AS SELECT TIMESTAMP '2026-01-01 00:00:00' AS at"
    )
    spark.sql("CREATE VIEW names.times AS SELECT CAST(at AS STRING) AS at FROM zoned")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    tell("view: other zone", kind_of(lambda: spark.table("names.times")))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    tell("view: zone", [row["at"] for row in spark.table("names.times").collect()])
    spark.sql("CREATE VIEW deep_0 AS SELECT id FROM t")
    for depth in range(1, 4):
        spark.sql(f"CREATE VIEW deep_{depth} AS SELECT id FROM deep_{depth - 1}")
    tell("view: deep", ids(spark.table("deep_3")))
    spark.sql("ALTER TABLE zoned RENAME TO moved_on")
    tell("view: table gone", kind_of(lambda: spark.table("names.times").collect()))
    spark.sql("CREATE TEMP VIEW zoned AS SELECT 'hidden' AS at")
    tell("view: table hidden", kind_of(lambda: spark.table("names.times").collect()))
    spark.sql("DROP VIEW zoned")


def tell_catalog(spark: SparkSession) -> None:
    """Methods of `spark.catalog`, some of which only newer versions of PySpark have."""
    catalog = spark.catalog
    spark.sql("CREATE TABLE names.listed USING delta AS SELECT 1L AS id")
    tell("catalog: cached", kind_of(lambda: catalog.cacheTable("names.listed")))
    truncate = getattr(catalog, "truncateTable", lambda name: spark.sql(f"TRUNCATE TABLE {name}"))
    truncate("names.listed")
    tell("catalog: truncated", ids(spark.table("names.listed")))
    drop = getattr(catalog, "dropTable", lambda name: spark.sql(f"DROP TABLE {name}"))
    drop("names.listed")
    tell("catalog: dropped", catalog.tableExists("names.listed"))


def tell_stream(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE TABLE names.sink (id BIGINT) USING delta")
    for sink, *source in (("names.sink",), ("names.new_sink", "delta")):
        rows = spark.readStream.table("names.t").select("id").writeStream
        rows = rows.option("checkpointLocation", f"{folder}/checkpoints/{sink}")
        writer = rows.trigger(availableNow=True)
        started(partial(writer.toTable, sink, *source)).awaitTermination()
    tell("streamed into a new table", ids(spark.table("names.new_sink")))
    tell("streamed", [ids(spark.table("names.sink")), ids(spark.table("names.t"))])


def main(folder: Path) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    enable(spark)
    for case, answer in named_answers(spark, str(folder)):
        tell(case, answer)
    tell_refused(spark, folder)
    tell_entries(spark, folder)
    tell_leftovers(spark, folder)
    tell_sessions(spark)
    tell_views(spark)
    tell_catalog(spark)
    tell_stream(spark, folder)
    spark.stop()


main(Path(sys.argv[1]))
