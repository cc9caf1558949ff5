"""Run by test_names_in_hive.py: sessions after each other over one metastore of Hive.

Prints what happened as JSON lines. Each session is one of Spark Connect or a classic one, in a
process of its own, so that a server is started again over what another one has kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from connect_process import kind_of, tell
from optimist.spark import DeltaTable, enable
from read_back import ids

_VIEW = "CREATE VIEW front AS SELECT id, p FROM kept JOIN far USING (id)"


def session(folder: Path, *, on_connect: bool) -> SparkSession:
    store = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    builder = SparkSession.builder.config("spark.sql.catalogImplementation", "hive")
    builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", store)
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    builder = builder.remote("local[2]") if on_connect else builder.master("local[2]")
    return enable(builder.getOrCreate())


def converted(spark: SparkSession, name: str) -> object:
    """What became of a table of Hive: its rows, its partitions, its own properties."""
    told = (f"SHOW PARTITIONS {name}", f"SHOW TBLPROPERTIES {name}")
    return [ids(spark.table(name)), *(sorted(spark.sql(text).collect()) for text in told)]


def first(spark: SparkSession, folder: Path) -> None:
    """A client makes names."""
    spark.sql("CREATE DATABASE Shop")
    spark.sql("USE shop")
    spark.sql("CREATE TABLE Kept (id BIGINT, p INT) USING delta PARTITIONED BY (p)")
    spark.sql("INSERT INTO kept VALUES (1, 1), (2, 2)")
    spark.sql(f"CREATE TABLE far USING delta LOCATION '{folder}/far' AS SELECT 1L AS id")
    spark.range(3).write.format("delta").saveAsTable("saved")
    spark.sql("ALTER TABLE saved RENAME TO renamed")
    spark.sql("CREATE TABLE gone USING delta AS SELECT 1L AS id")
    spark.sql("DROP TABLE gone")
    tell("view made", kind_of(lambda: spark.sql(_VIEW)))
    tell("names", sorted(each.name for each in spark.catalog.listTables("shop")))
    tell("made", [ids(spark.table(name)) for name in ("shop.KEPT", "far", "renamed")])
    tell("columns", [each.name for each in spark.catalog.listColumns("kept")])


def second(spark: SparkSession, folder: Path) -> None:
    """A classic session uses them, and makes others."""
    if spark.version.startswith("4.0"):  # where the client could not make it
        spark.sql("USE shop")
        spark.sql(_VIEW)
    tell("view of a client", ids(spark.table("shop.front")))
    spark.sql("USE shop")
    tell("seen", [ids(spark.table(name)) for name in ("kept", "far", "renamed")])
    spark.sql("INSERT INTO kept VALUES (3, 1)")
    spark.sql("CREATE TABLE classic USING delta AS SELECT id FROM kept WHERE p = 1")
    spark.sql("ALTER TABLE far RENAME TO near")
    spark.sql(f"CREATE TABLE located (id BIGINT) USING delta LOCATION '{folder}/located'")
    spark.sql("CREATE VIEW seen AS SELECT id FROM classic")
    spark.sql(f"CREATE TABLE files USING parquet LOCATION '{folder}/files' AS SELECT 4L AS id")
    spark.sql("DROP TABLE renamed")
    for name in ("of_hive", "hives"):
        columns, parts = "(id BIGINT) PARTITIONED BY (p STRING)", f"{folder}/{name}"
        spark.sql(f"CREATE TABLE {name} {columns} STORED AS PARQUET LOCATION '{parts}'")
        spark.sql(f"INSERT INTO {name} PARTITION (p = 'a') VALUES (5), (6)")
    spark.sql("CONVERT TO DELTA hives")
    tell("converted", converted(spark, "hives"))


def third(spark: SparkSession, folder: Path) -> None:
    """A client of another server meets the names of both."""
    names = ("kept", "near", "classic", "located")
    tell("later", [ids(spark.sql(f"SELECT id FROM shop.{name}")) for name in names])
    tell("dropped", kind_of(lambda: spark.table("shop.renamed").collect()))
    tell("a view", ids(spark.sql("SELECT * FROM shop.seen")))
    spark.sql("ALTER TABLE shop.near RENAME TO shop.far")
    tell("front of another", ids(spark.table("shop.front")))
    spark.sql("ALTER TABLE shop.far RENAME TO shop.near")
    spark.sql("CONVERT TO DELTA shop.files")
    spark.sql("CONVERT TO DELTA shop.of_hive")
    tell("converted by a client", converted(spark, "shop.of_hive"))
    tell("converted before", converted(spark, "shop.hives"))
    spark.sql(
        "MERGE INTO shop.classic c USING shop.kept k ON c.id = k.id WHEN MATCHED THEN "
        "UPDATE SET id = c.id + 10 WHEN NOT MATCHED THEN INSERT (id) VALUES (k.id)"
    )
    tell("merged", ids(spark.table("shop.classic")))
    DeltaTable.forName(spark, "shop.near").delete("id IN (SELECT id FROM shop.kept)")
    spark.sql("ALTER TABLE shop.classic ADD COLUMNS (x INT)")
    made = f"CREATE OR REPLACE TABLE shop.located USING delta LOCATION '{folder}/located'"
    spark.sql(f"{made} AS SELECT 7L AS id")


def fourth(spark: SparkSession, folder: Path) -> None:
    """A classic session sees what became of them."""
    del folder
    names = ("classic", "near", "located", "seen", "files")
    found = [ids(spark.table(f"shop.{name}")) for name in names]
    tell("converted, at last", [converted(spark, f"shop.{name}") for name in ("of_hive", "hives")])
    tell("at last", [*found, spark.table("shop.classic").columns])
    spark.sql("DROP DATABASE shop CASCADE")


def main(folder: Path, name: str) -> None:
    run, on_connect = {
        "first": (first, True),
        "second": (second, False),
        "third": (third, True),
        "fourth": (fourth, False),
    }[name]
    spark = session(folder, on_connect=on_connect)
    run(spark, folder)
    spark.stop()


main(Path(sys.argv[1]), sys.argv[2])
