"""Expressions and types as Spark's grammar has them, and nothing else."""

from __future__ import annotations

import pytest

from optimist.core.expressions import NotSqlError, parse_expression, parse_type
from optimist.core.expressions.names import free_names
from optimist.core.expressions.plain_text import plain_text
from optimist.core.expressions.tree import Call, Case, Cast, Name, Operation, walk


def shape(node) -> object:
    """An operation as nested tuples, everything else as text."""
    if isinstance(node, Operation):
        return (node.operator, *map(shape, node.operands))
    if isinstance(node, Name):
        return ".".join(node.path)
    return getattr(node, "text", getattr(node, "value", type(node).__name__))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a = b < c", ("<", ("=", "a", "b"), "c")),
        ("a + b * c - d", ("-", ("+", "a", ("*", "b", "c")), "d")),
        (
            "a | b ^ c & d << e + f",
            ("|", "a", ("^", "b", ("&", "c", ("<<", "d", ("+", "e", "f"))))),
        ),
        ("a >>> b >> c", (">>", (">>>", "a", "b"), "c")),
        ("NOT a = b OR c AND d", ("OR", ("NOT", ("=", "a", "b")), ("AND", "c", "d"))),
        ("! a = b", ("NOT", ("=", "a", "b"))),
        ("a = b IS NULL", ("IS NULL", ("=", "a", "b"))),
        ("a NOT BETWEEN b AND c AND d", ("AND", ("NOT", ("BETWEEN", "a", "b", "c")), "d")),
        ("- a * b", ("*", ("-x", "a"), "b")),
        ("a - -1", ("-", "a", "-1")),
        ("a -1", ("-", "a", "1")),
        ("a || b + c", ("+", ("||", "a", "b"), "c")),
        ("end > 0", (">", "end", "0")),
        ("case = when", ("=", "case", "when")),
        ("(a).b.c = `d e`.f", ("=", "a.b.c", "d e.f")),
    ],
)
def test_operators_bind_as_in_spark(sql, expected):
    assert shape(parse_expression(sql)) == expected


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("CASE a WHEN 1 THEN b ELSE c END", Case),
        ("CASE WHEN a THEN b END", Case),
        ("a::struct<b: array<int>, c string NOT NULL COMMENT 'x'>", Cast),
        ("TRY_CAST(a AS TIMESTAMP WITHOUT TIME ZONE)", Cast),
        ("substring(a FROM 1 FOR 2)", Call),
        ("trim(BOTH 'x' FROM a)", Call),
        ("overlay(a PLACING b FROM 1 FOR 2)", Call),
        ("position('a' IN b)", Call),
        ("extract(YEAR FROM a)", Call),
        ("timestampadd(DAY, 1, a)", Call),
        ("date_add(day, 1)", Call),
        ("transform(a, (x, i) -> x + i)", Call),
        ("f(a => 1)", Call),
        ("count(DISTINCT a) FILTER (WHERE b) OVER (PARTITION BY c)", Call),
        ("struct(a AS b, c d)", Call),
        ("like(a, 'x')", Call),
        ("a COLLATE UTF8_LCASE", Call),
        ("a LIKE ANY ('x', 'y')", Operation),
        ("INTERVAL '1' DAY + a", Operation),
        ("a + INTERVAL 1 DAY 2 HOURS", Operation),
        ("a > INTERVAL '1:2' HOUR TO MINUTE", Operation),
    ],
)
def test_what_spark_spells_with_keywords_is_read(sql, kind):
    parsed = parse_expression(sql)
    assert isinstance(parsed, kind)
    assert parse_expression(plain_text(sql, parsed)) == parsed


@pytest.mark.parametrize(
    "sql",
    [
        *(
            "",
            "a b",
            "a AS b",
            "a;",
            "a,",
            "a IN ()",
            "a IN (1,)",
            "f(a,)",
            "a ISNULL",
            "a NOTNULL",
        ),
        *("a IS NULL IS NULL", "a = NOT b", "a ! IN (1)", "a && b", "a ** b", "a // b", "a -> "),
        *("1e400", "128Y", "40000S", "1e400D", "3.5e38F", "9" * 39, "99999999999999999999L"),
        *("DATE '2024-13-01'", "TIMESTAMP '2024-01-01Z'", "DATE '2023-02-29'", "X'0g'", "E'x'"),
        *(
            "TIMESTAMP '2024-01-01 UTC'",
            "a LIKE 'x' ESCAPE 'ab'",
            "a LIKE 'x' ESCAPE b",
            "@a",
            "$1",
        ),
        *(
            "{# c #} a",
            "{{ a }}",
            "a BETWEEN SYMMETRIC 1 AND 2",
            "a::int8",
            "a::TEXT",
            "a SIMILAR b",
        ),
        *(
            "CAST(a AS DECIMAL(39))",
            "CAST(a AS DECIMAL(3, 5))",
            "CASE WHEN a THEN b",
            "CAST(a, INT)",
        ),
        *("/* /*+ h */ */ a", "a */* c */ b", "a /* /* c */ + b"),
        *("0." + "0" * 39, "-." + "0" * 39, "0E-39BD", "0E38BD", "1." + "0" * 38),
        *("(a", "a)", "'x", "`a", "/* a", "a.", ".a", "a..b", "``", "a[1", "INTERVAL 1", "é = 1"),
    ],
)
def test_what_spark_refuses_is_refused(sql):
    with pytest.raises(NotSqlError):
        parse_expression(sql)


@pytest.mark.parametrize(
    "sql",
    [
        *("/* /*+ h */ a", "/* /* c */ */ a", "a * /* c */ b", "/*/ b */ a", "a /* -- c */"),
        *("0." + "0" * 38, "00." + "0" * 38, "0" * 41 + "1.5", "0E37BD", "0." + "0" * 400 + "D"),
    ],
)
def test_what_spark_takes_is_taken(sql):
    parse_expression(sql)


def test_variables_of_lambdas_are_no_columns():
    parsed = parse_expression("exists(a, X -> x.y > b AND zip_with(x, c, (y, z) -> y + z + d))")
    assert [name.path for name in free_names(parsed)] == [("a",), ("b",), ("c",), ("d",)]
    parsed = parse_expression("current_date > a AND `current_date` < b")
    assert [name.is_call for name in free_names(parsed)] == [True, False, False, False]


def test_texts_have_the_value_that_spark_reads():
    parsed = parse_expression(r"""concat('it''s', "a" 'b', r'\n', 'x\ty')""")
    values = [getattr(node, "value", None) for node in walk(parsed)]
    assert values[1:] == ["it's", "ab", r"\n", "x\ty"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "int8",
            "text",
            "int(3)",
            "timestamptz",
            "timestamp with time zone",
            "unsigned",
            "varchar",
        ),
        *("array", "array<int", "map<int>", "struct<a>", "struct<a int,>", "decimal(39)", "int;"),
    ],
)
def test_only_sparks_types_are_types(text):
    with pytest.raises(NotSqlError):
        parse_type(text)


def test_a_thousand_operands_need_no_recursion():
    parsed = parse_expression(" + ".join(["a"] * 5000))
    assert sum(1 for node in walk(parsed) if isinstance(node, Name)) == 5000
    with pytest.raises(NotSqlError):
        parse_expression("(" * 5000 + "a" + ")" * 5000)


INTERVALS = [
    *("INTERVAL 1 DAY", "INTERVAL -1 DAY", "INTERVAL - '1' DAYS", "INTERVAL '1 day 2 hours'"),
    *("INTERVAL ' 1   year '", "INTERVAL 'interval 1 week'", "INTERVAL 1.5 SECONDS"),
    *("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-1 2:03:04.5' DAY TO SECOND"),
    *("INTERVAL 1 YEAR 2 MONTHS", "INTERVAL 1 DAY -2 HOURS", "INTERVAL '.5 seconds' < a"),
    "INTERVAL 1 MILLISECOND + a",
]
NO_INTERVALS = [
    *(
        "INTERVAL '1'",
        "INTERVAL 'x'",
        "INTERVAL ''",
        "INTERVAL '1' LIKE a",
        "INTERVAL '1 fortnight'",
    ),
    *(
        "INTERVAL '1 fortnight'",
        "INTERVAL '1 day' DAY",
        "INTERVAL 'x' DAY",
        "INTERVAL '' DAY",
        "INTERVAL 1.5 DAY",
    ),
    *("INTERVAL 1e2 DAY", "INTERVAL 1L DAY", "INTERVAL 1 NANOSECOND", "INTERVAL '1 year 1 day'"),
    *("INTERVAL 1 YEAR 1 DAY", "INTERVAL 1 DAY TO SECOND", "INTERVAL '1' YEAR TO MONTH"),
    *("INTERVAL '1:2:3' DAY TO SECOND", "INTERVAL '1 2:03:04' HOUR TO SECOND"),
    *("INTERVAL '1-2' MONTH TO YEAR", "INTERVAL '1-2' YEAR TO DAY", "INTERVAL 'x' DAY TO HOUR"),
]


@pytest.mark.parametrize("sql", INTERVALS)
def test_an_interval_is_taken_as_spark_takes_it(sql):
    assert parse_expression(sql)


@pytest.mark.parametrize("sql", ["interval - 1", "interval + '1'", "interval -1 > 0"])
def test_a_column_may_be_called_interval(sql):
    assert [name.path for name in free_names(parse_expression(sql))] == [("interval",)]


@pytest.mark.parametrize("sql", NO_INTERVALS)
def test_an_interval_without_meaning_is_refused(sql):
    with pytest.raises(NotSqlError):
        parse_expression(sql)


COLLATIONS = [
    *("utf8_binary", "UTF8_LCASE_RTRIM", "unicode_ci_AI_rtrim", "UNICODE_RTRIM_CI", "de_AUT"),
    *("sr_Cyrl_SRB_AI", "system.builtin.UNICODE", "`en`", "UNICODE_CS_AS"),
]
NO_COLLATIONS = [
    *("NOT", "nonsense", "utf8_lcase_AI", "de_AT", "deu", "a.UNICODE", "UNICODE_CS_CI", "_CI"),
    *("UTF8_BINARY_CI", "system.UNICODE"),
]


@pytest.mark.parametrize("name", COLLATIONS)
def test_sparks_collations_are_known(name):
    assert parse_expression(f"a COLLATE {name} = CAST(b AS STRING COLLATE {name})")


@pytest.mark.parametrize("name", NO_COLLATIONS)
@pytest.mark.parametrize("text", ["a COLLATE {} = b", "a::STRING COLLATE {} = b"])
def test_a_collation_that_spark_lacks_is_refused(name, text):
    with pytest.raises(NotSqlError):
        parse_expression(text.format(name))
