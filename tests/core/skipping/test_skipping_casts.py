"""Comparisons of casts: what is known of the bare column, and that it is never too much."""

import datetime as dt
import operator
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.errors import UsageError
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.casts import without_cast
from optimist.core.predicates.tree import CastComparison, Column, Literal
from optimist.core.schema.types import DecimalType, PrimitiveType
from optimist.core.values.time_zones import session_zone

UTC = dt.timezone.utc
ROWS = pa.table(
    {
        "i": pa.array([1, 2, None], pa.int32()),
        "n": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(5, 2)),
        "f": pa.array([0.5, float("nan"), None], pa.float32()),
        "d": pa.array([dt.date(2024, 1, 1), dt.date(1899, 12, 31), None]),
        "t": pa.array(
            [dt.datetime(2024, 1, 1, 23, 59, tzinfo=UTC), dt.datetime(1969, 7, 1, tzinfo=UTC), None]
        ),
        "c": pa.array([dt.datetime(2024, 1, 1, 23, 59), dt.datetime(1969, 7, 1), None]),
        "s": ["2024-01-01", "x", None],
    }
)


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("CAST(i AS BIGINT) = 2", [False, True, None]),
        ("2.5 > CAST(i AS BIGINT)", [True, True, None]),
        ("CAST(i AS DOUBLE) <> 1.0D", [False, True, None]),
        ("CAST(i AS DECIMAL(12, 2)) >= 1.5", [False, True, None]),
        ("CAST(i AS BIGINT) < 3000000000", [True, True, None]),
        ("NOT (CAST(i AS SHORT) = 1)", [False, True, None]),
        ("CAST(i AS DECIMAL(5, 2)) = 1", [True, False, None]),
        ("CAST(n AS DECIMAL(9, 3)) = 1.5", [True, False, None]),
        ("CAST(n AS DECIMAL(9, 1)) = 1.5", [True, False, None]),
        ("CAST(n AS INT) = 1", [True, False, None]),
        ("CAST(f AS DOUBLE) > 0.25", [True, True, None]),
        ("CAST(d AS TIMESTAMP) > TIMESTAMP '2023-12-31 12:00:00'", [True, False, None]),
        ("CAST(d AS TIMESTAMP_NTZ) = TIMESTAMP_NTZ '1899-12-31 00:00:00'", [False, True, None]),
        ("CAST(t AS DATE) = DATE '2024-01-01'", [True, False, None]),
        ("to_date(t) <> '2024-01-01'", [False, True, None]),
        ("to_date(t) BETWEEN '1969-07-01' AND '1970-01-01'", [False, True, None]),
        ("date(c) < '2024-01-01'", [False, True, None]),
        ("NOT (date(c) < '2024-01-01')", [True, False, None]),
        ("to_date(c) IN ('2024-01-01', '2024-01-02')", [True, False, None]),
        ("to_date(c) IN ('2024-01-01', NULL)", [True, None, None]),
        ("to_date(c) = NULL", [None, None, None]),
        ("to_date(t, 'yyyy') = '2024-01-01'", None),
        ("CAST(s AS TIMESTAMP) = '2024-01-01'", None),
        ("CAST(i AS STRING) = '1'", [True, False, None]),
    ],
)
def test_a_cast_is_judged_as_spark_does_or_not_at_all(sql, answer):
    found = evaluate(Predicate.parse(sql), ROWS)
    assert (None if found is None else found.to_pylist()) == answer


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo", "+05:00"])
@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("CAST(d AS TIMESTAMP) = TIMESTAMP '2024-01-01 00:00:00'", "date"),
        ("CAST(d AS TIMESTAMP) > TIMESTAMP '2023-12-31 17:00:00'", "date"),
        ("CAST(d AS TIMESTAMP) < TIMESTAMP '2024-01-01 20:00:00'", "date"),
        ("CAST(c AS TIMESTAMP) = TIMESTAMP '2024-01-01 23:59:00'", "timestamp_ntz"),
    ],
)
def test_a_condition_without_its_cast_means_the_same_in_every_zone(zone, sql, kind):
    found = without_cast(Predicate.parse(sql), PrimitiveType(kind), session_zone(zone))
    if found is None:
        assert (kind, zone[0]) != ("timestamp_ntz", "+")  # only clocks that change lose the order
        return
    answers = [evaluate(found, ROWS, zone=other).to_pylist() for other in ("UTC", zone)]
    assert answers[0] == answers[1] == evaluate(Predicate.parse(sql), ROWS, zone=zone).to_pylist()


def test_the_day_of_an_instant_is_that_of_the_sessions_zone():
    late = Predicate.parse("CAST(t AS DATE) = DATE '2024-01-02'")
    assert evaluate(late, ROWS).to_pylist() == [False, False, None]
    assert evaluate(late, ROWS, zone="Europe/Berlin").to_pylist() == [True, False, None]


def test_a_day_that_has_two_midnights_is_left_alone_and_one_without_begins_later():
    for zone, day, is_known in (
        ("America/Havana", dt.date(2023, 11, 5), False),
        ("Africa/Cairo", dt.date(2023, 4, 28), True),
    ):
        leaf = CastComparison("=", Column(("t",)), "date", Literal(day, "date"))
        found = without_cast(leaf, PrimitiveType("timestamp"), session_zone(zone))
        assert (found is not None) == is_known
        before = CastComparison("<", leaf.column, "date", Literal(dt.date(2023, 3, 1), "date"))
        assert without_cast(before, PrimitiveType("timestamp"), session_zone(zone)) is not None
    # In Cairo, clocks went from midnight to 01:00.
    assert "t >= TIMESTAMP '2023-04-27 22:00:00Z'" in str(found)


def test_days_at_the_ends_of_the_calendar_are_no_error():
    assert evaluate(Predicate.parse("to_date(t) > '9999-12-31'"), ROWS).to_pylist() == [
        False,
        False,
        None,
    ]
    first = evaluate(Predicate.parse("to_date(t) > '0001-01-01'"), ROWS)
    assert first.to_pylist() == [True, True, None]


ARROW = {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32()}
WIDER = {
    "byte": ("byte", "short", "integer", "long", "float", "double", "decimal(5,2)"),
    "short": ("short", "integer", "long", "float", "double", "decimal(7,2)"),
    "integer": ("integer", "long", "double", "decimal(12,2)"),
}
COMPARE = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@settings(deadline=None)
@given(
    st.sampled_from([(source, target) for source in WIDER for target in WIDER[source]]),
    st.sampled_from(sorted(COMPARE)),
    st.integers(-300, 300),
    st.booleans(),
    st.lists(st.integers(-128, 127), max_size=5),
)
def test_an_integers_cast_compares_as_the_integer(types, op, bound, is_whole, values):
    source, target = types
    right = Literal(bound, "integer") if is_whole else Literal(Decimal(bound) / 4, "decimal")
    leaf = CastComparison(op, Column(("a",)), target, right)
    found = evaluate(leaf, pa.table({"a": pa.array(values, ARROW[source])}))
    assert found.to_pylist() == [COMPARE[op](value, right.value) for value in values]


def test_texts_of_casts_parse_back():
    for sql in ("CAST(a.b AS BIGINT) < 5", "CAST(`a b` AS DECIMAL(9,2)) = 1.5BD"):
        parsed = Predicate.parse(sql)
        assert isinstance(parsed, CastComparison)
        assert str(parsed) == sql
        assert Predicate.parse(str(parsed)) == parsed
    decimal = Predicate.parse("CAST(a AS DECIMAL) = 1")
    assert decimal == CastComparison("=", Column(("a",)), "decimal(10,0)", Literal(1, "integer"))
    with pytest.raises(UsageError):
        Predicate.parse("CAST(a AS DECIMAL(50, 2)) = 1")
    assert without_cast(decimal, DecimalType(10, 0), UTC) is not None
