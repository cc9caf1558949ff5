"""What users may hand over as rows, and where one text is no list."""

from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ArgumentTypeError

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", None, "c"]})
ODD = pa.chunked_array([pa.array([0, 1]), pa.array([2, 3])]).slice(1)


class Stream:
    """Rows that can be asked for by Arrow's stream interface alone."""

    def __arrow_c_stream__(self, requested_schema=None):
        return ROWS.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        pa.RecordBatchReader.from_batches(ROWS.schema, iter(ROWS.to_batches(max_chunksize=2))),
        ROWS.to_batches()[0],
        Stream(),
        pa.table({"id": ODD, "v": ["a", None, "c"]}),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_may_be_whatever_gives_a_stream_of_arrow(tmp_path, rows):
    log = DeltaLog.for_path(tmp_path / "t", {})
    log.append(rows)
    assert log.to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()


def test_none_asks_for_no_partitions(tmp_path):
    log = DeltaLog.for_path(tmp_path / "t", {})
    log.append(ROWS, partition_by=None)
    log.create(ROWS.schema, partition_by=None, cluster_by=None, mode="replace")
    assert log.snapshot().partition_columns == ()


def test_the_source_of_a_merge_is_given_as_rows_are(tmp_path):
    log = DeltaLog.for_path(tmp_path / "t", {})
    log.append(ROWS)
    merged = log.merge(Stream(), ["id"]).when_matched_delete().execute()
    assert (merged.num_deleted, log.to_arrow().num_rows) == (3, 0)


@pytest.mark.parametrize("rows", [None, "id", [{"id": 1}], {"id": [1]}, 7])
def test_what_holds_no_rows_is_refused(tmp_path, rows):
    log = DeltaLog.for_path(tmp_path / "t", {})
    with pytest.raises(ArgumentTypeError, match="argument data is of type"):
        log.append(rows)
    assert not (tmp_path / "t").exists()
    with pytest.raises(ArgumentTypeError, match="argument source is of type"):
        log.merge(rows, "id")


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda log: log.append(ROWS, partition_by="id"), "partition_by"),
        (lambda log: log.create(ROWS.schema, partition_by="id"), "partition_by"),
        (lambda log: log.append(ROWS, partition_by=""), "partition_by"),
        (lambda log: log.create(ROWS.schema, partition_by=""), "partition_by"),
        (lambda log: log.create(ROWS.schema, cluster_by=""), "cluster_by"),
        (lambda log: log.create(ROWS.schema, cluster_by="id"), "cluster_by"),
        (lambda log: log.to_arrow(columns="id"), "columns"),
        (lambda log: log.changes(columns="id", starting_version=0), "columns"),
    ],
)
def test_a_text_is_no_list_of_columns(tmp_path, call, argument):
    rows = pa.table({"i": [1], "d": [2]})
    log = DeltaLog.for_path(tmp_path / "t", {})
    if argument == "columns":
        feed = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}
        DeltaLog.for_path(tmp_path / "t", feed).append(rows)
    with pytest.raises(ArgumentTypeError) as caught:
        call(log)
    assert caught.value.fields["argument"] == argument
