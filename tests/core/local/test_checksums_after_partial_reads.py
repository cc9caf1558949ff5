"""`N.crc` goes on where commands read a part of the files, and is right or absent (spec 5.9)."""

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.checksum import checksum_of_files, read_checksum
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import AddFile
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore

REPLACED = pa.table({"id": [4, 8], "p": [0, 0]})
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(autouse=True)
def large_checkpoints(monkeypatch):
    """Let no reader keep a whole checkpoint."""
    monkeypatch.setattr(CheckpointReader, "is_small", lambda _: False)


def rows(low, high):
    ids = list(range(low, high))
    return pa.table({"id": ids, "p": [number % 4 for number in ids]})


class Table:
    """A table with a checkpoint, opened anew for each command."""

    def __init__(self, path, properties=None):
        self.path = str(path)
        self.open().append(rows(0, 80), partition_by=["p"], properties=properties)
        self.open().append(rows(80, 160))
        self.open().checkpoint()

    def open(self):
        return DeltaLog(self.path, LocalLogStore())

    def checksum(self):
        """The newest version's checksum, or None, after a check that it is right."""
        snapshot = self.open().snapshot()
        noted = read_checksum(snapshot._checked._store, snapshot.log_path, snapshot.version)
        summed = checksum_of_files(
            snapshot.files, state=snapshot._state.table, options=EngineOptions()
        )
        for name in ("num_files", "table_size_bytes", "num_deleted_records"):
            assert noted is None or getattr(noted, name) == getattr(summed, name), name
        for name in ("num_deletion_vectors", "file_sizes", "deleted_record_counts"):
            assert noted is None or getattr(noted, name) == getattr(summed, name), name
        return noted


COMMANDS = {
    "delete rows": lambda log: log.delete("p = 1 and id < 100"),
    "delete a partition": lambda log: log.delete("p = 2"),
    "update": lambda log: log.update(set={"id": "id + 1000"}, predicate="id = 7"),
    "optimize": lambda log: log.optimize("p = 3"),
    "replace": lambda log: log.write(REPLACED, mode="overwrite", predicate="p = 0"),
    "delete nothing": lambda log: log.delete("id = -1"),
    "append": lambda log: log.append(rows(200, 210)),
}


@pytest.mark.parametrize("properties", [None, VECTORS], ids=["files", "vectors"])
def test_commands_that_read_a_part_of_the_files_go_on_with_the_checksum(tmp_path, properties):
    table = Table(tmp_path, properties)
    for name, command in (*COMMANDS.items(), *COMMANDS.items()):
        log = table.open()
        command(log)
        snapshot = log.snapshot()
        assert snapshot.version == table.open().snapshot().version, name
        assert table.checksum() is not None, name
        assert not snapshot._state.files.is_resolved, name


def test_a_blind_append_in_between_is_counted(tmp_path):
    table = Table(tmp_path, VECTORS)
    log = table.open()
    txn = log.start_transaction()
    found = txn.filter_files("p = 1")
    table.open().append(pa.table({"id": [202], "p": [2]}))
    path, size = found["path"][0].as_py(), found["size"][0].as_py()
    txn.commit([AddFile(path, {"p": "1"}, size, 1, True).remove(9)], Operation("DELETE"))
    assert table.checksum() is not None


def test_files_that_were_not_read_end_the_chain(tmp_path):
    """Not even a unique name tells that a file is new, if a caller could have read it elsewhere."""
    table = Table(tmp_path)
    other = table.open().snapshot().scan("p = 2").files
    path, size = other["path"][0].as_py(), other["size"][0].as_py()
    txn = table.open().start_transaction()
    txn.filter_files("p = 1")
    txn.commit([AddFile(path, {"p": "2"}, size + 1, 1, True)], Operation("WRITE"))
    assert table.checksum() is None


def test_a_dead_file_that_is_removed_ends_the_chain(tmp_path):
    table = Table(tmp_path)
    txn = table.open().start_transaction()
    txn.filter_files("p = 1")
    txn.commit([AddFile("p=1/gone", {"p": "1"}, 5, 1, True).remove(9)], Operation("DELETE"))
    assert table.checksum() is None


def test_another_rewrite_in_between_ends_the_chain(tmp_path):
    table = Table(tmp_path)
    txn = table.open().start_transaction()
    found = txn.filter_files("p = 1")
    table.open().optimize("p = 3")
    path, size = found["path"][0].as_py(), found["size"][0].as_py()
    txn.commit([AddFile(path, {"p": "1"}, size, 1, True).remove(9)], Operation("DELETE"))
    assert table.checksum() is None
