"""The ids of rows in `_metadata`, on the native plane."""

from __future__ import annotations

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import functions as sf

from grown_tables import ID, GrownTable, numbers
from optimist.spark import read
from read_back import ids

ROW_ID = "_row-id-${env:HOME}"  # not to be replaced by a variable of the session


@pytest.fixture
def tracked(tmp_path):
    """Ids 100-109 by position; in the second file the ids of moved rows are stored."""
    table = GrownTable(
        tmp_path / "tracked",
        [ID],
        enableRowTracking="true",
        rowTracking__materializedRowIdColumnName=ROW_ID,
        rowTracking__materializedRowCommitVersionColumnName="_row-version",
    )
    first = numbers(0, 10).select(["id"])
    table.add("a", first, deleted={0}, base_row_id=100, default_row_commit_version=1)
    moved = pa.table({"id": [90, 91], ROW_ID: [7, None], "_row-version": [1, None]})
    table.add("b", moved, base_row_id=200, default_row_commit_version=2)
    return table


def test_rows_are_known_by_id_and_version_where_the_table_tracks_them(spark, tracked):
    frame = read(spark, tracked.path)
    found = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version")
    assert sorted(map(tuple, found.collect())) == [
        *((i, 100 + i, 1) for i in range(1, 10)),
        (90, 7, 1),
        (91, 201, 2),
    ]


def test_row_ids_are_hidden_until_they_are_named(spark, tracked):
    frame = read(spark, tracked.path)
    assert frame.columns == ["id"]
    assert frame.select("*").columns == ["id"]
    assert ids(frame.where("_metadata.row_id = 201")) == [91]
    assert ids(frame.where("_metadata.row_commit_version = 2")) == [91]


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="an alias hides it for good before")
def test_row_ids_can_be_named_under_an_alias(spark, tracked):
    frame = read(spark, tracked.path)
    assert frame.alias("t").where("t._metadata.row_id < 103").count() == 3


def test_the_id_of_a_row_joins_a_table_with_itself(spark, tracked):
    left = read(spark, tracked.path).select("id", sf.col("_metadata.row_id").alias("key"))
    right = read(spark, tracked.path).select("id", sf.col("_metadata.row_id").alias("key"))
    assert left.join(right, "key").count() == 11
