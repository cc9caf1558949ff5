"""OPTIMIZE on Spark, by jobs and in the driver, by the builder and in SQL."""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.values.time_zones import session_zone
from optimist.spark import DeltaTable, read, write

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
}
IN_SPARK = "spark.optimist.spark.driverShortcut.maxBytes"


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


@pytest.mark.again
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


@pytest.mark.again
@pytest.mark.usefixtures("plane", "done_by")
def test_a_condition_over_data_is_refused(table, table_path):
    with pytest.raises(UsageError) as caught:
        table.optimize().where("n.a = 1").executeCompaction()
    assert caught.value.kind == "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    assert DeltaLog.for_path(table_path).snapshot().version == 4


@pytest.mark.again
@pytest.mark.usefixtures("plane", "done_by")
def test_a_delete_meanwhile_costs_no_row(spark, table, table_path, meeting):
    other = DeltaLog.for_path(table_path)
    before = rows_of(spark, table_path)
    meeting(lambda: other.delete("id IN (2, 3)"))
    done = table.optimize().executeCompaction().collect()[0].metrics
    ids = sorted(row.id for row in read(spark, table_path).select("id").collect())
    assert ids == [i for i in range(40) if i not in (2, 3, 11)]
    assert set(rows_of(spark, table_path)) < set(before)
    # The rows that were deleted meanwhile are found in the new files, and no bin is left out.
    assert (done.numFilesAdded, other.snapshot().num_files) == (2, 2)


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_a_delete_meanwhile_costs_jobs_that_arrange_rows_no_work(
    spark, table, table_path, meeting, conf
):
    conf(IN_SPARK, "0")
    conf("spark.databricks.delta.optimize.maxFileSize", "700")
    other = DeltaLog.for_path(table_path)
    before = rows_of(spark, table_path)
    meeting(lambda: other.delete("id IN (2, 3, 30)"))
    done = table.optimize().executeZOrderBy("id").collect()[0].metrics
    left = [row for row in before if not row.startswith(("Row(id=2,", "Row(id=3,", "Row(id=30,"))]
    assert rows_of(spark, table_path) == left
    assert done.numFilesAdded > 2
    assert other.snapshot().num_files == done.numFilesAdded


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_a_delete_meanwhile_costs_jobs_no_work_where_rows_have_no_ids(
    spark, table_path, meeting, conf
):
    conf(IN_SPARK, "0")
    log = DeltaLog.for_path(
        table_path,
        {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"},
    )
    for first in range(0, 40, 10):
        log.append(spark.range(first, first + 10).toArrow())
    meeting(lambda: log.delete("id IN (2, 3)"))
    done = DeltaTable.forPath(spark, table_path).optimize().executeCompaction()
    assert done.collect()[0].metrics.numFilesAdded == log.snapshot().num_files == 1
    ids = sorted(row.id for row in read(spark, table_path).select("id").collect())
    assert ids == [i for i in range(40) if i not in (2, 3)]


ODD = [
    "CAST(id % 128 AS TINYINT)",
    "id * -7919",
    "CAST(id AS FLOAT) / 3",
    "CASE id % 50 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-inf') ELSE id / 7D END",
    "CAST(id * 1234567890123 AS DECIMAL(38, 7))",
    "date_add(DATE'0001-01-01', CAST(id * 400 AS INT))",
    "timestamp_micros(id * 86400000123 - 60000000000000)",
    "CAST(timestamp_micros(id * 86400000123) AS TIMESTAMP_NTZ)",
    "concat('it''s `', chr(CAST(32 + id % 90 AS INT)), '\\\\')",
    "encode(CAST(id * 31 AS STRING), 'utf-8')",
    "IF(id % 3 = 0, NULL, id)",
    "id % 2 = 0",
]


def narrow(frame, column: str) -> float:
    """How many of the files a value of the column may be in, on average, as a share."""
    found = frame.groupBy("f").agg(sf.expr(f"min({column})"), sf.expr(f"max({column})")).collect()
    asked = [row[0] for row in frame.selectExpr(column).distinct().collect() if row[0] is not None]
    hit = [sum(low <= x <= high for _, low, high in found) for x in asked[::10]]
    return sum(hit) / len(hit) / len(found)


@pytest.mark.sample(4)
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize(
    ("columns", "is_clustered"), [(1, False), (2, True), (3, False), (4, True)]
)
def test_jobs_arrange_rows_as_the_driver_does(spark, table_path, conf, columns, is_clustered):
    options = {"spark.databricks.delta.properties.defaults.enableRowTracking": "true"}
    log = DeltaLog.for_path(table_path, options)
    names = ["a", "B-b", "c`d", "d.e"][:columns]
    by = [f"`{name.replace('`', '``')}`" for name in names]
    values = [f"(id * {7**at} * 7919) % 4000 AS {name}" for at, name in enumerate(by)]
    for first in range(0, 4000, 1000):
        log.append(spark.range(first, first + 1000).selectExpr("id", *values).toArrow())
    if is_clustered:
        log.alter.cluster_by([(name,) for name in names])
    table = DeltaTable.forPath(spark, table_path)
    sizes = log.snapshot().files["size"].to_pylist()
    conf("spark.databricks.delta.optimize.maxFileSize", str(sum(sizes) // 12))
    ids = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    before = sorted(map(str, read(spark, table_path, columns=ids).collect()))
    shares = {}
    for limit in ("0", "100000000"):
        conf(IN_SPARK, limit)
        version = log.snapshot().version
        optimize = table.optimize()
        metrics = optimize.executeCompaction() if is_clustered else optimize.executeZOrderBy(by)
        metrics = metrics.collect()[0].metrics
        assert metrics.numFilesAdded > 6, metrics
        assert (metrics.clusteringStats is None, metrics.zOrderStats is None) == (
            not is_clustered,
            is_clustered,
        )
        assert sorted(map(str, read(spark, table_path, columns=ids).collect())) == before
        rows = read(spark, table_path, columns=[*names, "_metadata.file_path"])
        rows = rows.withColumnRenamed("file_path", "f")
        shares[limit] = [narrow(rows, name) for name in by]
        if is_clustered:
            table.restoreToVersion(version)
    for one, other in zip(*shares.values(), strict=True):
        assert one == pytest.approx(other, abs=0.25)
        assert max(one, other) < {1: 0.3, 2: 0.6, 3: 0.8, 4: 0.95}[columns]


@pytest.mark.again  # sixteen seconds of CPU
@pytest.mark.usefixtures("plane")
def test_jobs_arrange_rows_by_values_of_every_type(spark, table_path, conf):
    conf(IN_SPARK, "0")
    conf("spark.databricks.delta.optimize.maxFileSize", "20000")
    conf("spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled", "false")
    columns = [f"{sql} AS c{at}" for at, sql in enumerate(ODD)]
    write(spark.range(2_000).selectExpr("id", *columns).repartition(3), table_path)
    table = DeltaTable.forPath(spark, table_path)
    before = sorted(map(str, read(spark, table_path).collect()))
    names = [f"c{at}" for at in range(len(ODD))]
    for by in (names[:4], names[4:8], names[8:], names):
        metrics = table.optimize().executeZOrderBy(by).collect()[0].metrics
        assert metrics.numFilesAdded > 2
    assert sorted(map(str, read(spark, table_path).collect())) == before


@pytest.mark.usefixtures("plane", "done_by")
def test_wrong_columns_are_told_by_delta_s_classes(table):
    for columns, kind in [
        (("p",), "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        (("none",), "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        (("n",), "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
    ]:
        with pytest.raises(UsageError) as caught:
            table.optimize().executeZOrderBy(*columns)
        assert caught.value.kind == kind
    with pytest.raises(TypeError):
        table.optimize().executeZOrderBy(1)


@pytest.mark.again
def test_times_in_a_predicate_are_those_of_the_session(spark, table_path, conf):
    conf("spark.sql.session.timeZone", "America/Los_Angeles")
    for day in ("2024-01-01", "2024-01-02"):
        for number in range(2):
            rows = spark.sql(f"SELECT {number} AS id, TIMESTAMP '{day} 20:00:00' AS t")
            write(rows, table_path, mode="append", partitionBy="t")
    table = DeltaTable.forPath(spark, table_path)
    for condition, found in (("= '2024-01-02 04:00:00'", 0), ("< '2024-01-02'", 2)):
        metrics = table.optimize().where(f"t {condition}").executeCompaction().first().metrics
        assert metrics.numFilesRemoved == found, condition


def test_every_short_name_that_a_session_s_zone_may_have_is_known(spark, table, conf):
    """Java's, which Spark takes; a predicate that has no times needs the zone to be one, too."""
    names = dict(spark._jvm.java.time.ZoneId.SHORT_IDS)
    assert len(names) == 28
    moments = [dt.datetime(2024, month, 1, tzinfo=dt.timezone.utc) for month in (1, 7)]
    for short, name in names.items():
        ours, meant = session_zone(short), session_zone(name)
        assert [ours.utcoffset(m) for m in moments] == [meant.utcoffset(m) for m in moments]
    conf("spark.sql.session.timeZone", "PST")
    assert table.optimize().where("p = 1").executeCompaction().first().metrics.numFilesRemoved == 4
