"""Which texts of `DeltaTable`'s methods may name tables on Spark Connect, without a server."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from optimist.core.requests.merge_clauses import Clause
from optimist.spark.commands.merge.request import MergeRequest
from optimist.spark.drop_in.connect import delta_tables
from optimist.spark.drop_in.connect.delta_tables import ROW_CHANGES

ASKING, COLUMN = "id IN (SELECT id FROM db.t)", object()


class Tables:
    """Views that stand for tables in a text."""

    def text(self, value, aliases):
        assert aliases == {}
        return value.sql.replace("db.t", "view")


@pytest.fixture
def ended(monkeypatch):
    found = []

    @contextmanager
    def tables(spark, _):
        yield Tables()
        found.append(spark)

    monkeypatch.setattr(delta_tables, "value_tables", tables)
    return found


def called(name, *args):
    told = []
    table = type("Table", (), {"_spark": "session"})()
    ROW_CHANGES[name](lambda *given: told.append(given), table, *args)
    return told


def test_subqueries_of_conditions_and_values_read_views(ended):
    changed = ASKING.replace("db.t", "view")
    assert called("delete", ASKING) == [(changed,)]
    assert called("delete") == [(None,)]
    values = {"a": "(SELECT max(id) FROM db.t)", "b": COLUMN, "c": "db.t.id"}
    assert called("update", ASKING, values) == [
        (changed, {"a": "(SELECT max(id) FROM view)", "b": COLUMN, "c": "db.t.id"})
    ]
    assert called("update", COLUMN, None) == [(COLUMN, None)]
    assert ended == ["session"] * 4


def test_the_clauses_of_a_merge_read_views(ended):
    clause = Clause("NOT MATCHED", "insert", ASKING, {"id": ASKING})
    ((request,),) = called("_merge", MergeRequest(None, "a.id = b.id", (clause,)))
    changed = ASKING.replace("db.t", "view")
    assert request.condition == "a.id = b.id"
    assert (request.clauses[0].condition, request.clauses[0].values) == (changed, {"id": changed})
    assert ended == ["session"]
