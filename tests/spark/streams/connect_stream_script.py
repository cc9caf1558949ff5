"""Streams of a Spark Connect client over Delta tables; run by test_streams_on_connect.py."""

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from connect_process import kind_of, started, tell
from optimist.core import DeltaLog, NewColumn
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
    writer = writer.trigger(availableNow=True)
    started(lambda: writer.start(target)).awaitTermination()


def ids(path):
    return sorted(DeltaLog.for_path(path, {}).to_arrow()["id"].to_pylist())


def versions(path):
    commits = DeltaLog.for_path(path, {}).history()
    return [record.info.operation for record in reversed(commits)]


def batches(checkpoint="ck"):
    offsets = FOLDER / checkpoint / "offsets"
    return len([path for path in offsets.iterdir() if path.name.isdigit()])


for first in (0, 2, 4):
    add(first, first + 1)
run(reader(maxFilesPerTrigger=2).load(SOURCE))
tell("rows", ids(TARGET))
tell("operations", versions(TARGET))
tell("batches", batches())
add(6)
run(reader(maxFilesPerTrigger=2).load(SOURCE))
tell("rows after a restart", ids(TARGET))
for file in (FOLDER / "ck" / "commits").iterdir():
    if file.name.strip(".").startswith("2"):
        file.unlink()  # as if the driver had crashed before its record of the batch
run(reader(maxFilesPerTrigger=2).load(SOURCE))
tell("rows after a crash", ids(TARGET))
tell("operations after a crash", versions(TARGET))


def follow_from_now():
    latest = reader(startingVersion="latest").load(SOURCE)
    run(latest, str(FOLDER / "later"), "ck-later")
    add(7)
    run(latest, str(FOLDER / "later"), "ck-later")
    tell("rows since the start", ids(FOLDER / "later"))


tell("a start that is latest", kind_of(follow_from_now))
if log.snapshot().version < 4:
    add(7)

run(reader().table(f"delta.`{SOURCE}`").groupBy().count(), str(FOLDER / "sum"), "c3", "complete")
tell("sum", DeltaLog.for_path(FOLDER / "sum", {}).to_arrow().to_pylist())

same = DeltaLog.for_path(FOLDER / "same", {})
same.append(pa.table({"id": [1]}))
run(reader().load(f"{FOLDER}/same").selectExpr("id + 1 AS id"), f"{FOLDER}/same", "ck-same")
tell("rows of its own", ids(FOLDER / "same"))
tell("a blind append of its own", same.history(1)[0].info.is_blind_append)

update = reader().load(SOURCE).writeStream.format("delta").outputMode("update")
update = update.option("checkpointLocation", f"{FOLDER}/ck4")
tell("update mode", kind_of(lambda: update.start(str(FOLDER / "never"))))
tell("a schema", kind_of(lambda: reader().schema("id LONG").load(SOURCE)))
tracked = reader(schemaTrackingLocation=f"{FOLDER}/ck/log")
tell("a log of schemas", kind_of(lambda: tracked.load(SOURCE)))
no_text = Path(SOURCE)
unstarted = reader().load(SOURCE).writeStream.format("delta")
unstarted = unstarted.option("checkpointLocation", f"{FOLDER}/ck5")
calls = {
    "load": lambda: reader().load(no_text),
    "table": lambda: spark.readStream.table(no_text),
    "start": lambda: unstarted.start(no_text),
    "toTable": lambda: unstarted.toTable(no_text),
}
tell("path objects", {name: kind_of(call) for name, call in calls.items()})
tell("a wrong option", kind_of(lambda: reader(maxFilesPerTrigger=0).load(SOURCE)))
tell("an older version", kind_of(lambda: reader(versionAsOf=1).load(SOURCE)))
tell("an older version in the path", kind_of(lambda: reader().load(f"{SOURCE}@v1")))
log.delete("id < 2")
tell("a deletion", kind_of(lambda: run(reader().load(SOURCE))))
run(reader(ignoreDeletes=True).load(SOURCE))
tell("rows past the deletion", ids(TARGET))

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
unfed = reader(readChangeFeed=True).load(SOURCE)
tell("a table without a feed", kind_of(lambda: run(unfed, f"{FOLDER}/unfed", "ck-unfed")))

anew = DeltaLog.for_path(FOLDER / "anew", {})
mapped = {"delta.columnMapping.mode": "name"}
anew.create(pa.schema([("id", pa.int64()), ("x", pa.string())]), properties=mapped)
anew.append(pa.table({"id": [1], "x": ["one"]}))
anew.alter.drop_columns(["x"])
anew.alter.add_columns([NewColumn("x", "string")])
old = reader(startingVersion=1).load(f"{FOLDER}/anew")
tell("rows of columns made anew", kind_of(lambda: run(old, f"{FOLDER}/never", "ck-anew")))
spark.stop()
