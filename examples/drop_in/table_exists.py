"""Tables that are made only where they are missing, and found by their names in the catalog."""

import shutil
import tempfile

from delta.tables import DeltaTable, IdentityGenerator
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

spark = (
    SparkSession.builder.appName("table exists")
    .config("spark.jars.packages", "io.delta:delta-spark_4.1_2.13:4.4.0")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
folder = tempfile.mkdtemp()
spark.sql(f"CREATE DATABASE IF NOT EXISTS depot LOCATION '{folder}/depot'")
spark.sql("USE depot")

print("before:", spark.catalog.tableExists("parts"), DeltaTable.isDeltaTable(spark, folder))
for _ in range(2):
    (
        DeltaTable.createIfNotExists(spark)
        .tableName("parts")
        .addColumn("number", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=10, step=5))
        .addColumn("name", "STRING", nullable=False, comment="as printed")
        .addColumn("made", "TIMESTAMP")
        .addColumn("year", "INT", generatedAlwaysAs="YEAR(made)")
        .partitionedBy("year")
        .property("delta.logRetentionDuration", "interval 7 days")
        .comment("what lies in the depot")
        .execute()
    )
print("after:", spark.catalog.tableExists("parts"), spark.catalog.tableExists("depot.nothing"))
spark.sql("INSERT INTO parts (name, made) VALUES ('nut', TIMESTAMP '2024-05-06 07:08:09')")
spark.sql("INSERT INTO parts (made, name) VALUES (TIMESTAMP '2025-01-01 00:00:00', 'bolt')")
spark.table("parts").select("number", "name", "year").orderBy("number").show()

parts = DeltaTable.forName(spark, "depot.parts")
print(parts.history().count(), "versions,", parts.toDF().count(), "rows")
print(parts.detail().select("description", "partitionColumns").first())

schema = StructType([StructField("id", IntegerType()), StructField("place", StringType())])
shelves = spark.createDataFrame([(1, "left"), (2, "right")], schema)
shelves.write.format("delta").saveAsTable("shelves")
for mode in ("ignore", "append", "overwrite"):
    shelves.write.format("delta").mode(mode).saveAsTable("depot.shelves")
    print(mode, spark.table("shelves").count())
try:
    shelves.write.format("delta").saveAsTable("shelves")
except AnalysisException as error:
    print("it exists:", error.getCondition())
try:
    shelves.write.format("delta").mode("append").insertInto("nowhere")
except AnalysisException as error:
    print("it does not:", error.getCondition())
try:
    spark.read.format("delta").load(f"{folder}/nothing")
except AnalysisException:
    print("nothing there")

location = f"{folder}/elsewhere"
shelves.write.format("delta").save(location)
spark.sql(f"CREATE TABLE IF NOT EXISTS elsewhere USING DELTA LOCATION '{location}'")
spark.sql("CREATE TABLE IF NOT EXISTS elsewhere (other STRING) USING DELTA")
print(DeltaTable.isDeltaTable(spark, location), DeltaTable.isDeltaTable(spark, "/nowhere/at/all"))
print(spark.table("elsewhere").columns)

DeltaTable.createOrReplace(spark).tableName("shelves").addColumns(schema).execute()
print("replaced:", spark.table("shelves").count())
shelves.writeTo("shelves").append()
shelves.writeTo("depot.boards").using("delta").tableProperty("kind", "wood").createOrReplace()
spark.sql("SELECT s.id, b.place FROM shelves s JOIN boards b USING (id) ORDER BY id").show()
spark.sql("DROP TABLE IF EXISTS elsewhere")
print("its files stay:", DeltaTable.isDeltaTable(spark, location))
print(sorted(table.name for table in spark.catalog.listTables("depot") if not table.isTemporary))

spark.sql("USE default")
spark.sql("DROP DATABASE depot CASCADE")
shutil.rmtree(folder)
