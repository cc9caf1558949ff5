"""Filters of a Python data source as predicates; no session runs here."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from math import inf, nan
from types import SimpleNamespace

import pytest
from pyspark.sql import datasource

from optimist.core.predicates import Predicate
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from optimist.spark.arrow.filters import pushed_predicate

SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("p", PrimitiveType("string")),
        StructField("st", StructType((StructField("x", PrimitiveType("long")),))),
    )
)
ID, P, X = ("id",), ("p",), ("st", "x")


def leaf(name, attribute, *value):
    """Spark's own filter, or what stands in for it where PySpark pushes none yet."""
    fields = dict(zip(("attribute", "value"), (attribute, *value), strict=False))
    made = getattr(datasource, name, None) or type(name, (SimpleNamespace,), {})
    return made(**fields)


def negated(child):
    return (getattr(datasource, "Not", None) or type("Not", (SimpleNamespace,), {}))(child=child)


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        (leaf("EqualTo", ID, 1), "id = 1"),
        (leaf("EqualNullSafe", X, 1), "st.x <=> 1"),
        (leaf("LessThan", ID, 1.5), "id < 1.5D"),
        (leaf("LessThanOrEqual", ID, Decimal("1E+2")), "id <= 100BD"),
        (leaf("GreaterThan", ID, dt.date(2024, 1, 1)), "id > DATE'2024-01-01'"),
        (
            leaf("GreaterThanOrEqual", ID, dt.datetime(2024, 1, 1)),
            "id >= TIMESTAMP_NTZ'2024-01-01 00:00:00'",
        ),
        (
            leaf("EqualTo", ID, dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)),
            "id = TIMESTAMP'2024-01-01 00:00:00Z'",
        ),
        (negated(leaf("In", P, ("a", "b"))), "NOT (p IN ('a', 'b'))"),
        (leaf("IsNull", P), "p IS NULL"),
        (leaf("IsNotNull", P), "NOT (p IS NULL)"),
        (leaf("StringStartsWith", P, "a"), "startswith(p, 'a')"),
        (leaf("StringEndsWith", P, "a"), "p LIKE '%a'"),
        (leaf("StringContains", P, "a"), "p LIKE '%a%'"),
    ],
)
def test_filters_become_predicates(pushed, expected):
    found = pushed_predicate([pushed], SCHEMA)
    assert str(found).replace(" '", "'") == str(Predicate.parse(expected)).replace(" '", "'")


@pytest.mark.parametrize(
    "pushed",
    [
        leaf("EqualTo", ID, nan),
        negated(leaf("LessThan", ID, inf)),
        leaf("EqualTo", ID, Decimal("NaN")),
        leaf("EqualTo", ID, b"a"),
        leaf("EqualTo", ID, None),
        leaf("In", ID, (1, None)),
        leaf("In", ID, ()),
        leaf("StringStartsWith", P, 1),
        leaf("EqualTo", ("gone",), 1),
        object(),
        negated(object()),
    ],
)
def test_what_is_not_understood_is_left_out(pushed):
    assert pushed_predicate([pushed, leaf("EqualTo", ID, 1)], SCHEMA) == Predicate.parse("id = 1")
