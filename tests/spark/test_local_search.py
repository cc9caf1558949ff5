"""DELETE and UPDATE that look for their rows in the driver: nothing else may change by that."""

from __future__ import annotations

import datetime as dt
import shutil
from functools import partial

import pytest

from optimist.core.errors import TableError
from optimist.core.local.target import LocalTarget
from optimist.spark import DeltaTable, read, write
from sixty_rows import write_sixty_rows

OPTION = "spark.optimist.spark.localPlane.maxBytes"
DEFAULTS = "spark.databricks.delta.properties.defaults."
TIMES = ("executionTimeMs", "scanTimeMs", "rewriteTimeMs")


@pytest.fixture
def searches(monkeypatch):
    """The conditions that are looked for in the driver."""
    found = []
    real = LocalTarget.search

    def search(self, candidates, condition):
        found.append(condition.text)
        return real(self, candidates, condition)

    monkeypatch.setattr(LocalTarget, "search", search)
    return found


@pytest.fixture(params=["true", "false"], ids=["vectors", "copies"])
def table(request, spark, copied, plane, conf):
    conf(f"{DEFAULTS}enableDeletionVectors", request.param)
    name = f"sixty rows, vectors {request.param}"
    return partial(copied, name, partial(write_sixty_rows, spark))


def told(log):
    info = log.history(1)[0].info
    metrics = {k: v for k, v in info.operation_metrics.items() if k not in TIMES}
    return info.operation, info.operation_parameters, metrics


def changed(spark, path, log):
    target = DeltaTable.forPath(spark, path).alias("t")
    target.delete("id < 25 AND (x IS NULL OR t.s <> 'n3')")
    yield told(log)
    target.update("x = 4.0 OR id = 50", {"s": "'new'"})
    yield told(log)
    target.delete("p = 1")
    yield told(log)
    yield sorted(map(repr, read(spark, path).collect()))


def test_the_driver_finds_what_spark_finds(spark, table, searches, conf, log_of):
    here = table()
    there = f"{here}_too"
    shutil.copytree(here, there)
    in_driver = list(changed(spark, here, log_of(here)))
    assert len(searches) == 3
    conf(OPTION, "0")
    by_spark = list(changed(spark, there, log_of(there)))
    assert len(searches) == 3
    assert without_sizes(in_driver) == without_sizes(by_spark)


def without_sizes(steps):
    """Files that the two write may differ by bytes and in number."""
    unsure = ("numAddedBytes", "numRemovedBytes", "numAddedFiles", "numRemovedFiles")
    return [
        (*step[:2], {k: v for k, v in step[2].items() if k not in unsure})
        if isinstance(step, tuple)
        else step
        for step in steps
    ]


def test_what_is_in_doubt_is_left_to_spark(spark, table, searches, conf):
    path = table()
    target = DeltaTable.forPath(spark, path)
    target.delete("length(s) = 2 AND id < 5")
    conf(OPTION, str(1 << 20))
    target.delete("id IN (1, 59)")  # several files, each of which counts as a megabyte
    assert searches == []
    conf(OPTION, str(1 << 30))
    target.delete("id IN (2, 58)")
    assert len(searches) == 1
    left = {row.id for row in read(spark, path).collect()}
    assert left.isdisjoint({1, 2, 58, 59})


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_times_are_those_of_the_session(spark, table_path, searches, conf, plane, ansi):
    conf("spark.sql.session.timeZone", "America/New_York")
    conf("spark.sql.ansi.enabled", ansi)
    conf(f"{DEFAULTS}enableDeletionVectors", "true")
    frame = spark.range(48).selectExpr(
        "id", "timestamp_seconds(1792900800 + id * 3600) AS at", "CAST(id % 2 AS STRING) AS p"
    )
    write(frame, table_path, mode="append")
    day = dt.date(2026, 10, 25)
    expected = {
        row.id
        for row in frame.selectExpr("id", "CAST(at AS DATE) AS day").collect()
        if row.day != day
    }
    DeltaTable.forPath(spark, table_path).delete(f"to_date(at) = DATE '{day}'")
    assert {row.id for row in read(spark, table_path).collect()} == expected
    assert 0 < len(expected) < 48


def test_a_file_that_the_driver_can_not_read_is_left_to_spark(spark, table, monkeypatch):
    path = table()

    def broken(*args):
        raise TableError("It is of another calendar.", kind="OPTIMIST_LEGACY_CALENDAR")

    monkeypatch.setattr(LocalTarget, "search", broken)
    DeltaTable.forPath(spark, path).delete("id < 5")
    assert read(spark, path).count() == 55
