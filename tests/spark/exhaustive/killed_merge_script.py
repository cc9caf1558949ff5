"""A driver that merges a stream in batches; it and its server are killed at a given point.

Arguments: a folder, `classic` or `connect`, and a batch and a step after which all is killed.
"""

import os
import signal
import sys
from functools import partial

from pyspark.sql import SparkSession

from connect_process import started
from optimist.spark import DeltaTable, enable

FOLDER, KIND, BATCH, STEP = sys.argv[1:]


def upsert(batch, number, *, folder, group, last):
    """Count the rows of each key, and keep them all: each batch once, however often it is run."""
    session = enable(batch.sparkSession)

    def done(step):
        if [str(number), step] == last:
            os.killpg(group, signal.SIGKILL)

    session.conf.set("spark.databricks.delta.write.txnAppId", "upsert")
    session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
    table = DeltaTable.forPath(session, f"{folder}/counts").alias("t")
    counted = batch.groupBy("id").count().alias("s")
    merge = table.merge(counted, "t.id = s.id").whenMatchedUpdate(
        set={"count": "t.count + s.count"}
    )
    merge.whenNotMatchedInsertAll().execute()
    done("merge")
    audit = batch.write.format("delta").mode("append").option("txnAppId", "audit")
    audit.option("txnVersion", number).save(f"{folder}/audit")
    done("write")


def main():
    builder = SparkSession.builder
    builder = builder.remote("local[2]") if KIND == "connect" else builder.master("local[2]")
    builder = builder.config("spark.ui.enabled", "false")
    spark = enable(builder.config("spark.sql.shuffle.partitions", "2").getOrCreate())
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
    each = partial(upsert, folder=FOLDER, group=os.getpgid(0), last=[BATCH, STEP])
    writer = rows.json(f"{FOLDER}/in").writeStream.foreachBatch(each)
    writer = writer.option("checkpointLocation", f"{FOLDER}/checkpoint")
    started(writer.trigger(availableNow=True).start).awaitTermination()
    spark.stop()


main()
