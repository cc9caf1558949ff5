"""Evaluation over Arrow against a row-by-row model, and the rules that the model states."""

import datetime as dt
import itertools
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.predicates import Predicate, col, evaluate, may_be_true
from optimist.core.predicates.tree import (
    And,
    BooleanLiteral,
    Column,
    Comparison,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    NullSafeEqual,
    Or,
    StartsWith,
)
from predicate_trees import trees_of

UTC = dt.timezone.utc
TYPES = {
    "i": (pa.int32(), st.integers(-3, 3), "integer"),
    "l": (pa.int64(), st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]), "integer"),
    "d": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, -2.0, math.nan, math.inf]), "double"),
    "f": (pa.float32(), st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.inf]), "float"),
    "n": (pa.decimal128(5, 2), st.decimals(-3, 3, places=2), "decimal"),
    "s": (pa.string(), st.text("aé😀\n_%\\", max_size=3), "string"),
    "b": (pa.binary(), st.binary(max_size=2), "binary"),
    "t": (pa.date32(), st.dates(dt.date(1899, 12, 30), dt.date(1900, 1, 2)), "date"),
    "z": (
        pa.timestamp("us", "UTC"),
        st.datetimes(dt.datetime(1969, 12, 31), dt.datetime(1970, 1, 1), timezones=st.just(UTC)),
        "timestamp",
    ),
    "o": (pa.bool_(), st.booleans(), "boolean"),
}


def order_key(value):
    """Spark's order of numbers: NaN is above all else, and equal to itself."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def compare_model(op, left, right):
    if left is None or right is None:
        return None
    a, b = order_key(left), order_key(right)
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def like_model(parts, text):
    if not parts:
        return text == ""
    (wild, piece), rest = parts[0], parts[1:]
    if not wild:
        return text.startswith(piece) and like_model(rest, text[len(piece) :])
    if piece == "_":
        return bool(text) and like_model(rest, text[1:])
    return any(like_model(rest, text[start:]) for start in range(len(text) + 1))


def negate(value):
    return None if value is None else not value


def all_of(values):
    return False if False in values else None if None in values else True


def model(node, row):
    def value(operand):
        return row[operand.path[0]] if isinstance(operand, Column) else operand.value

    if isinstance(node, BooleanLiteral):
        return node.value
    if isinstance(node, And):
        return all_of([model(part, row) for part in node.parts])
    if isinstance(node, Or):
        return negate(all_of([negate(model(part, row)) for part in node.parts]))
    if isinstance(node, Not):
        return negate(model(node.child, row))
    if isinstance(node, IsTrue):
        return model(node.child, row) is True
    if isinstance(node, Comparison):
        return compare_model(node.op, value(node.left), value(node.right))
    if isinstance(node, NullSafeEqual):
        left, right = value(node.left), value(node.right)
        return left is right if left is None or right is None else compare_model("=", left, right)
    if isinstance(node, IsNull):
        return value(node.column) is None
    if isinstance(node, In):
        equal = [compare_model("=", value(node.column), item.value) for item in node.values]
        return negate(all_of([negate(item) for item in equal]))
    text = value(node.column)
    if text is None:
        return None
    return (
        text.startswith(node.prefix)
        if isinstance(node, StartsWith)
        else like_model(node.parts, text)
    )


@st.composite
def leaf(draw):
    name = draw(st.sampled_from(sorted(TYPES)))
    _, values, kind = TYPES[name]
    column = Column((name,))
    literal = st.none().map(lambda _: Literal(None, "null")) | values.map(
        lambda item: Literal(item, kind)
    )
    shape = draw(st.integers(0, 5))
    if shape == 0:
        return IsNull(column)
    if shape == 1:
        return In(column, tuple(draw(st.lists(literal, min_size=1, max_size=3))))
    if shape == 2:
        return NullSafeEqual(column, draw(literal))
    if shape == 3 and name == "s":
        return StartsWith(column, draw(values))
    if shape == 4 and name == "s":
        parts = draw(
            st.lists(st.sampled_from([(True, "%"), (True, "_"), (False, "a"), (False, "\n%")]))
        )
        return Like(column, tuple(parts))
    right = column if shape == 5 else draw(literal)
    return Comparison(draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="])), column, right)


predicates = trees_of(
    leaf() | st.sampled_from([Predicate.TRUE, Predicate.FALSE, BooleanLiteral(None)]), max_leaves=5
)
rows_strategy = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values, _) in TYPES.items()}),
    max_size=4,
)


def as_table(rows):
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, (kind, _, _) in TYPES.items()}
    )


@given(predicates, rows_strategy)
def test_evaluation_agrees_with_the_row_by_row_model(predicate, rows):
    answer = evaluate(predicate, as_table(rows))
    assert answer is not None
    assert answer.type == pa.bool_()
    assert answer.to_pylist() == [model(predicate, row) for row in rows]


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
def test_two_columns_with_nan_and_null_compare_as_in_spark(op):
    numbers = [None, math.nan, -math.inf, -0.0, 0.0, 1.5, math.inf]
    pairs = list(itertools.product(numbers, numbers))
    rows = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    answer = evaluate(Comparison(op, Column(("a",)), Column(("b",))), rows)
    assert answer.to_pylist() == [compare_model(op, a, b) for a, b in pairs]


@given(predicates, rows_strategy)
def test_what_is_true_may_be_true_and_the_rest_only_by_doubt(predicate, rows):
    coarse = may_be_true(predicate, as_table(rows)).to_pylist()
    exact = [model(predicate, row) is True for row in rows]
    assert all(maybe for maybe, is_true in zip(coarse, exact, strict=True) if is_true)
    has_doubt = "IS TRUE" in str(predicate)
    assert has_doubt or coarse == exact


@given(predicates, rows_strategy)
def test_the_text_of_a_predicate_means_the_same(predicate, rows):
    again = evaluate(Predicate.parse(str(predicate)), as_table(rows))
    assert again is not None
    assert again.to_pylist() == [model(predicate, row) for row in rows]


CASTS = pa.table(
    {
        "i": pa.array([1, 2, None], pa.int32()),
        "l": pa.array([2**53 + 1, 2, None], pa.int64()),
        "d": pa.array([1.0, math.nan, None], pa.float64()),
        "f": pa.array([0.1, math.nan, None], pa.float32()),
        "n": pa.array([Decimal("1.10"), Decimal("2.50"), None], pa.decimal128(10, 2)),
        "s": ["1", "x", None],
        "b": pa.array([b"a", b"\xff", None], pa.binary()),
        "t": [dt.date(2024, 3, 31), dt.date(1850, 1, 1), None],
        "z": pa.array(
            [dt.datetime(2024, 3, 30, 23), dt.datetime(2024, 3, 31, 1), None],
            pa.timestamp("us", "UTC"),
        ),
        "w": pa.array(
            [dt.datetime(2024, 3, 31), dt.datetime(2024, 3, 31, 1), None], pa.timestamp("us")
        ),
        "o": [True, False, None],
        "st": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())])),
    }
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i = '1'", [True, False, None]),
        ("i <= 1.5", [True, False, None]),
        ("i = 1.5", [False, False, None]),
        ("i <> 1.5", [True, True, None]),
        ("i > 1.5D", [False, True, None]),
        ("i < 99999999999", [True, True, None]),
        ("i <> -99999999999999999999999", [True, True, None]),
        ("i < CAST('NaN' AS DOUBLE)", [True, True, None]),
        ("i < 1.9", [True, False, None]),
        ("l > 2.5D", [True, False, None]),
        ("d = 1", [True, False, None]),
        ("d > 100", [False, True, None]),
        ("d = CAST('NaN' AS DOUBLE)", [False, True, None]),
        ("d >= '1.0'", [True, True, None]),
        ("f = 0.1F", [True, False, None]),
        ("f = 0.1", [False, False, None]),
        ("f > 0.1D", [True, True, None]),
        ("n = 1.1", [True, False, None]),
        ("n > 2.499", [False, True, None]),
        ("n < 100000000000", [True, True, None]),
        ("n = '2.5'", [False, True, None]),
        ("n = 2", [False, False, None]),
        ("n IN (1.1, 7)", [True, False, None]),
        ("b > X'61'", [False, True, None]),
        ("t = '2024-03-31'", [True, False, None]),
        ("t < '1900-1-1'", [False, True, None]),
        ("t < TIMESTAMP '2024-03-31 00:00:01'", [True, True, None]),
        ("t = TIMESTAMP '2024-03-31 00:00:01'", [False, False, None]),
        ("z >= DATE '2024-03-31'", [False, True, None]),
        ("z < '2024-03-31 01:00:00'", [True, False, None]),
        ("z = '2024-03-31T02:00:00+01:00'", [False, True, None]),
        ("w = DATE '2024-03-31'", [True, False, None]),
        ("w > TIMESTAMP '2024-03-31 00:00:00'", [False, True, None]),
        ("o = 'true'", [True, False, None]),
        ("NOT o", [False, True, None]),
        ("o IS TRUE", [True, False, False]),
        ("o IS NOT TRUE", [False, True, True]),
        ("st.X = 1", [True, None, None]),
        ("st IS NULL", [False, True, False]),
        ("st.x IS NULL", [False, True, True]),
        ("S = 's' OR NULL", [None, None, None]),
        ("i IN (1, NULL)", [True, None, None]),
        ("i NOT IN (1, NULL)", [False, None, None]),
        ("t IN ('2024-03-31')", [True, False, None]),
    ],
)
def test_constants_are_cast_as_spark_casts_them(sql, expected):
    answer = evaluate(Predicate.parse(sql), CASTS)
    assert answer is not None
    assert answer.to_pylist() == expected


@pytest.mark.parametrize(
    "sql",
    [
        "s = 1",
        "i = '1.5'",
        "i = 'x'",
        "i = '\u0661'",
        "d = '\u0661.5'",
        "t = '\uff12024-03-31'",
        "z = '2024-03-31 0\u0661:00:00'",
        "i IN ('01')",
        "i IN (1, '2')",
        "t IN ('2024-3-31')",
        "l = 9007199254740992D",
        "l IN (9007199254740992, 1.5D)",
        "l IN (9007199254740992, 1.5F)",
        "n = 1.1D",
        "f = '0.1'",
        "f = 16777217",
        "b = 'a'",
        "o = 1",
        "t = 'today'",
        "z = 'x'",
        "w = '2024-03-31T00:00:00Z'",
        "t < z",
        "missing = 1",
        "missing IS NULL",
        "st.y = 1",
        "soundex(s) = 'x'",
        "i = 1 AND rand() < 1",
    ],
)
def test_doubtful_casts_are_not_answered_and_may_be_true(sql):
    assert evaluate(Predicate.parse(sql), CASTS) is None
    assert may_be_true(Predicate.parse(sql), CASTS).to_pylist()[0] is True


def test_the_sessions_zone_decides_what_a_text_means():
    predicate = Predicate.parse("z >= '2024-03-31' AND z < DATE '2024-04-01'")
    assert evaluate(predicate, CASTS, zone="UTC").to_pylist() == [False, True, None]
    assert evaluate(predicate, CASTS, zone="Europe/Berlin").to_pylist() == [True, True, None]
    assert evaluate(predicate, CASTS, zone="+01:00").to_pylist() == [True, True, None]
    dates = Predicate.parse("t < TIMESTAMP '2024-03-30 23:30:00Z'")
    assert evaluate(dates, CASTS, zone="UTC").to_pylist() == [False, True, None]
    assert evaluate(dates, CASTS, zone="Europe/Berlin").to_pylist() == [True, True, None]
    clocks = Predicate.parse("w = TIMESTAMP '2024-03-31 00:00:00Z'")
    assert evaluate(clocks, CASTS, zone="+01:00").to_pylist() == [False, True, None]
    assert evaluate(clocks, CASTS, zone="Europe/Berlin") is None


@pytest.mark.parametrize(
    ("zone", "sql", "expected"),
    [
        # At 02:31 UTC the clocks went back from one minute after midnight to 23:01.
        ("America/St_Johns", "d < TIMESTAMP '2006-10-29 03:00:00Z'", [True, True, False]),
        ("America/St_Johns", "d >= TIMESTAMP '2006-10-29 02:30:00Z'", [False, True, True]),
        ("UTC", "d = TIMESTAMP '2006-10-29 00:00:00Z'", [False, True, False]),
    ],
)
def test_days_are_compared_with_an_instant_by_the_instants_at_which_they_begin(zone, sql, expected):
    days = pa.table({"d": [dt.date(2006, 10, day) for day in (28, 29, 30)]})
    assert evaluate(Predicate.parse(sql), days, zone=zone).to_pylist() == expected


def test_two_days_that_begin_at_one_instant_are_left_to_spark():
    # The clocks of Apia skipped the 30th.
    days = pa.table({"d": [dt.date(2011, 12, day) for day in (29, 30, 31)]})
    equal = Predicate.parse("d = TIMESTAMP '2011-12-30 10:00:00Z'")
    assert evaluate(equal, days, zone="Pacific/Apia") is None
    last = Predicate.parse("d <= TIMESTAMP '9999-12-31 23:00:00Z'")
    assert evaluate(last, days, zone="America/St_Johns").to_pylist() == [True] * 3


def test_chunked_dictionary_and_large_columns_are_read_alike():
    table = pa.table(
        {
            "c": pa.chunked_array([["a"], [], ["b", None]]),
            "d": pa.chunked_array([pa.array(["a", "b", None]).dictionary_encode()]),
            "g": pa.array(["a", "b", None], pa.large_string()),
        }
    )
    for name in table.column_names:
        assert evaluate(col(name) == "a", table).to_pylist() == [True, False, None]
        assert evaluate(col(name).isin(["b"]), table).to_pylist() == [False, True, None]
        assert evaluate(col(name).startswith("a"), table).to_pylist() == [True, False, None]


def test_columns_may_come_by_name_and_a_constant_fills_all_rows():
    assert evaluate(col("x") > 1, {"x": pa.array([1, 2])}).to_pylist() == [False, True]
    assert evaluate(Predicate.TRUE, {"x": pa.array([1, 2])}).to_pylist() == [True, True]
    assert evaluate(Predicate.parse("x > 1"), {"x": pa.array([], pa.int64())}).to_pylist() == []


def test_a_name_that_fits_two_columns_is_not_answered():
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "A"])
    assert evaluate(Predicate.parse("a = 1"), table).to_pylist() == [True]
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert evaluate(Predicate.parse("a = 1"), twice) is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i = 1 AND rand() < 0.5", [True, False, False]),
        ("i = 1 OR rand() < 0.5", [True, True, True]),
        ("NOT (i = 1 AND rand() < 0.5)", [True, True, True]),
        ("NOT (i = 1 OR rand() < 0.5)", [False, True, False]),
        ("NOT (i <=> 1)", [False, True, True]),
        ("i = NULL", [False, False, False]),
    ],
)
def test_opaque_parts_widen_and_null_is_not_true(sql, expected):
    assert may_be_true(Predicate.parse(sql), CASTS).to_pylist() == expected


@pytest.mark.parametrize("text", ["2024-01-01+05:00", "2024-01-01Z", "2024-01-01 UTC"])
@pytest.mark.parametrize("data_type", [pa.timestamp("us", "UTC"), pa.timestamp("us")])
def test_a_zone_stands_behind_a_time_only(text, data_type):
    rows = pa.table({"t": pa.array([dt.datetime(2024, 1, 1)], data_type)})
    for op in ("=", "<>", "<=>"):
        assert evaluate(Predicate.parse(f"t {op} '{text}'"), rows) is None
    assert evaluate(Predicate.parse(f"t IN ('{text}')"), rows) is None
    assert evaluate(Predicate.parse(f"t = CAST('{text}' AS TIMESTAMP)"), rows) is None


NO_ONE_TYPE = [
    # Each fits a common type with the column, and all of them together do not.
    (pa.decimal128(20, 0), f"d NOT IN ({'9' * 30}, 0.{'1' * 18})"),
    (pa.decimal128(38, 0), "d NOT IN (0.1)"),
    (pa.int64(), f"d NOT IN ({'9' * 25}, 0.{'1' * 15})"),
    (pa.decimal128(10, 0), f"d IN (1e0, {'1' * 16})"),
]


@pytest.mark.parametrize(("data_type", "sql"), NO_ONE_TYPE)
def test_a_list_is_cast_to_one_type(data_type, sql):
    rows = pa.table({"d": pa.array([Decimal(1), None], pa.decimal128(20, 0)).cast(data_type)})
    assert evaluate(Predicate.parse(sql), rows) is None
    assert evaluate(Predicate.parse("d NOT IN (1, 2)"), rows).to_pylist() == [False, None]


def test_decimals_of_different_scales_are_found_in_a_list():
    rows = pa.table({"d": pa.array([Decimal("1.10"), Decimal("2.22"), None], pa.decimal128(9, 2))})
    found = evaluate(Predicate.parse("d NOT IN (1.1, 2.2200, 3, 0.00001)"), rows)
    assert found.to_pylist() == [False, False, None]


REFUSED_BESIDE_NULL = [
    "m = NULL",
    "m <=> NULL",
    "m IN (NULL)",
    "k.m <> NULL",
    "CAST(b AS DATE) = NULL",
    "CAST(b AS DATE) IN (NULL)",
    "CAST(t AS BIGINT) NOT IN (NULL)",
    "CAST(k.i AS DATE) < NULL",
]


@pytest.mark.parametrize("sql", REFUSED_BESIDE_NULL)
def test_a_comparison_that_spark_refuses_is_not_null_beside_null(sql):
    pairs = pa.map_(pa.int32(), pa.int32())
    rows = pa.table(
        {
            "m": pa.array([[(1, 2)], None], pairs),
            "k": pa.array(
                [{"m": [(1, 2)], "i": 1}, None], pa.struct([("m", pairs), ("i", "int32")])
            ),
            "b": [True, None],
            "t": [dt.date(2024, 1, 1), None],
        }
    )
    assert evaluate(Predicate.parse(sql), rows) is None
    assert evaluate(Predicate.parse("t <> NULL AND CAST(t AS TIMESTAMP) = NULL"), rows) is not None


@pytest.mark.parametrize("data_type", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize(
    "sql",
    [
        "i <= 9223372036854775808",
        "i < 9223372036854775807.5",
        "NOT (i > 9223372036854775808)",
        "-9223372036854775809 <= i",
        "i BETWEEN -9223372036854775809 AND 9223372036854775808",
        "CAST(i AS BIGINT) >= -9223372036854775809",
    ],
)
def test_spark_finds_null_below_a_decimal_beyond_all_integers(data_type, sql):
    rows = pa.table({"i": pa.array([1, None], data_type)})
    assert evaluate(Predicate.parse(sql), rows) is None
    assert may_be_true(Predicate.parse(sql), rows).to_pylist() == [True, True]
    equal = evaluate(Predicate.parse("i = 9223372036854775808"), rows)
    assert equal.to_pylist() == [False, None]


@pytest.mark.parametrize("listed", ["'true'", "'true', NULL", "NULL, 'false'", "true, 'true'"])
@pytest.mark.parametrize("operator", ["IN", "NOT IN"])
def test_a_list_of_texts_for_a_boolean_is_left_to_spark(operator, listed):
    rows = pa.table({"bo": [True, False, None]})
    assert evaluate(Predicate.parse(f"bo {operator} ({listed})"), rows) is None
    assert evaluate(Predicate.parse("bo IN (true, NULL)"), rows).to_pylist() == [True, None, None]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i + 1 IS DISTINCT FROM 2", [False, True, True]),
        ("NOT (i + 1 IS DISTINCT FROM 2)", [True, False, False]),
        ("i + 1 IS NOT DISTINCT FROM 2", [True, False, False]),
        ("i IS DISTINCT FROM i + 0", [False, False, False]),
        ("(i IS DISTINCT FROM 1) = false", [True, False, False]),
    ],
)
def test_a_computed_value_is_distinct_or_not(sql, expected):
    assert evaluate(Predicate.of(sql), pa.table({"i": [1, 2, None]})).to_pylist() == expected
