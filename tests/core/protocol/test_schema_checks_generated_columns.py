from __future__ import annotations

import pytest

from optimist.core.errors import SchemaError
from optimist.core.schema.generated_columns import (
    ensure_generated_columns_valid,
    generation_expression,
    referenced_columns,
)
from optimist.core.schema.types import ArrayType, PrimitiveType, StructField, StructType

LONG, TIMESTAMP = PrimitiveType("long"), PrimitiveType("timestamp")
INNER = StructType((StructField("y", LONG),))
PLAIN = (
    StructField("x", LONG),
    StructField("at", TIMESTAMP),
    StructField("s", INNER),
    StructField("l", ArrayType(LONG)),
    StructField("a b", LONG),
)


def with_generated(sql: str, *more: StructField, data_type=LONG, **metadata) -> StructType:
    entry = {"delta.generationExpression": sql, **metadata}
    return StructType((*PLAIN, *more, StructField("g", data_type, True, entry)))


@pytest.mark.parametrize(
    "sql",
    [
        "x",
        "X + 1",
        "year(at) * 100 + month(at)",
        "date_trunc('DAY', at)",
        "substring(CAST(x AS STRING), 1, 2)",
        "s.y",
        "`a b` % 7",
        "l[0]",
        "transform(l, e -> e + x)",
        "CASE WHEN x > 0 THEN 1 ELSE 0 END",
        "CAST(now() AS DATE)",
        "current_timestamp()",
        "some_builtin_of_tomorrow(x)",
        "7",
    ],
)
def test_expression_over_the_row_is_accepted(sql: str) -> None:
    ensure_generated_columns_valid(with_generated(sql))


TYPES = [
    ("x", "long"),
    ("s.y", "long"),
    ("at", "timestamp"),
    ("CAST(at AS DATE)", "date"),
    ("to_date(at)", "date"),
    ("year(at)", "integer"),
    ("month(CAST(at AS DATE))", "integer"),
    ("day(at)", "integer"),
    ("hour(at)", "integer"),
    ("date_format(at, 'yyyy-MM')", "string"),
]


@pytest.mark.parametrize(("sql", "name"), TYPES)
def test_a_type_that_the_text_tells_must_be_the_columns(sql: str, name: str) -> None:
    ensure_generated_columns_valid(with_generated(sql, data_type=PrimitiveType(name)))
    other = with_generated(sql, data_type=PrimitiveType("binary"))
    with pytest.raises(SchemaError) as caught:
        ensure_generated_columns_valid(other)
    assert caught.value.kind == "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"
    assert caught.value.fields["column"] == "g"
    ensure_generated_columns_valid(other, previous=other)
    with pytest.raises(SchemaError):
        ensure_generated_columns_valid(other, previous=with_generated(sql))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("x +", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("(" * 5000 + "x" + ")" * 5000, "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("(SELECT 1)", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("EXISTS (SELECT 1)", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("row_number() OVER (ORDER BY x)", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("explode(l)", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("sum(x)", "DELTA_AGGREGATE_IN_GENERATED_COLUMN"),
        ("1 + count(*)", "DELTA_AGGREGATE_IN_GENERATED_COLUMN"),
        ("rand()", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ("x + CAST(randn() AS BIGINT)", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ("uuid()", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ("shuffle(l)[0]", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ("Monotonically_Increasing_Id()", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ("input_file_name()", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
    ],
)
def test_expression_beyond_the_row_is_refused(sql: str, kind: str) -> None:
    with pytest.raises(SchemaError) as caught:
        ensure_generated_columns_valid(with_generated(sql))
    assert caught.value.kind == kind
    assert caught.value.fields["column"] == "g"
    assert caught.value.fields["expression"] == sql


@pytest.mark.parametrize(
    ("sql", "reference"),
    [("nope + 1", "nope"), ("g + 1", "g"), ("G", "G"), ("nope.y", "nope"), ("other + x", "other")],
)
def test_reference_to_itself_to_nothing_or_to_a_generated_column_is_refused(sql, reference) -> None:
    other = StructField("Other", LONG, True, {"delta.generationExpression": "x"})
    with pytest.raises(SchemaError) as caught:
        ensure_generated_columns_valid(with_generated(sql, other))
    assert caught.value.kind == "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"
    assert caught.value.fields["column"] == "g"
    assert caught.value.fields["reference"] == reference


def test_identity_column_can_not_be_generated() -> None:
    with pytest.raises(SchemaError) as caught:
        ensure_generated_columns_valid(with_generated("x", **{"delta.identity.start": 1}))
    assert caught.value.kind == "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION"


def test_variant_column_can_not_be_generated() -> None:
    with pytest.raises(SchemaError) as caught:
        ensure_generated_columns_valid(with_generated("x", data_type=PrimitiveType("variant")))
    assert caught.value.kind == "DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN"


def test_referenced_columns_are_top_level_in_order_and_once() -> None:
    assert referenced_columns("x + s.y.z * `a b` - x") == ("x", "s", "a b")


def test_text_that_is_no_expression_has_no_references() -> None:
    with pytest.raises(SchemaError) as caught:
        referenced_columns("x + + )")
    assert caught.value.kind == "OPTIMIST_INVALID_EXPRESSION"


def test_ordinary_column_has_no_generation_expression() -> None:
    assert generation_expression(PLAIN[0]) is None
