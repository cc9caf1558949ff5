"""Conflicts by row between a command on Spark and one without it (spec 2.12), and runs again."""

from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import DeltaConcurrentModificationException
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark import DeltaTable, write

VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}
RETRY = "spark.optimist.conflict.retry"


@pytest.fixture
def log(table_path):
    """Two files with the ids 0 to 9 and 10 to 19; `v` is empty."""
    log = DeltaLog.for_path(table_path, VECTORS)
    for start in (0, 10):
        ids = range(start, start + 10)
        log.append(pa.table({"id": pa.array(ids, pa.int64()), "v": [""] * 10}))
    return log


@pytest.fixture
def meeting(monkeypatch):
    """Run something right before the next commit."""

    def arrange(between):
        pending = [between]
        for name in ("commit", "commit_if_needed"):
            monkeypatch.setattr(OptimisticTransaction, name, met(name, pending))

    def met(name, pending):
        real = getattr(OptimisticTransaction, name)

        def meet(txn, *arguments, **named):
            if pending:
                pending.pop()()
            return real(txn, *arguments, **named)

        return meet

    return arrange


def merge(spark, log, **when):
    rows = pa.table({"id": pa.array([13, 99], pa.int64()), "v": ["a", "b"]})
    source = spark.createDataFrame(rows).alias("s")
    target = DeltaTable.forPath(spark, log.table_path).alias("t")
    builder = target.merge(source, "t.id = s.id").whenMatchedUpdateAll(when.get("matched"))
    return (builder if when.get("no_insert") else builder.whenNotMatchedInsertAll()).execute()


def replace_two(spark, log):
    rows = spark.createDataFrame(pa.table({"id": pa.array([13], pa.int64()), "v": ["new"]}))
    where = "id >= 13 AND id < 15"
    write(rows, log.table_path, mode="overwrite", replaceWhere=where)


def contents(log):
    return {row["id"]: row["v"] for row in log.to_arrow().to_pylist()}


START = dict.fromkeys(range(20), "")


def without(rows, *ids):
    return {i: v for i, v in rows.items() if i not in ids}


TOGETHER = {
    "merge": (merge, {}, "id = 14", {**START, 13: "a", 99: "b"}),
    "merge that changes no row": (
        merge,
        {"matched": "s.v = 'x'", "no_insert": True},
        "id = 13",
        START,
    ),
    "replaceWhere": (replace_two, {}, "id = 15", {**without(START, 14), 13: "new"}),
}


@pytest.mark.again
@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.usefixtures("plane")
def test_a_command_lands_beside_a_delete_of_other_rows(spark, log, meeting, name):
    command, arguments, deleted, expected = TOGETHER[name]
    meeting(lambda: log.delete(deleted))
    command(spark, log, **arguments)
    assert contents(log) == without(expected, int(deleted.split()[-1]))


APART = {
    "a row that is updated": (merge, {}, "id = 13"),
    # The row of the source is not inserted, because a row is there that the MERGE does not change.
    "a row that keeps another out": (merge, {"matched": "s.v = 'x'"}, "id = 13"),
    "a row that is replaced": (replace_two, {}, "id = 14"),
}


@pytest.mark.again
@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("plane", ["native"], indirect=True)
@pytest.mark.usefixtures("plane")
def test_a_command_conflicts_with_a_delete_of_a_row_that_it_needs(spark, log, meeting, name):
    command, arguments, deleted = APART[name]
    meeting(lambda: log.delete(deleted))
    with pytest.raises(DeltaConcurrentModificationException):
        command(spark, log, **arguments)
    assert contents(log) == without(START, int(deleted.split()[-1]))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["delete", "update", "merge"])
@pytest.mark.parametrize("plane", ["native"], indirect=True)
@pytest.mark.usefixtures("plane")
def test_a_command_runs_again_where_the_conf_says_so(spark, log, meeting, name):
    target = DeltaTable.forPath(spark, log.table_path)
    commands = {
        "delete": lambda: target.delete("id = 13 AND v = ''"),
        "update": lambda: target.update("id = 13", {"v": "concat(v, 'u')"}),
        "merge": lambda: merge(spark, log),
    }
    expected = {
        "delete": {**START, 13: "w"},
        "update": {**START, 13: "wu"},
        "merge": {**START, 13: "a", 99: "b"},
    }
    meeting(lambda: log.update(set={"v": "'w'"}, predicate="id = 13"))
    spark.conf.set(RETRY, "true")
    try:
        commands[name]()
    finally:
        spark.conf.unset(RETRY)
    assert contents(log) == expected[name]
    newest = log.history(1)[0].info
    if name != "delete":  # it finds nothing any more
        assert newest.operation_metrics["numReruns"] == "1"
