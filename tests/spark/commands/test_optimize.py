"""OPTIMIZE on Spark, by jobs and in the driver, by the builder and in SQL."""

from __future__ import annotations

import pytest

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.spark import DeltaTable, read

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
}
IN_SPARK = "spark.optimist.spark.localPlane.maxBytes"


@pytest.fixture(params=["jobs", "driver"])
def done_by(request, conf):
    if request.param == "jobs":
        conf(IN_SPARK, "0")
    return request.param


@pytest.fixture
def table(spark, table_path):
    """Four commits of five rows in each of two partitions; one row is deleted."""
    log = DeltaLog.for_path(
        table_path,
        {f"spark.databricks.delta.properties.defaults.{k[6:]}": v for k, v in PROPERTIES.items()},
    )
    for first in range(0, 40, 10):
        rows = spark.range(first, first + 10).selectExpr(
            "id", "id % 2 AS p", "named_struct('a', id, 'b', concat('n', id)) AS n"
        )
        log.append(rows.toArrow(), partition_by=["p"])
    log.delete("id = 11")
    return DeltaTable.forPath(spark, table_path)


def rows_of(spark, path):
    columns = ["id", "p", "n", "_metadata.row_id", "_metadata.row_commit_version"]
    return sorted(map(str, read(spark, path, columns=columns).collect()))


@pytest.mark.usefixtures("plane", "done_by")
def test_files_become_few_and_rows_stay_with_their_ids(spark, table, table_path):
    before = rows_of(spark, table_path)
    row = table.optimize().where("p = 1").executeCompaction().collect()[0]
    metrics = row.metrics
    assert (metrics.numFilesRemoved, metrics.numFilesAdded, metrics.numBins) == (4, 1, 1)
    assert metrics.deletionVectorStats.numDeletionVectorRowsRemoved == 1
    metrics = table.optimize().executeCompaction().collect()[0].metrics
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (4, 1)
    assert rows_of(spark, table_path) == before
    assert table.optimize().executeCompaction().collect()[0].metrics.numFilesAdded == 0


@pytest.mark.usefixtures("plane", "done_by")
def test_a_condition_over_data_is_refused(table, table_path):
    with pytest.raises(UsageError) as caught:
        table.optimize().where("n.a = 1").executeCompaction()
    assert caught.value.kind == "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    assert DeltaLog.for_path(table_path).snapshot().version == 4


@pytest.mark.usefixtures("plane", "done_by")
def test_a_delete_meanwhile_costs_no_row(spark, table, table_path, meeting):
    other = DeltaLog.for_path(table_path)
    meeting(lambda: other.delete("id IN (2, 3)"))
    table.optimize().executeCompaction()
    ids = sorted(row.id for row in read(spark, table_path).select("id").collect())
    assert ids == [i for i in range(40) if i not in (2, 3, 11)]
