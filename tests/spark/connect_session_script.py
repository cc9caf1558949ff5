"""Run by test_spark_connect.py in a process of its own: prints what happened as JSON lines.

A session of Spark Connect can't live beside a classic one.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable
warnings.simplefilter("ignore")

from pyspark.sql import SparkSession  # noqa: E402 - the environment comes first
from pyspark.sql import functions as sf  # noqa: E402

from optimist.core.errors import OptimistError  # noqa: E402
from optimist.spark import DeltaTable, read, write  # noqa: E402
from optimist.spark.session.conf import open_log  # noqa: E402


def tell(name: str, value: object) -> None:
    sys.stdout.write("RESULT " + json.dumps([name, value]) + "\n")
    sys.stdout.flush()


def ids(frame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def kind_of(call) -> str:
    try:
        call()
    except OptimistError as error:
        return f"{type(error).__name__} {error.kind}"
    except Exception as error:  # noqa: BLE001 - the test looks at what came
        return type(error).__name__
    return "nothing"


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

    table = DeltaTable.forPath(spark, path)
    table.delete("id >= 40 AND p = 2")
    table.delete((sf.col("id") == 39) | sf.col("s").isin("n37", "n36"))
    tell("deleted", ids(read(spark, path)))
    tell("predicate", open_log(spark, path).history(1)[0].info.operation_parameters)
    table.alias("t").update("t.id < 3", {"s": sf.lit("new"), "p": "p + 10"})
    tell("updated", ids(read(spark, path).where("s = 'new' AND p >= 10")))
    tell("partition", table.delete("p = 0"))
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

    tell("rand", kind_of(lambda: table.delete("rand() > 0.5")))
    tell("rand column", kind_of(lambda: table.delete(sf.rand() > 0.5)))
    tell("subquery", kind_of(lambda: table.delete("id IN (SELECT 1)")))
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

    tell("history", [row.operation for row in table.history(2).collect()])
    tell("detail", table.detail().collect()[0].format)
    spark.conf.set("spark.optimist.spark.plane", "native")
    tell("native", kind_of(lambda: read(spark, path)))
    spark.conf.unset("spark.optimist.spark.plane")
    for item in Path(path).rglob("*.parquet"):
        item.unlink()
    tell("gone", kind_of(lambda: table.delete("st.a = 5")))
    assert blind is not None
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
