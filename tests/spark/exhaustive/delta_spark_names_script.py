"""Run by test_names_of_delta_spark.py: one session, of Delta's jar or of ours, over a metastore.

It makes tables, or uses those that another engine has made, and prints what it saw as a JSON line.
With Delta's jar it runs in a Python that has PySpark and nothing of ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
CONF = {
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.enabled": "false",
}
OF_THE_JAR = {
    "spark.jars.excludes": "org.slf4j:slf4j-api",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": CATALOG,
}


def session(folder: Path, engine: str) -> SparkSession:
    store = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    builder = SparkSession.builder.config(map=CONF)
    builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", store)
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    if engine not in ("classic", "client"):
        jar = {**OF_THE_JAR, "spark.jars.packages": engine}
        return builder.master("local[2]").config(map=jar).getOrCreate()
    from optimist.spark import enable

    builder = builder.remote("local[2]") if engine == "client" else builder.master("local[2]")
    return enable(builder.getOrCreate())


def make(spark: SparkSession, folder: Path, of: str) -> None:
    """Make tables and a view whose names begin with `of`."""
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    spark.sql("USE shop")
    spark.sql(f"CREATE TABLE {of}_Kept (id BIGINT, p INT) USING delta PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {of}_kept VALUES (1, 1), (2, 2)")
    spark.sql(f"CREATE TABLE {of}_far USING delta LOCATION '{folder}/{of}' AS SELECT 1L AS id")
    spark.range(3).write.format("delta").saveAsTable(f"{of}_saved")
    spark.sql(f"ALTER TABLE {of}_saved RENAME TO {of}_named")
    spark.sql(f"ALTER TABLE {of}_named ADD COLUMNS (x INT)")
    spark.sql(f"CREATE TABLE {of}_cloned SHALLOW CLONE {of}_kept")
    spark.sql(f"CREATE TABLE {of}_gone USING delta AS SELECT 1L AS id")
    spark.sql(f"CREATE VIEW {of}_front AS SELECT id, p FROM {of}_kept JOIN {of}_far USING (id)")
    files = f"{of}_files (id BIGINT) USING parquet OPTIONS ('compression' = 'zstd')"
    shown = f"LOCATION '{folder}/{of}_files' TBLPROPERTIES ('mine' = '1')"
    spark.sql(f"CREATE TABLE {files} {shown}")
    spark.sql(f"INSERT INTO {of}_files VALUES (4)")
    parts = f"{of}_hives (id BIGINT) PARTITIONED BY (p STRING) STORED AS PARQUET"
    spark.sql(f"CREATE TABLE {parts} LOCATION '{folder}/{of}_hives'")
    spark.sql(f"INSERT INTO {of}_hives PARTITION (p = 'a') VALUES (5)")


def use(spark: SparkSession, folder: Path, of: str) -> dict[str, object]:
    """Read and change what another engine has made, and tell what comes of it."""

    def rows(text: str) -> list[list[object]]:
        return sorted([list(row) for row in spark.sql(text).collect()], key=str)

    spark.sql("USE shop")
    found: dict[str, object] = {"view": rows(f"SELECT * FROM {of}_front")}
    for name in ("kept", "far", "named", "cloned"):
        found[name] = rows(f"SELECT * FROM {of}_{name}")
    spark.sql(f"INSERT INTO {of}_kept VALUES (3, 1)")
    spark.sql(f"UPDATE {of}_far SET id = 3")
    spark.sql(f"ALTER TABLE {of}_far ADD COLUMNS (x INT)")
    spark.sql(f"ALTER TABLE {of}_named RENAME TO {of}_again")
    spark.sql(f"CREATE OR REPLACE TABLE {of}_cloned USING delta AS SELECT * FROM {of}_again")
    for name in ("kept", "far", "again", "cloned"):
        found[f"{name} after"] = rows(f"SELECT * FROM {of}_{name}")
    found["columns"] = [each.name for each in spark.catalog.listColumns(f"{of}_far")]
    found["view after"] = rows(f"SELECT * FROM {of}_front")
    for name in ("files", "hives"):
        spark.sql(f"CONVERT TO DELTA {of}_{name}")
        found[name] = rows(f"SELECT * FROM {of}_{name}")
        found[f"properties of {name}"] = rows(f"SHOW TBLPROPERTIES {of}_{name}")
    spark.sql(f"DROP TABLE {of}_gone")
    found["gone"] = (folder / "warehouse" / "shop.db" / f"{of}_gone").exists()
    return found


def main(folder: Path, engine: str, *steps: str) -> None:
    spark = session(folder, engine)
    for step in steps:
        what, _, of = step.partition(" ")
        if what == "make":
            make(spark, folder, of)
        else:
            sys.stdout.write(json.dumps({of: use(spark, folder, of)}) + "\n")
    spark.stop()


main(Path(sys.argv[1]), *sys.argv[2:])
