"""What tests do around a write: one row more, the ids of the rows, the directories of the files."""

from __future__ import annotations

from pathlib import Path

from optimist.core.data.intents.intents import INTENTS


def add_row(spark, path):
    """One more row, of the id 100."""
    spark.range(100, 101).write.format("delta").mode("append").save(path)


def ids(frame):
    """The ids of the rows, in order."""
    return sorted(row.id for row in frame.select("id").collect())


def data_directories(path):
    apart = ("_delta_log", INTENTS)
    return {entry.name for entry in Path(path).iterdir() if entry.name not in apart}
