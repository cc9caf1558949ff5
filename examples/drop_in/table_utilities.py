"""A table's history, detail, constraints and properties, and manifests for other readers."""

import os
import shutil
import tempfile

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = configure_spark_with_delta_pip(SparkSession.builder.appName("utilities")).getOrCreate()
folder = tempfile.mkdtemp()
path = os.path.join(folder, "orders")

orders = spark.range(100).select(
    "id",
    (F.col("id") % 4).cast("int").alias("region"),
    (F.col("id") * 1.5).cast("decimal(10,2)").alias("amount"),
)
orders.write.format("delta").partitionBy("region").option("userMetadata", "first load").save(path)
table = DeltaTable.forPath(spark, path)

table.delete("region = 3")
table.update("region = 2", {"amount": "amount * 2"})
spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('team' = 'sales')")
spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT paid CHECK (amount >= 0)")
spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (note STRING COMMENT 'free text' AFTER id)")

history = table.history()
history.select("version", "operation", "readVersion", "isolationLevel", "isBlindAppend").show()
told = history.where("operation NOT IN ('DELETE', 'UPDATE')")
told.select("version", "operationParameters", "userMetadata").show(truncate=False)
metrics = history.where("operation IN ('WRITE', 'DELETE', 'UPDATE')").orderBy("version")
for row in metrics.select("operation", "operationMetrics").collect():
    wanted = ("numOutputRows", "numDeletedRows", "numUpdatedRows", "numRemovedFiles")
    print(row.operation, {name: row.operationMetrics.get(name) for name in wanted})
print("the newest:", table.history(1).select("operation").first()[0])

detail = table.detail()
detail.select("format", "partitionColumns", "minReaderVersion", "minWriterVersion").show()
detail.select("properties", "tableFeatures", "name", "description").show(truncate=False)
spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 2").select("version", "operation").show()
spark.sql(f"DESCRIBE DETAIL '{path}'").select("format", "partitionColumns").show()
spark.sql(f"SHOW TBLPROPERTIES delta.`{path}`").where("key NOT LIKE '%Version'").show()
spark.sql(f"SHOW COLUMNS IN delta.`{path}`").show()

try:
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1000, null, 1, -5)")
except Exception as error:
    print("the constraint holds:", "paid" in str(error))
spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT paid")
spark.sql(f"INSERT INTO delta.`{path}` VALUES (1000, 'refund', 1, -5)")
spark.sql(f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('team')")

table.generate("symlink_format_manifest")
manifests = os.path.join(path, "_symlink_format_manifest")
print(sorted(name for name in os.listdir(manifests) if "=" in name))

table.addFeatureSupport("deletionVectors")
table.upgradeTableProtocol(2, 5)
spark.read.format("delta").load(path).groupBy("region").agg(
    F.count("*").alias("orders"), F.sum("amount").alias("amount"), F.max("note").alias("note")
).orderBy("region").show()

shutil.rmtree(folder)
