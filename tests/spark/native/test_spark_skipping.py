"""What Spark pushes skips files, and rows never: each operator, casts and zones among them."""

import datetime as dt
import json
from decimal import Decimal

import deltalake
import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.protocol.actions import Metadata
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, count, read, write
from optimist.spark.native.file_selection import file_selections

UTC = dt.timezone.utc


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Four files, one for each of four days; the last two without values of `n`."""
    path = str(tmp_path_factory.mktemp("skipping") / "days")
    for i in range(4):
        rows = pa.table(
            {
                "id": pa.array([i * 10, i * 10 + 5], pa.int32()),
                "d": [dt.date(2024, 1, 1 + i)] * 2,
                "ts": [dt.datetime(2024, 1, 1 + i, hour, tzinfo=UTC) for hour in (3, 20)],
                "s": [f"a{i}x", f"a{i}z"],
                "n": pa.array([None, 1] if i < 2 else [None, None], pa.int64()),
                "st": [{"q": i}, {"q": i}],
            }
        )
        deltalake.write_deltalake(path, rows, mode="append")
    return path


MANY_DAYS = ", ".join(f"'2024-01-{day:02d}'" for day in range(3, 16))
CONDITIONS = [
    ("id = 10", 1),
    ("id <=> 10", 1),
    ("id <> 5", 4),
    ("id > 25L", 1),
    ("id >= 25", 2),
    ("id < 10", 1),
    ("id <= 10", 2),
    ("NOT (id < 25)", 2),
    ("id BETWEEN 3 AND 12", 2),
    ("id IN (5, 30)", 2),
    ("id IN (0, 5, 1, 2, 3, 4, 6, 7, 8, 9, 11, 12)", 2),
    ("n IS NULL", 4),
    ("n IS NOT NULL", 2),
    ("n <=> NULL", 4),
    ("st.q = 2", 1),
    ("s >= 'a3'", 1),
    ("s LIKE 'a1%'", 1),
    ("s LIKE 'a2%z'", 1),
    ("s LIKE 'a2_'", 1),
    ("s LIKE '%z'", 4),
    ("startswith(s, 'a3')", 1),
    ("CAST(id AS DOUBLE) > 15.5", 2),
    ("CAST(id AS DECIMAL(12, 2)) = 20.00", 1),
    ("d BETWEEN '2024-01-02' AND '2024-01-03'", 2),
    ("(id < 5 AND length(s) > 1) OR id > 33", 2),
    ("NOT (id < 5 OR length(s) > 1)", 4),
    ("length(s) = 3", 4),
]
ZONED = [
    ("ts >= '2024-01-04 10:00:00'", 1, 1),
    ("to_date(ts) = '2024-01-02'", 1, 2),
    ("CAST(ts AS DATE) > DATE '2024-01-03'", 1, 1),
    ("to_date(ts) IN ('2024-01-01', '2024-01-04')", 2, 3),
    (f"to_date(ts) IN ({MANY_DAYS})", 2, 2),
    ("d > TIMESTAMP '2024-01-03 10:00:00'", 1, 1),
    ("d IN (TIMESTAMP '2024-01-02 00:00:00', TIMESTAMP '2024-01-04 00:00:00')", 2, 2),
    ("d IN (TIMESTAMP '2024-01-02 10:00:00', TIMESTAMP '2024-01-03')", 1, 1),
]


def ids_where(spark, path, conditions):
    """For each condition the rows for which it is true, by Spark's judgement of a plain frame."""
    plain = spark.createDataFrame(deltalake.DeltaTable(path).to_pyarrow_table())
    judged = plain.selectExpr("id", *(f"{item} AS c{i}" for i, item in enumerate(conditions)))
    rows = judged.collect()
    return [sorted(row.id for row in rows if row[i + 1]) for i in range(len(conditions))]


def ids_and_files(frame):
    (selection,) = file_selections(frame)
    return sorted(row.id for row in frame.select("id").collect()), selection.num_files


@pytest.fixture(scope="module")
def expected(spark, days):
    conditions = [condition for condition, _ in CONDITIONS]
    return dict(zip(conditions, ids_where(spark, days, conditions), strict=True))


@pytest.mark.again
@pytest.mark.parametrize(("condition", "num_files"), CONDITIONS)
def test_each_operator_reads_only_these_files(spark, days, expected, condition, num_files):
    frame = read(spark, days).where(condition)
    assert ids_and_files(frame) == (expected[condition], num_files)


@pytest.mark.again
def test_the_largest_decimals_are_found_by_each_way_to_them(spark, table_path, plane):
    nines = 10**38 - 1
    log = DeltaLog.for_path(table_path)
    for i, sign in enumerate((-1, 0, 1)):
        rows = pa.table(
            {
                "p": pa.array([Decimal(sign * nines)], pa.decimal128(38, 0)),
                "d": pa.array([Decimal(f"{sign * nines}E-10")], pa.decimal128(38, 10)),
                "i": [i],
            }
        )
        log.append(rows, partition_by=["p"])
    frame = read(spark, table_path)
    top, fraction = f"{nines}BD", f"{str(nines)[:28]}.{'9' * 10}BD"
    for condition, expected in {
        f"p = {top}": [2],
        f"p <= -{top}": [0],
        f"p > -{top}": [1, 2],
        f"d = {fraction}": [2],
        f"d <= -{fraction}": [0],
        f"d IN (-{fraction}, 0)": [0, 1],
    }.items():
        assert sorted(row.i for row in frame.where(condition).collect()) == expected, condition
        assert count(spark, table_path, condition) == len(expected), condition
    assert [row.d for row in frame.where("i = 2").collect()] == [Decimal(f"{nines}E-10")]
    table = DeltaTable.forPath(spark, table_path)
    table.delete(f"p = {top}")
    table.update(f"d <= -{fraction}", {"i": "7"})
    assert sorted(row.i for row in read(spark, table_path).collect()) == [1, 7]


@pytest.mark.again
@pytest.mark.parametrize(("zone", "column"), [("UTC", 1), ("America/New_York", 2)])
def test_times_skip_files_by_the_zone_of_the_session(spark, days, conf, zone, column):
    conf("spark.sql.session.timeZone", zone)
    conditions = [row[0] for row in ZONED]
    found = [ids_and_files(read(spark, days).where(condition)) for condition in conditions]
    ids = ids_where(spark, days, conditions)
    assert found == [(rows, row[column]) for rows, row in zip(ids, ZONED, strict=True)]


@pytest.mark.again
def test_a_filter_on_a_time_prunes_the_days_generated_from_it(spark, table_path):
    generated = {"delta.generationExpression": "CAST(ts AS DATE)"}
    fields = [
        {"name": "ts", "type": "timestamp", "nullable": True, "metadata": {}},
        {"name": "day", "type": "date", "nullable": True, "metadata": generated},
    ]
    txn = DeltaLog.for_path(table_path, {}).start_transaction()
    txn.update_metadata(
        Metadata(
            id="00000000-0000-0000-0000-000000000001",
            schema_string=json.dumps({"type": "struct", "fields": fields}),
            partition_columns=("day",),
            configuration={"delta.dataSkippingNumIndexedCols": "0"},
        )
    )
    txn.commit([], Operation("CREATE TABLE"))
    times = spark.range(10).selectExpr("timestamp '2024-01-01 12:00:00' + make_dt_interval(id) ts")
    write(times, table_path, mode="append")
    frame = read(spark, table_path).where("ts > '2024-01-09'")
    (selection,) = file_selections(frame)
    assert selection.num_partitions == 3
    assert frame.count() == 2


@pytest.mark.again
@pytest.mark.parametrize(
    "where", [None, "id >= 10", "id > 12", "n IS NULL", "d = '2024-01-02'", "length(s) = 3"]
)
def test_a_count_equals_sparks_own(spark, days, plane, where):
    rows = read(spark, days)
    assert count(spark, days, where) == rows.where(where or "TRUE").count()


def test_a_count_that_the_log_answers_runs_no_job(spark, days):
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("counting", "no job is expected")
    try:
        assert count(spark, days) == 8
        assert count(spark, days, "id >= 10") == 6
        assert tracker.getJobIdsForGroup("counting") == []
        assert count(spark, days, "id > 10") == 5
        assert len(tracker.getJobIdsForGroup("counting")) > 0
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_count_by_a_random_condition_is_refused(spark, days):
    with pytest.raises(UsageError) as caught:
        count(spark, days, "rand() < 0.5")
    assert caught.value.kind == "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
