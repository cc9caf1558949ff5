"""Many threads that write to one table: versions dense, every append there once."""

from __future__ import annotations

import threading
from functools import partial

import pyarrow as pa
import pytest

from append_races import create_table, ensure_every_append_is_there_once
from optimist.core import DeltaLog
from optimist.core.errors import ConcurrentWriteException
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import AddFile
from optimist.core.testing.logstore_races import run_in_threads
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction


@pytest.mark.sample(3)  # the first and the last of the four
@pytest.mark.parametrize("lock", ["true", "false"])
@pytest.mark.parametrize("grouped", ["true", "false"])
def test_16_threads_append_10_times_each(tmp_path, lock, grouped):
    create_table(tmp_path)
    barrier = threading.Barrier(16)
    failures = []
    options = {
        "spark.databricks.delta.commitLock.enabled": lock,
        "spark.optimist.commit.group.enabled": grouped,
    }

    def write(writer):
        log = DeltaLog.for_path(str(tmp_path), options)
        barrier.wait()
        try:
            for number in range(10):
                log.append(pa.table({"writer": [writer], "number": [number]}))
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    is_grouped = grouped == "true"
    ensure_every_append_is_there_once(tmp_path, writers=16, appends=10, grouped=is_grouped)


def test_one_version_is_created_by_exactly_one_of_many_transactions(tmp_path):
    create_table(tmp_path)
    log = DeltaLog.for_path(str(tmp_path), {"spark.databricks.delta.commitLock.enabled": "false"})
    before = log.snapshot().version
    transactions = [log.start_transaction() for _ in range(8)]
    assert {txn.read_version for txn in transactions} == {before}
    barrier = threading.Barrier(len(transactions))

    def commit(txn: OptimisticTransaction) -> int | None:
        add = AddFile(txn.txn_id, {}, size=1, modification_time=1, data_change=True)
        barrier.wait(60)
        try:
            return txn.commit_large([add], Operation.write("Append")).version
        except ConcurrentWriteException:
            return None

    versions = run_in_threads([partial(commit, txn) for txn in transactions])
    assert sorted(versions, key=str) == [before + 1, *[None] * 7]
    winner = transactions[versions.index(before + 1)]
    written = log.store.read_bytes(commit_path(log.log_path, before + 1)).decode()
    assert [txn for txn in transactions if txn.txn_id in written] == [winner]
    assert log.snapshot().version == before + 1
