"""Columns named `current_date` and the like, which Spark takes before the function of that name."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError, UsageError
from optimist.core.expressions.bare_columns import with_bare_columns

_DAYS = [dt.date(2020, 1, day) for day in (1, 2, 3, 4)]
_ROWS = pa.table({"Current_Date": _DAYS, "current_user": [1, 2, 3, None], "part": [1, 1, 2, 2]})


@pytest.fixture
def log(tmp_path) -> DeltaLog:
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.write(_ROWS, partition_by=["part"])
    return log


def _users(log: DeltaLog) -> list[int | None]:
    return sorted(log.to_arrow()["current_user"].to_pylist(), key=str)


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("current_user = 2", ["2"]),
        ("2 < (current_user)", ["3"]),
        ("current_user IS NULL AND part = 2", ["None"]),
        ("current_user + part = 2", ["1"]),
        ("CURRENT_USER % 2 = 1 OR current_date = DATE '2020-01-02'", ["1", "2", "3"]),
        ("current_date BETWEEN '2020-01-02' AND '2020-01-03'", ["2", "3"]),
        ("current_date < current_date()", ["1", "2", "3", "None"]),
        ("year(current_date) = 2020 AND NOT current_user IN (1, 3)", ["2"]),
        ("current_date < current_timestamp", ["1", "2", "3", "None"]),
    ],
)
def test_a_condition_means_the_column(log, condition, wanted):
    found = log.to_arrow(condition)
    assert sorted(map(str, found["current_user"].to_pylist())) == wanted
    assert log.count(condition) == len(wanted)
    log.delete(condition)
    assert len(_users(log)) == 4 - len(wanted)


def test_files_are_skipped_by_the_bounds_of_such_a_column(log):
    log.append(pa.table({"Current_Date": _DAYS[:1], "current_user": [100], "part": [1]}))
    assert log.snapshot().scan("current_user > 50").files.num_rows == 1


def test_a_partition_column_of_such_a_name_decides_whole_files(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.write(pa.table({"current_user": ["a", "b"], "id": [1, 2]}), partition_by=["current_user"])
    assert log.snapshot().scan("current_user = 'a' AND id > 0").files.num_rows == 1
    log.write(
        pa.table({"current_user": ["a"], "id": [7]}), "overwrite", predicate="current_user = 'a'"
    )
    assert sorted(log.to_arrow()["id"].to_pylist()) == [2, 7]


def test_an_assigned_value_means_the_column(log):
    log.update(set={"current_user": "current_user + 10"}, predicate="current_user < 3")
    assert _users(log) == [11, 12, 3, None]
    log.update(set={"current_date": "add_months(current_date, 12)"})
    assert log.count("current_date >= '2021-01-01'") == 4


def test_a_merge_means_the_column_of_the_only_side_that_has_it(log):
    source = pa.table({"key": [1, 9], "day": [_DAYS[3]] * 2})
    merge = log.merge(source, "current_user = s.key AND current_date < day")
    merge = merge.when_matched_update({"current_user": "current_user + key + 20"}, "part = 1")
    assert merge.execute().num_updated == 1
    assert _users(log) == [2, 22, 3, None]


def test_a_name_of_both_sides_is_ambiguous_in_a_merge(log):
    for on in ("current_user = 1", "s.part = t.part AND current_date < DATE '2020-01-02'"):
        with pytest.raises(UsageError):
            log.merge(_ROWS, on).when_matched_delete().execute()
    assert len(_users(log)) == 4


def test_a_constraint_of_a_foreign_writer_means_the_column(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    constraint = {"delta.constraints.c": "current_user > 0"}
    log.create(_ROWS.schema, properties=constraint)
    log.append(_ROWS.slice(0, 3))
    with pytest.raises(SchemaError) as raised:
        log.update(set={"current_user": "-current_user"})
    assert raised.value.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("current_date", "`current_date`"),
        ("((Current_Date)) > current_date()", "((`Current_Date`)) > current_date()"),
        ("`current_date` = current_time", "`current_date` = current_time"),
        ("t.current_date = 'current_date'", "t.current_date = 'current_date'"),
        ("transform(a, current_date -> current_date + 1)",) * 2,
        ("current_date +", "current_date +"),
    ],
)
def test_only_names_that_are_columns_get_back_ticks(sql, wanted):
    assert with_bare_columns(sql, ["CURRENT_DATE", "x"]) == wanted
