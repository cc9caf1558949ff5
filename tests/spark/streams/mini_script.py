"""Streams of a Spark Connect client over Delta tables; run by test_streams_on_connect.py."""

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from connect_process import kind_of, tell
from optimist.core import DeltaLog
from optimist.spark import enable

FOLDER = Path(sys.argv[1])
SOURCE, TARGET = str(FOLDER / "source"), str(FOLDER / "target")
spark = enable(SparkSession.builder.remote("local[2]").getOrCreate())
log = DeltaLog.for_path(SOURCE, {})


def add(*ids):
    log.append(pa.table({"id": pa.array(ids, pa.int64())}))


def reader(**options):
    return spark.readStream.format("delta").options(**options)


def run(frame, target=TARGET, checkpoint="ck", mode="append", **options):
    writer = frame.writeStream.format("delta").outputMode(mode).options(**options)
    writer = writer.option("checkpointLocation", f"{FOLDER}/{checkpoint}")
    writer.trigger(availableNow=True).start(target).awaitTermination()


def ids(path):
    return sorted(DeltaLog.for_path(path, {}).to_arrow()["id"].to_pylist())


def versions(path):
    commits = DeltaLog.for_path(path, {}).history()
    return [record.info.operation for record in reversed(commits)]


def batches(checkpoint="ck"):
    offsets = FOLDER / checkpoint / "offsets"
    return len([path for path in offsets.iterdir() if path.name.isdigit()])


add(0)
fed = DeltaLog.for_path(FOLDER / "fed", {})
fed.create(pa.schema([("id", pa.int64())]), properties={"delta.enableChangeDataFeed": "true"})


def changes(path):
    frame = reader(readChangeFeed=True).load(f"{FOLDER}/fed")
    run(frame.withColumnRenamed("_change_type", "kind").drop("_commit_timestamp"), path, "ck-fed")
    rows = DeltaLog.for_path(path, {}).to_arrow().to_pylist()
    return sorted([row["_commit_version"], row["kind"], row["id"]] for row in rows)


fed.append(pa.table({"id": [1, 2]}))
tell("the table as changes", changes(f"{FOLDER}/changed"))
fed.update(set={"id": 9}, predicate="id = 1")
fed.delete("id = 2")
fed.append(pa.table({"id": [3]}))
tell("changes after a restart", changes(f"{FOLDER}/changed"))
tell("a table without a feed", kind_of(lambda: run(reader(readChangeFeed=True).load(SOURCE))))
spark.stop()
