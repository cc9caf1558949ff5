"""DELETE, UPDATE and MERGE in the driver, without Spark jobs: nothing else may change by that."""

from __future__ import annotations

import datetime as dt
import re
import shutil
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from optimist.core.errors import TableError
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.target import LocalTarget
from optimist.spark import DeltaTable, read, write
from sixty_rows import write_sixty_rows

OPTION = "spark.optimist.spark.driverShortcut.maxBytes"
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
    conf(OPTION, str(1 << 30))
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


@pytest.mark.again
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
    """Rows may be in other files, and then others are copied with them."""
    unsure = re.compile(r"num\w*(Files|Bytes|Vectors|Copied)\w*|numOutputRows|\w+TimeMs")
    return [
        (*step[:2], {k: v for k, v in step[2].items() if not unsure.fullmatch(k)})
        if isinstance(step, tuple)
        else step
        for step in steps
    ]


@pytest.mark.again
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
    conf(OPTION, str(1 << 30))
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


def test_a_time_without_a_zone_becomes_the_instant_of_the_session(
    spark, table_path, searches, conf, plane
):
    conf("spark.sql.session.timeZone", "America/New_York")
    conf(OPTION, str(1 << 30))
    write(spark.sql("SELECT 1 AS id, TIMESTAMP_SECONDS(0) AS at"), table_path, mode="append")
    value = "TIMESTAMP_NTZ '2026-01-01 00:00:00'"
    DeltaTable.forPath(spark, table_path).update("id = 1", {"at": value})
    assert searches == ["id = 1"]
    found = read(spark, table_path).selectExpr("CAST(at AS STRING) AS text").collect()
    assert [row.text for row in found] == ["2026-01-01 00:00:00"]


@pytest.mark.again
def test_a_file_that_the_driver_can_not_read_is_left_to_spark(spark, table, monkeypatch):
    path = table()

    def broken(*args):
        raise TableError("It is of another calendar.", kind="OPTIMIST_LEGACY_CALENDAR")

    monkeypatch.setattr(LocalTarget, "search", broken)
    DeltaTable.forPath(spark, path).delete("id < 5")
    assert read(spark, path).count() == 55


NEW = 90
NINES = Decimal("9" * 36 + ".99")
VALUES = [
    {"n": "n + 1", "s": "concat(s, '-', `a.``b`)", "d": "NULL"},
    {"n": "CASE WHEN n > 3 THEN 0 WHEN s = 'n5' THEN NULL ELSE n * 2 END"},
    {"d": "n", "x": "n", "at": "at", "st.`b.c`": "if(n IS NULL, 'none', s)"},
    {"s": "'é\U0001f600'", "n": lambda: sf.col("n") - 1, "x": lambda: sf.lit(float("nan"))},
    {"st": "NULL", "`a.``b`": "coalesce(`a.``b`, s, 'c')", "p": "'q/%'"},
    {"day": "DATE '0001-01-01'", "at": "TIMESTAMP '2024-02-29 01:02:03.000004'", "f": "1.1F"},
    {"c": "'ab'", "v": "'abc '", "d": str(NINES), "y": "4Y", "x": "-3L"},
]
PROPERTIES = [
    {"enableDeletionVectors": "true", "enableChangeDataFeed": "true", "enableRowTracking": "true"},
    {"enableChangeDataFeed": "true", "columnMapping.mode": "id"},
    {"enableDeletionVectors": "true", "columnMapping.mode": "name", "enableRowTracking": "true"},
    {"enableRowTracking": "true"},
]


def write_odd_rows(spark, path):
    """Twelve rows in two files of two partitions each."""
    frame = spark.range(12).selectExpr(
        "id",
        "IF(id = 7, NULL, CAST(id AS INT)) AS n",
        "concat('n', id) AS s",
        "IF(id % 2 = 0, NULL, concat('o', id)) AS `a.``b`",
        "CAST(id AS DECIMAL(38, 2)) AS d",
        "CAST(id AS DOUBLE) AS x",
        "CAST(id AS FLOAT) AS f",
        "CAST(id AS TINYINT) AS y",
        "timestamp_seconds(id) AS at",
        "DATE '2024-02-29' AS day",
        "IF(id = 5, NULL, named_struct('a', CAST(id AS INT), 'b.c', 'z')) AS st",
        "IF(id % 3 = 0, NULL, concat('p', id % 2)) AS p",
        "CAST(NULL AS STRING) AS c",
        "CAST(NULL AS STRING) AS v",
    )
    lengths = {"c": "char(3)", "v": "varchar(3)"}
    for name, declared in lengths.items():
        metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared}
        frame = frame.withColumn(name, sf.col(name).alias(name, metadata=metadata))
    write(frame.repartition(2), path, partitionBy="p")


def merged(spark, path, number):
    source = spark.createDataFrame(
        pa.table({"id": [1, 2, NEW], "s": ["a", None, "c"], "p": ["p1", "new", None]})
    )
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    if number % 2:
        merge = merge.whenMatchedUpdate("s.s = 'a'", {"s": "concat(t.s, s.s)", "p": "s.p"})
        merge = merge.whenMatchedDelete()
    else:
        merge = merge.whenMatchedUpdate(set={"s": "s.s"})
        merge = merge.whenNotMatchedBySourceUpdate("t.n = 9", {"n": "0"})
    return merge.whenNotMatchedInsert(values={"id": "s.id", "s": "s.s", "n": "5"}).execute()


def odd_steps(spark, path, number, log):
    yield _state(spark, path, log, 0)
    target = DeltaTable.forPath(spark, path)
    for version, values in enumerate(VALUES, start=1):
        given = {name: value() if callable(value) else value for name, value in values.items()}
        target.update(f"id IN ({version}, 7, 11) OR n = {version}", given)
        yield _state(spark, path, log, version)
    merged(spark, path, number)
    yield _state(spark, path, log, len(VALUES) + 1)
    target.delete("n >= 8 AND id < 11")
    yield _state(spark, path, log, len(VALUES) + 2)


def _state(spark, path, log, version):
    properties = log.snapshot().properties
    names = list(log.snapshot().schema.names)
    if properties.enable_row_tracking:
        names += ["_metadata.row_id", "_metadata.row_commit_version"]
    rows = log.to_arrow(columns=names).to_pylist()
    for row in rows:
        if row["id"] == NEW:  # the id that it gets depends on which file comes first
            row.pop("_metadata.row_id", None)
    rows = sorted(map(repr, rows))
    changes = []
    if properties.enable_change_data_feed and version:
        found = log.changes(starting_version=version).drop_columns(["_commit_timestamp"])
        changes = sorted(map(repr, found.to_pylist()))
    return without_sizes([told(log)])[0], rows, changes


@pytest.mark.again
@pytest.mark.parametrize("number", range(len(PROPERTIES)))
def test_values_and_merges_leave_what_spark_leaves(spark, tmp_path, conf, log_of, jobs, number):
    for key, value in PROPERTIES[number].items():
        conf(f"{DEFAULTS}{key}", value)
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    write_odd_rows(spark, here)
    shutil.copytree(here, there)
    conf(OPTION, str(1 << 30))
    before = jobs()
    in_driver = list(odd_steps(spark, here, number, log_of(here)))
    assert jobs() == before
    conf(OPTION, "0")
    by_spark = list(odd_steps(spark, there, number, log_of(there)))
    assert jobs() > before
    for mine, theirs in zip(in_driver, by_spark, strict=True):
        assert mine == theirs


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"x": "x * 3000000"}, "OVERFLOW"),
        ({"s": "upper(s)"}, None),
        ({"x": "p + 0.5"}, None),
        ({"s": "IF(x > 5, raise_error('boom'), s)"}, "boom"),
        ({"x": "'many'"}, "CAST_INVALID_INPUT"),
    ],
)
def test_values_that_only_spark_knows_are_spark_s_and_nothing_is_left(
    spark, table, conf, log_of, values, error
):
    path = table()
    DeltaTable.forPath(spark, path).update("id = 8", {"x": "1000"})
    files = files_below(path)
    target = DeltaTable.forPath(spark, path)
    if error is None:
        target.update("id > 5", values)
        assert log_of(path).history(1)[0].info.operation_metrics["numUpdatedRows"] == "54"
        return
    with pytest.raises(Exception, match=error):
        target.update("id > 5", values)
    assert files_below(path) == files


def files_below(path):
    return sorted(file for file in Path(path).rglob("*") if file.suffix in (".parquet", ".bin"))


@pytest.mark.again
@pytest.mark.parametrize(
    "failure",
    [
        TableError("It is of another calendar.", kind="OPTIMIST_LEGACY_CALENDAR"),
        pa.ArrowInvalid("Arrow can't do that"),
    ],
    ids=["an error of ours", "an error of Arrow's"],
)
def test_a_work_that_fails_half_way_is_spark_s_and_leaves_nothing(
    spark, table, conf, log_of, monkeypatch, failure
):
    path = table()
    written = RowWriter.rewrite
    known = set(files_below(path))

    def broken(self, *arguments, **more):
        written(self, *arguments, **more)
        assert len(files_below(path)) > len(known)
        raise failure

    monkeypatch.setattr(RowWriter, "rewrite", broken)
    DeltaTable.forPath(spark, path).update("id = 5", {"s": "'new'"})
    assert log_of(path).count("s = 'new'") == 1
    metrics = log_of(path).history(1)[0].info.operation_metrics
    new = [file for file in files_below(path) if file not in known and file.suffix == ".parquet"]
    assert len(new) == int(metrics["numAddedFiles"])


def test_a_merge_finds_instants_in_partitions_of_texts_without_a_zone(spark, tmp_path, conf, jobs):
    conf(OPTION, str(1 << 30))
    days = spark.sql("SELECT id, TIMESTAMP_SECONDS(1704067200 + id * 86400) AS p FROM range(3)")
    write(days, str(tmp_path / "utc"), partitionBy="p")
    path = str(shutil.copytree(tmp_path / "utc", tmp_path / "plain"))
    shutil.rmtree(Path(path) / "_delta_log")
    (Path(path) / "_delta_log").mkdir()
    commit = (tmp_path / "utc" / "_delta_log" / f"{0:020}.json").read_text()
    texts = re.sub(r'"p":"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)[^"]*"', r'"p":"\1 \2"', commit)
    assert texts != commit
    (Path(path) / "_delta_log" / f"{0:020}.json").write_text(texts)
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    source = spark.createDataFrame(read(spark, path).where("id > 0").toArrow())
    before = jobs()
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.p = s.p")
    merge = merge.whenMatchedUpdate(set={"id": "s.id + 10"})
    (done,) = merge.whenNotMatchedInsert(values={"id": "s.id", "p": "s.p"}).execute().collect()
    assert jobs() == before
    assert (done.num_updated_rows, done.num_inserted_rows) == (2, 0)
    assert sorted(row.id for row in read(spark, path).collect()) == [0, 11, 12]
