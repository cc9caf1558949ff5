"""Frames of paths below a table, and of partitions whose values name no zone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from optimist.core.errors import SchemaError, TableNotFoundError, UsageError
from optimist.spark import read, write

UTC = dt.timezone.utc


@pytest.fixture
def parted(enabled, table_path):
    """Six rows, three for each `p`, one for each `p` and `q`; version 1 has one more."""
    rows = enabled.range(6).selectExpr("id", "CAST(id % 2 AS INT) AS p", "'q' || id % 3 AS q")
    write(rows.coalesce(1), table_path, partitionBy=["p", "q"])
    more = enabled.sql("SELECT 7L AS id, 1 AS p, CAST(NULL AS STRING) AS q")
    write(more, table_path, mode="append")
    return table_path


def ids(frame):
    return sorted(row.id for row in frame.collect())


def test_a_path_below_a_table_reads_its_partitions_as_delta_does(enabled, parted, every_plane):
    expected = {
        "p=1": [1, 3, 5, 7],
        "p=01": [1, 3, 5, 7],
        "p=1/q=q0": [3],
        "q=q0": [0, 3],
        "q=__HIVE_DEFAULT_PARTITION__": [7],
        "p=1@v0": [1, 3, 5],
    }
    assert {below: ids(read(enabled, f"{parted}/{below}")) for below in expected} == expected
    below = f"{parted}/p=1/q=q0"
    assert ids(read(enabled, below, columns=["id"])) == [3]
    assert ids(enabled.read.format("delta").load(below)) == [3]
    assert ids(enabled.sql(f"SELECT * FROM delta.`{below}`")) == [3]
    assert ids(read(enabled, f"{parted}/p=1", versionAsOf=0)) == [1, 3, 5]
    own = next(path for path in Path(parted).rglob("data-*/p=1/q=q0"))
    assert ids(read(enabled, str(own))) == [3]


def test_a_path_that_names_no_partition_is_refused(enabled, parted):
    for below, kind in {
        "p=9": "DELTA_PATH_DOES_NOT_EXIST",
        "p=x": "DELTA_PATH_DOES_NOT_EXIST",
        "sub": "PATH_NOT_FOUND",
        "id=1": "DELTA_NON_PARTITION_COLUMN_SPECIFIED",
        "P=1": "DELTA_NON_PARTITION_COLUMN_SPECIFIED",
    }.items():
        with pytest.raises((TableNotFoundError, SchemaError)) as caught:
            enabled.read.format("delta").load(f"{parted}/{below}")
        assert caught.value.kind == kind, below


def test_statements_that_change_rows_find_no_table_at_a_partition(enabled, parted, plane):
    below = f"{parted}/p=1"
    rows = enabled.sql("SELECT 9L AS id, 1 AS p, 'q0' AS q")
    for write_there in (
        lambda: write(rows, below, mode="append"),
        lambda: rows.write.format("delta").mode("overwrite").save(below),
        lambda: rows.write.format("delta").save(f"{parted}/p=9"),
        lambda: rows.writeTo(f"delta.`{below}`").createOrReplace(),
        lambda: enabled.sql(f"CREATE TABLE delta.`{below}` (a INT) USING delta"),
    ):
        with pytest.raises(UsageError) as caught:
            write_there()
        assert caught.value.kind == "OPTIMIST_PATH_OF_A_PARTITION"
    for statement in (
        f"INSERT INTO delta.`{below}` VALUES (9, 1, 'q0')",
        f"DELETE FROM delta.`{below}`",
        f"UPDATE delta.`{below}` SET id = 9",
        f"TRUNCATE TABLE delta.`{below}`",
        f"ALTER TABLE delta.`{below}` SET TBLPROPERTIES ('a' = 'b')",
    ):
        with pytest.raises(TableNotFoundError):
            enabled.sql(statement)
    assert ids(read(enabled, parted)) == [0, 1, 2, 3, 4, 5, 7]
    assert read(enabled, parted, columns=["id"]).count() == 7


def test_a_frame_that_follows_keeps_the_zone_that_it_was_made_in(enabled, table_path, conf, plane):
    moments = [dt.datetime(2024, 7, day, 12, 0, tzinfo=UTC) for day in (1, 2)]
    for number, moment in enumerate(moments):
        data = pa.table({"p": pa.array([moment], pa.timestamp("us", "UTC")), "id": [number]})
        deltalake.write_deltalake(table_path, data, partition_by=["p"], mode="append")
        if number == 0:
            conf("spark.sql.session.timeZone", "Europe/Paris")
            frame = enabled.read.format("delta").load(table_path)
            hours = frame.select("id", (sf.unix_micros("p") / 3_600_000_000 % 24).alias("hour"))
            conf("spark.sql.session.timeZone", "America/New_York")
    # deltalake leaves the zone out; noon in Paris is ten o'clock in UTC.
    assert sorted(map(tuple, hours.collect())) == [(0, 10.0), (1, 10.0)]
