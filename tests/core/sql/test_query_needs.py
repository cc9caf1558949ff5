"""What a query surely leaves unread of a table that it names by its path."""

from __future__ import annotations

import pytest

from optimist.core.schema.types import schema_from_json
from optimist.core.sql import Parameters, path_relations, query_needs

P = "delta.`/p`"
SCHEMA = schema_from_json(
    '{"type":"struct","fields":['
    '{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"s","type":"string","nullable":true,"metadata":{}},'
    '{"name":"Kind","type":"string","nullable":true,"metadata":{}},'
    '{"name":"a.b","type":"string","nullable":true,"metadata":{}},'
    '{"name":"st","nullable":true,"metadata":{},"type":{"type":"struct","fields":['
    '{"name":"x","type":"long","nullable":true,"metadata":{}},'
    '{"name":"in","nullable":true,"metadata":{},"type":{"type":"struct","fields":['
    '{"name":"x","type":"long","nullable":true,"metadata":{}},'
    '{"name":"y","type":"long","nullable":true,"metadata":{}}]}}]}}]}'
)
COLUMNS = {
    f"SELECT id FROM {P}": ["id"],
    f"SELECT t.s, `a.b` FROM {P} AS t WHERE ID > 3": ["id", "s", "a.b"],
    f"SELECT count(*) FROM {P}": [],
    f"SELECT count( * ), 2 * id * 3 FROM {P}": ["id"],
    f"SELECT upper(\u212aind) FROM {P}": ["Kind"],  # Java takes the sign of kelvin for a k
    f'SELECT "s" FROM {P}': ["s"],
    f"SELECT /*+ BROADCAST(t) */ 1 FROM {P} t JOIN u USING (id)": ["id"],
    f"SELECT a.id FROM {P} a, (SELECT s FROM {P}) b": ["id", "s"],
    f"WITH c AS (SELECT id FROM {P}) SELECT sum(id) FROM c": ["id"],
    f"SELECT {P}.id FROM {P} WHERE {P}.st.x = 1": ["id", "st.x"],
    f"SELECT st.x, t.ST.IN.y FROM {P} t": ["st.x", "st.in.y"],
    f"SELECT st.x, st FROM {P}": ["st"],
    f"SELECT st.in, st.in.y FROM {P}": ["st.in"],
    f"SELECT st['x'] FROM {P}": ["st"],
    f"SELECT st.x, st.z FROM {P}": ["st"],
    f"SELECT st.id FROM {P} st": ["id", "st"],
    f"SELECT id FROM {P} WHERE id IS DISTINCT FROM 1": ["id"],
    f"SELECT extract(DAY FROM s), trim(LEADING 'a' FROM s) FROM {P}": ["s"],
    f"SELECT id FROM {P} UNION ALL SELECT s FROM {P}": ["id", "s"],
    f"SELECT id FROM {P} TABLESAMPLE (10 ROWS)": ["id"],
    f"SELECT id FROM {P} WHERE (s = 'x')": ["id", "s"],
    f"SELECT id FROM {P} VERSION AS OF 3 WHERE s": ["id", "s"],
    f"INSERT INTO t SELECT id FROM {P}": ["id"],
    f"EXPLAIN SELECT id FROM {P}": ["id"],
}
ALL = [
    f"SELECT * FROM {P}",
    f"SELECT t.* FROM {P} t",
    f"SELECT DISTINCT * FROM {P}",
    f"SELECT /*+ h */ * FROM {P}",
    f"SELECT id, * FROM {P}",
    f"SELECT struct(*) FROM {P}",
    f"SELECT count(*, id) FROM {P}",
    f"SELECT st.* FROM {P}",
    f"SELECT * EXCEPT (id) FROM {P}",
    f"SELECT id FROM {P} NATURAL JOIN u",
    f"SELECT a FROM {P} AS t(a, b)",
    f"SELECT a FROM {P} t (a, b)",
    f"SELECT id FROM {P} PIVOT (sum(id) FOR s IN ('a'))",
    f"SELECT id FROM {P} UNPIVOT (v FOR n IN (id))",
    f"SELECT IDENTIFIER('s') FROM {P}",
    f"SELECT id FROM (TABLE {P})",
    f"FROM {P}",
    f"FROM {P} SELECT id",
    f"SELECT id FROM (FROM {P})",
    f"SELECT 1 WHERE EXISTS (FROM {P})",
    f"SELECT id FROM u UNION FROM {P}",
    f"SELECT id FROM u UNION DISTINCT FROM {P}",
    f"WITH c AS (SELECT 1) FROM {P}",
    f"SELECT id FROM (WITH c AS (SELECT 1) FROM {P})",
    f"SELECT id FROM {P} |> AGGREGATE count(1)",
    f"DELETE FROM t WHERE id IN (SELECT id FROM {P})",
    f"MERGE INTO t USING {P} s ON s.id = t.id WHEN NOT MATCHED THEN INSERT *",
    f"CREATE TABLE t AS SELECT id FROM {P}",
]
ROWS = {
    f"SELECT * FROM {P} WHERE id = 1": ("id = 1", None, None),
    f"SELECT id FROM {P} AS t WHERE t.id = 1 AND s IN (SELECT 1) GROUP BY id": (
        "t.id = 1 AND s IN (SELECT 1)",
        "t",
        None,
    ),
    f"SELECT id FROM {P} `T 1` WHERE CASE WHEN id THEN s END ORDER BY 1": (
        "CASE WHEN id THEN s END",
        "T 1",
        None,
    ),
    f"SELECT ? FROM {P} WHERE id = ? AND s = ?": ("id = 2 AND s = 'x'", None, None),
    f"SELECT 1 FROM u WHERE id IN (SELECT id FROM {P} WHERE s = 'a')": ("s = 'a'", None, None),
    f"SELECT id FROM {P} WHERE id = 1 UNION SELECT 2": ("id = 1", None, None),
    f"SELECT id FROM {P} WHERE id = 1 |> LIMIT 1": ("id = 1", None, None),
    f"SELECT id, s AS t FROM {P} LIMIT 10;": (None, None, 10),
    f"SELECT * FROM (SELECT * FROM {P} t LIMIT 10) LIMIT 3": (None, None, 10),
}
EVERY_ROW = [
    f"SELECT id FROM {P} t JOIN u ON t.id = u.id WHERE t.id = 1",
    f"SELECT id FROM u, {P} WHERE id = 1",
    f"SELECT id FROM u LEFT JOIN {P} WHERE id = 1",
    f"SELECT id FROM {P} LATERAL VIEW explode(s) v AS id WHERE id = 1",
    f"SELECT id FROM {P} TABLESAMPLE (1 PERCENT) WHERE id = 1",
    f"SELECT id FROM {P} WHERE (id = 1",
    f"FROM {P} WHERE id = 1",
    f"SELECT max(id) FROM {P} LIMIT 1",
    f"SELECT DISTINCT id FROM {P} LIMIT 1",
    f"SELECT id FROM {P} LIMIT 1 OFFSET 1",
    f"SELECT id FROM {P} LIMIT ALL",
    f"SELECT id FROM {P} LIMIT 1 + 1",
    f"SELECT id FROM {P} ORDER BY id LIMIT 1",
    f"SELECT id FROM u EXCEPT SELECT id FROM {P} LIMIT 1",
    f"SELECT id FROM u, {P} LIMIT 1",
]


def _needs(text):
    parameters = Parameters(positional=["1", "2", "'x'"]) if "?" in text else None
    relations = path_relations(text, parameters)
    needs = query_needs(text, relations, parameters)
    own = next(item for item in relations if not item.is_qualifier)
    return needs.mentions, needs.rows_of(own)


@pytest.mark.parametrize("text", COLUMNS)
def test_columns_that_no_text_names_are_not_read(text):
    mentions, _ = _needs(text)
    assert [".".join(path) for path in mentions.paths(SCHEMA)] == COLUMNS[text]


@pytest.mark.parametrize("text", ALL)
def test_all_columns_are_read_where_others_than_those_named_may_be(text):
    assert _needs(text)[0] is None


@pytest.mark.parametrize("text", ROWS)
def test_the_rows_that_a_query_needs(text):
    _, rows = _needs(text)
    assert (rows.where and rows.where.sql, rows.alias, rows.limit) == ROWS[text]


@pytest.mark.parametrize("text", EVERY_ROW)
def test_every_row_may_be_needed(text):
    _, rows = _needs(text)
    assert (rows.where, rows.limit) == (None, None)


def test_a_name_in_back_ticks_may_be_a_pattern():
    assert _needs(f"SELECT `s` FROM {P}")[0].has_patterns is False
    assert _needs(f"SELECT `(s)?+.+` FROM {P}")[0].has_patterns is True


def test_the_hidden_column_counts_as_named_where_it_is():
    assert _needs(f"SELECT _Metadata.row_id FROM {P}")[0].has("_metadata")
    assert not _needs(f"SELECT id FROM {P}")[0].has("_metadata")
