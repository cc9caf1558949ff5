"""What `DeltaLog.update` and `.merge` compute without Spark is what Spark computes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from optimist.core.errors import SchemaError, UsageError
from optimist.core.local.stored_values import stored_as
from optimist.core.local.values import parse_value
from optimist.core.schema.arrow_types import from_arrow_schema, to_arrow_schema
from optimist.core.schema.types import data_type_from_json

UTC = dt.timezone.utc
COLUMNS = {
    "y": (pa.int8(), [-128, 127, 0, None]),
    "t": (pa.int16(), [-(2**15), 2**15 - 1, 7, None]),
    "i": (pa.int32(), [-(2**31), 2**31 - 1, -1, None]),
    "l": (pa.int64(), [-(2**62), 2**53 + 1, 5, None]),
    "x": (pa.float64(), [float("nan"), -0.0, 1e300, None]),
    "f": (pa.float32(), [float("inf"), 0.1, -0.0, None]),
    "d": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("99999999.99"), Decimal(0), None]),
    "s": (pa.string(), ["", "é😀", "a'b", None]),
    "o": (pa.bool_(), [True, False, True, None]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31), None]),
    "at": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1900, 1, 1, tzinfo=UTC), dt.datetime(2024, 2, 29, 1, tzinfo=UTC), None, None],
    ),
    "st": (
        pa.struct([("a", pa.int32()), ("b.c", pa.string())]),
        [{"a": 1, "b.c": "x"}, None, {"a": None, "b.c": None}, {"a": -1, "b.c": ""}],
    ),
}
ROWS = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})
SCHEMA = from_arrow_schema(ROWS.schema)

VALUES = [
    *("1", "-1", "2147483648", "1.50", "-0.0D", "1e3", "1.5F", "true", "NULL"),
    *(r"'it\'s'", "''", "DATE '0001-01-01'", "TIMESTAMP '2024-02-29 01:02:03.000004'"),
    *("i", "l", "x", "f", "d", "s", "o", "day", "at", "st.a", "st.`b.c`", "I", "ST.A"),
    *("3L", "-3L", "2S", "-4Y", "1.5BD", "-1.50BD", "1.5D", "i + -3L", "y * 2S", "y + 0Y"),
    *("t + 1", "y * (t + 0)", "t - y", "l + i", "l - 1", "y + t * 2", "-1 * t", "(y + 1) * 3"),
    "CASE WHEN i < 0 THEN 'low' WHEN i > 5 THEN 'high' END",
    "CASE WHEN o THEN y ELSE l END",
    "CASE WHEN l = 5 THEN t * 2 ELSE t END",
    "CASE WHEN y = 127 THEN t ELSE y END",
    "if(s = '', 'none', s)",
    "if(i IS NULL, 0, i)",
    "if(NULL, 1, 2)",
    "coalesce(s, 'none')",
    "coalesce(y, t, l)",
    "coalesce(NULL, i, 0)",
    "coalesce(st.a, i)",
    "concat(s, '-', s)",
    *("year(day)", "month(day)", "dayofmonth(day)", "day(DATE '2024-02-29')"),
    "s || 'x' || st.`b.c`",
    "CAST(i AS BIGINT)",
    "CAST(y AS STRING)",
    "CAST(l AS DOUBLE)",
    "CAST(t AS INT)",
    "CAST(o AS STRING)",
    "CAST(f AS DOUBLE)",
    "CAST(d AS DECIMAL(20,4))",
    "CAST(y AS DECIMAL(5,2))",
    "CAST('12' AS INT)",
    "CAST(1 AS STRING)",
    "CAST(NULL AS INT)",
]
MISFITS = [
    "y * 2Y",
    "i + 1",
    "y + y",
    "t * t",
    "l * 4",
    "CAST(i AS SMALLINT)",
    "CAST(l AS INT)",
]
STORED = {
    "byte": ["1", "-128", "'12'"],
    "long": ["i", "t", "2147483648", "1.0"],
    "double": ["l", "i", "1", "1.5", "'1.5'", "f"],
    "float": ["1", "1.5D", "-0.0D", "-3L", "2S"],
    "decimal(3,0)": ["y", "CAST(y AS BIGINT)"],
    "decimal(38,30)": ["y", "t"],
    "decimal(20,4)": ["d", "i", "1", "1.5", "'7.25'"],
    "string": ["i", "o", "1", "true", "DATE '2024-01-01'"],
    "date": ["'2024-02-29'", "day"],
    "timestamp": ["at", "TIMESTAMP_NTZ '2024-02-29 00:00:00'"],
}


def computed(sql: str, target: str | None = None) -> list[object]:
    value = parse_value(sql, SCHEMA)
    if target is not None:
        value = stored_as(value, data_type_from_json(target), sql)
    found = value.compute(ROWS)
    return [repr(item) for item in found.to_pylist()]


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(ROWS.cast(to_arrow_schema(SCHEMA))).coalesce(1)


def by_spark(frame, texts: list[str]) -> list[list[object]]:
    columns = [f"{text} AS c{at}" for at, text in enumerate(texts)]
    found = frame.selectExpr(*columns).toArrow()
    return [[repr(item) for item in column.to_pylist()] for column in found.columns]


@pytest.mark.again
def test_values_are_those_that_spark_computes(frame):
    expected = by_spark(frame, VALUES)
    found = {sql: as_spark_shows(computed(sql)) for sql in VALUES}
    wrong = {
        sql: (found[sql], right)
        for sql, right in zip(VALUES, map(as_spark_shows, expected), strict=True)
        if found[sql] != right
    }
    assert wrong == {}


def as_spark_shows(values: list[object]) -> list[object]:
    """Times alike, whatever object stands for UTC."""
    utc = "tzinfo=datetime.timezone.utc"
    return [str(item).replace("tzinfo=<UTC>", utc).replace("zoneinfo.", "") for item in values]


@pytest.mark.again
def test_values_that_do_not_fit_are_errors_as_in_spark(frame):
    for sql in MISFITS:
        with pytest.raises(SchemaError):
            computed(sql)
        with pytest.raises(Exception, match="OVERFLOW"):
            frame.selectExpr(sql).collect()


def test_values_are_stored_as_spark_casts_them(frame):
    pairs = [(sql, target) for target, texts in STORED.items() for sql in texts]
    expected = by_spark(frame, [f"CAST({sql} AS {target})" for sql, target in pairs])
    wrong, refused = {}, []
    for (sql, target), right in zip(pairs, expected, strict=True):
        try:
            found = as_spark_shows(computed(sql, target))
        except UsageError:  # only Spark knows it: that is never wrong
            refused.append((sql, target))
            continue
        if found != as_spark_shows(right):
            wrong[sql, target] = (found, right)
    assert wrong == {}
    assert len(refused) < len(pairs) / 3, refused
