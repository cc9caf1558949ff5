"""What a client of Spark Connect can know of a condition; no server runs here."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from pyspark.sql.connect import functions as sf

from optimist.core.predicates import Predicate
from optimist.core.schema.types import DecimalType, PrimitiveType, StructField, StructType
from optimist.spark.conditions.connect_condition import (
    known_in_session,
    known_in_zone,
    known_without,
)
from optimist.spark.conditions.connect_expressions import SentExpressions
from optimist.spark.conditions.connect_text import SentTexts, changing_confs, text_has_subquery
from optimist.spark.conditions.fixed_now import FixedNow

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("p", TEXT),
        StructField("st", StructType((StructField("id", LONG), StructField("p", TEXT)))),
        StructField("x.y", LONG),
        StructField("ti`ck", LONG),
        StructField("current_date", TEXT),
    )
)
EVERY = frozenset(name.lower() for name in SCHEMA.names)


def texts(alias=None, **confs):
    return SentTexts(SCHEMA, alias, {f"spark.sql.{key}": value for key, value in confs.items()})


@pytest.mark.parametrize(
    ("text", "names", "predicate"),
    [
        ("ID = 1 AND p = 'id'", {"id", "p"}, "id = 1 AND p = 'id'"),
        ("st.id = 1", {"st"}, "st.id = 1"),
        ("`x.y` > 2", {"x.y"}, "`x.y` > 2"),
        ("p = 'a' AND upper(p) = 'A'", {"p"}, None),
        ("p = 'a' AND current_date = '2024-01-01'", {"p", "current_date"}, None),
        ("exists(array(1), id -> id = 1) AND p = 'a'", {"id", "p"}, None),
        ("length(`x.y`) > 1 OR `ti``ck` = 1", {"x.y", "ti`ck"}, None),
        ("identifier('i' || 'd') = 1 AND p = 'a'", EVERY, None),
        ("p = '${name}'", EVERY, None),
    ],
)
def test_texts_name_at_least_the_columns_they_read(text, names, predicate):
    assert texts().names(text) == names
    found = texts().predicate(text)
    assert found.is_exact == (predicate is not None)
    assert predicate is None or str(found) == predicate


def test_names_of_other_tables_leave_the_parts_of_a_text_that_are_about_this_one():
    assert not any(part.is_exact for part in texts().predicate("id = 1 AND m > 2").conjuncts())
    joined = replace(texts("t"), has_others=True)
    parts = joined.predicate("t.id = 1 AND o.id = 2 AND m > 3 AND st.p = 'a'").conjuncts()
    assert [str(part) for part in parts if part.is_exact] == ["id = 1", "st.p = 'a'"]
    assert not joined.predicate("id = 1 OR m > 2").is_exact


@pytest.mark.parametrize(
    ("alias", "text", "expected"),
    [
        ("st", "st.id = 1", "id = 1"),
        ("ST", "st.st.id = 1", "st.id = 1"),
        ("t", "t.st.id = 1", "st.id = 1"),
        ("t", "st.id = 1", "st.id = 1"),
        ("p", "p = 'a'", "p = 'a'"),
    ],
)
def test_an_alias_comes_before_a_struct_of_its_name(alias, text, expected):
    assert str(texts(alias).predicate(text)) == expected


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("ansi.doubleQuotedIdentifiers", 'p = "id"'),
        ("parser.escapedStringLiterals", r"p = 'a\n'"),
        ("parser.escapedStringLiterals", "p = r'a'"),
        ("parser.quotedRegexColumnNames", "`p` = 'a'"),
        ("legacy.exponentLiteralAsDecimal.enabled", "id > 1e3"),
    ],
)
def test_a_conf_that_changes_the_meaning_of_a_text_makes_it_opaque(key, text):
    assert texts().predicate(text).is_exact
    changed = texts(**{key: "true"})
    assert not changed.predicate(text).is_exact
    assert texts().names(text) <= changed.names(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hash(*) > 1", "star"),
        ("hash(id, *) > 1", "star"),
        ("hash(t1.*) > 1", "star"),
        ("hash(`t 1`. *) > 1", "star"),
        ("id*2 > 2.*3", None),
        ("(id) * 2 > 2 /* , * */ -- (*", None),
        ("p = '(*)'", None),
        ("rand() > 0.5", "non-deterministic"),
        ("p = 'rand()'", None),
        ("id IN (SELECT 1)", "subquery"),
        ("id IN (SELECT * FROM (SELECT count(*) FROM r) x) AND id > 1", "subquery"),
        ("id IN (SELECT 1) AND hash(*) > 1", "star"),
        ("hash(*) > 1 AND EXISTS (SELECT * FROM r)", "star"),
        ("id IN (SELECT k FROM r WHERE rand() > 0.5)", "non-deterministic"),
        ("id IN (1, 2) AND p = '(SELECT 1)' -- (SELECT 1)", None),
        (r"p = r'\' OR id IN (SELECT 1) OR p = 'x'", "subquery"),
        (r"""p = R"\" OR hash(*) = 1 OR p = "x" """, "star"),
        ("/* /* */ ' */ rand() > 0.5 OR p = ''", "non-deterministic"),
    ],
)
def test_obstacles_in_texts(text, expected):
    assert texts().obstacle(text) == expected
    escaped = texts(**{"parser.escapedStringLiterals": "true"})
    assert escaped.obstacle(rf"p = 'a\'b' AND {text} AND p = '\''") == expected


def test_a_text_with_a_subquery_may_name_views():
    assert text_has_subquery("id > 1 AND (id) IN ( /* s */ (TABLE r))")
    assert not text_has_subquery("id > 1 AND p = '(SELECT 1)'")


def test_a_subquery_may_read_any_column_that_its_text_names():
    found = texts("t").predicate("id > 1 AND EXISTS (SELECT 1 FROM r WHERE r.k = t.p)")
    first, second = found.conjuncts()
    assert first.is_exact
    assert second.columns() == frozenset({("id",), ("p",)})


def sent(column, alias=None):
    return SentExpressions(texts(alias), "?"), column.to_plan(None)


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ((sf.col("p") == "a") & (sf.expr("id") > 1), {"id", "p"}),
        (sf.when(sf.expr("id > 1"), sf.col("`x.y`") > 1).otherwise(False), {"id", "x.y"}),
        (sf.coalesce(sf.expr("st.p = 'a'"), sf.lit(False)), {"st"}),
        (sf.exists(sf.array("id"), lambda item: item == sf.col("p")), {"id", "p"}),
        (sf.col("st")["id"].cast("int") == 1, {"st"}),
        (sf.call_function("upper", sf.col("p")) == "A", {"p"}),
        ((sf.col("p") == "a") & (sf.col("no column") == 1), EVERY),
        ((sf.col("p") == "a") & (sf.hash("*") == 1), EVERY),
    ],
)
def test_messages_name_at_least_the_columns_they_read(column, names):
    reading, message = sent(column)
    assert reading.names(message) == names


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ((sf.col("ID") == 1) & (sf.expr("p") == "a"), None),
        ((sf.col("`x.y`") > 1) | ~sf.col("p").isin("a", "b"), "`x.y` > 1 OR NOT (p IN ('a', 'b'))"),
        (sf.expr("id = 1") & sf.col("p").startswith("a"), "id = 1 AND startswith(p, 'a')"),
        (sf.col("st.id").eqNullSafe(1), "st.id <=> 1"),
        (sf.col("id").between(1, 2), "id >= 1 AND id <= 2"),
        (sf.lit(1) > sf.col("st.id"), "st.id < 1"),
        (sf.col("id") == sf.col("`x.y`"), "id = `x.y`"),
        (sf.col("p").like("a%") & sf.col("p").contains("b"), "p LIKE 'a%' AND p LIKE '%b%'"),
        (sf.col("p").isNull() & sf.lit(True), "p IS NULL AND TRUE"),
        ((sf.col("id") == 1).eqNullSafe(False), "(NOT (id = 1)) IS TRUE"),
        (sf.col("id").isin(1, None), None),
        (sf.col("id").cast("string") == "1", None),
        (sf.upper("p") == "A", None),
    ],
)
def test_messages_are_read_as_far_as_they_are_understood(column, expected):
    reading, message = sent(column)
    found = reading.predicate(message)
    assert found.is_exact == (expected is not None)
    assert expected is None or str(found) == expected


def test_an_alias_in_a_message_comes_before_a_struct_of_its_name():
    reading, message = sent(sf.col("st.id") == 1, alias="st")
    assert str(reading.predicate(message)) == "id = 1"
    assert reading.names(message) == {"id"}


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (sf.to_json(sf.struct("*")) == "a", "star"),
        (sf.expr("hash(*)") == 1, "star"),
        (sf.call_function("rand") > 0.5, "non-deterministic"),
        (sf.rand() > 0.5, "non-deterministic"),
        (sf.col("id") * 2 > 1, None),
    ],
)
def test_obstacles_in_messages(column, expected):
    reading, message = sent(column)
    assert reading.obstacle(message) == expected


class UtcSession:
    conf: ClassVar = {"spark.sql.session.timeZone": "UTC"}


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("id <=> 'x'", False),
        ("NOT (id <=> '1.5')", False),
        ("p = 'a' OR (st.id <=> '') = true", False),
        ("money <=> 1234567890123456789012345678901234567.8", False),
        ("money <=> 1.5", True),
        ("id <=> ' 12 '", True),
        ("id <=> NULL", True),
        ("p <=> 'x'", True),
        ("id = 'x'", True),
    ],
)
def test_a_constant_that_a_cast_may_make_null_equals_null(text, is_known):
    schema = StructType((*SCHEMA, StructField("money", DecimalType(10, 2))))
    found = known_in_session(UtcSession(), SentTexts(schema, None, {}).predicate(text), schema)
    assert found.is_exact == is_known


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('p = "a"', "spark.sql.ansi.doubleQuotedIdentifiers"),
        (r"p = 'a\tb'", "spark.sql.parser.escapedStringLiterals"),
        ("p = r'a'", "spark.sql.parser.escapedStringLiterals"),
        ("`p` = 'a'", "spark.sql.parser.quotedRegexColumnNames"),
        ("id > 1e0", "spark.sql.legacy.exponentLiteralAsDecimal.enabled"),
        ("p > '2024'", "spark.sql.legacy.typeCoercion.datetimeToString.enabled"),
    ],
)
def test_a_kept_query_skips_no_files_by_a_text_that_is_read_otherwise_by_now(text, key):
    texts, keys = SentTexts(SCHEMA, None, {}), changing_confs(text)
    given = texts.predicate(text)
    assert given.is_exact
    assert known_without({}, given, keys) == given
    assert known_without({key: "FALSE", "spark.sql.ansi.enabled": "true"}, given, keys) == given
    assert known_without({key: "True "}, given, keys) == Predicate.TRUE
    assert not SentTexts(SCHEMA, None, {key: "true"}).predicate(text).is_exact


def test_a_text_that_all_settings_read_alike_names_no_key():
    assert changing_confs("p <=> 1 AND id IN (2, 3.5) OR id IS NULL") == ()


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("UTC", "at >= '2024-01-01' AND id = 1"), ("America/Los_Angeles", "id = 1")],
)
def test_a_frame_of_another_zone_skips_no_files_by_times(zone, expected):
    schema = StructType((*SCHEMA, StructField("at", PrimitiveType("timestamp"))))
    given = SentTexts(schema, None, {}).predicate("at >= '2024-01-01' AND id = 1")
    assert str(known_in_zone(UtcSession(), given, zone)) == expected
    times = given.conjuncts()[0]
    assert (known_in_zone(UtcSession(), times, zone) == times) == (zone == "UTC")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at < NOW ( ) OR p = 'now()'", "at < timestamp_micros(5L) OR p = 'now()'"),
        ("p = r'\\' OR at < now() OR p = 'x'", "p = r'\\' OR at < timestamp_micros(5L) OR p = 'x'"),
        ("/* /* */ ' */ at < now() /* ' */", "/* /* */ ' */ at < timestamp_micros(5L) /* ' */"),
        ("current_timestamp IS NULL", "timestamp_micros(5L) IS NULL"),
        ("current_date > st.now -- now()", "current_date > st.now -- now()"),
        ("current_time(2) > x", "CAST(timestamp_micros(5L) AS TIME(2)) > x"),
        ("now(1) = now.a = now()()", "now(1) = now.a = now()()"),
    ],
)
def test_what_asks_for_the_time_in_a_text_is_fixed(text, expected):
    fixed_now = FixedNow(None, 5, frozenset({"current_date"}))
    message = fixed_now._replace_in_sent(sf.expr(text)).to_plan(None)
    assert message.expression_string.expression == expected
