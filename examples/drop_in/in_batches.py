"""A stream of files whose batches are merged into a table, each in a function of its own."""

import shutil
import tempfile

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.appName("in batches").getOrCreate()
folder = tempfile.mkdtemp()
path = f"{folder}/readings"

for day, values in enumerate([[(1, 20), (2, 21)], [(2, 25), (3, 19)]]):
    rows = spark.createDataFrame([(*value, day) for value in values], "sensor INT, t INT, day INT")
    rows.coalesce(1).write.mode("append").json(f"{folder}/arrived/day={day}")

spark.createDataFrame([(1, 0, -1)], "sensor INT, t INT, day INT").write.format("delta").save(path)


def merge(batch: DataFrame, number: int) -> None:
    """Take the newest reading of each sensor over."""
    newest = batch.selectExpr("*", "row_number() OVER (PARTITION BY sensor ORDER BY day DESC) AS n")
    (
        DeltaTable.forPath(batch.sparkSession, path)
        .alias("old")
        .merge(newest.where("n = 1").drop("n").alias("new"), "old.sensor = new.sensor")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    batch.createOrReplaceTempView("batch")
    batch.sparkSession.sql(f"INSERT INTO delta.`{path}` SELECT -1, count(*), {number} FROM batch")
    batch.write.format("delta").mode("append").save(f"{folder}/all")


stream = (
    spark.readStream.schema("sensor INT, t INT, day INT")
    .json(f"{folder}/arrived")
    .writeStream.foreachBatch(merge)
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
stream.awaitTermination()

spark.read.format("delta").load(path).orderBy("sensor").show()
print(spark.read.format("delta").load(f"{folder}/all").count(), "rows in all")
DeltaTable.forPath(spark, path).history().select("version", "operation").show()

shutil.rmtree(folder)
