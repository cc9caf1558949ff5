"""UPDATE by vectors computes the new values in the pass that finds the rows."""

from __future__ import annotations

import pytest

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.spark import DeltaTable, read
from optimist.spark.commands import target, update

DEFAULTS = "spark.databricks.delta.properties.defaults."
KEYS = ("enableDeletionVectors", "enableChangeDataFeed", "enableRowTracking")
IN_SPARK = "spark.optimist.spark.localPlane.maxBytes"


@pytest.fixture
def searches(monkeypatch):
    """How many rows each search has computed."""
    found = []
    search = update._Update._find_and_compute

    def counted(job, candidates):
        touched = search(job, candidates)
        found.append(touched.num_matching)
        return touched

    monkeypatch.setattr(update._Update, "_find_and_compute", counted)
    return found


@pytest.fixture
def table(spark, table_path, conf):
    """Twenty rows in two files of each of two partitions; changes and rows are tracked."""
    conf(IN_SPARK, "0")
    log = DeltaLog.for_path(table_path, {f"{DEFAULTS}{key}": "true" for key in KEYS})
    for start in (0, 10):
        rows = spark.range(start, start + 10).selectExpr("id", "id % 2 AS p", "concat('n', id) s")
        log.append(rows.toArrow(), partition_by=["p"])
    return DeltaTable.forPath(spark, table_path)


def ids(path):
    rows = DeltaLog.for_path(path).to_arrow(columns=["id", "_metadata.row_id"]).to_pylist()
    return {row["id"]: row["_metadata.row_id"] for row in rows}


@pytest.mark.usefixtures("plane")
def test_rows_changes_and_ids_are_right(spark, table, table_path, searches):
    before = ids(table_path)
    table.update("id % 10 = 3 AND s LIKE 'n%'", {"s": "concat(s, '!', uuid())", "p": "p + 1"})
    assert searches == [2]
    rows = {row.id: row for row in read(spark, table_path).collect()}
    assert len(rows) == 20
    assert {i: row.p for i, row in rows.items()} == {
        i: 2 if i % 10 == 3 else i % 2 for i in range(20)
    }
    assert {i: row.s.partition("!")[0] for i, row in rows.items()} == {
        i: f"n{i}" for i in range(20)
    }
    assert ids(table_path) == before
    feed = DeltaLog.for_path(table_path).changes(starting_version=2).to_pylist()
    told = sorted((row["_change_type"], row["id"], row["s"]) for row in feed)
    assert told == sorted(
        (kind, i, rows[i].s if "post" in kind else f"n{i}")
        for kind in ("update_preimage", "update_postimage")
        for i in (3, 13)
    )


@pytest.mark.parametrize("plane", ["native"], indirect=True)
@pytest.mark.usefixtures("plane")
def test_large_files_are_read_in_two_passes(table, table_path, searches, monkeypatch):
    monkeypatch.setattr(target, "_ONE_PASS_BYTES", 0)
    table.update("id % 10 = 3", {"s": "'new'"})
    assert searches == []
    rows = DeltaLog.for_path(table_path).to_arrow("s = 'new'").to_pylist()
    assert sorted(row["id"] for row in rows) == [3, 13]


@pytest.mark.parametrize("plane", ["native"], indirect=True)
@pytest.mark.usefixtures("plane")
def test_nothing_is_written_where_no_row_matches_or_one_breaks_a_rule(table, table_path, searches):
    table.update("id % 10 = 3 AND s LIKE '%x%'", {"s": "'new'"})
    DeltaLog.for_path(table_path).alter.add_constraint("positive", "id >= 0")
    with pytest.raises(SchemaError, match="positive"):
        table.update("id % 10 = 3", {"id": "-id"})
    assert searches == [0, 2]
    assert sorted(ids(table_path)) == list(range(20))
