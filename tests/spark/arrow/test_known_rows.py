"""Rows that tasks make from the log alone: those that they would read."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from odd_partitions import PARTITIONS, parted_twice
from optimist.core import DeltaLog
from optimist.core.predicates import Predicate
from optimist.spark.arrow import known_rows as known_rows_module
from optimist.spark.arrow.known_rows import known_rows
from optimist.spark.arrow.tasks import Grouping, encode_groups
from optimist.spark.arrow.version_to_scan import VersionToScan
from optimist.spark.spark_schema import to_spark_schema

ALL_ROWS = Predicate.TRUE


def version_of(log):
    snapshot = log.snapshot()
    return VersionToScan(
        log.table, snapshot, "UTC", Grouping(1 << 20, 3, 1 << 10), snapshot.data_paths
    )


def wanted(version, *names):
    whole = to_spark_schema(version.snapshot.schema)
    return version.wanted(st.StructType([whole[name] for name in names]), None)


def told(batches):
    return Counter(str(row) for batch in batches for row in batch.to_pylist())


def by_log(version, rows, *, counts_only=False, predicate=ALL_ROWS):
    files = version.files(predicate, None)
    shares = known_rows(version, files, rows, counts_only=counts_only)
    return None if shares is None else [b for share in shares for b in share.batches(rows)]


def by_files(version, rows):
    groups = encode_groups(version.data_paths, version.files(ALL_ROWS, None), version.grouping)
    return [batch for group in groups for batch in rows.read(group)]


@pytest.fixture
def log(tmp_path):
    """Rows of three partitions; two of them lost rows, and the last one all of its rows."""
    log = DeltaLog.for_path(str(tmp_path / "t"))
    rows = pa.table({"id": range(30), "p": [n % 3 for n in range(30)], "q": ["x", None] * 15})
    log.append(rows, partition_by=["p", "q"], properties={"delta.enableDeletionVectors": "true"})
    log.delete("id < 5 OR p = 2")
    return log


@pytest.mark.parametrize("share", [4, 1 << 20])
def test_partition_values_are_those_of_every_row(log, monkeypatch, share):
    monkeypatch.setattr(known_rows_module, "_FEWEST_ROWS", share)
    monkeypatch.setattr(known_rows_module, "_BATCH_ROWS", 3)
    version = version_of(log)
    for names in (("p",), ("q", "p")):
        rows = wanted(version, *names)
        assert told(by_log(version, rows)) == told(by_files(version, rows)) != Counter()


def test_only_counted_rows_are_as_many(log, monkeypatch):
    monkeypatch.setattr(known_rows_module, "_FEWEST_ROWS", 4)
    version = version_of(log)
    rows = wanted(version, "id")
    assert by_log(version, rows) is None
    batches = by_log(version, rows, counts_only=True)
    assert sum(batch.num_rows for batch in batches) == log.count()
    assert {str(batch.schema) for batch in batches} == {
        str(batch.schema) for batch in by_files(version, rows)
    }
    one = by_log(version, rows, counts_only=True, predicate=Predicate.of("p = 1"))
    assert sum(batch.num_rows for batch in one) == log.count("p = 1")


def test_more_rows_than_the_log_is_trusted_with_are_read(log, monkeypatch):
    monkeypatch.setattr(known_rows_module, "_MOST_ROWS", log.count() - 1)
    version = version_of(log)
    assert by_log(version, wanted(version, "p")) is None
    assert by_log(version, wanted(version, "id"), counts_only=True) is None
    few = Predicate.of("p = 1")
    assert by_log(version, wanted(version, "id"), counts_only=True, predicate=few) is not None


def test_a_forged_number_of_rows_makes_no_rows(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"id": [1, 2], "p": [0, 0]}), partition_by=["p"])
    (commit,) = (tmp_path / "t" / "_delta_log").glob("*0.json")
    text = commit.read_text()
    assert r"\"numRecords\":2," in text
    commit.write_text(text.replace(r"\"numRecords\":2,", r"\"numRecords\":1000000000000000,"))
    version = version_of(DeltaLog.for_path(str(tmp_path / "t")))
    files = version.files(ALL_ROWS, None)
    for names in (("p",), ("id",)):
        rows = wanted(version, *names)
        assert known_rows(version, files, rows, counts_only=True) is None
        assert sum(batch.num_rows for batch in by_files(version, rows)) == 2


def test_unknown_numbers_and_other_columns_are_read(log, tmp_path):
    version = version_of(log)
    assert by_log(version, wanted(version, "p", "id")) is None
    assert by_log(version, version.wanted(wanted(version, "p").schema, 3)) is None
    bare = DeltaLog.for_path(
        str(tmp_path / "bare"), {"spark.databricks.delta.stats.collect": "false"}
    )
    bare.append(pa.table({"id": [1], "p": [1]}), partition_by=["p"])
    found = version_of(bare)
    assert by_log(found, wanted(found, "p")) is None


@pytest.mark.parametrize("name", sorted(PARTITIONS))
def test_odd_partition_values_are_those_of_files(tmp_path, name):
    version = version_of(parted_twice(str(tmp_path / "odd"), name))
    rows = wanted(version, name)
    made = by_log(version, rows)
    if made is not None:
        assert told(made) == told(by_files(version, rows))
    else:
        assert name in ("float", "double", "bytes")
