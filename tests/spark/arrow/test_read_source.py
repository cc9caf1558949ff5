"""The data source by which a worker of Spark Connect reads a table: it opens the log anew."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import TableError
from optimist.spark.arrow.source import ScanOptions, TableReadSource
from optimist.spark.arrow.tasks import Grouping
from optimist.spark.session.task_errors import error_of_task
from optimist.spark.spark_schema import to_spark_schema


def reader_of(snapshot):
    """What a worker makes of the frame of a version."""
    scan = ScanOptions(
        path=snapshot.table_path,
        version=snapshot.version,
        table_id=snapshot.metadata.id,
        log_identity=snapshot.log_identity,
        zone="UTC",
        grouping=Grouping(1 << 20, 1, 1 << 10),
    )
    source = TableReadSource(scan.to_options())
    return lambda: source.reader(to_spark_schema(snapshot.schema))


def ids(reader):
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return sorted(pa.Table.from_batches(batches)["id"].to_pylist())


def added(path, number):
    log = DeltaLog.for_path(str(path))
    log.append(pa.table({"id": [number]}))
    return log


def test_a_version_is_read_by_whoever_has_seen_older_commits_alone(tmp_path):
    log = added(tmp_path / "t", 1)
    log.snapshot()
    log.append(pa.table({"id": [2]}))
    assert ids(reader_of(log.snapshot())()) == [1, 2]


@pytest.mark.parametrize("seen_by", ["its writer", "another"])
def test_the_rows_of_a_restored_log_are_not_those_of_a_frame(tmp_path, seen_by):
    path, copy = tmp_path / "t", tmp_path / "copy"
    added(path, 1)
    shutil.copytree(path, copy)
    log = added(path, 2)
    seen = log if seen_by == "its writer" else DeltaLog.for_path(str(path))
    reader = reader_of(seen.snapshot())
    shutil.rmtree(path)
    shutil.copytree(copy, path)
    added(path, 3)
    with pytest.raises(RuntimeError, match="restored from a copy") as caught:
        reader()
    found = error_of_task([str(caught.value)])
    assert isinstance(found, TableError)
    assert found.kind == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


def test_a_version_is_read_after_the_commit_by_which_it_is_known_was_cleaned_up(tmp_path):
    path = tmp_path / "t"
    log = added(path, 1)
    known_by = log.snapshot().log_identity
    added(path, 2).checkpoint()
    (path / "_delta_log" / f"{0:020d}.json").unlink()
    assert DeltaLog.for_path(str(path)).snapshot(1).may_be_of_log(known_by)
