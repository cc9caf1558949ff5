"""Many writers on one table, threads and processes: versions dense, every append there once."""

from __future__ import annotations

import subprocess
import sys
import threading

import deltalake
import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.log.names import commit_path

WRITER = """
import sys
import pyarrow as pa
from optimist.core import DeltaLog
path, writer, appends = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.stdin.readline()
log = DeltaLog.for_path(path)
for number in range(appends):
    log.append(pa.table({"writer": [writer], "number": [number]}))
"""


def assert_every_append_is_there_once(path, writers, appends):
    log = DeltaLog.for_path(str(path))
    assert log.update().version == writers * appends
    rows = deltalake.DeltaTable(str(path)).to_pyarrow_table()
    found = sorted(zip(rows["writer"].to_pylist(), rows["number"].to_pylist(), strict=True))
    expected = [(-1, -1), *((w, n) for w in range(writers) for n in range(appends))]
    assert found == expected
    txn_ids = [record.info.txn_id for record in log.history()]
    assert len(set(txn_ids)) == writers * appends + 1


def create(path):
    DeltaLog.for_path(str(path)).append(pa.table({"writer": [-1], "number": [-1]}))


@pytest.mark.timeout(600)  # 32 interpreters come up at once, on however few cores
def test_32_processes_append_20_times_each(tmp_path):
    create(tmp_path)
    arguments = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [
        subprocess.Popen(
            [*arguments, str(writer), "20"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for writer in range(32)
    ]
    problems = [writer.communicate("go\n", timeout=560)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 32, problems
    assert_every_append_is_there_once(tmp_path, 32, 20)


@pytest.mark.parametrize("lock", ["true", "false"])
def test_16_threads_append_10_times_each(tmp_path, lock):
    create(tmp_path)
    barrier = threading.Barrier(16)
    failures = []
    options = {"spark.databricks.delta.commitLock.enabled": lock}

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
    assert_every_append_is_there_once(tmp_path, 16, 10)


def test_one_version_is_created_by_exactly_one_of_many_transactions(tmp_path):
    create(tmp_path)
    log = DeltaLog.for_path(str(tmp_path))
    before = log.update().version
    transactions = [log.start_transaction() for _ in range(4)]
    assert {txn.read_version for txn in transactions} == {before}
    log.append(pa.table({"writer": [1], "number": [1]}))
    assert log.store.read_bytes(commit_path(log.log_path, before + 1))
    assert log.update().version == before + 1
