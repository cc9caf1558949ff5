"""Which tables a frame reads, and of which versions."""

from __future__ import annotations

from pathlib import Path

from optimist.spark import read
from optimist.spark.planes.sources import table_sources


def test_sources_tell_table_version_and_whether_it_was_asked_for(spark, table):
    frame = read(spark, table).union(read(spark, table, versionAsOf=0))
    live, travelled = table_sources(frame)
    assert (live.path, live.version, live.is_time_travel) == (f"file:{table}", 0, False)
    assert travelled.is_time_travel


def test_plain_frames_have_no_sources(spark, table):
    assert table_sources(spark.range(3)) == ()
    files = map(str, Path(table).rglob("*.parquet"))
    assert table_sources(spark.read.parquet(*files)) == ()
