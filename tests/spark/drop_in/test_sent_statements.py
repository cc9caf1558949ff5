"""Which statements a Spark Connect client must not send: judged by their text, without a server."""

from __future__ import annotations

import pytest

from optimist.core.errors import UsageError
from optimist.core.sql.relations import path_relations
from optimist.spark.drop_in.connect.statements import ensure_can_be_had

REFUSED = [
    "CREATE TABLE t (id BIGINT) USING delta",
    "CREATE OR REPLACE TABLE t USING delta AS SELECT 1 AS id",
    "REPLACE TABLE t USING delta AS SELECT 1 AS id",
    "CREATE TEMPORARY VIEW v USING delta OPTIONS (path '/t')",
    "INSERT OVERWRITE LOCAL DIRECTORY '/x' USING delta SELECT 1 AS id",
    "CACHE TABLE delta.`/t`",
    "CREATE VIEW v AS SELECT * FROM delta.`/t`",
    "BEGIN SELECT * FROM delta.`/t`; END",
    "DESCRIBE delta.`/t`",
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
