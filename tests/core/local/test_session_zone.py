"""Commands in the time zone of the options: what days and texts of times mean in them."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from optimist.core import Column, DeltaLog
from optimist.core.errors import DeltaConcurrentModificationException, UsageError
from optimist.core.predicates.builder import literal
from optimist.core.predicates.tree import Column as TreeColumn
from optimist.core.predicates.tree import Comparison, In
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from optimist.core.snapshot.row_filter import known_predicate

_ZONE = "America/New_York"
_UTC, _HERE = dt.timezone.utc, ZoneInfo(_ZONE)
# Around the days on which the clocks change, and a day in winter.
_FIRST = [dt.datetime(2024, *day, tzinfo=_UTC) for day in ((3, 10), (11, 3), (1, 15))]
_INSTANTS = [first + dt.timedelta(minutes=30 * step) for first in _FIRST for step in range(60)]
_SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("day", pa.string())])


def _rows() -> pa.Table:
    columns = [list(range(len(_INSTANTS))), _INSTANTS, [None] * len(_INSTANTS)]
    return pa.table(columns, schema=_SCHEMA)


@pytest.fixture
def log(tmp_path) -> DeltaLog:
    path = str(tmp_path / "t")
    for start in range(0, len(_INSTANTS), 6):
        DeltaLog.for_path(path).append(_rows().slice(start, 6))
    return DeltaLog.for_path(path, {"spark.sql.session.timeZone": _ZONE})


def _here(at: dt.datetime) -> dt.datetime:
    return at.astimezone(_HERE).replace(tzinfo=None)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("condition", "model"),
    [
        ("to_date(at) = '2024-03-10'", lambda at: _here(at).date() == dt.date(2024, 3, 10)),
        ("CAST(at AS DATE) > '2024-03-10'", lambda at: _here(at).date() > dt.date(2024, 3, 10)),
        ("at >= '2024-11-03'", lambda at: _here(at) >= dt.datetime(2024, 11, 3)),
        ("at < DATE '2024-11-03'", lambda at: _here(at) < dt.datetime(2024, 11, 3)),
        ("at = TIMESTAMP '2024-03-10 03:30:00'", lambda at: at.isoformat()[8:16] == "10T07:30"),
        ("hour(at) = 1", lambda at: _here(at).hour == 1),
        ("date_trunc('day', at) = TIMESTAMP '2024-11-03'", lambda at: _here(at).day == 3),
        ("date_format(at, 'dd HH') = '10 03'", lambda at: _here(at).isoformat()[8:13] == "10T03"),
        ("day(at + INTERVAL 1 DAY) = 4", lambda at: (_here(at).day) == 3),
    ],
)
def test_a_condition_takes_the_rows_of_its_zone(log, condition, model):
    wanted = [index for index, at in enumerate(_INSTANTS) if model(at)]
    assert sorted(log.to_arrow(condition)["id"].to_pylist()) == wanted
    assert log.count(condition) == len(wanted)
    assert wanted, "the condition is true for no row"
    log.delete(condition)
    left = set(range(len(_INSTANTS))) - set(wanted)
    assert set(log.to_arrow()["id"].to_pylist()) == left


def test_values_are_computed_in_the_zone(log):
    naive = dt.datetime(2024, 11, 3, 1, 30)
    log.update(set={"day": "CAST(to_date(at) AS STRING)"})
    found = log.to_arrow()
    for at, day in zip(found["at"].to_pylist(), found["day"].to_pylist(), strict=True):
        assert day == _here(at).date().isoformat()
    log.update(set={"at": "TIMESTAMP '2024-03-10 02:30:00'"}, predicate="id = 0")
    log.update(set={"at": naive}, predicate="id = 1")
    instants = log.to_arrow("id < 2").sort_by("id")["at"].to_pylist()
    assert instants == [
        dt.datetime(2024, 3, 10, 7, 30, tzinfo=_UTC),  # the hour that the clocks skip
        dt.datetime(2024, 11, 3, 5, 30, tzinfo=_UTC),  # the first of the two hours
    ]


def test_a_merge_compares_and_computes_in_the_zone(log):
    source = pa.table({"key": [dt.date(2024, 3, 10)], "text": ["2024-11-03 01:30:00"]})
    done = log.merge(source, "t.at = s.key").when_matched_update({"day": "hour(t.at)"}).execute()
    assert done.num_updated == 1
    assert log.to_arrow("day = '0'")["at"].to_pylist() == [dt.datetime(2024, 3, 10, 5, tzinfo=_UTC)]
    merge = log.merge(source, "t.at = s.text AND to_date(t.at) = '2024-11-03'")
    assert merge.when_matched_delete("hour(t.at) = 1").execute().num_deleted == 1
    gone = set(range(len(_INSTANTS))) - set(log.to_arrow()["id"].to_pylist())
    assert [_INSTANTS[index] for index in gone] == [dt.datetime(2024, 11, 3, 5, 30, tzinfo=_UTC)]


def test_an_overwrite_replaces_and_checks_the_rows_of_its_days(log):
    row = {"id": [1_000], "at": [dt.datetime(2024, 3, 11, 3, tzinfo=_UTC)], "day": ["new"]}
    wanted = "at >= '2024-03-10' AND at < '2024-03-11'"
    log.write(pa.table(row, schema=_SCHEMA), "overwrite", predicate=wanted)
    assert log.count(wanted) == 1
    assert log.count("at >= '2024-03-09' AND at < '2024-03-12'") == 60 - 46 + 1


def test_current_date_is_that_of_the_zone(tmp_path):
    path = str(tmp_path / "t")
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12"):
        log = DeltaLog.for_path(path, {"spark.sql.session.timeZone": zone})
        log.append(pa.table({"zone": [zone], "day": pa.array([None], pa.date32())}))
        log.update(set={"day": "current_date()"}, predicate=f"zone = '{zone}'")
    days = dict(zip(*log.to_arrow().to_pydict().values(), strict=True))
    assert (days["Pacific/Kiritimati"] - days["Etc/GMT+12"]).days in (1, 2)


def test_generated_columns_of_times_are_computed_where_the_options_name_a_zone(tmp_path):
    path = str(tmp_path / "t")
    day = Column("day", "date", generated_as="CAST(at AS DATE)")
    DeltaLog.for_path(path).create([Column("at", "timestamp"), day])
    rows = pa.table({"at": pa.array([_FIRST[0]], pa.timestamp("us", "UTC"))})
    with pytest.raises(UsageError) as raised:
        DeltaLog.for_path(path).append(rows)
    assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"
    log = DeltaLog.for_path(path, {"spark.sql.session.timeZone": _ZONE})
    log.append(rows)
    log.update(set={"at": "at + INTERVAL 6 HOURS"})
    log.merge(rows, "FALSE").when_not_matched_insert_all().execute()
    assert sorted(log.to_arrow()["day"].to_pylist()) == [dt.date(2024, 3, 9), dt.date(2024, 3, 10)]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.date32()])
def test_rows_whose_times_are_cast_are_refused_in_another_zone_than_utc(log, kind):
    value = dt.datetime(2024, 1, 1) if pa.types.is_timestamp(kind) else dt.date(2024, 1, 1)
    rows = pa.table({"id": [1], "at": pa.array([value], kind)})
    version = log.snapshot().version
    with pytest.raises(UsageError) as raised:
        log.append(rows)
    assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert log.snapshot().version == version
    DeltaLog.for_path(log.table.table_path).append(rows)


def test_a_row_that_a_winner_added_is_a_conflict_by_the_day_of_the_zone(log):
    late = dt.datetime(2024, 3, 11, 3, 30, tzinfo=_UTC)  # still the 10th in New York

    def intrude(at):
        rows = pa.table({"id": [1], "at": [at], "day": ["x"]}, schema=_SCHEMA)
        return lambda done: log.append(rows) if done.step == "search" else None

    condition = "at >= '2024-03-10' AND at < '2024-03-11'"
    with pytest.raises(DeltaConcurrentModificationException):
        log.update(set={"day": "'d'"}, predicate=condition, progress=intrude(late))
    done = log.update(
        set={"day": "'d'"},
        predicate=condition,
        progress=intrude(late + dt.timedelta(hours=1)),
    )
    assert done.num_updated == log.count(condition) > 46


@pytest.mark.parametrize(
    ("column", "constant", "is_known"),
    [
        ("z", _FIRST[0], True),
        ("z", _FIRST[0].replace(tzinfo=None), False),
        ("z", dt.date(2024, 3, 10), False),
        ("w", _FIRST[0].replace(tzinfo=None), True),
        ("w", _FIRST[0], False),
        ("d", dt.date(2024, 3, 10), True),
        ("d", _FIRST[0], False),
    ],
)
def test_a_filter_of_another_library_is_taken_only_if_no_zone_decides(column, constant, is_known):
    kinds = {"z": "timestamp", "w": "timestamp_ntz", "d": "date"}
    fields = (StructField(name, PrimitiveType(kind)) for name, kind in kinds.items())
    schema = StructType(tuple(fields))
    for leaf in (
        Comparison("<", TreeColumn((column,)), literal(constant)),
        In(TreeColumn((column,)), (literal(constant), literal(None))),
    ):
        assert (known_predicate(leaf, schema) is not None) == is_known
