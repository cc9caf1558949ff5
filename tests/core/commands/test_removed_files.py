"""Commands that remove whole files: as columns they leave the table as with values."""

from __future__ import annotations

import json
import re
import shutil

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.commands import removed_files
from optimist.core.commands.removed_files import RemovedFiles, num_live_rows_of
from optimist.core.commands.truncate import truncate
from optimist.core.data.statistics.stats_text import num_live_rows_in
from optimist.core.errors import ConcurrentDeleteReadException, UsageError
from optimist.core.log.file_table import files_table, with_column
from optimist.core.log.names import checksum_name, commit_path
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from optimist.core.transaction.conflicts.operations import Operation

VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 2, offset=1, max_row_index=3)
ROWS = '{"numRecords":5}'
NEW = pa.table({"id": [7], "p": ["new"]})


def odd(path, p="1", **others):
    given = {"size": 9, "modification_time": 3, "data_change": True, "stats": ROWS, **others}
    return AddFile(path=path, partition_values={"p": p}, **given)


ODD_FILES = [
    odd("p=1/a%2520b.parquet", tags={"k": None, '"': "ü\n"}, base_row_id=30),
    odd("p=%C3%BC/b.parquet", p="ü", deletion_vector=VECTOR, default_row_commit_version=0),
    odd("c d.parquet", p=None, clustering_provider="liquid", data_change=False),
    odd("file:/elsewhere/e.parquet", p='q"\\', size=0, stats='{"numRecords" : 6, "x":"\\u00fc"}'),
]
PROPERTIES = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
COMMANDS = {
    "DELETE": lambda log: log.delete(),
    "DELETE of a partition": lambda log: log.delete("p = '1' OR p IS NULL"),
    "overwrite": lambda log: log.write(NEW, mode="overwrite"),
    "replaced partitions": lambda log: log.write(
        pa.table({"id": [7], "p": ["1"]}), mode="overwrite", predicate="p = '1'"
    ),
    "dynamic overwrite": lambda log: log.write(
        pa.table({"id": [7, 8], "p": ["1", None]}),
        mode="overwrite",
        partition_overwrite="dynamic",
    ),
    "TRUNCATE": lambda log: truncate(log.start_transaction()),
}


@pytest.fixture
def as_columns(monkeypatch):
    return lambda: monkeypatch.setattr(removed_files, "_MANY", 1)


def made(path, *more):
    log = DeltaLog.for_path(str(path))
    rows = pa.table({"id": [1, 2, 3], "p": ["1", "1", None]})
    log.write(rows, partition_by=["p"], properties=PROPERTIES)
    txn = log.start_transaction()
    txn.commit([*ODD_FILES, *more], Operation("RESTORE"))
    return path


def told(path, version):
    log = DeltaLog.for_path(str(path))
    data = log.store.read_bytes(commit_path(log.log_path, version)).decode()
    data = re.sub(r'"deletionTimestamp":\d+', '"deletionTimestamp":0', data)
    data = re.sub(r"part-[0-9]{5}-[0-9a-f-]{36}", "", re.sub(r'"modificationTime":\d+', "", data))
    info, *lines = data.split("\n")
    said = json.loads(info)["commitInfo"]
    metrics = {k: v for k, v in said.pop("operationMetrics").items() if "Time" not in k}
    crc = json.loads(log.store.read_bytes(join(log.log_path, checksum_name(version))))
    for name in ("txnId", "timestamp", "inCommitTimestampOpt"):
        said.pop(name, None)
        crc.pop(name, None)
    return said, metrics, lines, crc


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_commits_the_same_lines_with_columns(tmp_path, as_columns, command):
    made(tmp_path / "values")
    shutil.copytree(tmp_path / "values", tmp_path / "columns")
    found = []
    for side in ("values", "columns"):
        log = DeltaLog.for_path(str(tmp_path / side))
        COMMANDS[command](log)
        fresh = DeltaLog.for_path(str(tmp_path / side))
        live = [sorted(one.snapshot().files["size"].to_pylist()) for one in (log, fresh)]
        dead = [sorted(one.snapshot().tombstones["path"].to_pylist()) for one in (log, fresh)]
        assert (live[0], dead[0]) == (live[1], dead[1])
        found.append((told(tmp_path / side, log.snapshot().version), len(live[0]), len(dead[0])))
        as_columns()
    assert found[0] == found[1]
    assert '"remove"' in "".join(found[0][0][2])


def test_columns_take_no_value_of_a_file_without_a_winner(tmp_path, as_columns, monkeypatch):
    made(tmp_path / "t")
    as_columns()

    def refuse(*_args, **_kwargs):
        raise AssertionError("a file became a value")

    monkeypatch.setattr(AddFile, "remove", refuse)
    assert DeltaLog.for_path(str(tmp_path / "t")).delete().num_deleted == 3 + 5 + 3 + 5 + 6


def test_a_removal_of_columns_moves_past_an_append_and_conflicts_with_a_removal(
    tmp_path, as_columns
):
    made(tmp_path / "t")
    as_columns()
    log, other = (DeltaLog.for_path(str(tmp_path / "t")) for _ in range(2))

    def removal():
        txn = log.start_transaction()
        actions, files = RemovedFiles(txn.filter_files("p = '1'")).removes(1)
        assert (actions, files.are_all) == ((), False)
        return txn, files

    txn, files = removal()
    other.append(pa.table({"id": [9], "p": ["new"]}))
    result = txn.commit((), Operation.delete(["p = '1'"]), files=files)
    assert (result.attempts, result.version) == (2, 3)
    assert log.files().num_rows == 1 + 1 + 3
    assert other.snapshot().files.num_rows == 5

    made(tmp_path / "again")
    log, other = (DeltaLog.for_path(str(tmp_path / "again")) for _ in range(2))
    txn, files = removal()
    path = files.removed["path"][0].as_py()
    other.start_transaction().commit([RemoveFile(path, 1)], Operation("DELETE"))
    with pytest.raises(ConcurrentDeleteReadException):
        txn.commit((), Operation.delete(["p = '1'"]), files=files)


def test_a_block_replaces_files_that_an_earlier_step_removed_as_columns(tmp_path, as_columns):
    made(tmp_path / "t")
    as_columns()
    log = DeltaLog.for_path(str(tmp_path / "t"))
    with log.transaction() as txn:
        txn.delete("p = '1'")
        txn.write(NEW, mode="overwrite")
    assert DeltaLog.for_path(str(tmp_path / "t")).to_arrow()["id"].to_pylist() == [7]
    assert log.snapshot().version == 2
    assert log.snapshot().tombstones.num_rows == 6


def test_columns_hold_no_value_that_a_line_may_not_have(as_columns):
    as_columns()
    files = files_table(ODD_FILES)
    assert RemovedFiles(files).removes(1)[1] is not None
    negative = with_column(files, "size", pa.array([1, -1, 0, 5]))
    vectors = files["deletionVector"].to_pylist()
    vectors[1] = {**vectors[1], "cardinality": None}
    uncounted = with_column(
        files, "deletionVector", pa.array(vectors, files.schema.field("deletionVector").type)
    )
    twice = [[("p", "1")], [("p", "2"), ("p", "3")], [], [("p", None)]]
    repeated = with_column(
        files, "partitionValues", pa.array(twice, files.schema.field("partitionValues").type)
    )
    for odd_files in (negative, uncounted):
        actions, columns = RemovedFiles(odd_files).removes(1)
        assert (len(actions), columns) == (4, None)
    with pytest.raises(KeyError):
        RemovedFiles(repeated).removes(1)


@pytest.mark.parametrize("stats", [None, "{}", "nope", '{"numRecords":-1}', '{"numRecords":1}'])
def test_rows_are_counted_as_by_a_value_for_each_file(stats):
    files = [*ODD_FILES, odd("z", stats=stats, deletion_vector=VECTOR)]
    assert num_live_rows_of(files_table(files)) == num_live_rows_in(files)
    assert num_live_rows_of(files_table(ODD_FILES)) == num_live_rows_in(ODD_FILES) == 19
    assert num_live_rows_of(files_table([])) == 0


def test_an_append_only_table_refuses_the_removal_of_columns(tmp_path, as_columns):
    made(tmp_path / "t")
    as_columns()
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.alter.set_properties({"delta.appendOnly": "true"})
    with pytest.raises(UsageError) as caught:
        log.delete()
    assert caught.value.kind == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
