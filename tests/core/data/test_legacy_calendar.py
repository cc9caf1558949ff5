"""Files with the dates of Spark 2 are read where they mean the same today, and else refused."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import TableError

UTC = dt.timezone.utc
SPARK_2 = {"org.apache.spark.version": "2.4.8"}
SPARK_3 = {"org.apache.spark.version": "3.5.1"}
ON_REQUEST = {**SPARK_3, "org.apache.spark.legacyDateTime": ""}
LAST_JULIAN, FIRST_GREGORIAN = dt.date(1582, 10, 4), dt.date(1582, 10, 15)


def table_of(path, column, footer):
    """A table whose only file is replaced by one with the same rows and this footer."""
    rows = pa.table({"d": column})
    log = DeltaLog.for_path(str(path))
    log.append(rows)
    (file,) = path.glob("*.parquet")
    pq.write_table(rows.replace_schema_metadata(footer), file)
    return log


def days(*values):
    return pa.array(values, pa.date32())


def times(*values):
    return pa.array(values, pa.timestamp("us", tz="UTC"))


OLD_TIME, NEW_TIME = dt.datetime(1899, 12, 31, tzinfo=UTC), dt.datetime(1900, 1, 1, tzinfo=UTC)
OLD = [
    days(dt.date(2020, 1, 1), None, LAST_JULIAN),
    times(OLD_TIME, None),
    pa.array([{"a": [LAST_JULIAN]}], pa.struct([("a", pa.list_(pa.date32()))])),
    pa.array([[("k", LAST_JULIAN)]], pa.map_(pa.string(), pa.date32())),
    pa.array([[LAST_JULIAN]], pa.large_list(pa.date32())),
    pa.array([[LAST_JULIAN]], pa.list_(pa.date32(), 1)),
]


@pytest.mark.parametrize("footer", [SPARK_2, ON_REQUEST])
@pytest.mark.parametrize("column", OLD)
def test_old_dates_of_the_old_calendar_are_refused_by_name(tmp_path, column, footer):
    log = table_of(tmp_path, column, footer)
    with pytest.raises(TableError, match="calendar of Spark 2") as caught:
        log.to_arrow()
    assert caught.value.kind == "OPTIMIST_LEGACY_CALENDAR"
    assert caught.value.fields["column"] == "d"


@pytest.mark.parametrize("footer", [SPARK_3, {}])
@pytest.mark.parametrize("column", OLD)
def test_old_dates_of_the_calendar_of_today_are_read(tmp_path, column, footer):
    assert table_of(tmp_path, column, footer).to_arrow()["d"].to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    ("version", "is_refused"), [("2.4.8", True), ("3.0.3", True), ("3.1.0", False)]
)
def test_old_times_of_the_old_physical_type_were_converted_one_version_longer(
    tmp_path, version, is_refused
):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"d": times(OLD_TIME)}))
    (file,) = tmp_path.glob("*.parquet")
    rows = pa.table({"d": times(OLD_TIME).cast(pa.timestamp("us"))})
    rows = rows.replace_schema_metadata({"org.apache.spark.version": version})
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)
    if is_refused:
        with pytest.raises(TableError, match="calendar of Spark 2"):
            log.to_arrow()
    else:
        assert log.to_arrow()["d"].to_pylist() == [OLD_TIME]


@pytest.mark.parametrize("column", [days(FIRST_GREGORIAN, None), times(NEW_TIME, None)])
def test_dates_that_are_the_same_in_both_are_read_from_old_files(tmp_path, column):
    assert table_of(tmp_path, column, SPARK_2).to_arrow()["d"].to_pylist() == column.to_pylist()


def converted(path, column):
    path.mkdir()
    pq.write_table(column, path / "x.parquet")
    log = DeltaLog.for_path(str(path))
    log.convert()
    return log


def cloned(path, column):
    path.mkdir()
    pq.write_table(column, path / "x.parquet")
    log = DeltaLog.for_path(f"{path}_clone")
    DeltaLog.for_path(str(path)).clone(log.table_path, source_format="parquet", is_shallow=True)
    return log


def recomputed(path, column):
    log = table_of(path, column["d"], column.schema.metadata)
    log.recompute_statistics()
    return log


@pytest.mark.parametrize("make", [converted, cloned, recomputed])
@pytest.mark.parametrize("footer", [SPARK_2, ON_REQUEST, SPARK_3])
def test_old_dates_of_the_old_calendar_are_no_bounds(tmp_path, make, footer):
    is_old = footer is not SPARK_3
    for number, column in enumerate([days(LAST_JULIAN, None), times(OLD_TIME, NEW_TIME)]):
        rows = pa.table({"d": column}).replace_schema_metadata(footer)
        log = make(tmp_path / f"t{number}", rows)
        assert log.files("d = '1000-01-01'").num_rows == is_old
        assert log.files("d IS NULL").num_rows == column.null_count
    for number, column in enumerate([days(FIRST_GREGORIAN), times(NEW_TIME)]):
        rows = pa.table({"d": column}).replace_schema_metadata(footer)
        assert make(tmp_path / f"n{number}", rows).files("d = '1000-01-01'").num_rows == 0
