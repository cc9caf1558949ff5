"""Calls with wrong or loose arguments: each works as a person means it, or names the argument.

The word in a case is what the message of the error has to hold; no word means that the call works.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from optimist.core import (
    Column,
    ColumnChange,
    DeltaLog,
    EngineOptions,
    NewColumn,
    Operation,
    OptimistError,
    col,
    run_sql,
)

ROWS = pa.table({"id": [9]})
DAY = dt.date(2026, 1, 1)
EXPRESSION = pc.field("id") > 1
LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.timezone.utc)
SOON = dt.datetime(2200, 1, 1, tzinfo=dt.timezone.utc)


class Case(NamedTuple):
    """A call of one method, and the word in its error; none if it works."""

    name: str
    call: Callable[[DeltaLog], Any]
    word: str | None = None


def at_first(log: DeltaLog) -> dt.datetime:
    """Return the time of version 1, as a datetime."""
    made_ms = log.snapshot(1).timestamp_ms
    return dt.datetime.fromtimestamp(made_ms / 1000, dt.timezone.utc)


TIMES = [
    Case("snapshot at a datetime", lambda log: log.snapshot(timestamp=at_first(log))),
    Case("snapshot at a pandas time", lambda log: log.snapshot(None, pd.Timestamp(at_first(log)))),
    Case(
        "snapshot at a datetime without a zone",
        lambda log: log.snapshot(timestamp=at_first(log).replace(tzinfo=None)),
    ),
    Case(
        "snapshot at a NumPy time",
        lambda log: log.snapshot(None, np.datetime64("2026")),
        "timestamp",
    ),
    Case("snapshot at a date", lambda log: log.snapshot(timestamp=DAY), "2026-01-01"),
    Case("snapshot at a number", lambda log: log.snapshot(timestamp=1.5), "timestamp"),
    Case("snapshot at a list", lambda log: log.snapshot(timestamp=["2000"]), "timestamp"),
    Case("snapshot at a bool", lambda log: log.snapshot(timestamp=True), "timestamp"),
    Case("version as text", lambda log: log.snapshot("1"), "version"),
    Case("version as a float", lambda log: log.snapshot(1.0), "version"),
    Case("version as a bool", lambda log: log.snapshot(True), "version"),
    Case("version of NumPy", lambda log: log.snapshot(np.int64(1))),
    Case("version as a list", lambda log: log.snapshot([1]), "version"),
    Case("version as a datetime", lambda log: log.snapshot(LONG_AGO), "version"),
    Case("restore to a datetime", lambda log: log.restore(timestamp=at_first(log))),
    Case("restore to a list", lambda log: log.restore(timestamp=[1]), "timestamp"),
    Case("restore to a text", lambda log: log.restore("1"), "version"),
    Case("restore to both", lambda log: log.restore(1, "2000"), "version or a timestamp"),
    Case("changes since a datetime", lambda log: log.changes(starting_timestamp=LONG_AGO)),
    Case("changes since a text", lambda log: log.changes(starting_version="0"), "starting_version"),
    Case(
        "changes until a text",
        lambda log: log.changes(starting_version=0, ending_version="1"),
        "ending_version",
    ),
    Case(
        "changes until a datetime",
        lambda log: log.changes(starting_version=0, ending_timestamp=at_first(log)),
    ),
    Case(
        "changes until a bool",
        lambda log: log.changes(starting_version=0, ending_timestamp=True),
        "ending_timestamp",
    ),
    Case("changes without a start", lambda log: log.changes(), "starting_version"),
    Case("changes by position", lambda log: log.changes(0), "predicate"),
    Case("follow a datetime", lambda log: list(log.follow(starting_timestamp=LONG_AGO))),
    Case("follow a text", lambda log: list(log.follow(starting_version="1"))),
    Case(
        "follow a word", lambda log: list(log.follow(starting_version="first")), "starting_version"
    ),
    Case("follow a float", lambda log: list(log.follow(starting_version=1.5)), "starting_version"),
    Case(
        "follow a huge number",
        lambda log: list(log.follow(starting_version=2**70)),
        "starting_version",
    ),
    Case(
        "follow both",
        lambda log: list(log.follow(starting_version=1, starting_timestamp="2000")),
        "starting_timestamp",
    ),
    Case("follow a typo", lambda log: list(log.follow(starting_versoin=1)), "starting_versoin"),
    Case("follow a flag", lambda log: list(log.follow(ignoreDeletes=1)), "ignoreDeletes"),
    Case("follow and wait", lambda log: next(log.follow(wait_s="1")), "wait_s"),
    Case("follow a number", lambda log: next(log.follow(3)), "position"),
    Case("clone at a datetime", lambda log: log.clone(other(log), timestamp=at_first(log))),
    Case("clone at a text", lambda log: log.clone(other(log), version="1"), "version"),
    Case("clone to nothing", lambda log: log.clone(None), "path"),
    Case("clone to half a character", lambda log: log.clone("\ud800"), "surrogate"),
    Case("clone in a mode", lambda log: log.clone(other(log), mode="overwrite"), "mode"),
    Case("clone with a list", lambda log: log.clone(other(log), properties=["a"]), "properties"),
    Case("resolve a text", lambda log: log.resolve_commit("x", "5"), "version"),
    Case("resolve a number", lambda log: log.resolve_commit(5), "txn_id"),
    Case("history of a text", lambda log: log.history("3"), "limit"),
    Case("history of a float", lambda log: log.history(1.5), "limit"),
    Case("history below nothing", lambda log: log.history(-1), "limit"),
    Case("wait for a text", lambda log: log.wait_for_background_work("x"), "timeout_s"),
]

COLUMNS = [
    Case("create by a mapping", lambda log: new(log).create({"id": "bigint"})),
    Case("create by pairs", lambda log: new(log).create([("id", "bigint"), ("p", "string")])),
    Case("create by a pyarrow schema", lambda log: new(log).create(ROWS.schema)),
    Case("create by pyarrow fields", lambda log: new(log).create(list(ROWS.schema))),
    Case("create by a pyarrow type", lambda log: new(log).create({"id": pa.int64()})),
    Case("create by rows", lambda log: new(log).create(ROWS), "columns"),
    Case("create by a text", lambda log: new(log).create("id bigint"), "columns"),
    Case("create by names", lambda log: new(log).create(["id"]), "columns"),
    Case("create by an unknown type", lambda log: new(log).create({"id": "biggint"}), "biggint"),
    Case("create by a class", lambda log: new(log).create({"id": int}), "id"),
    Case("create by None", lambda log: new(log).create(None), "columns"),
    Case("create by a number", lambda log: new(log).create(5), "columns"),
    Case("create by a nameless pair", lambda log: new(log).create([(5, "bigint")]), "columns"),
    Case("create by a nameless column", lambda log: new(log).create([Column(5, "int")]), "name"),
    Case("create by three", lambda log: new(log).create([("id", "bigint", True)]), "columns"),
    Case(
        "create with one partition column",
        lambda log: new(log).create({"id": "int", "p": "int"}, partition_by="p"),
        "partition_by",
    ),
    Case(
        "create with a number of partitions",
        lambda log: new(log).create({"id": "int"}, partition_by=5),
        "partition_by",
    ),
    Case(
        "create with numbered partitions",
        lambda log: new(log).create({"id": "int"}, partition_by=[5]),
        "partition_by",
    ),
    Case(
        "create clustered by nothing",
        lambda log: new(log).create({"id": "int"}, cluster_by=[None]),
        "cluster_by",
    ),
    Case(
        "create with a flag",
        lambda log: new(log).create({"id": "int"}, properties={"delta.appendOnly": True}),
    ),
    Case(
        "create with a list of properties",
        lambda log: new(log).create({"id": "int"}, properties=["a"]),
        "properties",
    ),
    Case("create in no mode", lambda log: new(log).create(ROWS.schema, mode=None), "mode"),
    Case("create with a number", lambda log: new(log).create({"id": "int"}, comment=5), "comment"),
    Case(
        "create numbered",
        lambda log: new(log).create([Column("id", "bigint", identity=True)]),
        "identity",
    ),
    Case("convert with a list", lambda log: new(log).convert(["p"]), "partition_columns"),
    Case("add pairs", lambda log: log.alter.add_columns([("x", "string")])),
    Case("add a mapping", lambda log: log.alter.add_columns({"x": "string"})),
    Case("add a Column", lambda log: log.alter.add_columns([Column("x", "string")])),
    Case("add a pyarrow schema", lambda log: log.alter.add_columns(pa.schema({"x": pa.int32()}))),
    Case("add a pyarrow field", lambda log: log.alter.add_columns([pa.field("x", pa.int32())])),
    Case("add no list", lambda log: log.alter.add_columns(NewColumn("x", "int")), "columns"),
    Case("add names", lambda log: log.alter.add_columns(["x"]), "columns"),
    Case("add a text", lambda log: log.alter.add_columns("x string"), "columns"),
    Case("add nothing", lambda log: log.alter.add_columns(None), "columns"),
    Case("add a computed Column", lambda log: log.alter.add_columns([computed()]), "columns"),
    Case(
        "replace by pairs",
        lambda log: log.alter.replace_columns(
            [("id", "bigint"), ("name", "string"), ("day", "date")]
        ),
    ),
    Case("change by a mapping", lambda log: log.alter.change_columns({"name": "string"})),
    Case("change by a type of pyarrow", lambda log: log.alter.change_columns({"id": pa.int64()})),
    Case("change by pairs", lambda log: log.alter.change_columns([("id", "bigint")])),
    Case("change to another type", lambda log: log.alter.change_columns({"name": "int"}), "name"),
    Case("change to no type", lambda log: log.alter.change_columns({"id": 5}), "changes"),
    Case("change by names", lambda log: log.alter.change_columns(["id"]), "changes"),
    Case("change nothing", lambda log: log.alter.change_columns({}), "changes"),
    Case("change no list", lambda log: log.alter.change_columns(ColumnChange("id")), "changes"),
    Case("drop a text", lambda log: log.alter.drop_columns("name"), "columns"),
    Case("drop a number", lambda log: log.alter.drop_columns([5]), "column"),
    Case("rename a number", lambda log: log.alter.rename_column(5, "x"), "column"),
    Case("properties as a list", lambda log: log.alter.set_properties([("a", "b")]), "values"),
    Case("a property as a number", lambda log: log.alter.set_properties({"a": 5})),
    Case("a property as a list", lambda log: log.alter.set_properties({"a": [5]}), "values, a,"),
    Case("unset a number", lambda log: log.alter.unset_properties([5]), "names"),
    Case("comment by a number", lambda log: log.alter.set_comment(5), "comment"),
    Case("constraint of pyarrow", lambda log: log.alter.add_constraint("c", 5), "expression"),
    Case("cluster by a text", lambda log: log.alter.cluster_by("id"), "columns"),
    Case("cluster by a number", lambda log: log.alter.cluster_by([5]), "column"),
    Case("domain as a dict", lambda log: log.alter.set_domain("d", {"a": 1}), "configuration"),
    Case("upgrade by None", lambda log: log.alter.upgrade_protocol(None, 7), "reader_version"),
    Case("add a numbered feature", lambda log: log.alter.add_feature(5), "name"),
    Case("sync a number", lambda log: log.alter.sync_identity(5), "column"),
]

ROWS_AND_CONDITIONS = [
    Case("read by pyarrow", lambda log: log.to_arrow(EXPRESSION), "pyarrow"),
    Case("read by a function", lambda log: log.to_arrow(lambda row: row), "predicate"),
    Case("read by a bool", lambda log: log.to_arrow(True), "predicate"),
    Case("read by filters", lambda log: log.to_arrow([("id", "=", 1)]), "predicate"),
    Case("read by a column", lambda log: log.to_arrow(col("id")), "predicate"),
    Case("read by an unknown column", lambda log: log.to_arrow("idd = 1"), "Did you mean id?"),
    Case("read one column", lambda log: log.to_arrow(columns="id"), "columns"),
    Case("read a numbered column", lambda log: log.to_arrow(columns=[0]), "columns"),
    Case("read so many columns", lambda log: log.to_arrow(columns=5), "columns"),
    Case("read a text of rows", lambda log: log.to_arrow(limit="1"), "limit"),
    Case("read less than nothing", lambda log: log.to_arrow(limit=-1), "limit"),
    Case("read a number of NumPy", lambda log: log.to_arrow(limit=np.int64(1))),
    Case("read endless rows", lambda log: log.to_arrow(limit=2**70)),
    Case("read by half a character", lambda log: log.to_arrow("name = '\ud800'"), "was done"),
    Case("scan a text of rows", lambda log: log.snapshot().scan(limit="1"), "limit"),
    Case("scan endless files", lambda log: log.snapshot().scan("id = 1", limit=2**70)),
    Case("head of a number", lambda log: log.snapshot().head(1, 5), "columns"),
    Case("a view of one column", lambda log: log.snapshot().scan_rows(None, "id"), "columns"),
    Case("a numbered column", lambda log: log.snapshot().physical_name(5), "column"),
    Case("a numbered feature", lambda log: log.snapshot().has_active([5]), "feature"),
    Case("optimize with a flag", lambda log: log.optimize(progress=True), "progress"),
    Case("vacuum with a number", lambda log: log.vacuum(progress=5), "progress"),
    Case("recompute with a text", lambda log: log.recompute_statistics(progress="x"), "progress"),
    Case("clone with a flag", lambda log: log.clone("memory://x/y", progress=True), "progress"),
    Case("restore with a flag", lambda log: log.restore(0, progress=True), "progress"),
    Case("convert with a flag", lambda log: log.convert(progress=True), "progress"),
    Case("fsck with a number", lambda log: log.fsck(progress=5), "progress"),
    Case("checkpoint with a flag", lambda log: log.checkpoint(True), "progress"),
    Case("scan changes", lambda log: log.scan_changes(starting_version=0).to_arrow()),
    Case(
        "scan changes of a text",
        lambda log: log.scan_changes(starting_version="0"),
        "starting_version",
    ),
    Case(
        "scan changes by pyarrow",
        lambda log: log.scan_changes(EXPRESSION, starting_version=0),
        "pyarrow",
    ),
    Case("count by pyarrow", lambda log: log.count(EXPRESSION), "pyarrow"),
    Case("files by pyarrow", lambda log: log.files(EXPRESSION), "pyarrow"),
    Case("scan by pyarrow", lambda log: log.snapshot().scan(EXPRESSION), "pyarrow"),
    Case("delete by pyarrow", lambda log: log.delete(EXPRESSION), "pyarrow"),
    Case("delete by an unknown column", lambda log: log.delete("idd = 1"), "Did you mean id?"),
    Case("delete with a text", lambda log: log.delete("id = 1", txn="app"), "txn"),
    Case("delete with two texts", lambda log: log.delete("id = 1", txn=("app", "1")), "txn"),
    Case("delete with a dict", lambda log: log.delete("id=1", user_metadata={}), "user_metadata"),
    Case("delete with a flag", lambda log: log.delete("id=1", progress=True), "progress"),
    Case("delete again", lambda log: log.delete("id=1", retry="yes"), "retry"),
    Case("update by pairs", lambda log: log.update(set=[("id", 5)]), "set"),
    Case("update by a text", lambda log: log.update(set="id = 5"), "set"),
    Case("update by None", lambda log: log.update(set=None), "set"),
    Case("update a number", lambda log: log.update(set={5: 5}), "set"),
    Case("update by pyarrow", lambda log: log.update(set={"id": EXPRESSION}), "set"),
    Case("update by a column", lambda log: log.update(set={"id": col("id")})),
    Case("optimize by pyarrow", lambda log: log.optimize(EXPRESSION), "pyarrow"),
    Case("optimize by a text", lambda log: log.optimize(z_order_by="id"), "z_order_by"),
    Case("optimize by a number", lambda log: log.optimize(z_order_by=[5]), "column"),
    Case("purge a bool", lambda log: log.purge(True), "predicate"),
    Case("recompute by pyarrow", lambda log: log.recompute_statistics(EXPRESSION), "pyarrow"),
    Case("merge on a number", lambda log: log.merge(ROWS, 5), "predicate"),
    Case("merge on pyarrow", lambda log: log.merge(ROWS, EXPRESSION), "predicate"),
    Case("merge on numbers", lambda log: log.merge(ROWS, [5]), "predicate"),
    Case("merge a list", lambda log: log.merge([{"id": 1}], ["id"]), "source"),
    Case(
        "merge a number's alias", lambda log: log.merge(ROWS, "x", target_alias=5), "target_alias"
    ),
    Case("merge text", lambda log: log.merge(ROWS, ["id"]).when_matched_update("x"), "updates"),
    Case("append a dict", lambda log: log.append({"id": [1]}), "data"),
    Case("append a list", lambda log: log.append([{"id": 1}]), "data"),
    Case("append nothing", lambda log: log.append(None), "data"),
    Case("append pandas", lambda log: log.append(pd.DataFrame({"id": [1]}))),
    Case("append to a number", lambda log: log.append(ROWS, partition_by=5), "partition_by"),
    Case("append to numbers", lambda log: log.append(ROWS, partition_by=[5]), "partition_by"),
    Case("append with a list", lambda log: log.append(ROWS, txn=["app", 1])),
    Case("append with a number", lambda log: log.append(ROWS, txn=5), "txn"),
    Case("append with a dict", lambda log: log.append(ROWS, user_metadata={}), "user_metadata"),
    Case("compare with a list", lambda log: log.to_arrow(col("id") == [1]), "[1]"),
    Case("compare with NumPy", lambda log: log.to_arrow(col("id") == np.int64(1))),
]

OTHERS = [
    Case("vacuum a text", lambda log: log.vacuum("168"), "retention_hours"),
    Case("vacuum a span", lambda log: log.vacuum(dt.timedelta(hours=1)), "retention_hours"),
    Case("vacuum in a number", lambda log: log.vacuum(mode=5), "mode"),
    Case("vacuum a text of files", lambda log: log.vacuum(inventory="files"), "inventory"),
    Case("drop a numbered feature", lambda log: log.drop_feature(5), "name"),
    Case("generate a number", lambda log: log.generate(5), "mode"),
    Case("sql of a number", lambda log: log.sql(5), "text"),
    Case("sql with a number", lambda log: log.sql("DELETE FROM this WHERE id=:x", args=5), "args"),
    Case("sql with a list", lambda log: log.sql("OPTIMIZE this", sources=[1]), "sources"),
    Case("sql of no handle", lambda _: run_sql(5), "text"),
    Case("transaction on a number", lambda log: log.start_transaction(5), "snapshot"),
    Case(
        "transaction told a number", lambda log: log.transaction(user_metadata=5), "user_metadata"
    ),
    Case("commit a number", lambda log: log.start_transaction().commit(5, WRITE), "actions"),
    Case("commit as a text", lambda log: log.start_transaction().commit([], "WRITE"), "operation"),
    Case("open a number", lambda _: DeltaLog.for_path(5), "path"),
    Case("open a handle", lambda log: DeltaLog.for_path(log), "path"),
    Case("open nothing", lambda _: DeltaLog.for_path(""), "path"),
    Case("open a version", lambda log: opened(log, {"versionAsOf": "0"}), "versionAsOf"),
    Case("open at a time", lambda log: opened(log, {"TIMESTAMPASOF": "2026"}), "TIMESTAMPASOF"),
    Case("open with a text", lambda log: opened(log, "a=b"), "options"),
    Case("open with a list", lambda log: opened(log, [1]), "options"),
    Case("open with a number", lambda log: opened(log, {5: "x"}), "options"),
    Case(
        "open with a flag",
        lambda log: opened(log, {"optimist.conflict.retry": True}),
        "optimist.conflict.retry",
    ),
    Case("options of a list", lambda _: EngineOptions.from_options([1]), "options"),
    Case("column of a number", lambda _: col(5), "name"),
]
WRITE = Operation.write("Append")
CASES = [*TIMES, *COLUMNS, *ROWS_AND_CONDITIONS, *OTHERS]
_NUMBERS = itertools.count()


def computed() -> Column:
    """Return a column that is computed, which can't be added to a table."""
    return Column("x", "bigint", generated_as="id + 1")


def other(log: DeltaLog) -> Path:
    """Return a path beside a table, where nothing is."""
    return Path(log.table_path).parent / f"other{next(_NUMBERS)}"


def new(log: DeltaLog) -> DeltaLog:
    """Return the handle of a table that is not there yet."""
    return DeltaLog.for_path(other(log))


def opened(log: DeltaLog, options: Any) -> DeltaLog:
    """Open a table with options, whatever they are."""
    return DeltaLog.for_path(log.table_path, options)


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Return a table of three columns with change data and column mapping, at version 2."""
    made = DeltaLog.for_path(tmp_path / "table")
    made.create(
        [Column("id", "bigint"), Column("name", "string"), Column("day", "date")],
        properties={"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"},
    )
    made.append(pa.table({"id": [1, 2], "name": ["a", "b"], "day": [DAY, DAY]}))
    made.append(pa.table({"id": [4]}))
    return made


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_loose_argument_works_or_is_named(log: DeltaLog, case: Case) -> None:
    if case.word is None:
        case.call(log)
        return
    version = log.snapshot().version
    with pytest.raises(OptimistError) as caught:
        case.call(log)
    assert case.word in str(caught.value)
    assert log.snapshot().version == version
