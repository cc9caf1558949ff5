"""The passes of a command choose the same rows, whatever becomes of the session between them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.local.target import LocalTarget
from optimist.spark import DeltaTable, write
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.changes import MergeSearch
from restless_session import COMMANDS, PROPERTIES, ensure_one_choice
from table_contents import read_locally

VECTORS = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
FEED = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
NOON = dt.datetime(2024, 3, 1, 12, tzinfo=dt.timezone.utc)
CHOSEN = "at >= '2024-03-01 18:00:00' AND CAST(s AS INT) > 0"
"""In UTC the rows from 6 on; in New York the last one; one text that is no number fails in ANSI."""


def made(path, properties):
    """A row for each hour after noon."""
    hours = [NOON + dt.timedelta(hours=hour) for hour in range(12)]
    ids = pa.array(range(12), pa.int64())
    rows = {"id": ids, "at": pa.array(hours, pa.timestamp("us", "UTC")), "s": ["1"] * 12}
    DeltaLog.for_path(path, properties).append(pa.table(rows))


def delete(spark, path):
    DeltaTable.forPath(spark, path).delete(CHOSEN)
    return range(6)


def update(spark, path):
    DeltaTable.forPath(spark, path).update(CHOSEN, {"id": "id + 100"})
    return [*range(6), *range(106, 112)]


def merge(spark, path):
    source = spark.sql("SELECT id AS k, 0 AS z FROM range(4, 14)").alias("s")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, f"id = k AND {CHOSEN}")
    builder = builder.whenMatchedUpdate("at >= '2024-03-01 18:00:00'", {"id": "id + 100"})
    builder.whenNotMatchedInsert(values={"id": "k + 1000"}).execute()
    return [*range(6), *range(106, 112), 1004, 1005, 1012, 1013]


def replace_where(spark, path):
    new = spark.sql("SELECT 50L AS id, TIMESTAMP '2024-03-01 20:00:00' AS at, '5' AS s")
    write(new, path, mode="overwrite", replaceWhere=CHOSEN)
    return [*range(6), 50]


def replace_on(spark, path):
    new = spark.sql("SELECT 50L AS id, TIMESTAMP '2024-03-01 20:00:00' AS at, '5' AS s").alias("s")
    text = "t.at >= '2024-03-01 18:00:00' AND s.id = 50"
    write(new, path, mode="overwrite", replaceOn=text, targetAlias="t")
    return [*range(6), 50]


@pytest.fixture(params=["between", "never"])
def session_changes(request, monkeypatch, conf):
    """Change the zone, ANSI mode and case sensitivity once the rows are found."""
    seen = []

    def then_change(real):
        def change(*arguments, **options):
            found = real(*arguments, **options)
            if request.param == "between":
                conf("spark.sql.session.timeZone", "America/New_York")
                conf("spark.sql.ansi.enabled", "false")
                conf("spark.sql.caseSensitive", "true")
            seen.append(found)
            return found

        return change

    for owner, name in ((Target, "search"), (LocalTarget, "search"), (MergeSearch, "_gathered")):
        monkeypatch.setattr(owner, name, then_change(getattr(owner, name)))
    yield
    assert seen


@pytest.mark.sample(12)
@pytest.mark.parametrize("command", [delete, update, merge, replace_where, replace_on])
@pytest.mark.parametrize("properties", [{}, {FEED: "true"}, {VECTORS: "true"}], ids=str)
@pytest.mark.usefixtures("plane", "session_changes")
def test_the_rows_that_were_found_are_the_rows_that_change(spark, table_path, command, properties):
    made(table_path, properties)
    expected = command(spark, table_path)
    assert sorted(read_locally(table_path)["id"].to_pylist()) == list(expected)


@pytest.mark.usefixtures("plane", "session_changes")
def test_no_row_is_lost_that_is_marked_and_read_again(spark, table_path, monkeypatch):
    monkeypatch.setattr("optimist.spark.commands.dml.target._ONE_PASS_BYTES", 0)
    made(table_path, {VECTORS: "true"})
    table = DeltaTable.forPath(spark, table_path)
    table.update("at >= '2024-03-01 18:00:00'", {"id": "id + 100"})
    ids = read_locally(table_path)["id"].to_pylist()
    assert sorted(ids) == [*range(6), *range(106, 112)]


@pytest.mark.sample(5)
@pytest.mark.parametrize("properties", PROPERTIES, ids=["copies", "feed", "vectors"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("plane")
def test_a_command_chooses_its_rows_once_whatever_another_thread_sets(
    spark, table_path, command, properties
):
    ensure_one_choice(spark, table_path, command, properties, seed=0)
