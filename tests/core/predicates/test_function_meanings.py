"""Meanings of functions that the record of Spark's answers can't show, or that failed before."""

from __future__ import annotations

import datetime as dt
from decimal import Context, Decimal

import pyarrow as pa
import pytest

from optimist.core.errors import SchemaError, UsageError
from optimist.core.local.stored_values import stored_as
from optimist.core.local.values import parse_value
from optimist.core.predicates import Predicate, evaluate
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import (
    COLLATIONS,
    DECLARED_TYPE,
    ArrayType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)

_STRING = PrimitiveType("string")
_COLLATED = StructField("c", _STRING, metadata={COLLATIONS: {"c": "spark.UTF8_LCASE"}})
_SCHEMA = StructType(
    (
        _COLLATED,
        StructField("i", PrimitiveType("integer")),
        StructField("n", DecimalType(5, 2)),
        StructField("s", _STRING),
    )
)
_ROWS = pa.table(
    {
        "c": ["a", "A", None],
        "i": pa.array([1, 0, None], pa.int32()),
        "n": pa.array([Decimal("1.00"), Decimal("2.50"), None], pa.decimal128(5, 2)),
        "s": ["5", "abc", None],
    }
)


@pytest.mark.parametrize(
    "joined",
    [
        "coalesce(c, 'x')",
        "nvl(c, c)",
        "nvl2(i, c, c)",
        "concat(c, '')",
        "c || 'b'",
        "if(i = 1, c, c)",
        "CASE WHEN i = 1 THEN c END",
        "coalesce(concat(c, ''), c)",
    ],
)
def test_text_with_a_collation_keeps_it_when_it_is_copied_or_joined(joined):
    # In Spark 'a' equals 'A' here, which no comparison by bytes can say.
    assert parse_value(joined, _SCHEMA).compute(_ROWS) is not None
    for use in (f"{joined} = 'A'", f"upper({joined})", f"{joined} IN ('A')"):
        with pytest.raises(UsageError) as raised:
            parse_value(use, _SCHEMA)
        assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert parse_value(f"{joined} IS NULL", _SCHEMA).compute(_ROWS) is not None


@pytest.mark.parametrize("whole", ["int(3)", "positive(3)", "round(3)", "CAST(3 AS INT)", "+3"])
def test_only_a_number_as_written_beside_a_decimal_gets_few_digits(whole):
    found = parse_value(f"n + {whole}", _SCHEMA)
    assert found.data_type == DecimalType(13, 2)  # as for an int, which has ten digits
    assert parse_value("n + 3", _SCHEMA).data_type == DecimalType(6, 2)


@pytest.mark.parametrize("cast", ["TRY_CAST(s AS INT)", "try_cast(s AS INT)"])
def test_a_compared_try_cast_is_null_for_a_text_that_is_no_number(cast):
    assert evaluate(Predicate.parse(f"{cast} = 5"), _ROWS).to_pylist() == [True, None, None]
    assert evaluate(Predicate.parse(f"{cast} IN (5, 6)"), _ROWS).to_pylist() == [True, None, None]


def test_a_list_of_several_types_compares_a_cast_in_their_common_type():
    rows = pa.table({"l": pa.array([2**53, 2**53 + 1, 1], pa.int64())})
    found = evaluate(Predicate.parse(f"CAST(l AS BIGINT) IN ({2**53 + 1}BD, 1e0)"), rows)
    assert found.to_pylist() == [True, True, True]  # as doubles, which round


def _found(sql, texts):
    value = parse_value(sql, _SCHEMA)
    answers = []
    for text in texts:
        rows = pa.table({"s": [text]})
        try:
            answers += value.compute(rows).to_pylist()
        except UsageError:
            answers.append("Spark")
    return answers


def test_a_text_is_trimmed_before_a_cast_as_java_does_for_that_type():
    texts = ["5", "5\x7f", "\x1f5 ", "\u0663", "x"]  # the fourth is a digit to Java's decimals
    wanted = [Decimal("5.00"), "Spark", Decimal("5.00"), "Spark", None]
    assert _found("TRY_CAST(s AS DECIMAL(5,2))", texts) == wanted
    assert _found("TRY_CAST(s AS INT)", texts) == [5, 5, 5, None, None]


@pytest.mark.parametrize("target", ["DOUBLE", "FLOAT"])
def test_a_sign_before_nan_counts_only_in_the_letters_of_java(target):
    found = _found(f"TRY_CAST(s AS {target}) IS NULL", ["+NaN", "-NaN ", "+nan", "-NAN", "nan"])
    assert found == [False, False, True, True, False]


@pytest.mark.parametrize(
    ("constant", "wanted"),
    [
        # Each is nearer to `wanted`, but its double is just between two floats.
        ("'1.00000017881393421514957253748434595763683319091796875001'", 1 + 2**-23),
        ("1.000000178813934215149572537484345957BD", 1 + 2**-23),
        (str(2**53 + 2**29 + 1), float(2**53 + 2**30)),
        ("'+1.5\\n'", 1.5),
        ("'1e39'", float("inf")),
        ("1e-46", 0.0),
    ],
)
def test_a_constant_is_rounded_to_a_float_only_once(constant, wanted):
    value = parse_value(f"CAST({constant} AS FLOAT)", _SCHEMA)
    assert value.compute(_ROWS).to_pylist() == [wanted] * 3
    rows = pa.table({"f": pa.array([wanted], pa.float32())})
    predicate = Predicate.parse(f"f = CAST({constant} AS FLOAT)")
    assert evaluate(predicate, rows).to_pylist() == [True]


def test_a_time_without_a_zone_is_written_as_an_instant_of_the_zone():
    schema = StructType((StructField("w", PrimitiveType("timestamp_ntz")),))
    sql = "date_format(w, 'HH:mm')"
    rows = pa.table({"w": pa.array([dt.datetime(2024, 3, 31, 2, 30)], pa.timestamp("us"))})
    assert parse_value(sql, schema).compute(rows).to_pylist() == ["02:30"]
    there = parse_value(sql, schema, zone="Europe/Berlin")
    assert there.compute(rows).to_pylist() == ["03:30"]  # for the clocks skip that hour


def test_an_escape_of_several_characters_is_refused():
    with pytest.raises(UsageError):
        parse_value("like(s, 'a%', 'ab')", _SCHEMA)


@pytest.mark.parametrize(
    "sql",
    [
        "CAST(16777217.000000001 AS FLOAT)",
        "CAST('16777217.000000001' AS FLOAT)",
        "16777217.000000001F",
        "CAST(substring('x16777217.000000001', 2) AS FLOAT)",
    ],
)
def test_each_spelling_of_a_float_is_rounded_only_once(sql):
    # Its double lies exactly between two floats; the number lies above.
    assert parse_value(sql, _SCHEMA).compute(_ROWS).to_pylist()[0] == 16777218.0


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("i + 1 DIV nvl(i, 0)", [2, "error", None]),
        ("1 DIV nvl(i, 0) + i", [2, "error", "error"]),
        ("i = 1 DIV nvl(i, 0)", [True, "error", None]),
        ("i <=> 1 DIV nvl(i, 0)", [True, "error", "error"]),
        ("i IN (i, 1 DIV 0)", [True, True, None]),
        ("i IN (1, 1 DIV i)", [True, "error", None]),
        ("(1 DIV nvl(i, 0)) / i", [1.0, "error", None]),
        ("i / (1 DIV nvl(i, 0))", [1.0, "error", "error"]),
        ("date_add(DATE '2024-01-01', i) = make_date(2024, nvl(i, 0), 2)", [True, "error", None]),
    ],
)
def test_a_part_fails_only_for_rows_for_which_spark_computes_it(sql, wanted):
    value = parse_value(sql, _SCHEMA)
    assert [_answer(value, row) for row in range(3)] == wanted
    kept = [row for row, answer in enumerate(wanted) if answer != "error"]
    assert value.compute(_ROWS.take(kept)).to_pylist() == [wanted[row] for row in kept]


def _answer(value, row):
    try:
        return value.compute(_ROWS.slice(row, 1)).to_pylist()[0]
    except SchemaError:
        return "error"


@pytest.mark.parametrize(
    ("sql", "is_known"),
    [
        ("words[0] = 'a'", False),
        ("array_contains(words, 'a')", False),
        ("element_at(words, 1)", False),
        ("parts.c = 'a'", False),
        ("parts.c", True),
        ("words IS NULL", True),
        ("parts.n = 1", True),
        ("long[0] = 'a'", True),
    ],
)
def test_texts_of_a_char_within_another_type_are_compared_only_by_spark(sql, is_known):
    # Spark pads them when it reads them, so that 'a' is never equal to one.
    texts = ArrayType(_STRING)
    parts = StructType((StructField("c", _STRING), StructField("n", PrimitiveType("long"))))
    declared = {
        "words": (texts, "array<char(3)>"),
        "long": (texts, "array<varchar(3)>"),
        "parts": (parts, "struct<c:char(3),n:bigint>"),
    }
    schema = StructType(
        tuple(
            StructField(name, kind, metadata={DECLARED_TYPE: text})
            for name, (kind, text) in declared.items()
        )
    )
    if is_known:
        assert parse_value(sql, schema) is not None
        return
    with pytest.raises(UsageError) as raised:
        parse_value(sql, schema)
    assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"


@pytest.mark.parametrize("brackets", ["{}", "({})", "(({}))", "NOT (NOT {})", "(NOT (NOT ({})))"])
@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("coalesce(s) IS NOT NULL", [True, True, False]),
        ("coalesce(i) NOT IN (0, i + 1)", [True, False, None]),
        ("coalesce(s) NOT LIKE 'a%'", [True, False, None]),
        ("(coalesce(i) > 0) IS NOT TRUE", [False, True, True]),
    ],
)
def test_a_negated_condition_means_the_same_in_brackets(brackets, condition, wanted):
    text = brackets.format(condition)
    assert evaluate(Predicate.parse(text), _ROWS).to_pylist() == wanted
    assert parse_value(text, _SCHEMA).compute(_ROWS).to_pylist() == wanted


@pytest.mark.parametrize(
    ("sql", "zone", "is_known"),
    [
        ("CAST(z AS DATE) <= DATE '2006-10-28'", "America/St_Johns", False),
        ("CAST(z AS DATE) <= DATE '2006-10-28'", "America/Toronto", True),
        ("CAST(w AS TIMESTAMP) < TIMESTAMP '2018-11-04 00:30:00'", "America/Sao_Paulo", False),
        ("CAST(w AS TIMESTAMP) < TIMESTAMP '2018-11-04 00:30:00'", "-03:00", True),
    ],
)
def test_a_cast_that_sparks_optimizer_takes_away_is_compared_where_that_changes_nothing(
    sql, zone, is_known
):
    # In St. John's, midnight of that day came twice: a minute before it, it was the 29th already.
    kinds = {"z": "timestamp", "w": "timestamp_ntz"}
    fields = (StructField(name, PrimitiveType(kind)) for name, kind in kinds.items())
    schema = StructType(tuple(fields))
    rows = to_arrow_schema(schema).empty_table()
    assert (evaluate(Predicate.parse(sql), rows, zone=zone) is not None) == is_known
    if is_known:
        assert parse_value(sql, schema, zone=zone) is not None
        return
    with pytest.raises(UsageError):
        parse_value(sql, schema, zone=zone)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("float(i)", 16777216.0),
        ("CAST(float(i) AS DOUBLE)", 16777217.0),
        ("TRY_CAST(i AS FLOAT) + 0.0e0", 16777217.0),
        ("float(i) = 16777217", True),
        ("greatest(float(i), 0.0e0)", 16777217.0),
        ("CAST(coalesce(float(i)) AS DOUBLE)", 16777216.0),
        ("CAST(float(16777217) AS DOUBLE)", 16777216.0),
    ],
)
def test_a_cast_to_float_counts_for_nothing_right_before_one_to_double(sql, wanted):
    rows = pa.table({"i": pa.array([16777217], pa.int32())})
    assert parse_value(sql, _SCHEMA).compute(rows).to_pylist() == [wanted]


def test_a_whole_number_cast_to_float_is_stored_unrounded_in_a_column_of_doubles():
    rows = pa.table({"i": pa.array([16777217], pa.int32())})
    stored = stored_as(parse_value("float(i)", _SCHEMA), PrimitiveType("double"), "d")
    assert stored.compute(rows).to_pylist() == [16777217.0]


@pytest.mark.parametrize("number", [3868562622728127732832095, 1547425048951982838713232])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_quotient_of_long_decimals_has_all_its_digits(number, sign):
    # Arrow's own quotient is wrong from the eleventh digit on.
    divisor = sign * 99999999999
    sql = f"CAST({number} AS DECIMAL(25,0)) / CAST({divisor} AS DECIMAL(11,0))"
    digits = (2 * number * 10**12 + 99999999999) // (2 * 99999999999)
    found = parse_value(sql, _SCHEMA).compute(_ROWS)
    assert found.to_pylist() == [sign * Decimal(digits).scaleb(-12, Context(prec=40))] * 3


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("map(s, 1)", "NULL_MAP_KEY"),
        ("map_from_arrays(array(s, 'x'), array(1, i))", "NULL_MAP_KEY"),
        ("map('a', i, coalesce(s, 'a'), 2)", "DUPLICATED_MAP_KEY"),
        ("map_from_arrays(array(1, coalesce(i, 5)), array(i, 2))", "DUPLICATED_MAP_KEY"),
        ("map_from_arrays(array(1, 2), array(i))", "OPTIMIST_VALUE_DOES_NOT_FIT"),
    ],
)
def test_a_map_with_wrong_keys_is_an_error_as_in_spark(sql, kind):
    with pytest.raises(SchemaError) as raised:
        parse_value(sql, _SCHEMA).compute(_ROWS)
    assert raised.value.kind == kind


@pytest.mark.parametrize(
    "sql",
    ["map(i)", "map(c, 1)", "map(CAST(i AS DOUBLE), 1)", "map(1, 2, s, 3)", "map(1, NULL)"],
)
def test_a_map_whose_keys_only_spark_compares_or_types_is_refused(sql):
    with pytest.raises(UsageError) as raised:
        parse_value(sql, _SCHEMA)
    assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"


@pytest.mark.parametrize("text", ["Q", "QQ=", "Q=Q=", "QQ==QQ==", "QQ\n=\n=", "-_-_", "QQ== "])
def test_texts_that_are_no_base64_are_left_to_spark(text):
    rows = pa.table({"s": [text]})
    value = parse_value("unbase64(s)", _SCHEMA)
    with pytest.raises(UsageError) as raised:
        value.compute(rows)
    assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"
