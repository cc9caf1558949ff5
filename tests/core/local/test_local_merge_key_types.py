"""MERGE by columns of different types, which are compared in the type that Spark casts them to."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError, SchemaError, UsageError

_UTC = dt.timezone.utc
_DAYS = [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 3, 31), None]
_INSTANTS = [dt.datetime(2024, 3, 31, hour, tzinfo=_UTC) for hour in (0, 1)]
_BIG = 2**53 + 1


def _matched(tmp_path, target: pa.Array, source: pa.Array, operator: str = "=") -> list[int]:
    """Return the numbers of the table's rows that match a row of the source."""
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for at, value in enumerate(target):
        log.append(pa.table({"key": pa.array([value], target.type), "at": [at]}))
    merge = log.merge(pa.table({"key": source}).slice(0), f"t.key {operator} s.key")
    merge.when_matched_delete().execute()
    left = set(log.to_arrow()["at"].to_pylist())
    return [at for at in range(len(target)) if at not in left]


@pytest.mark.parametrize(
    ("target", "source", "wanted"),
    [
        (pa.array([1, -7, 12, None], pa.int32()), pa.array([" 12 ", "+1", None]), [0, 2]),
        (pa.array(["1", "01", "2", None]), pa.array([1, 3], pa.int64()), [0, 1]),
        (pa.array([2**31 - 1, -5], pa.int32()), pa.array(["2147483648", "-5"]), [1]),
        (pa.array([_BIG, 5], pa.int64()), pa.array([str(_BIG), str(_BIG - 1)]), [0]),
        (pa.array([_BIG, 5], pa.int64()), pa.array([float(_BIG - 1)], pa.float32()), [0]),
        (pa.array([0.1, 0.5], pa.float32()), pa.array(["0.1", ".5"]), [1]),
        (pa.array([float("nan"), -0.0, 1.5]), pa.array(["NaN", "0"]), [0, 1]),
        (
            pa.array([Decimal("0.10"), Decimal("2.00")], pa.decimal128(5, 2)),
            pa.array([0.1, 2.0000001]),
            [0],
        ),
        (
            pa.array([Decimal("0.10"), Decimal("2.00")], pa.decimal128(5, 2)),
            pa.array(["0.1", "2"]),
            [0, 1],
        ),
        (pa.array(_DAYS, pa.date32()), pa.array(["2024-3-31 12:00:00", "0001-01-01"]), [0, 2]),
        (pa.array(["2024-03-31", "1970", "2024-04"]), pa.array(_DAYS, pa.date32()), [0, 1]),
        (pa.array(_DAYS, pa.date32()), pa.array(_INSTANTS, pa.timestamp("us", "UTC")), [2]),
        (pa.array(_INSTANTS, pa.timestamp("us", "UTC")), pa.array(_DAYS, pa.date32()), [0]),
        (
            pa.array([at.replace(tzinfo=None) for at in _INSTANTS], pa.timestamp("us")),
            pa.array(_INSTANTS[1:], pa.timestamp("us", "UTC")),
            [1],
        ),
        (
            pa.array(_INSTANTS, pa.timestamp("us", "UTC")),
            pa.array(["2024-03-31 01:00:00", "2024-03-30"]),
            [1],
        ),
        (pa.array([True, False, None]), pa.array(["YES", "t", None]), [0]),
    ],
)
def test_rows_match_as_spark_casts_their_keys(tmp_path, target, source, wanted):
    assert _matched(tmp_path, target, source) == wanted


def test_nulls_match_by_null_safe_equality_of_different_types(tmp_path):
    target = pa.array([1, None, 3], pa.int64())
    assert _matched(tmp_path, target, pa.array(["3", None]), "<=>") == [1, 2]


def test_numbers_skip_files_by_keys_that_are_texts_and_texts_by_numbers_do_not(tmp_path):
    target = pa.array([1, 5, 100], pa.int64())
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for value in target:
        log.append(pa.table({"key": pa.array([value]), "at": pa.array([str(value)])}))
    source = pa.table({"key": ["5"], "number": [100]})
    for on, num_files in (("t.key = s.key", 1), ("t.at = s.number", 2)):
        steps = []
        merge = log.merge(source, on).when_matched_delete()
        assert merge.execute(progress=steps.append).num_deleted == 1
        assert len([step for step in steps if step.step == "search"]) == num_files
    assert log.to_arrow()["key"].to_pylist() == [1]


@pytest.mark.parametrize("is_target", [True, False])
def test_a_text_that_is_no_number_is_an_error_and_nothing_is_written(tmp_path, is_target):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    numbers, texts = pa.table({"key": [1, 2]}), pa.table({"key": ["1", "x"]})
    log.append(texts if is_target else numbers)
    merge = log.merge(numbers if is_target else texts, ["key"]).when_matched_delete()
    with pytest.raises(SchemaError) as raised:
        merge.execute()
    assert raised.value.kind == "CAST_INVALID_INPUT"
    assert ("t.key" if is_target else "s.key") in str(raised.value)
    assert log.snapshot().version == 0


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (pa.array([True]), pa.array([1])),
        (pa.array([1]), pa.array(_DAYS[:1], pa.date32())),
        (pa.array([b"1"]), pa.array(["1"])),
    ],
)
def test_types_that_are_not_cast_to_each_other_are_refused(tmp_path, target, source):
    with pytest.raises(OptimistError) as raised:
        _matched(tmp_path, target, source)
    assert isinstance(raised.value, UsageError)
    assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"


def test_a_text_that_only_spark_reads_as_a_time_is_refused(tmp_path):
    instants = pa.array(_INSTANTS, pa.timestamp("us", "UTC"))
    with pytest.raises(UsageError):
        _matched(tmp_path, instants, pa.array(["2024-03-31 01:00:00+01:00"]))
