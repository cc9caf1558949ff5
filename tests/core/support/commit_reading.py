"""Commits as the tests of transactions make them, and as they stand in the log."""

from __future__ import annotations

from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import (
    CommitInfo,
)
from optimist.core.transaction.conflicts.operations import Operation

WRITE = Operation.write("Append")
DELETE = Operation.delete(["x"])
ICT = {"delta.enableInCommitTimestamps": "true"}


def written(table, version):
    return read_commit(table.store, commit_path(table.log.log_path, version))


def info_of(table, version):
    first = written(table, version)[0]
    assert isinstance(first, CommitInfo)
    return first


def commit(table, actions, operation=WRITE, *, read=None, **kwargs):
    txn = table.log.start_transaction()
    if read is not None:
        txn.filter_files(read)
    return txn.commit(actions, operation, **kwargs)
