"""A first table: made, read, replaced, changed by condition, merged into, read as it once was."""

import shutil
import tempfile

from delta import DeltaTable, configure_spark_with_delta_pip
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

builder = (
    SparkSession.builder.appName("quick start")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
path = tempfile.mkdtemp() + "/numbers"


def show(title: str, frame: DataFrame) -> None:
    """Print the rows in order, under a title."""
    print(title)
    frame.orderBy(*frame.columns).show()


spark.range(0, 5).write.format("delta").save(path)
show("made", spark.read.format("delta").load(path))

spark.range(5, 10).write.format("delta").mode("overwrite").save(path)
show("replaced", spark.read.format("delta").load(path))

table = DeltaTable.forPath(spark, path)

table.update(condition=expr("id % 2 == 0"), set={"id": expr("id + 100")})
show("even numbers are larger by 100", table.toDF())

table.delete(condition=col("id") % 2 == lit(0))
show("even numbers are gone", table.toDF())

more = spark.range(0, 20)
(
    table.alias("old")
    .merge(more.alias("new"), "old.id = new.id")
    .whenMatchedUpdate(set={"id": col("new.id") + lit(1000)})
    .whenNotMatchedInsert(values={"id": col("new.id")})
    .execute()
)
show("merged", table.toDF())

for version in range(2):
    show(f"version {version}", spark.read.format("delta").option("versionAsOf", version).load(path))
show("the same in SQL", spark.sql(f"SELECT id FROM delta.`{path}` VERSION AS OF 1 WHERE id > 6"))

spark.range(20, 23).write.format("delta").mode("append").save(path)
try:
    spark.range(1).write.format("delta").save(path)
except AnalysisException as error:
    print("a table is not written over by accident:", error.getCondition())
print(spark.read.format("delta").load(path).count(), "rows")

shutil.rmtree(path)
