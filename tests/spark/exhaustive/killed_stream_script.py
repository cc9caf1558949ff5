"""A driver that streams from table to table and kills itself, JVM included, at a given point."""

import json
import os
import signal
import sys
from functools import wraps

from pyspark.sql import SparkSession

from connect_process import started
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.schema_log import SchemaLog
from optimist.core.streams.tracking import SchemaTracking
from optimist.spark import enable
from optimist.spark.commands.writing.data_writer import DataWriter
from optimist.spark.drop_in.connect import streams
from optimist.spark.streams.sink import StreamSink
from optimist.spark.streams.source import StreamSource

POINTS = {
    "an offset is known": (StreamSource, "_latest_offset"),
    "a batch is planned": (StreamPlanner, "views_between"),
    "files are written": (DataWriter, "write"),
    "our commit is done": (StreamSink, "add_batch"),
    "a schema is to be written": (SchemaLog, "add", "before"),
    "a schema is written": (SchemaLog, "add"),
    "a change is to be recorded": (SchemaTracking, "record", "before"),
    "a change is recorded": (SchemaTracking, "record"),
}


def kill_at(count, owner, name, when="after"):
    """Kill the process group when a method has ended so many times, or before it does."""
    original = getattr(owner, name)
    left = [count]

    def kill_if_it_is_time():
        left[0] -= 1
        if left[0] == 0:
            os.killpg(os.getpgid(0), signal.SIGKILL)

    @wraps(original)
    def counted(*args, **kwargs):
        if when == "before":
            kill_if_it_is_time()
            return original(*args, **kwargs)
        result = original(*args, **kwargs)
        kill_if_it_is_time()
        return result

    setattr(owner, name, counted)


def kill_after_batch(count):
    """Kill client and server when the function of a client's query has committed so many batches.

    It runs in a process of the server, to which it is sent with all that it holds.
    """
    original, group = streams.batch_function, os.getpgid(0)

    def killing(*args, **kwargs):
        add, seen = original(*args, **kwargs), []

        def counted(batch, number):
            add(batch, number)
            seen.append(number)
            if len(seen) == count:
                os.killpg(group, signal.SIGKILL)

        return counted

    streams.batch_function = killing


def main(given):
    on_connect = given["plane"] == "connect"
    if given.get("point") is not None and on_connect:
        kill_after_batch(given["count"])
    elif given.get("point") is not None:
        kill_at(given["count"], *POINTS[given["point"]])
    builder = SparkSession.builder
    builder = builder.remote("local[2]") if on_connect else builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.optimist.spark.plane": "auto" if on_connect else given["plane"],
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(key, value)
    spark = enable(builder.getOrCreate())
    reader = spark.readStream.format("delta").options(**given["options"])
    writer = reader.load(given["source"]).writeStream.format("delta")
    writer = writer.option("checkpointLocation", given["checkpoint"]).trigger(availableNow=True)
    writer = writer.option("mergeSchema", "true")
    query = started(lambda: writer.start(given["target"]))
    sys.stdout.write("STARTED\n")
    sys.stdout.flush()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
