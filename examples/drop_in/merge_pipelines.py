"""How pipelines use MERGE: upsert without doubles, history of rows, log of events, whole copies."""

import shutil
import tempfile

from delta import *
from delta.tables import *
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

builder = SparkSession.builder.appName("merge pipelines")
spark = configure_spark_with_delta_pip(builder, extra_packages=[]).getOrCreate()
folder = tempfile.mkdtemp()


def table(name: str, rows: list[tuple], schema: str) -> DeltaTable:
    """Make a new table with these rows."""
    path = f"{folder}/{name}"
    spark.createDataFrame(rows, schema).write.format("delta").save(path)
    return DeltaTable.forPath(spark, path)


def show(frame: DataFrame) -> None:
    """Print the rows in order."""
    frame.orderBy(*frame.columns).show(truncate=False)


# Upsert: of the changes that came for a key, only the newest counts.

customers = table("customers", [(1, "Oslo", 1), (2, "Rome", 1)], "id INT, city STRING, at INT")
incoming = spark.createDataFrame(
    [(1, "Bergen", 3), (1, "Tromsø", 2), (3, "Paris", 2), (2, "Roma", 0)],
    "id INT, city STRING, at INT",
)
newest = Window.partitionBy("id").orderBy(F.col("at").desc())
updates = incoming.withColumn("place", F.row_number().over(newest)).where("place = 1").drop("place")
(
    customers.alias("c")
    .merge(updates.alias("u"), "c.id = u.id")
    .whenMatchedUpdateAll(condition="u.at > c.at")
    .whenNotMatchedInsertAll()
    .execute()
    .show()
)
show(customers.toDF())
try:
    customers.alias("c").merge(incoming.alias("u"), "c.id = u.id").whenMatchedUpdateAll().execute()
except UnsupportedOperationException as error:
    print("two changes of one row:", error.getCondition())

# History of rows: the old row is closed, the new one is added, in one MERGE.

addresses = table(
    "addresses",
    [(1, "Elm St 1", True, "2024-01-01", None), (2, "Oak Av 2", True, "2024-01-01", None)],
    "customer INT, address STRING, current BOOLEAN, since STRING, until STRING",
)
moves = spark.createDataFrame(
    [(1, "Pine Rd 9", "2024-06-01"), (2, "Oak Av 2", "2024-06-01"), (3, "Bay 3", "2024-07-01")],
    "customer INT, address STRING, since STRING",
)
to_add = (
    moves.alias("m")
    .join(addresses.toDF().alias("a"), "customer")
    .where("a.current AND m.address <> a.address")
    .selectExpr("NULL AS key", "m.*")
)
staged = to_add.union(moves.selectExpr("customer AS key", "*"))
(
    addresses.alias("a")
    .merge(staged.alias("s"), "a.customer = s.key")
    .whenMatchedUpdate(
        condition="a.current = true AND a.address <> s.address",
        set={"current": "false", "until": "s.since"},
    )
    .whenNotMatchedInsert(
        values={
            "customer": "s.customer",
            "address": "s.address",
            "current": "true",
            "since": "s.since",
            "until": "null",
        }
    )
    .execute()
)
show(addresses.toDF())

# A log of events: what is there already is not added again, and nothing is ever changed.

events = table("events", [("a", 1), ("b", 2)], "key STRING, value INT")
for _ in range(2):
    again = spark.createDataFrame([("b", 2), ("c", 3)], "key STRING, value INT")
    (
        events.alias("log")
        .merge(again.alias("new"), "log.key = new.key")
        .whenNotMatchedInsertAll()
        .execute()
    )
show(events.toDF())
last = events.history(1).select("operationMetrics").first()[0]
print({name: last.get(name) for name in ("numTargetRowsInserted", "numTargetRowsUpdated")})

# A copy of another system: what is gone there is marked here, or goes.

stock = table(
    "stock",
    [(1, 5, True), (2, 7, True), (3, 9, False), (4, 1, True)],
    "id INT, n INT, live BOOLEAN",
)
counted = spark.createDataFrame([(1, 6, "A"), (5, 2, "B")], "id INT, n INT, aisle STRING")
(
    stock.alias("t")
    .merge(counted.alias("s"), "t.id = s.id")
    .withSchemaEvolution()
    .whenMatchedUpdate(set={"n": "s.n", "aisle": "s.aisle"})
    .whenNotMatchedInsert(values={"id": "s.id", "n": "s.n", "live": "true", "aisle": "s.aisle"})
    .whenNotMatchedBySourceDelete("t.n < 2")
    .whenNotMatchedBySourceUpdate("t.live", {"live": F.lit(False)})
    .execute()
    .show()
)
show(spark.read.format("delta").load(f"{folder}/stock"))
stock.history(1).select(
    "operation",
    "operationParameters.matchedPredicates",
    "operationParameters.notMatchedPredicates",
).show(truncate=False)

shutil.rmtree(folder)
