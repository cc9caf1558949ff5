"""Values of parameters as SQL, as a Spark Connect client sends them; no server runs here."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace

import pytest
from pyspark.sql.connect import functions as sf

from optimist.core.errors import UsageError
from optimist.spark.drop_in.connect.parameters import SentParameters

EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
NOON = dt.datetime(2024, 7, 1, 12, 30, 0, 5, tzinfo=EAST)


def sql_of(value, conf=None):
    session = SimpleNamespace(client=SimpleNamespace(), conf=conf or {})
    # A column of Connect; of anything else PySpark makes one for the kind of session that there is.
    return SentParameters(spark=session, args={"x": sf.lit(value)}).sql_of(":x", 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-5, "-5"),
        (-(2**31), "-2147483648"),
        (2**31, "2147483648"),
        ([1, 2**40], "array(1, 1099511627776)"),
        (1.5, "1.5D"),
        (float("nan"), "CAST('NaN' AS DOUBLE)"),
        (Decimal("1.50"), "1.50BD"),
        ("a", "'a'"),
        (b"\x00x", "X'0078'"),
        (dt.date(1700, 1, 1), "DATE '1700-01-01'"),
        (NOON, "TIMESTAMP '2024-07-01 07:00:00.000005Z'"),
        (dt.timedelta(days=1, seconds=5), "INTERVAL '1 00:00:05.000000' DAY TO SECOND"),
        (dt.timedelta(seconds=-5), "INTERVAL '-0 00:00:05.000000' DAY TO SECOND"),
        ([1, 2], "array(1, 2)"),
        ([dt.date(2024, 1, 1)], "array(DATE '2024-01-01')"),
        (sf.struct(sf.lit(1).alias("x"), sf.lit("b").alias("d e")), "struct(1 AS x, 'b' AS `d e`)"),
        (sf.create_map(sf.lit("a"), sf.lit(1)), "map('a', 1)"),
        (sf.lit("1").cast("int"), "CAST('1' AS int)"),
        (sf.lit(1).alias("y"), "1"),
    ],
)
def test_a_value_is_sent_as_sql_of_its_type(value, text):
    assert sql_of(value) == text


def test_a_backslash_is_sent_as_bytes_where_the_session_takes_it_as_it_is():
    plain = {"spark.sql.parser.escapedStringLiterals": "true"}
    assert sql_of("a\\b", plain) == "CAST(X'615c62' AS STRING)"
    assert sql_of("a\\b") == r"'a\\b'"


@pytest.mark.parametrize(
    "column",
    [sf.col("a"), sf.upper(sf.lit("a")), sf.array(sf.lit(1), sf.col("a")), sf.col("a").cast("int")],
)
def test_what_is_not_made_of_constants_is_refused(column):
    with pytest.raises(UsageError) as caught:
        sql_of(column)
    assert caught.value.kind == "INVALID_SQL_ARG"


def test_parameters_are_found_by_name_or_by_place():
    session = SimpleNamespace(client=SimpleNamespace(), conf={})
    named = SentParameters(spark=session, args={"x": sf.lit(1)})
    placed = SentParameters(spark=session, args=[sf.lit(1), sf.lit(2)])
    assert (named.sql_of(":x", 0), named.sql_of(":y", 0), named.sql_of("?", 0)) == ("1", None, None)
    assert [placed.sql_of("?", place) for place in range(3)] == ["1", "2", None]
    assert placed.sql_of(":x", 0) is None
