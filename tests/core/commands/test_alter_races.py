"""ALTER TABLE beside other writers: what conflicts, and that a serial order explains the rest."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.errors import (
    ConcurrentAppendException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    OptimistError,
    ProtocolChangedException,
)
from optimist.core.protocol.actions import Metadata
from optimist.core.requests.columns import ColumnChange, NewColumn
from optimist.core.transaction.conflicts.operations import Operation

RETRYING = {"spark.optimist.conflict.retry": "true"}


def rows(*ids, **more):
    return pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array(ids, pa.int32()), **more})


def table(path, conf=None, **properties):
    log = DeltaLog.for_path(str(path), conf or {})
    log.append(rows(1, 2))
    log.alter.set_properties({"delta.columnMapping.mode": "name", **properties})
    return log


class Interposed:
    """A handle whose transactions are overtaken by a winner as soon as they have begun."""

    def __init__(self, log, winner):
        self._log, self._winner = log, winner

    clock = property(lambda self: self._log.clock)
    options = property(lambda self: self._log.options)

    def snapshot(self):
        return self._log.snapshot()

    def start_transaction(self, snapshot=None):
        begun = self._log.start_transaction(snapshot)
        self._winner()
        return begun


CHANGES = {
    "properties": lambda it: it.set_properties({"own": "1"}),
    "add": lambda it: it.add_columns([NewColumn("y", "int")]),
    "rename": lambda it: it.rename_column("x", "y"),
    "drop": lambda it: it.drop_columns(["x"]),
    "comment": lambda it: it.change_columns([ColumnChange("x", comment="c")]),
    "constraint": lambda it: it.add_constraint("c", "id < 100"),
    "not null": lambda it: it.change_columns([ColumnChange("x", nullable=False)]),
    "cluster": lambda it: it.cluster_by(["id"]),
    "domain": lambda it: it.set_domain("own", "1"),
}
WINNERS = {
    "append": lambda log: log.append(rows(3)),
    "delete": lambda log: log.delete("id = 1"),
    "ddl": lambda log: log.alter.set_properties({"theirs": "1"}),
    "domain": lambda log: log.alter.set_domain("own", "2"),
    "cluster": lambda log: log.alter.cluster_by(["id"]),
}
MC, PC, CT = MetadataChangedException, ProtocolChangedException, ConcurrentTransactionException
CA = ConcurrentAppendException
OUTCOMES = {
    # The rows DDL, O+M and PU of the outcome matrix (spec 2.14): A-m, R-hit, DDL, a domain, PU+M.
    "properties": (None, None, MC, None, MC),
    "add": (None, None, MC, None, MC),
    "rename": (None, None, MC, None, MC),
    "drop": (None, None, MC, None, MC),
    "comment": (None, None, MC, None, MC),
    "constraint": (CA, CA, MC, None, PC),
    "not null": (CA, CA, MC, None, MC),
    "cluster": (None, None, MC, None, PC),
    "domain": (None, None, MC, CT, None),
}


@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_change_conflicts_with(tmp_path, change, winner):
    expected = OUTCOMES[change][list(WINNERS).index(winner)]
    log = table(tmp_path, **{"delta.feature.domainMetadata": "supported"})
    log.alter.add_feature("deletionVectors")
    before = log.snapshot().version
    changes = TableChanges(Interposed(log, lambda: WINNERS[winner](log)))
    if expected is None:
        assert CHANGES[change](changes).version == before + 2
        return
    with pytest.raises(DeltaConcurrentModificationException) as caught:
        CHANGES[change](changes)
    assert type(caught.value) is expected, caught.value
    assert log.snapshot().version == before + 1
    assert CHANGES[change](log.alter).version == before + 2


@pytest.mark.parametrize("change", [name for name in CHANGES if name not in ("domain", "cluster")])
def test_a_write_that_began_before_a_change_conflicts_with_it(tmp_path, change):
    log = table(tmp_path)
    begun = log.start_transaction()
    CHANGES[change](log.alter)
    with pytest.raises(MetadataChangedException):
        begun.commit([], Operation.write("Append"))


def test_writes_go_on_beside_clustering(tmp_path):
    log = table(tmp_path)
    begun = log.start_transaction()
    log.alter.cluster_by(["id"])
    assert begun.commit([], Operation.write("Append")).version == 3


def test_no_column_is_dropped_while_the_table_is_clustered_by_it(tmp_path):
    log = table(tmp_path)
    log.alter.cluster_by(["id"])  # the feature is there, so nothing but the domain changes below
    changes = TableChanges(Interposed(log, lambda: log.alter.cluster_by(["x"])))
    with pytest.raises(MetadataChangedException):
        changes.drop_columns(["x"])
    changes = TableChanges(Interposed(log, lambda: log.alter.drop_columns(["x"])))
    log.alter.cluster_by(["id"])
    with pytest.raises(MetadataChangedException):
        changes.cluster_by(["x"])
    assert log.snapshot().schema.names == ("id",)
    assert log.detail().clustering_columns == ("id",)


def test_mapping_is_switched_on_beside_appends(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(rows(1))
    log.alter.upgrade_protocol(2, 5)
    changes = TableChanges(Interposed(log, lambda: log.append(rows(2))))
    changes.set_properties({"delta.columnMapping.mode": "name"})
    changes = TableChanges(Interposed(log, lambda: log.append(rows(3))))
    changes.rename_column("x", "y")
    assert sorted(log.to_arrow()["y"].to_pylist()) == [1, 2, 3]


def together(*tasks):
    """Run the tasks at the same time; the errors of those that failed."""
    barrier = Barrier(len(tasks))

    def run(task):
        barrier.wait(60)
        try:
            task()
        except OptimistError as error:
            return error
        return None

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def test_of_properties_set_at_the_same_time_none_is_lost(tmp_path):
    table(tmp_path, RETRYING)

    def worker(name):
        log = DeltaLog.for_path(str(tmp_path), RETRYING, session={})  # a handle of its own
        for number in range(4):
            log.alter.set_properties({f"own.{name}.{number}": "1"})

    errors = together(*(lambda name=name: worker(name) for name in range(4)))
    assert errors == [None] * 4
    log = DeltaLog.for_path(str(tmp_path))
    own = [key for key in log.metadata.configuration if key.startswith("own.")]
    assert len(own) == 16
    assert log.snapshot().version == 1 + 16


@pytest.mark.parametrize("attempt", range(5))
def test_no_row_slips_past_a_new_constraint(tmp_path, attempt):
    log = table(tmp_path)
    tasks = [lambda: log.alter.add_constraint("small", "id < 10")]
    for first in (5, 15, 25):
        tasks.append(lambda first=first: log.append(rows(first)))
    errors = together(*tasks)
    ids = log.to_arrow()["id"].to_pylist()
    kept = [first for first, error in zip((5, 15, 25), errors[1:], strict=True) if error is None]
    assert sorted(ids) == sorted([1, 2, *kept])
    has_constraint = "delta.constraints.small" in log.metadata.configuration
    assert has_constraint == (errors[0] is None)
    assert not has_constraint or max(ids) < 10


@pytest.mark.parametrize("attempt", range(5))
def test_columns_renamed_and_filled_at_the_same_time_keep_their_values(tmp_path, attempt):
    """Each append writes x = id under the name that the column has when it lands."""
    log = table(tmp_path)

    def append(number):
        while True:
            name = log.snapshot().schema.names[1]
            data = rows(number).rename_columns(["id", name])
            try:
                return log.append(data)
            except OptimistError as error:
                if error.kind not in ("DELTA_METADATA_CHANGED", "DELTA_METADATA_MISMATCH"):
                    raise

    def rename():
        for number in range(4):
            log.alter.rename_column(log.snapshot().schema.names[1], f"x{number}")

    errors = together(rename, *(lambda i=i: append(i) for i in range(10, 16)))
    assert errors == [None] * 7
    assert log.snapshot().schema.names == ("id", "x3")
    found = log.to_arrow().to_pylist()
    assert sorted(row["id"] for row in found) == [1, 2, *range(10, 16)]
    assert all(row["id"] == row["x3"] for row in found)


def identity_table(path):
    log = DeltaLog.for_path(str(path))
    keys = {"start": 1, "step": 2, "allowExplicitInsert": True}
    metadata = {f"delta.identity.{key}": value for key, value in keys.items()}
    fields = [
        {"name": "n", "type": "long", "nullable": True, "metadata": metadata},
        {"name": "x", "type": "string", "nullable": True, "metadata": {}},
    ]
    txn = log.start_transaction()
    schema = json.dumps({"type": "struct", "fields": fields})
    txn.update_metadata(Metadata(id="", schema_string=schema))
    txn.commit((), Operation("CREATE TABLE"))
    return log


def test_an_identity_column_is_brought_up_to_its_rows(tmp_path):
    log = identity_table(tmp_path)
    log.alter.sync_identity("n")
    log.append(pa.table({"n": pa.array([10, 4], pa.int64()), "x": ["a", "b"]}))
    log.alter.sync_identity("N")
    info = log.history(1)[0].info
    assert info.operation == "CHANGE COLUMN"
    assert json.loads(info.operation_parameters["column"])["name"] == "n"
    log.append(pa.table({"x": ["c"]}))
    assert sorted(log.to_arrow()["n"].to_pylist()) == [4, 10, 13]
    log.delete("n = 13")
    log.alter.sync_identity("n")  # the mark never moves backwards
    log.append(pa.table({"x": ["d"]}))
    assert sorted(log.to_arrow()["n"].to_pylist()) == [4, 10, 15]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("x", "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"),
        ("y", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ],
)
def test_only_identity_columns_are_synced(tmp_path, column, kind):
    log = identity_table(tmp_path)
    with pytest.raises(OptimistError) as caught:
        log.alter.sync_identity(column)
    assert caught.value.kind == kind


def test_rows_inserted_while_an_identity_column_is_synced_conflict(tmp_path):
    log = identity_table(tmp_path)
    explicit = pa.table({"n": pa.array([99], pa.int64()), "x": ["z"]})
    changes = TableChanges(Interposed(log, lambda: log.append(explicit)))
    with pytest.raises(ConcurrentAppendException):
        changes.sync_identity("n")
