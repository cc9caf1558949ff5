"""Run by test_spark_connect.py in a process of its own: prints what happened as JSON lines.

A session of Spark Connect can't live beside a classic one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from connect_process import kind_of, tell
from optimist.spark import DeltaTable, read, write
from optimist.spark.session.conf import open_log
from read_back import ids


def tell_own_store(spark, folder: str) -> None:
    """A store whose module this process has and the server has not."""
    own = Path(folder) / "own_of_client"
    own.mkdir()
    (own / "client_store.py").write_text(
        "from optimist.logstores.local.store import LocalLogStore\n\n\n"
        "class OwnStore(LocalLogStore):\n    pass\n"
    )
    sys.path.insert(0, str(own))
    path = f"{folder}/own_table"
    spark.conf.set("spark.delta.logStore.class", "client_store:OwnStore")
    tell("own store", kind_of(lambda: write(spark.range(3), path)))
    tell("own store wrote", Path(path).exists() and any(Path(path).rglob("*.*")))
    spark.addArtifacts(str(own / "client_store.py"), pyfile=True)
    tell("own store in the server", write(spark.range(3), path).version)
    tell("own store read", ids(read(spark, path)))
    spark.conf.unset("spark.delta.logStore.class")


def odd_paths(spark: SparkSession, folder: str) -> None:
    (Path(folder) / "other").mkdir()
    os.chdir(Path(folder) / "other")  # where the client stands, not the server
    write(spark.range(6).selectExpr("id", "id % 2 AS p"), "./odd//t", partitionBy="p")
    odd = DeltaTable.forPath(spark, "x/../odd/./t")
    os.chdir(folder)
    odd.delete("id = 1 OR p = 0")
    odd.update("id = 3", {"id": "30"})
    tell("odd path", ids(read(spark, f"{folder}/other/odd/t")))
    tell("empty path", kind_of(lambda: write(spark.range(1), "")))


def conditions(spark: SparkSession, folder: str) -> None:
    """What a condition says is what Spark resolves, whatever the client can see of it."""
    path = f"{folder}/conditions"
    rows = spark.range(30).selectExpr(
        "id",
        "CAST(id % 2 AS STRING) AS p",
        "concat('u', id) AS current_user",
        "named_struct('id', id + 100, 'p', 'x') AS st",
        "id AS `x.y`",
        "id AS __optimist_ordinal",
        "id AS __optimist_file",
        "concat('a', chr(92), 'n') AS s",
    )
    write(rows.coalesce(1), path, partitionBy="p")
    table = DeltaTable.forPath(spark, path)
    odd, is_7 = sf.col("p") == "1", sf.udf(lambda value: value == 7, "boolean")
    table.delete(odd & (sf.expr("id") == 1))
    table.delete(odd & sf.when(sf.expr("id = 3"), True).otherwise(False))
    table.delete(odd & sf.coalesce(sf.expr("id = 5"), sf.lit(False)) | is_7(sf.expr("id")))
    table.delete(odd & (sf.col("`x.y`") == 9))
    table.delete(odd & (sf.col("__optimist_ordinal") == 11) & (sf.col("__optimist_file") == 11))
    table.delete("p = '1' AND current_user = 'u13'")
    table.alias("st").delete("st.id = 15")
    table.alias("st").delete(sf.col("st.id") == 17)
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    table.delete('"id" = 19 AND "p" = \'1\'')
    spark.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    table.delete(odd & sf.expr(r"id = 21 AND s = 'a\n'"))
    spark.conf.unset("spark.sql.parser.escapedStringLiterals")
    table.alias("t1").delete("t1.id*2 = 2.*23 /* , * */")
    frame = table.toDF()
    table.delete((frame["id"] == 25) & (frame.st.id == 125) & (table.toDF()["p"] == "1"))
    tell("conditions", [i for i in ids(read(spark, path)) if i % 2])
    table.update(frame["id"] == 27, {"id": frame["id"] * 10})
    table.delete(odd & sf.expr("upper(p) = '2'"))
    table.delete(sf.concat("p", sf.lit("a")) == "0a")
    tell("partitions", ids(read(spark, path)))
    tell("other frame", kind_of(lambda: table.delete(read(spark, path)["id"] < 11)))
    keep = sf.to_json(sf.struct("*")).contains("keep")
    tell("star", kind_of(lambda: table.delete(odd & ~keep)))
    tell("star in update", kind_of(lambda: table.update(odd & ~keep, {"id": "1"})))
    star = {"replaceWhere": "hash(*) > 0"}
    tell("star in replaceWhere", kind_of(lambda: write(rows, path, mode="overwrite", **star)))


def main(folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    path = f"{folder}/table"
    rows = spark.range(0, 60, 1, 2).selectExpr(
        "id", "CAST(id % 3 AS INT) AS p", "concat('n', id) AS s", "named_struct('a', id) AS st"
    )
    tell("module", type(spark).__module__)
    tell("created", write(rows, path, partitionBy="p").version)
    tell("read", ids(read(spark, path).where("p = 1 AND id < 10")))
    frame = read(spark, path)
    tell("union", ids(frame.where("id < 2").union(frame.where("id > 57"))))

    tell_own_store(spark, folder)

    table = DeltaTable.forPath(spark, path)
    table.delete("id >= 40 AND p = 2")
    table.delete((sf.col("id") == 39) | sf.col("s").isin("n37", "n36"))
    tell("deleted", ids(read(spark, path)))
    tell("predicate", open_log(spark, path).history(1)[0].info.operation_parameters)
    table.alias("t").update("t.id < 3", {"s": sf.lit("new"), "p": "p + 10"})
    source = spark.sql("SELECT 20L AS id, 'merged' AS s UNION ALL SELECT 300L, 'new'").alias("n")
    merge = table.alias("t").merge(source, "t.id = n.id").whenMatchedUpdate(set={"s": "n.s"})
    told = merge.whenNotMatchedInsert(values={"id": "n.id", "s": "n.s"}).execute().collect()
    tell("merged", list(told[0]))
    tell("merged rows", ids(read(spark, path).where("s = 'merged' OR p IS NULL")))
    table.delete("id = 300")
    tell("updated", ids(read(spark, path).where("s = 'new' AND p >= 10")))
    tell("partition", table.delete("p = 0").columns)
    tell("old version", read(spark, path, versionAsOf=0).count())

    blind = write(rows.where("id < 3"), path, mode="append")
    tell("blind append", open_log(spark, path).history(1)[0].info.is_blind_append)
    write(
        read(spark, path).where("id = 1").withColumn("id", sf.lit(100).cast("long")),
        path,
        mode="append",
    )
    tell("append from itself", open_log(spark, path).history(1)[0].info.is_blind_append)
    read(spark, path).createOrReplaceTempView("itself")
    view = spark.sql("SELECT 101L AS id, 1 AS p, max(s) AS s, max(st) AS st FROM itself")
    write(view, path, mode="append")
    tell("append from a view", open_log(spark, path).history(1)[0].info.is_blind_append)
    stale = read(spark, path)
    write(rows.where("id = 5"), path, mode="append")
    tell("stale overwrite", kind_of(lambda: write(stale, path, mode="overwrite")))
    tell(
        "replaced",
        write(rows.where("p = 1"), path, mode="overwrite", replaceWhere="p = 1") is not None,
    )

    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    write(rows.where("id < 3"), f"{folder}/dynamic", partitionBy="p")
    write(rows.where("id = 4"), f"{folder}/dynamic", mode="overwrite")
    tell("dynamic", ids(read(spark, f"{folder}/dynamic")))
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    tell("rand", kind_of(lambda: table.delete("rand() > 0.5")))
    tell("rand column", kind_of(lambda: table.delete(sf.rand() > 0.5)))
    tell("subquery", kind_of(lambda: table.delete("id IN (SELECT 1000)")))
    tell("unresolved", kind_of(lambda: table.delete("nope = 1")))
    tell("no column", kind_of(lambda: table.update("id = 1", {"nope": "1"})))
    tell("too new", kind_of(lambda: read(spark, path, versionAsOf=1000)))
    bad = rows.withColumn("s", sf.expr("if(id = 3, raise_error('boom'), s)")).coalesce(1)
    before = sorted(map(str, Path(path).rglob("*.parquet")))
    tell("failed write", kind_of(lambda: write(bad, path, mode="append")))
    tell("nothing left", sorted(map(str, Path(path).rglob("*.parquet"))) == before)

    on = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
    spark.conf.set(on, "true")
    write(spark.range(3), f"{folder}/fed")
    write(spark.range(3, 5), f"{folder}/fed", mode="append")
    spark.conf.unset(on)
    feed = read(spark, f"{folder}/fed", readChangeFeed=True, startingVersion=0)
    late = feed.where("_commit_version = 1").select("_change_type", "id").collect()
    tell("changes", sorted(list(row) for row in late))
    write(spark.range(9, 10), f"{folder}/fed", mode="overwrite")
    feed = read(spark, f"{folder}/fed", readChangeFeed=True, startingVersion=1)
    rows = feed.select("_commit_version", "_change_type", "id").collect()
    tell("changes of an overwrite", sorted(list(row) for row in rows))
    fed = DeltaTable.forPath(spark, f"{folder}/fed")
    write(spark.range(10, 16).coalesce(1), f"{folder}/fed", mode="append")
    fed.delete("id = 10")
    fed.update("id > 13", {"id": "id + 100"})
    new = spark.range(11, 12)
    write(new, f"{folder}/fed", mode="overwrite", replaceWhere="id IN (11, 12)")
    feed = read(spark, f"{folder}/fed", readChangeFeed=True, startingVersion=4)
    rows = feed.select("_commit_version", "_change_type", "id").collect()
    tell("changes that are recorded", sorted(list(row) for row in rows))
    nines = "9" * 38
    big = spark.range(1).selectExpr(f"{nines}BD AS d", f"-{nines}BD AS p")
    write(big, f"{folder}/decimals", partitionBy="p")
    found = read(spark, f"{folder}/decimals").where(f"d = {nines}BD AND p = -{nines}BD")
    tell("largest decimals", [str(value) for value in found.collect()[0]])

    updates(spark, f"{folder}/updates")
    vectors(spark, f"{folder}/vectors")
    odd_paths(spark, folder)
    conditions(spark, folder)
    tell("history", [row.operation for row in table.history(2).collect()])
    tell("detail", table.detail().collect()[0].format)
    spark.conf.set("spark.optimist.spark.plane", "native")
    tell("native", kind_of(lambda: read(spark, path)))
    spark.conf.unset("spark.optimist.spark.plane")
    for item in Path(path).glob("data-*/**/*.parquet"):
        item.unlink()
    tell("gone", kind_of(lambda: table.delete("st.a = 5")))
    assert blind is not None
    spark.stop()


def updates(spark, path: str) -> None:
    """What is assigned is cast in the server, and there is no JVM to build the cast in."""
    write(spark.sql("SELECT 1L AS id, 'top' AS a, named_struct('a', 1, 'b', 's') AS st"), path)
    target = DeltaTable.forPath(spark, path)
    tell("no column or text", kind_of(lambda: target.delete(condition=1)))
    tell("no frame", kind_of(lambda: write([(1,)], path)))
    tell("folder of a partition", DeltaTable.isDeltaTable(spark, Path(path) / "p=1"))
    tell("mistyped struct", kind_of(lambda: target.update(set={"sd.a": "'x'"})))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    tell("overflow", kind_of(lambda: target.update(set={"st.a": "99999999999L"})))
    target.alias("t").update("t.id = 1", {"t.st.a": "'7'", "a": "1 / 0"})
    tell("struct field", [[*row.st, row.a] for row in target.toDF().collect()])
    target.update(set={"st": "named_struct('b', 3, 'a', '4')"})
    spark.conf.set("spark.sql.storeAssignmentPolicy", "STRICT")
    tell("strict", kind_of(lambda: target.update(set={"st.a": "1L"})))
    spark.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    tell("by name", [list(row.st) for row in target.toDF().collect()])
    target.update(set={"st.a": "99999999999L"})
    tell("legacy", [row.st.a for row in target.toDF().collect()])
    spark.conf.unset("spark.sql.storeAssignmentPolicy")
    spark.conf.unset("spark.sql.ansi.enabled")


def vectors(spark, path: str) -> None:
    """Rows are marked where they are, by positions that the server gathers."""
    on = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
    spark.conf.set(on, "true")
    rows = spark.range(20).selectExpr("id", "id AS __optimist_position", "id AS __optimist_file")
    write(rows.coalesce(1), path)
    spark.conf.unset(on)
    table = DeltaTable.forPath(spark, path)
    table.delete("__optimist_position % 3 = 0")
    table.update("__optimist_file > 15 AND pmod(hash(id), 1) = 0", {"id": "id + 100"})
    tell("marked", ids(table.toDF()))
    metrics = table.history(1).collect()[0].operationMetrics
    tell("vectors updated", metrics["numDeletionVectorsUpdated"])


if __name__ == "__main__":
    main(sys.argv[1])
