"""The files that Spark holds for a version's queries: handed over once, and never another's."""

from __future__ import annotations

import json
import os
import shutil
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from optimist.core import DeltaLog
from optimist.core.errors import StorageError, TableError
from optimist.spark import read
from optimist.spark.native import spark_files
from optimist.spark.native.spark_files import SoftlyKept
from optimist.spark.session.callback_errors import original_errors

WITH_VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}


@pytest.fixture
def handed_over(monkeypatch):
    """How many files are handed over, each time that some are."""
    counts = []
    original = spark_files.file_statuses

    def counted(jvm, paths, *others):
        counts.append(len(paths))
        return original(jvm, paths, *others)

    monkeypatch.setattr(spark_files, "file_statuses", counted)
    return counts


def append(path, start, options=None):
    """Three files, one in each partition."""
    ids = range(start, start + 6)
    rows = pa.table({"id": pa.array(ids, pa.int64()), "p": [number % 3 for number in ids]})
    DeltaLog.for_path(path, options).append(rows, partition_by=["p"])


def ids_of(frame):
    return sorted(row.id for row in frame.collect())


@pytest.mark.again
def test_a_version_is_handed_over_once_and_again_when_the_jvm_has_given_it_up(
    spark, table_path, handed_over, monkeypatch
):
    append(table_path, 0)
    assert ids_of(read(spark, table_path).where("p = 1")) == [1, 4]
    assert handed_over == [1]
    for _ in range(2):
        assert ids_of(read(spark, table_path)) == [0, 1, 2, 3, 4, 5]
    assert ids_of(read(spark, table_path).where("p > 0 AND id < 5")) == [1, 2, 4]
    assert ids_of(read(spark, table_path).where("p = 2")) == [2, 5]
    assert handed_over == [1, 3]
    monkeypatch.setattr(SoftlyKept, "_get_kept", lambda _: None)
    assert ids_of(read(spark, table_path).where("p < 2")) == [0, 1, 3, 4]
    assert handed_over == [1, 3, 3]


@pytest.mark.again
def test_no_query_meets_the_files_of_another_version_or_of_a_table_that_was_there_before(
    spark, table_path
):
    append(table_path, 0, WITH_VECTORS)
    append(table_path, 6)
    log = DeltaLog.for_path(table_path)
    log.delete("id = 7")
    log.delete("id IN (8, 3)")
    live = [{*range(6)}, {*range(12)}, {*range(12)} - {7}, {*range(12)} - {3, 7, 8}]
    expected = [(number, one) for number, ids in enumerate(live) for one in sorted(ids)]
    for condition in ("true", "p > 0"):
        frames = [
            read(spark, table_path, versionAsOf=number).selectExpr(f"{number} AS v", "id", "p")
            for number in range(len(live))
        ]
        found = reduce(DataFrame.unionAll, frames).where(condition).collect()
        wanted = [pair for pair in expected if condition == "true" or pair[1] % 3]
        assert sorted((row.v, row.id) for row in found) == wanted
    before = read(spark, table_path)
    shutil.rmtree(table_path)
    append(table_path, 100)
    assert ids_of(read(spark, table_path).where("p < 2")) == [100, 102, 103, 105]
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        before.collect()


def test_a_file_that_may_not_be_read_harms_no_query_that_leaves_it_out(spark, table_path):
    append(table_path, 0)
    commit = Path(table_path, "_delta_log", f"{0:020}.json")
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    (foreign,) = (
        line["add"] for line in lines if line.get("add", {}).get("partitionValues") == {"p": "2"}
    )
    foreign["path"] = "s3://elsewhere/file.parquet"
    commit.write_text("\n".join(map(json.dumps, lines)))
    for _ in range(2):
        assert ids_of(read(spark, table_path).where("p < 2")) == [0, 1, 3, 4]
        with pytest.raises(TableError, match="OPTIMIST_FOREIGN_DATA_PATH"), original_errors():
            read(spark, table_path).collect()


def test_files_that_are_to_be_looked_at_are_looked_at_by_each_query(spark, table_path, conf):
    conf("spark.optimist.paths.outsideTable", "never")
    append(table_path, 0)
    assert ids_of(read(spark, table_path)) == [0, 1, 2, 3, 4, 5]
    file = next(file for file in Path(table_path).rglob("*.parquet"))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(StorageError, match="OPTIMIST_NOT_A_FILE"), original_errors():
        read(spark, table_path).collect()
