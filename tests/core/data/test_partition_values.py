"""Partition values: text to typed columns and back, directories, and the vectors of spec 13."""

import datetime as dt
import math
from decimal import Decimal
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.data.hive_names import HIVE_NULL, escape_hive, unescape_hive
from optimist.core.data.partition_values import (
    canonical_partition_value,
    parse_partition_value,
    partition_column_of,
    partition_columns_of,
    partition_directory,
    partition_scalar,
    partition_schema,
    serialize_partition_value,
    serialize_partition_values,
    uri_reference,
    value_for_text,
)
from optimist.core.data.wide_timestamps import date_text, days_since_1970
from optimist.core.errors import SchemaError, StorageError, TableError
from optimist.core.schema.types import DecimalType, PrimitiveType, StructField, StructType

UTC = dt.timezone.utc


def kind(name):
    return PrimitiveType(name) if isinstance(name, str) else name


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("string", "a b", "a b"),
        ("integer", "-7", -7),
        ("long", str(2**63 - 1), 2**63 - 1),
        ("short", "300", 300),
        ("byte", "-128", -128),
        ("double", "1.5", 1.5),
        ("float", "NaN", math.nan),
        ("double", "-Infinity", -math.inf),
        ("boolean", "TRUE", True),
        ("date", "1500-01-01", dt.date(1500, 1, 1)),
        ("binary", "é", "é".encode()),
        (DecimalType(5, 2), "1.5", Decimal("1.50")),
        ("timestamp", "2024-01-02T03:04:05.678900Z", dt.datetime(2024, 1, 2, 3, 4, 5, 678900, UTC)),
        ("timestamp", "2024-01-02 03:04:05", dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("timestamp", "1850-01-02 03:04:05.5", dt.datetime(1850, 1, 2, 3, 4, 5, 500000, UTC)),
        ("timestamp_ntz", "2024-01-02 03:04:05.1", dt.datetime(2024, 1, 2, 3, 4, 5, 100000)),
        ("string", "", None),
        ("integer", "", None),
        ("date", None, None),
    ],
)
def test_text_becomes_the_value_of_its_type(type_name, text, value):
    parsed = parse_partition_value(text, kind(type_name))
    assert parsed == value or (isinstance(value, float) and math.isnan(parsed))


@pytest.mark.parametrize(
    ("type_name", "value", "text"),
    [
        ("string", "", None),
        ("string", None, None),
        ("boolean", True, "true"),
        ("long", -5, "-5"),
        ("double", 1.5, "1.5"),
        ("double", math.nan, "NaN"),
        ("double", -math.inf, "-Infinity"),
        (DecimalType(5, 2), Decimal("1.50"), "1.50"),
        ("date", dt.date(1500, 1, 1), "1500-01-01"),
        ("timestamp", dt.datetime(2024, 1, 2, tzinfo=UTC), "2024-01-02T00:00:00.000000Z"),
        (
            "timestamp",
            dt.datetime(2024, 1, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            "2024-01-02T00:00:00.000000Z",
        ),
        ("timestamp_ntz", dt.datetime(2024, 1, 2, 3, 4, 5, 100000), "2024-01-02 03:04:05.1"),
        ("timestamp_ntz", dt.datetime(2024, 1, 2), "2024-01-02 00:00:00"),
        ("binary", b"ab", "ab"),
    ],
)
def test_values_are_written_as_the_protocol_writes_them(type_name, value, text):
    assert serialize_partition_value(value, kind(type_name)) == text


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("integer", "x"),
        ("integer", "1.0"),
        ("integer", "1_0"),
        ("double", "1_000"),
        ("float", "1_000.5"),
        ("double", "\u0661"),
        ("double", "0x1p3"),
        (DecimalType(9, 1), "1_000"),
        (DecimalType(9, 1), "\u0661"),
        ("timestamp", "\u0662024-01-01 00:00:00"),
        ("byte", "128"),
        ("date", "2024-02-30"),
        ("timestamp", "yesterday"),
        ("boolean", "1"),
        (DecimalType(3, 1), "1.25"),
        (DecimalType(3, 1), "100"),
    ],
)
def test_text_that_does_not_fit_is_a_table_error_that_names_the_column(type_name, text):
    with pytest.raises(TableError) as caught:
        parse_partition_value(text, kind(type_name), column="p")
    assert caught.value.kind == "OPTIMIST_MALFORMED_PARTITION_VALUE"
    assert dict(caught.value.fields) == {"column": "p", "value": text}


def test_two_spellings_of_one_timestamp_have_one_canonical_form():
    stamp = PrimitiveType("timestamp")
    assert (
        canonical_partition_value("2024-01-02 01:00:00", stamp, zone="Europe/Berlin")
        == canonical_partition_value("2024-01-02T00:00:00.000000Z", stamp)
        == canonical_partition_value("2024-01-02 00:00:00.0", stamp)
        == "2024-01-02T00:00:00.000000Z"
    )
    assert canonical_partition_value("007", PrimitiveType("integer")) == "7"
    assert canonical_partition_value("", stamp) is None


typed_values = st.one_of(
    st.tuples(st.just("string"), st.text(st.characters(exclude_categories=("Cs",)), min_size=1)),
    st.tuples(st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("date"), st.dates()),
    st.tuples(st.just("timestamp"), st.datetimes(timezones=st.just(UTC))),
    st.tuples(st.just("timestamp_ntz"), st.datetimes()),
    st.tuples(st.just(DecimalType(12, 4)), st.decimals(-(10**7), 10**7, places=4)),
)


@given(typed_values)
def test_a_value_survives_its_text(typed):
    type_name, value = typed
    text = serialize_partition_value(value, kind(type_name))
    assert parse_partition_value(text, kind(type_name)) == value


@pytest.mark.parametrize(
    ("value", "directory", "path"),
    [
        ("a b", "p=a b", "p=a%20b"),
        ("a:b", "p=a%3Ab", "p=a%253Ab"),
        ("", f"p={HIVE_NULL}", f"p={HIVE_NULL}"),
        (None, f"p={HIVE_NULL}", f"p={HIVE_NULL}"),
        ("a/b%c=d", "p=a%2Fb%25c%3Dd", "p=a%252Fb%2525c%253Dd"),
        ("\x01\x7f", "p=%01%7F", "p=%2501%257F"),
        ("é", "p=é", "p=%C3%A9"),
    ],
)
def test_directories_and_paths_are_escaped_as_in_the_vectors(value, directory, path):
    assert partition_directory({"p": value}) == directory
    assert uri_reference(directory) == path


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1))
def test_a_directory_and_a_path_give_the_value_back(value):
    directory = escape_hive(value)
    assert "/" not in directory
    assert unescape_hive(directory) == (None if value == HIVE_NULL else value)
    assert unquote(uri_reference(directory)) == directory


def test_several_columns_make_nested_directories_in_order():
    assert partition_directory({"b": "1", "a": None}) == f"b=1/a={HIVE_NULL}"
    assert partition_directory({}) == ""


FIELDS = StructType(
    (
        StructField(
            "P", PrimitiveType("integer"), metadata={"delta.columnMapping.physicalName": "x"}
        ),
        StructField("day", PrimitiveType("date")),
        StructField("at", PrimitiveType("timestamp")),
    )
)


def listed(*rows, chunk=2):
    maps = pa.array([list(row.items()) for row in rows], pa.map_(pa.string(), pa.string()))
    chunks = [maps.slice(i, chunk) for i in range(0, len(maps), chunk)]
    return pa.table({"partitionValues": pa.chunked_array(chunks, maps.type)})


def test_the_map_column_becomes_typed_columns_by_logical_name():
    files = listed(
        {"x": "1", "day": "2024-01-01", "at": "2024-01-01 00:00:00"},
        {"x": "2", "day": "", "at": None},
        {"x": "1"},
        {"x": None, "day": "1890-05-05", "at": "2024-01-01T00:00:00.000000Z"},
    )
    columns = partition_columns_of(files, FIELDS)
    assert columns.schema == pa.schema(
        [("P", pa.int32()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))]
    )
    midnight = dt.datetime(2024, 1, 1, tzinfo=UTC)
    assert columns.to_pydict() == {
        "P": [1, 2, 1, None],
        "day": [dt.date(2024, 1, 1), None, None, dt.date(1890, 5, 5)],
        "at": [midnight, None, None, midnight],
    }
    assert partition_columns_of(files.slice(0, 0), FIELDS).num_rows == 0


def test_a_row_of_values_becomes_the_map_of_an_add():
    row = {"P": 1, "day": dt.date(2024, 1, 1)}
    assert serialize_partition_values(row, FIELDS) == {"x": "1", "day": "2024-01-01", "at": None}


def test_a_partition_column_that_the_schema_lacks_is_named():
    assert partition_schema(FIELDS, ["DAY", "p"]).names == ("day", "P")
    with pytest.raises(SchemaError) as caught:
        partition_schema(FIELDS, ["nope"])
    assert caught.value.fields["column"] == "nope"


FAR = [
    ("date", "+10000-01-01", 2932897),
    ("date", "10000-01-01", 2932897),
    ("date", "+294247-01-10", 106751991),
    ("date", "0000-02-29", -719469),
    ("date", "-0500-01-01", -902149),
    ("timestamp", "+10000-01-01T00:00:00.000000Z", 253402300800000000),
    ("timestamp", "+10000-01-01 01:00:00", 253402300800000000),
    ("timestamp_ntz", "+10000-01-01 00:00:00.5", 253402300800500000),
]


@pytest.mark.parametrize(("type_name", "text", "count"), FAR)
def test_dates_and_times_of_years_that_python_lacks_stay_in_arrow(type_name, text, count):
    field = StructField("p", PrimitiveType(type_name))
    maps = pa.array([[("p", text)], [("p", None)]], pa.map_(pa.string(), pa.string()))
    column = partition_column_of(pa.table({"partitionValues": maps}), field, zone="Europe/Berlin")
    width = pa.int32() if type_name == "date" else pa.int64()
    assert column.cast(width).to_pylist() == [count, None]
    scalar = partition_scalar(text, field.data_type, zone="Europe/Berlin")
    written = serialize_partition_value(value_for_text(scalar), field.data_type)
    assert partition_scalar(written, field.data_type).equals(scalar)
    assert written == canonical_partition_value(text, field.data_type, zone="Europe/Berlin")
    with pytest.raises(SchemaError) as caught:
        parse_partition_value(text, field.data_type, column="p")
    assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"


@given(st.dates(), st.integers(-40, 40))
def test_dates_are_counted_and_written_alike_in_every_cycle_of_the_calendar(date, cycles):
    year = date.year + 400 * cycles
    days = days_since_1970(year, date.month, date.day)
    assert days == (date - dt.date(1970, 1, 1)).days + 146_097 * cycles
    text = date_text(days)
    assert partition_scalar(text, PrimitiveType("date")).value == days
    if 1 <= year <= 9999:
        assert text == date.replace(year=year).isoformat()


@pytest.mark.parametrize(
    "text", ["+10000-02-30", "10000-13-01", "999999999-01-01", "+-10000-01-01"]
)
def test_what_is_no_date_of_any_year_is_damage(text):
    with pytest.raises(TableError) as caught:
        partition_scalar(text, PrimitiveType("date"), column="p")
    assert caught.value.kind == "OPTIMIST_MALFORMED_PARTITION_VALUE"


def test_a_table_with_partitions_past_9999_is_written_read_pruned_and_deleted_from(tmp_path):
    far = pa.array([2932897, 18262], pa.int32()).cast(pa.date32())
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"d": far, "x": [1, 2]}), partition_by=["d"])
    texts = [dict(row)["d"] for row in log.snapshot().files["partitionValues"].to_pylist()]
    assert sorted(texts) == ["+10000-01-01", "2020-01-01"]
    assert sorted(log.to_arrow()["d"].cast(pa.int32()).to_pylist()) == [18262, 2932897]
    assert log.to_arrow("d > DATE '2020-01-01'")["x"].to_pylist() == [1]
    assert log.count("d > DATE '9999-12-31'") == 1
    log.checkpoint()
    assert DeltaLog.for_path(str(tmp_path / "t")).to_arrow("x = 1")["x"].to_pylist() == [1]
    log.delete("d > DATE '9999-12-31'")
    assert log.to_arrow()["x"].to_pylist() == [2]
    assert deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_table()["x"].to_pylist() == [2]


@pytest.mark.parametrize(("value", "fits"), [("x" * 253, True), ("x" * 254, False), ("%" * 90, 0)])
def test_a_value_too_long_for_the_name_of_a_directory_is_told(tmp_path, value, fits):
    log = DeltaLog.for_path(tmp_path / "t", {})
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    log.create(schema, partition_by=["p"])
    rows = pa.table({"id": [1], "p": [value]}, schema)
    if fits:
        log.append(rows)
        assert log.to_arrow(f"p = '{value}'").to_pylist() == [{"id": 1, "p": value}]
        return
    with pytest.raises(StorageError) as caught:
        log.append(rows)
    assert caught.value.kind == "OPTIMIST_INVALID_PATH"
    assert caught.value.fields["column"] == "p"
    assert not list((tmp_path / "t").rglob("*.parquet"))
