"""Where a query names tables of a catalog, among columns, functions and its own expressions."""

from __future__ import annotations

import pytest
from hypothesis import given

from optimist.core.errors import UsageError
from optimist.core.sql import Parameters, names_of_relations, path_relations, place_of_alias
from sql_statements import conditions

# Each table of the catalog stands between « and », and its name before a column between { and }.
CASES = [
    "SELECT * FROM «n»",
    "SELECT n.id FROM «n VERSION AS OF 3» JOIN «db.n» ON {db.n}.id = n.id, «`m`»",
    "SELECT {db.n}.*, {Cat.DB.n}.id, db.n FROM «DB . n» AS x",
    "WITH n AS (SELECT * FROM «n») SELECT * FROM n, «m»",
    "WITH RECURSIVE n AS (SELECT 1 UNION ALL SELECT * FROM n) SELECT * FROM N, «m»",
    "WITH recursive AS (SELECT 1 FROM «n») SELECT * FROM recursive, «n»",
    "(WITH n AS (SELECT 1) SELECT * FROM n) UNION SELECT * FROM «n»",
    "WITH a AS (SELECT 1), n(x) AS (SELECT * FROM «m») SELECT * FROM n JOIN «db.n»",
    "WITH n AS (SELECT 1 AS a, max(id) AS b FROM «m»), m AS (SELECT 2) SELECT * FROM n, m",
    "WITH n (SELECT 1 AS a, (2) b), m (x, y) (FROM «m») SELECT * FROM n, m, «db.n»",
    "WITH m AS (SELECT * FROM table_changes('x', n)), n AS (SELECT 1) SELECT * FROM m, n, «db.n»",
    "SELECT a IN (SELECT 1 FROM «table_changes('n', 1)», «m») FROM «n»",
    "SELECT * FROM (WITH m AS (SELECT 1) SELECT * FROM m, «n»), «m»",
    "SELECT extract(year FROM n), trim(BOTH 'x' FROM m), a IS NOT DISTINCT FROM n, m FROM «m»",
    "SELECT * FROM a JOIN «n» USING (m, n), «m»",
    "SELECT * FROM «n» LATERAL VIEW OUTER explode(x) t AS m, n WHERE n = 1",
    "FROM «n» |> WHERE m = 1 |> EXTEND a AS b, m |> JOIN «m» USING (n)",
    "SELECT * FROM n(3), m (1), («n»), LATERAL m(2), (SELECT * FROM «m»)",
    "CREATE TABLE n USING m AS SELECT * FROM «m»",
    "CREATE OR REPLACE TABLE n SELECT * FROM «m»",
    "CREATE TEMP VIEW n AS TABLE «m»",
    "CACHE LAZY TABLE n AS SELECT * FROM «m»",
    "SELECT * FROM f(TABLE «n»), g(TABLE(«m»))",
    "INSERT INTO n SELECT * FROM «m»",
    "INSERT OVERWRITE TABLE n (m, id) TABLE «m»",
    "FROM «m» INSERT INTO n SELECT a, m INSERT OVERWRITE TABLE db.n SELECT n, m",
    "MERGE WITH SCHEMA EVOLUTION INTO x USING «n» ON x.id = n.id WHEN MATCHED THEN DELETE",
    "MERGE INTO x USING (SELECT m FROM «n») s ON m WHEN MATCHED THEN DELETE",
    "SELECT * FROM «table_changes('db.n', 1, 2)», table_changes('x', 1)",
    "SELECT max(m) OVER (PARTITION BY m, n ORDER BY m, n) FROM «n» GROUP BY m, n ORDER BY m, n",
    "SELECT * FROM «n» PIVOT (sum(x) FOR m IN (1, 2)) SORT BY n, m",
    "SELECT a.n, a.db.n.id FROM a, b.m, x.db.n, w.x.y.n, delta.m, «n TIMESTAMP AS OF now()» AS m",
    "VALUES (1, 2), (n, m)",
    "UPDATE x SET a = 1, m = (SELECT max(id) FROM «n»), n = 2 WHERE n = m",
    "SELECT * FROM «IDENTIFIER('n')» JOIN IDENTIFIER('x') USING (m), «identifier ( 'db.n' )»",
    "WITH n AS (SELECT 1) SELECT * FROM IDENTIFIER('n'), «IDENTIFIER('`m`')»",
    "SELECT IDENTIFIER('n'), identifier FROM IDENTIFIER('n')(1), identifier(m), «m»",
    "INSERT INTO IDENTIFIER('n') SELECT * FROM «IDENTIFIER('m') VERSION AS OF 1» x, «n»",
    "DESCRIBE QUERY SELECT * FROM «n» WHERE EXISTS (SELECT 1 FROM «m» WHERE m.id = n.id)",
]
KNOWN = {("n",): "/n", ("m",): "/m", ("db", "n"): "/db/n", ("cat", "db", "n"): "/db/n"}


def place_of(name):
    return KNOWN.get(tuple(part.lower() for part in name))


@pytest.mark.parametrize("marked", CASES)
def test_the_tables_of(marked):
    text = marked.translate(dict.fromkeys(map(ord, "«»{}")))
    wanted, offset, starts = [], 0, []
    for place, mark in enumerate(marked):
        if mark in "«{":
            starts.append(place - offset)
        if mark in "»}":
            wanted.append((text[starts.pop() : place - offset], mark == "}"))
        offset += mark in "«»{}"
    found = path_relations(text, None, place_of)
    assert [(text[slice(*item.span)], item.is_qualifier) for item in found] == wanted
    asked = names_of_relations(text)
    told = {item.name for item in found if not item.is_qualifier and not item.changes}
    assert told <= asked
    assert path_relations(text) == ()


def test_a_table_is_told_with_its_place_and_its_name():
    (found,) = path_relations("SELECT * FROM Db.`n` VERSION AS OF 2", None, place_of)
    assert (found.path, found.name, found.version.sql) == ("/db/n", ("Db", "n"), "2")
    bare, named = path_relations("SELECT * FROM f(TABLE n), n", None, place_of)
    assert (bare.is_bare, named.is_bare) == (True, False)


def test_a_table_is_one_relation_under_its_long_and_its_short_name():
    short, long = path_relations("SELECT * FROM db.n, cat.db.n", None, place_of)
    assert short == long


def test_the_name_of_a_table_whose_changes_are_read_may_be_a_parameter():
    given = Parameters(named={"t": "'db.n'"})
    text = "SELECT * FROM table_changes(:t, 1)"
    assert names_of_relations(text, given) == {("db", "n")}
    (found,) = path_relations(text, given, place_of)
    assert found.path == "/db/n"
    assert names_of_relations("SELECT :other FROM n", given) == {("n",)}


def test_a_path_is_found_beside_names():
    text = "SELECT delta.`/p`.*, db.n.id FROM delta.`/p`, db.n, delta.`/db/n` x"
    spans = [text[slice(*item.span)] for item in path_relations(text, None, place_of)]
    assert spans == ["delta.`/p`", "db.n", "delta.`/p`", "db.n", "delta.`/db/n`"]
    assert names_of_relations(text) == {("db", "n")}


def test_a_text_without_the_words_before_a_table_is_not_read():
    assert names_of_relations("INSERT INTO n VALUES (1, 'not closed") == frozenset()
    assert names_of_relations("SELECT 1\nfrom\tn") == {("n",)}


def test_a_text_that_is_not_closed_is_an_error():
    with pytest.raises(UsageError, match="can't be parsed"):
        names_of_relations("SELECT * FROM n WHERE 'x")


@given(conditions, conditions)
def test_a_table_is_found_among_any_conditions(first, second):
    text = f"SELECT {first} FROM n WHERE {second} UNION SELECT * FROM t, db.n VERSION AS OF 1"
    of_condition = {("u",)}  # its subquery, if it has one
    assert names_of_relations(text) - of_condition == {("n",), ("t",), ("db", "n")}


@pytest.mark.parametrize(
    ("behind", "place"),
    [
        ("", 0),
        (" WHERE x", 0),
        (" AS a", None),
        (" a JOIN b", None),
        (" `where`", None),
        (", m", 0),
        (" NATURAL JOIN m", 0),
        (" PIVOT (sum(x) FOR m IN (1))", 0),
        (" TABLESAMPLE (5 ROWS)", 21),
        (" TABLESAMPLE (5 PERCENT) REPEATABLE (3) WHERE x", 39),
        (" TABLESAMPLE (5 ROWS) a", None),
        ("|> SELECT x", 0),
    ],
)
def test_an_alias_may_be_added(behind, place):
    assert place_of_alias(f"FROM n{behind}", 6) == (None if place is None else 6 + place)
