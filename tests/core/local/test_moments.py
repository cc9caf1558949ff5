"""Functions of the moment in commands without Spark: one time for a statement and its reruns."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from optimist.core import Column, DeltaLog
from optimist.core.errors import DeltaConcurrentModificationException, UsageError
from optimist.core.expressions.moments import Moment
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore

UTC = dt.timezone.utc
NOW = dt.datetime(2024, 3, 1, 0, 0, 5, 250_000, tzinfo=UTC)
NOW_MS = 1_709_251_205_250
SCHEMA = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32())],
)


def _log(path):
    return DeltaLog(path, LocalLogStore(), clock=ManualClock(now_ms=NOW_MS))


@pytest.fixture
def log(tmp_path):
    log = _log(str(tmp_path / "t"))
    log.create(SCHEMA, partition_by=["day"])
    for back in range(4):
        at = NOW - dt.timedelta(days=back)
        log.append(pa.Table.from_pylist([{"id": back, "at": at, "day": at.date()}], SCHEMA))
    return log


def ids(log):
    return sorted(log.to_arrow(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("at < current_timestamp() - INTERVAL 1 DAY", [0, 1]),
        ("at >= now()", [1, 2, 3]),
        ("at <= current_timestamp - INTERVAL '24' HOURS", [0]),
        ("day < current_date() - 1", [0, 1]),
        ("day = curdate()", [1, 2, 3]),
        ("day < current_date - INTERVAL 2 DAYS", [0, 1, 2]),
        ("unix_seconds(at) < unix_timestamp()", [0]),
        ("CAST(at AS TIMESTAMP_NTZ) = localtimestamp()", [1, 2, 3]),
    ],
)
def test_a_delete_knows_the_moment_at_which_it_began(log, condition, left):
    log.delete(condition)
    assert ids(log) == left


def test_an_update_and_its_condition_see_one_moment(log):
    log.update(set={"at": "current_timestamp()", "day": "current_date() - 7"}, predicate="id > 1")
    rows = log.to_arrow("day = DATE '2024-02-23'", ["id", "at"]).to_pylist()
    assert sorted(row["id"] for row in rows) == [2, 3]
    assert {row["at"] for row in rows} == {NOW}


def test_all_clauses_of_a_merge_see_one_moment(log):
    source = pa.table({"id": [0, 3, 9], "at": pa.array([NOW] * 3, pa.timestamp("us", "UTC"))})
    merge = log.merge(source, "t.id = s.id AND t.day <= current_date()")
    merge = merge.when_matched_update({"at": "now() + INTERVAL 1 HOUR"}, "t.at < now()")
    values = {"id": "s.id", "at": "now()", "day": "current_date()"}
    merge.when_not_matched_insert(values).execute()
    rows = {row["id"]: row["at"] for row in log.to_arrow(columns=["id", "at"]).to_pylist()}
    assert (rows[0], rows[3], rows[9]) == (NOW, NOW + dt.timedelta(hours=1), NOW)


def test_optimize_chooses_partitions_by_the_moment(log):
    assert log.optimize("day >= current_date() - 1").num_considered == 2


def test_a_rerun_sees_the_moment_of_the_first_try(log):
    clock = log.table.clock
    update = log.start_transaction

    def with_a_winner(*args):
        txn = update(*args)
        if clock.now_ms() == NOW_MS:  # the first try: another writer changes the file behind it
            other = _log(log.table.table_path)
            other.delete("id = 0")
            clock.advance(3600)
        return txn

    log.start_transaction = with_a_winner
    try:
        log.update(set={"at": "now()"}, predicate="id <= 1", retry=True)
    except DeltaConcurrentModificationException:
        pytest.fail("the command was not run again")
    rows = log.to_arrow("id = 1", ["at"]).to_pylist()
    assert clock.now_ms() > NOW_MS
    assert rows == [{"at": NOW}]


def test_a_moment_less_an_interval_is_a_constant_that_statistics_are_compared_with():
    moment = Moment(NOW_MS)
    found = {
        "now() - INTERVAL 7 DAYS": "TIMESTAMP '2024-02-23 00:00:05.250000Z'",
        "(current_date + INTERVAL 1 WEEK)": "DATE '2024-03-08'",
        "current_date() - INTERVAL 2 HOURS": "DATE '2024-03-01' - INTERVAL 2 HOURS",
        "current_date + INTERVAL 24 HOURS": "DATE '2024-03-01' + INTERVAL 24 HOURS",  # a time
        "x - now()": "x - TIMESTAMP '2024-03-01 00:00:05.250000Z'",
    }
    for sql, wanted in found.items():
        assert moment.fixed(sql, []) == wanted


def test_files_of_other_days_are_not_read_for_a_condition_on_the_moment(tmp_path):
    log = _log(str(tmp_path / "t"))
    log.create(SCHEMA)
    for back in range(4):
        at = NOW - dt.timedelta(days=back)
        log.append(pa.Table.from_pylist([{"id": back, "at": at, "day": at.date()}], SCHEMA))
    seen = []
    log.delete("at < now() - INTERVAL 60 HOURS", progress=lambda file: seen.append(file.num_files))
    assert ids(log) == [0, 1, 2]
    assert set(seen) == {1}


def test_a_column_comes_before_a_function_without_parentheses():
    moment = Moment(NOW_MS)
    assert moment.fixed("current_date > now()", ["Current_Date"]) == (
        "current_date > TIMESTAMP '2024-03-01 00:00:05.250000Z'"
    )
    assert moment.fixed("current_date", []) == "DATE '2024-03-01'"
    assert moment.fixed("`current_date` = 'now()'", []) == "`current_date` = 'now()'"


def test_a_read_knows_the_moment_at_which_it_began(log):
    assert log.to_arrow("at > now() - INTERVAL 30 HOURS").num_rows == 2
    assert log.count("day = current_date()") == 1


def test_a_row_that_a_merge_inserts_gets_a_default_of_the_moment(tmp_path):
    log = _log(str(tmp_path / "t"))
    log.create(
        [Column("id", "bigint"), Column("at", "timestamp", default="now()")],
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )
    merge = log.merge(pa.table({"id": [7]}), "t.id = s.id")
    merge.when_not_matched_insert({"id": "s.id"}).execute()
    assert log.to_arrow().to_pylist() == [{"id": 7, "at": NOW}]


def test_a_function_of_the_moment_with_arguments_is_refused(log):
    with pytest.raises(UsageError) as raised:
        log.delete("id > now(3)")
    assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"


@pytest.mark.parametrize("default", ["current_timestamp()", "now()", "current_timestamp"])
def test_a_default_of_the_moment_is_the_time_of_the_write(tmp_path, default):
    log = _log(str(tmp_path / "t"))
    log.create(
        [Column("id", "bigint"), Column("at", "timestamp", default=default)],
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )
    log.append(pa.table({"id": [1, 2]}))
    assert log.to_arrow(columns=["at"])["at"].to_pylist() == [NOW, NOW]
