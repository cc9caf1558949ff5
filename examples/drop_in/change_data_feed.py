"""Which rows changed, and how: the change data feed of a table, by versions, and carried along."""

import shutil
import tempfile

import delta
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession

builder = SparkSession.builder.appName("change data feed").config(
    "spark.databricks.delta.properties.defaults.enableChangeDataFeed", "true"
)
spark = delta.configure_spark_with_delta_pip(builder).getOrCreate()
folder = tempfile.mkdtemp()
path = f"{folder}/people"
copy = f"{folder}/copy"


def changes(start: int, end: int | None = None) -> DataFrame:
    """Read the changes from one version to another."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", start)
    if end is not None:
        reader = reader.option("endingVersion", end)
    return reader.load(path)


def show(frame: DataFrame) -> None:
    """Print changes in the order of their versions."""
    columns = ["_commit_version", "id", "_change_type", "name", "age"]
    frame.select(columns).orderBy("_commit_version", "id", "_change_type").show()


people = [(1, "Ada", 36), (2, "Grace", 85), (3, "Alan", 41), (4, "Edsger", 72)]
spark.createDataFrame(people, "id INT, name STRING, age INT").write.format("delta").save(path)
table = delta.DeltaTable.forPath(spark, path)

table.update("name = 'Alan'", {"age": "age + 1"})
table.delete("age > 80")
source = spark.createDataFrame(
    [(1, "Ada", 37), (4, "Edsger", None), (5, "Barbara", 28)], "id INT, name STRING, age INT"
)
(
    table.alias("t")
    .merge(source.alias("s"), "t.id = s.id")
    .whenMatchedDelete("s.age IS NULL")
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .execute()
)

show(changes(0))
show(changes(2, 3))
print("rows that were ever there:", changes(0).select("id").distinct().count())
spark.sql(
    "SELECT _change_type, count(*) AS rows FROM table_changes_by_path"
    f"('{path}', 1) GROUP BY _change_type ORDER BY 1"
).show()

# A copy that follows: the last change of each row is what is still to be done.
spark.read.format("delta").option("versionAsOf", 0).load(path).write.format("delta").save(copy)
changes(1).where("_change_type != 'update_preimage'").createOrReplaceTempView("latest")
spark.sql(f"""
    MERGE INTO delta.`{copy}` t
    USING (
      SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY id ORDER BY _commit_version DESC) AS place
        FROM latest
      ) WHERE place = 1
    ) s
    ON t.id = s.id
    WHEN MATCHED AND s._change_type = 'delete' THEN DELETE
    WHEN MATCHED THEN UPDATE SET name = s.name, age = s.age
    WHEN NOT MATCHED AND s._change_type != 'delete'
      THEN INSERT (id, name, age) VALUES (s.id, s.name, s.age)
""").show()
left = spark.read.format("delta").load(copy)
right = table.toDF()
print("the copy differs in:", (left.exceptAll(right).count(), right.exceptAll(left).count()))
left.orderBy("id").show()

try:
    changes(9).show()
except IllegalArgumentException as error:
    print("no such version:", error.getCondition())

shutil.rmtree(folder)
