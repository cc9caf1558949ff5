"""SQL text and the builder to trees, and back to text."""

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import UsageError
from optimist.core.predicates import Predicate, SplitPredicate, col, ensure_columns, split_conjuncts
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
    Opaque,
    StartsWith,
)
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from predicate_trees import trees_of

A = Column(("a",))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("(id >= 3L)", Comparison(">=", Column(("id",)), Literal(3, "integer"))),
        ("a = -5S", Comparison("=", A, Literal(-5, "integer"))),
        ("a = -9223372036854775808", Comparison("=", A, Literal(-(2**63), "integer"))),
        ("a = DATE '2024-01-02'", Comparison("=", A, Literal(dt.date(2024, 1, 2), "date"))),
        (
            "a = TIMESTAMP '2024-01-02 12:00:00.123456'",
            Comparison("=", A, Literal(dt.datetime(2024, 1, 2, 12, 0, 0, 123456), "timestamp")),
        ),
        (
            "a = TIMESTAMP '2024-01-02T12:00:00+02:00'",
            Comparison(
                "=", A, Literal(dt.datetime(2024, 1, 2, 10, tzinfo=dt.timezone.utc), "timestamp")
            ),
        ),
        ("a = 1.25BD", Comparison("=", A, Literal(Decimal("1.25"), "decimal"))),
        ("a = 1.25", Comparison("=", A, Literal(Decimal("1.25"), "decimal"))),
        ("a = 1.5D", Comparison("=", A, Literal(1.5, "double"))),
        ("a = 1e3", Comparison("=", A, Literal(1000.0, "double"))),
        ("a = X'0102FF'", Comparison("=", A, Literal(b"\x01\x02\xff", "binary"))),
        ("a = CAST('NaN' AS DOUBLE)", Comparison("=", A, Literal(math.nan, "double"))),
        ("3 < a", Comparison(">", A, Literal(3, "integer"))),
        ("a != 1", Comparison("<>", A, Literal(1, "integer"))),
        ("a = 'it''s'", Comparison("=", A, Literal("it's", "string"))),
        ("a = 'it' \"s\"", Comparison("=", A, Literal("its", "string"))),
        (r"a = r'i\s'", Comparison("=", A, Literal(r"i\s", "string"))),
        (r"a = 'it\'s'", Comparison("=", A, Literal("it's", "string"))),
        ("a = 'x\ny'", Comparison("=", A, Literal("x\ny", "string"))),
        (r"a = 'x\\y'", Comparison("=", A, Literal("x\\y", "string"))),
        ("a = NULL", Comparison("=", A, Literal(None, "null"))),
        ("a <=> NULL", NullSafeEqual(A, Literal(None, "null"))),
        ("a IS NOT DISTINCT FROM 1", NullSafeEqual(A, Literal(1, "integer"))),
        ("startswith(a, 'x')", StartsWith(A, "x")),
        ("a LIKE 'x%'", Like(A, ((False, "x"), (True, "%")))),
        (r"a LIKE 'x\_%'", Like(A, ((False, "x_"), (True, "%")))),
        ("a LIKE 'x!%' ESCAPE '!'", Like(A, ((False, "x%"),))),
        ("a NOT LIKE 'x'", Not(Like(A, ((False, "x"),)))),
        (r"a NOT LIKE 'x' ESCAPE '\\'", Not(Like(A, ((False, "x"),)))),
        ("endswith(a, '%')", Like(A, ((True, "%"), (False, "%")))),
        ("contains(a, 'x')", Like(A, ((True, "%"), (False, "x"), (True, "%")))),
        ("a IN (1, NULL)", In(A, (Literal(1, "integer"), Literal(None, "null")))),
        ("isnotnull(a)", Not(IsNull(A))),
        ("a", Comparison("=", A, Literal(True, "boolean"))),
        ("((a = 1) <=> true)", IsTrue(Comparison("=", A, Literal(1, "integer")))),
        ("(a = 1) = false", Not(Comparison("=", A, Literal(1, "integer")))),
        ("`a b`.`c.d` = 1", Comparison("=", Column(("a b", "c.d")), Literal(1, "integer"))),
        ("1 = 1", BooleanLiteral(True)),
        ("NULL", BooleanLiteral(None)),
    ],
)
def test_text_that_spark_prints_is_understood(sql, expected):
    assert Predicate.parse(sql) == expected
    assert Predicate.parse(sql).is_exact
    assert Predicate.parse(str(expected)) == expected


@pytest.mark.parametrize(
    ("sql", "columns", "deterministic"),
    [
        ("lower(a) = 'x'", {("a",)}, True),
        ("a + b.c.d.e.f = 1", {("a",), ("b", "c", "d", "e", "f")}, True),
        ("CAST(a AS STRING) = '1'", {("a",)}, True),
        ("exists(a, x -> x > b)", {("a",), ("b",)}, True),
        ("rand() < 0.5", set(), False),
        ("uuid() = a", {("a",)}, False),
        ("uniform(1, 10) = a", {("a",)}, False),
        ("shuffle(a)[0] = 1", {("a",)}, False),
        ("input_file_name() = a", {("a",)}, False),
        ("a < current_timestamp()", {("a",)}, False),
        ("my_function(a) = 1", {("a",)}, False),
        ("a IN (SELECT b FROM c)", {("a",)}, False),
        ("a = DATE '12024-01-01'", {("a",)}, True),
        ("a = CAST(NULL AS BIGINT)", {("a",)}, True),
    ],
)
def test_what_is_not_understood_is_opaque_with_its_columns(sql, columns, deterministic):
    predicate = Predicate.parse(sql)
    assert isinstance(predicate, Opaque)
    assert predicate.columns() == columns
    assert predicate.is_deterministic is deterministic
    assert not predicate.is_exact


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("a = = 1", 1, 5),
        ("a = 1 AND", 1, 10),
        ("a, b", 1, 2),
        ("(a = 1", 1, 7),
        ("a = 1\nAND )", 2, None),
        ("", 1, 1),
        ("a = 'x", 1, 5),
        ("a b", 1, 3),
        ("SELECT 1", 1, 8),
        ("DELETE FROM t", 1, 8),
        ("a = 1; DROP TABLE t", 1, 6),
        ("a = DATE '2024-13-01'", 1, 10),
        ("a IN ()", 1, 7),
        ("(" * 5000 + "a" + ")" * 5000, None, None),
    ],
)
def test_invalid_text_is_a_usage_error_with_text_and_place(sql, line, column):
    with pytest.raises(UsageError) as caught:
        Predicate.parse(sql)
    assert caught.value.kind == "OPTIMIST_INVALID_PREDICATE"
    assert caught.value.fields["predicate"] == sql
    assert caught.value.fields.get("line") == line
    assert column is None or caught.value.fields["column"] == column
    assert repr(sql[:20])[:-1] in str(caught.value)


def test_a_thousand_alternatives_parse_without_recursion():
    predicate = Predicate.parse(" OR ".join(f"a = {i}" for i in range(3000)))
    assert len(predicate.children()) == 3000


def test_the_builder_builds_what_the_text_says():
    built = (
        (col("a.b") == 1)
        & ~col("c").isin([1, 2])
        & (col("d").between(1, 2) | col("e").startswith("x") | col("f").is_null())
        & col("`g h`").like("x%")
        & col("i").eq_null_safe(None)
        & (col("j") < col("k"))
    )
    text = (
        "a.b = 1 AND NOT (c IN (1, 2)) AND ((d >= 1 AND d <= 2) OR startswith(e, 'x') "
        "OR f IS NULL) AND `g h` LIKE 'x%' AND i <=> NULL AND j < k"
    )
    assert built == Predicate.parse(text)
    assert len(built.conjuncts()) == 6


def test_the_builder_refuses_values_and_names_that_mean_nothing():
    with pytest.raises(UsageError) as caught:
        _ = col("a") == object()
    assert caught.value.kind == "OPTIMIST_INVALID_LITERAL"
    with pytest.raises(UsageError) as caught:
        col("a +")
    assert caught.value.kind == "OPTIMIST_INVALID_PREDICATE"
    assert col("a").isin([]) == Predicate.FALSE


def test_a_predicate_splits_by_partition_columns_in_any_case():
    split = split_conjuncts(
        Predicate.parse("P = 1 AND x > 2 AND (p = 1 OR x = 2) AND rand() < 1"), ["p"]
    )
    assert [str(part) for part in split.partition] == ["P = 1"]
    assert [str(part) for part in split.data] == ["x > 2", "p = 1 OR x = 2", "(rand() < 1)"]
    assert split_conjuncts(Predicate.TRUE, ["p"]) == SplitPredicate((), ())


SCHEMA = StructType(
    (
        StructField("Id", PrimitiveType("long")),
        StructField("nest", StructType((StructField("A", PrimitiveType("long")),))),
    )
)


def test_columns_take_the_spelling_of_the_schema():
    predicate = Predicate.parse("id = 1 AND NEST.a IN (1) AND NOT (id IS NULL) AND Id < nest.a")
    assert str(ensure_columns(predicate, SCHEMA)) == (
        "Id = 1 AND nest.A IN (1) AND NOT (Id IS NULL) AND Id < nest.A"
    )


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("idd = 1", ("Id",)),
        ("nest.b = 1", ("nest.A", "nest")),
        ("nets.a = 1", ("nest.A",)),
        ("t.id = 1", ("Id",)),
        ("t.nest.a = 1", ("nest.A",)),
        ("lower(missing) = 'x'", ()),
        ("t.u.id = 1", ()),
        ("Id.a = 1", ()),
    ],
)
def test_an_unknown_column_is_an_error_that_names_it_and_what_is_near(sql, near):
    with pytest.raises(UsageError) as caught:
        ensure_columns(Predicate.parse(sql), SCHEMA)
    assert caught.value.kind == "DELTA_COLUMN_NOT_FOUND"
    assert caught.value.fields["candidates"] == ("Id", "nest")
    assert str(caught.value.fields["column"]) in sql
    assert caught.value.fields["near"][: len(near)] == near
    assert all(name in str(caught.value) for name in near)


names = st.one_of(
    st.sampled_from(
        ["a", "month", "select", "a b", "c`d", "e.f", "null", "true", "date", "é", "in"]
    ),
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=5),
)
columns = st.lists(names, min_size=1, max_size=6).map(lambda parts: Column(tuple(parts)))
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
zoned = st.datetimes(
    dt.datetime(1000, 1, 2), dt.datetime(9999, 1, 1), timezones=st.just(dt.timezone.utc)
)
literals = st.one_of(
    st.just(Literal(None, "null")),
    st.booleans().map(lambda value: Literal(value, "boolean")),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: Literal(value, "integer")),
    st.decimals(-(10**20), 10**20, places=5).map(lambda value: Literal(value, "decimal")),
    st.floats().map(lambda value: Literal(value, "double")),
    st.floats(width=32).map(lambda value: Literal(value, "float")),
    texts.map(lambda value: Literal(value, "string")),
    st.binary(max_size=5).map(lambda value: Literal(value, "binary")),
    st.dates(dt.date(1000, 1, 1)).map(lambda value: Literal(value, "date")),
    st.datetimes(dt.datetime(1000, 1, 1)).map(lambda value: Literal(value, "timestamp_ntz")),
    st.datetimes(dt.datetime(1000, 1, 1)).map(lambda value: Literal(value, "timestamp")),
    zoned.map(lambda value: Literal(value, "timestamp")),
)
leaves = st.one_of(
    st.builds(Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), columns, literals),
    st.builds(Comparison, st.sampled_from(["=", "<"]), columns, columns),
    st.builds(NullSafeEqual, columns, literals),
    st.builds(IsNull, columns),
    st.builds(In, columns, st.lists(literals, min_size=1, max_size=3).map(tuple)),
    st.builds(StartsWith, columns, texts),
    st.builds(lambda column, text: col_like(column, text), columns, texts),
    st.sampled_from([Predicate.TRUE, Predicate.FALSE, BooleanLiteral(None)]),
)
trees = trees_of(leaves, max_leaves=6)


def col_like(column, text):
    parts = [(char in "%_", char) for char in text]
    merged = []
    for wild, char in parts:
        if merged and not wild and not merged[-1][0]:
            merged[-1] = (False, merged[-1][1] + char)
        else:
            merged.append((wild, char))
    return Like(column, tuple(merged))


@given(trees)
def test_the_text_of_a_tree_parses_back_to_the_tree(tree):
    assert Predicate.parse(str(tree)) == tree


@given(trees)
def test_conjuncts_make_up_the_predicate(tree):
    whole = Predicate.TRUE if not tree.conjuncts() else tree.conjuncts()[0]
    for part in tree.conjuncts()[1:]:
        whole = whole & part
    assert whole == tree
    assert not any(isinstance(part, And) for part in tree.conjuncts())
