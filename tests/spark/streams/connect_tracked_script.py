"""Streams of a Connect client with a log of schemas; run by test_tracked_on_connect.py."""

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from connect_process import kind_of, started, tell
from optimist.core import DeltaLog, NewColumn
from optimist.spark import enable

FOLDER = Path(sys.argv[1])
FREE = {f"allowSourceColumn{change}": "always" for change in ("Rename", "Drop", "TypeChange")}
spark = enable(SparkSession.builder.remote("local[2]").getOrCreate())


class Story:
    """A table with mapped columns, and a query that copies it."""

    def __init__(self, name, **options):
        self.source = f"{FOLDER}/{name}-source"
        self.target, self.checkpoint = f"{FOLDER}/{name}-target", f"{FOLDER}/{name}-ck"
        self.options = {"schemaTrackingLocation": f"{self.checkpoint}/schemas", **options}
        self.log = DeltaLog.for_path(self.source, {})
        self.log.create(
            pa.schema([("id", pa.int64()), ("name", pa.string())]),
            properties={"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"},
        )

    def add(self, **row):
        self.log.append(pa.table({key: pa.array([value]) for key, value in row.items()}))

    def run(self, **options):
        """One run to its end; how it ends."""
        return kind_of(lambda: self._run({**self.options, **options}))

    def _run(self, options):
        frame = spark.readStream.format("delta").options(**options).load(self.source)
        if "readChangeFeed" in options:
            frame = frame.withColumnRenamed("_change_type", "kind").drop(
                "_commit_timestamp", "_commit_version"
            )
        writer = frame.writeStream.format("delta").option("mergeSchema", True)
        writer = writer.option("checkpointLocation", self.checkpoint).trigger(availableNow=True)
        started(lambda: writer.start(self.target)).awaitTermination()

    def crash(self):
        """Leave the checkpoint as a driver does that crashes in its last batch."""
        commits = Path(self.checkpoint, "commits")
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
        for file in commits.iterdir():
            if file.name.strip(".").split(".")[0] == str(last):
                file.unlink()

    def rows(self):
        """The rows of the target without nulls, sorted by their ids."""
        rows = DeltaLog.for_path(self.target, {}).to_arrow().sort_by("id").to_pylist()
        return [{key: value for key, value in row.items() if value is not None} for row in rows]


plain = Story("plain")
plain.add(id=1, name="one")
tell("first", plain.run())
plain.crash()
plain.add(id=2, name="two")
plain.log.alter.rename_column("name", "title")
plain.add(id=3, title="three")
tell("at a rename", plain.run())
tell("rows before it", plain.rows())
plain.crash()
tell("after it, not allowed", plain.run())
tell("after it, allowed", plain.run(**FREE))
tell("rows after it", plain.rows())
plain.crash()
tell("after a crash", plain.run(**FREE))
tell("rows after a crash", plain.rows())
plain.log.alter.drop_columns(["title"])
plain.log.alter.add_columns([NewColumn("title", "string")])
plain.add(id=4, title="four")
tell("at a column made anew", plain.run(**FREE))
tell("after it", plain.run(**FREE))
tell("rows after a column made anew", plain.rows())
tell("again", plain.run(**FREE))
tell("rows at the end", plain.rows())

late = Story("late", startingVersion=1)
late.add(id=1, name="one")
late.log.alter.rename_column("name", "title")
late.add(id=2, title="two")
tell("from an old version", [late.run(**FREE) for _ in range(3)])
tell("rows from an old version", late.rows())

fed = Story("fed", readChangeFeed="true")
fed.add(id=1, name="one")
tell("changes", fed.run())
fed.log.delete("id = 1")
fed.log.alter.add_columns([NewColumn("more", "bigint")])
fed.add(id=2, name="two", more=7)
tell("changes at a column", [fed.run(), fed.run()])
tell("rows of changes", fed.rows())

shared = Story("shared")
shared.add(id=1, name="one")
tell("one query", shared.run())
shared.log.alter.rename_column("name", "title")
shared.add(id=2, title="two")
tell("one query at the change", [shared.run(), shared.run(**FREE)])
other = Story("other", schemaTrackingLocation=shared.options["schemaTrackingLocation"])
other.add(id=1, name="one")
tell("a query of another table", other.run())
tell("rows of another table", other.rows())
spark.stop()
