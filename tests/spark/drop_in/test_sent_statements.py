"""Which statements a Spark Connect client must not send: judged by their text, without a server."""

from __future__ import annotations

import pytest

from optimist.core.errors import UsageError
from optimist.core.sql.relations import path_relations
from optimist.spark.drop_in.connect.replaced_names import replaced_names
from optimist.spark.drop_in.connect.statements import (
    ensure_can_be_had,
    has_query,
    named_statement,
)

REFUSED = [
    "CREATE TEMPORARY VIEW v USING delta OPTIONS (path '/t')",
    "INSERT OVERWRITE LOCAL DIRECTORY '/x' USING delta SELECT 1 AS id",
    "CACHE TABLE delta.`/t`",
    "CREATE VIEW v AS SELECT * FROM delta.`/t`",
    "BEGIN SELECT * FROM delta.`/t`; END",
    "DESCRIBE delta.`/t`",
    "TRUNCATE TABLE IDENTIFIER('a' || 'b')",
    "EXECUTE IMMEDIATE 'truncate table t'",
    "SET VAR x = (SELECT max(id) FROM delta.`/t`)",
]
SENT = [
    "SELECT * FROM delta.`/t`",
    "WITH w AS (SELECT * FROM delta.`/t`) SELECT * FROM w",
    "(SELECT id FROM delta.`/t`) UNION ALL SELECT 1",
    "EXPLAIN SELECT * FROM delta.`/t`",
    "CREATE TEMPORARY VIEW v AS SELECT * FROM delta.`/t`",
    "CACHE TABLE v AS SELECT * FROM delta.`/t`",
    "CREATE TABLE t (id BIGINT) USING parquet",
    "SHOW TABLES",
    "TRUNCATE TABLE IDENTIFIER('a')",
    "TRUNCATE TABLE truncate.t",
    "EXECUTE IMMEDIATE 'SELECT 1'",
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_statement_that_the_server_cannot_run_is_refused(text):
    with pytest.raises(UsageError) as caught:
        ensure_can_be_had(text, path_relations(text))
    assert caught.value.kind == "OPTIMIST_UNSUPPORTED_STATEMENT"


@pytest.mark.parametrize("text", SENT)
def test_a_statement_that_the_server_can_run_is_sent(text):
    ensure_can_be_had(text, path_relations(text))


def test_an_insert_into_several_tables_is_refused():
    text = "FROM s INSERT INTO delta.`/t` SELECT id INSERT INTO delta.`/u` SELECT id"
    with pytest.raises(UsageError) as caught:
        ensure_can_be_had(text, path_relations(text))
    assert "INSERT into several tables at once" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "table", "is_had"),
    [
        ("DROP TABLE IF EXISTS a.`t`", ("a", "t"), True),
        ("alter table t rename to u", ("t",), True),
        ("REFRESH TABLE t", ("t",), True),
        ("ALTER TABLE t SET LOCATION '/x'", ("t",), False),
        ("DESC FORMATTED t", ("t",), False),
        ("CACHE LAZY TABLE t", ("t",), False),
        ("SHOW PARTITIONS t PARTITION (a = 1)", ("t",), False),
        ("SHOW CREATE TABLE t AS SERDE", ("t",), False),
        ("DESCRIBE database", ("database",), False),
    ],
)
def test_a_statement_about_a_name_is_had_if_it_is_about_the_entry_alone(text, table, is_had):
    named = named_statement(text)
    assert named.table.parts == table
    if is_had:
        named.ensure_can_be_had()
    else:
        with pytest.raises(UsageError, match=r"over a Delta table"):
            named.ensure_can_be_had()


def test_other_statements_are_about_no_name():
    for text in (
        "SHOW TABLES",
        "DESC FUNCTION f",
        "DROP VIEW v",
        "DROP TABLE",
        "SELECT 1",
        "CACHE TABLE 'x'",
        "",
    ):
        assert named_statement(text) is None
    assert [has_query(text) for text in ("(SELECT 1)", "DESC QUERY SELECT 1", "DESC t")] == [
        True,
        True,
        False,
    ]


PLACES = {("t",): "/t", ("a", "t"): "/t", ("c", "a", "t"): "/t", ("u",): "/u"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT t.id FROM t", "SELECT t.id FROM {/t} AS `t` "),
        ("SELECT a.t.id FROM c.a.t, u", "SELECT {/t}.id FROM {/t}, {/u} AS `u` "),
        ("SELECT id FROM a.t x JOIN u y", "SELECT id FROM {/t} x JOIN {/u} y"),
        ("FROM t TABLESAMPLE (1 ROWS) WHERE id", "FROM {/t} TABLESAMPLE (1 ROWS) AS `t`  WHERE id"),
        ("TABLE t", "TABLE {/t}"),
        ("SELECT a.t.id FROM a.t AS x, t.id", "SELECT {/t}.id FROM {/t} AS x, t.id"),
        (
            "SELECT 1 FROM t /* t */, 'FROM t' -- t",
            "SELECT 1 FROM {/t} AS `t`  /* t */, 'FROM t' -- t",
        ),
    ],
)
def test_frames_stand_in_the_places_of_names(text, expected):
    relations = path_relations(text, None, PLACES.get)
    assert replaced_names(text, relations, lambda item: f"{{{item.path}}}") == expected


def test_a_table_is_named_in_one_way_before_columns():
    text = "SELECT t.id, a.t.id FROM a.t"
    with pytest.raises(UsageError, match=r"Both `a`.`t` and t before columns"):
        replaced_names(text, path_relations(text, None, PLACES.get), lambda item: item.path)
