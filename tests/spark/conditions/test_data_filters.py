"""Filters of a query, as Spark has analysed them, become predicates that skip files."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.predicates.tree import In, Predicate
from optimist.core.schema.column_paths import logical_path, named_path
from optimist.spark import read, write
from optimist.spark.conditions.connector_predicates import ConnectorPredicates
from optimist.spark.conditions.data_filters import data_predicate
from optimist.spark.session.jvm import Jvm, iterate


def filters_of(spark, path, condition):
    """The predicate that the data filters of a query become."""
    plan = read(spark, path).where(condition)._jdf.queryExecution().sparkPlan()
    (scan,) = iterate(plan.collectLeaves())
    schema = DeltaLog.for_path(path).snapshot().schema
    return data_predicate(iterate(scan.dataFilters()), schema, logical_path)


@pytest.fixture(scope="module")
def typed(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("typed") / "table")
    frame = spark.sql(
        "SELECT 1L AS i, 'a' AS s, 1.5D AS f, CAST(1.5 AS DECIMAL(10, 2)) AS dec, "
        "DATE '2024-01-01' AS d, TIMESTAMP '2024-01-01 00:00:00' AS ts, "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00' AS n, named_struct('x', 1, 'a-b', 2) AS st, "
        "X'01' AS bin, true AS b"
    )
    write(frame, path)
    return path


@pytest.mark.again
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i = 1", "i = 1"),
        ("s = '1'", "s = '1'"),
        ("f > 1.5", "f > 1.5D"),
        ("dec < 2.25", "dec < 2.25"),
        ("d >= DATE '1901-01-01'", "d >= DATE'1901-01-01'"),
        (
            "ts = TIMESTAMP '2024-06-01 12:00:00.123456'",
            "ts = TIMESTAMP'2024-06-01 12:00:00.123456Z'",
        ),
        ("n = TIMESTAMP_NTZ '2024-06-01 12:00:00.5'", "n = TIMESTAMP_NTZ'2024-06-01 12:00:00.5'"),
        ("st.x = 1", "st.x = 1"),
        ("st.`a-b` = 1", "st.`a-b` = 1"),
        ("i IN (1, 2)", "i IN (1, 2)"),
        ("s LIKE 'a%'", "startswith(s, 'a')"),
        ("i = 1 OR s = 'b'", "i = 1 OR s = 'b'"),
        ("NOT (i IN (1, 2))", "NOT (i IN (1, 2))"),
        ("i <=> 1", "i <=> 1"),
        ("i IS NULL", "i IS NULL"),
        ("f = double('NaN')", "f = CAST('NaN' AS DOUBLE)"),
        ("d > DATE '1500-01-01'", "d > DATE'1500-01-01'"),
        ("ts > TIMESTAMP '1880-01-01 00:00:00'", "ts > TIMESTAMP'1880-01-01 00:00:00Z'"),
        ("s LIKE '%a%'", "s LIKE '%a%'"),
        ("s LIKE '%a'", "s LIKE '%a'"),
        ("ST.X = st.`a-b`", "st.x = st.`a-b`"),
        ("(i = 1 OR s = 'b') <=> true", "(i = 1 OR s = 'b') IS TRUE"),
        ("b", "b = TRUE"),
    ],
)
def test_filters_that_spark_can_translate_become_predicates(spark, typed, condition, expected):
    conjuncts = set(map(str, filters_of(spark, typed, condition).conjuncts()))
    wanted = set(map(str, Predicate.parse(expected).conjuncts()))
    assert wanted <= conjuncts
    assert all("IS NULL" in extra for extra in conjuncts - wanted)


def test_predicates_of_the_connector_api_say_the_same(spark, typed):
    """PySpark 4.0 gives them to the arrow plane."""
    known = (
        "i > 1 AND NOT (s <=> 'it''s' OR dec <= 2.25) AND f < double('NaN') AND b = true AND "
        "d IN (DATE '2024-01-01', NULL) AND (ts >= TIMESTAMP '2024-06-01 12:00:00.5' OR n < "
        "TIMESTAMP_NTZ '2024-06-01 12:00:00') AND st.`a-b` = 1 AND s LIKE 'a%' AND s LIKE '%b' "
        "AND contains(s, 'c') AND (bin IS NULL OR i IS NOT NULL)"
    )
    for condition, is_exact in ((known, True), (f"{known} AND i % 2 = 1", False)):
        frame = read(spark, typed).where(condition)
        expression = frame._jdf.queryExecution().optimizedPlan().condition()
        builder = Jvm.of(spark).catalyst.util.V2ExpressionBuilder(expression, True)
        schema = DeltaLog.for_path(typed).snapshot().schema
        wanted = data_predicate([expression], schema, named_path)
        predicate = builder.buildPredicate().get()
        found = data_predicate([predicate], schema, named_path, ConnectorPredicates)
        assert (str(found), found.is_exact) == (str(wanted), is_exact)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("i", [*range(11), None]),
        ("s", ["", "null", ",", "a b", "*", *map(str, range(10))]),
        ("s", ["", "null", None, *map(str, range(10))]),
        ("d", [dt.date(1500, 1, 1), *(dt.date(2024, 1, day) for day in range(1, 12))]),
        ("dec", [Decimal(n) / 4 for n in range(12)]),
    ],
)
def test_long_lists_arrive_whole(spark, typed, column, values):
    found = filters_of(spark, typed, sf.col(column).isin(*values))
    (listed,) = [part for part in found.conjuncts() if isinstance(part, In)]
    assert {item.value for item in listed.values} == set(values)


def test_lists_of_thousands_arrive_whole(spark, typed):
    found = filters_of(spark, typed, f"i IN ({', '.join(map(str, range(3000)))})")
    (listed,) = [part for part in found.conjuncts() if isinstance(part, In)]
    assert {item.value for item in listed.values} == set(range(3000))


def test_lists_whose_texts_run_into_each_other_skip_nothing(spark, typed):
    values = ["a\0,b", *map(str, range(12))]
    found = filters_of(spark, typed, sf.col("s").isin(*values))
    assert all("IS NULL" in str(part) for part in found.conjuncts())


@pytest.mark.parametrize(
    "condition",
    [
        "i + 1 = 2",
        "s RLIKE 'a'",
        "bin = X'01'",
        "upper(s) = 'A'",
        "i = 1 OR length(s) = 1",
        "CAST(st AS STRUCT<`a-b`: INT, x: INT>).x = 1",
        "NOT (i = 1 AND length(s) = 1)",
        "d > DATE '+12024-01-01'",
    ],
)
def test_filters_that_are_not_understood_skip_nothing(spark, typed, condition):
    conjuncts = filters_of(spark, typed, condition).conjuncts()
    assert all("IS NULL" in str(part) for part in conjuncts)


def test_filters_on_instants_mean_the_same_in_every_zone(spark, typed, conf):
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    predicate = filters_of(spark, typed, "ts = TIMESTAMP '2024-06-01 12:00:00'")
    assert "2024-06-01 03:00:00" in str(predicate)
