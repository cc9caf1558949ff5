"""Run by test_names_in_hive.py: names of Delta tables in a metastore of Hive's own (Derby)."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from connect_process import tell
from optimist.spark import DeltaTable, enable, write

_FOLDER = Path(sys.argv[1])
_STATEMENTS = {
    "columns": "SHOW COLUMNS IN shop.flights",
    "partitions": "SHOW PARTITIONS shop.flights",
    "view": "SELECT count(*) FROM shop.seen",
    "version": "SELECT count(*) FROM shop.flights VERSION AS OF 0",
    "changes": "SELECT count(*) FROM table_changes('shop.flights', 1)",
}


def main() -> None:
    """Tell what statements answer in the session, in a new one first, and in a clone."""
    metastore = f"jdbc:derby:;databaseName={_FOLDER}/metastore;create=true"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(_FOLDER / "warehouse"))
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", metastore)
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    enable(spark)
    path = str(_FOLDER / "flights")
    rows = spark.range(20).selectExpr("id", "CAST(id % 2 AS INT) AS p")
    write(rows, path, partitionBy="p", **{"delta.enableChangeDataFeed": "true"})
    DeltaTable.forPath(spark, path).delete("id = 7")
    spark.sql("CREATE DATABASE shop")
    spark.sql(f"CREATE TABLE shop.flights USING delta LOCATION '{path}'")
    spark.sql("CREATE VIEW shop.seen AS SELECT * FROM shop.flights WHERE p = 1")
    # A name as the first thing of a new session: Hive's analyzer runs no injected hint rules.
    tell("new session", spark.newSession().table("shop.flights").count())
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    tell("clone", clone.table("shop.flights").count())
    for name, text in _STATEMENTS.items():
        tell(name, [row[0] for row in spark.sql(text).collect()])
    tell("by name", DeltaTable.forName(spark, "shop.flights").toDF().count())
    tell("is delta", DeltaTable.isDeltaTable(spark, "shop.flights"))
    spark.sql("ALTER TABLE shop.flights RENAME TO shop.trips")
    tell("renamed", spark.table("shop.trips").count())
    spark.sql("DROP TABLE shop.trips")
    tell("dropped", [spark.catalog.tableExists("shop.trips"), (_FOLDER / "flights").exists()])
    spark.stop()


main()
