"""Group commit on S3, by counted requests: less than one PUT to the log for a transaction."""

import threading

import pytest

from optimist.core import DeltaLog
from optimist.core.protocol.actions import AddFile
from optimist.core.testing.logstore_races import run_in_threads
from optimist.core.transaction.conflicts.operations import Operation
from s3_tables import BY_S3, append, create

THREADS = 12
IN_GROUPS = {**BY_S3, "spark.optimist.commit.group.enabled": "true"}


@pytest.mark.again
def test_threads_with_groups_put_less_than_once_for_a_transaction(server, table):
    delta = DeltaLog.for_path(table, IN_GROUPS)
    create(delta)
    append(delta, "warm")
    barrier = threading.Barrier(THREADS)

    def work(thread):
        txn = delta.start_transaction()
        barrier.wait(60)
        add = AddFile(f"f{thread}", {}, size=1, modification_time=1, data_change=True)
        txn.commit([add], Operation.write("Append"))
        append(delta, f"g{thread}")

    with server.counting() as made:
        run_in_threads([lambda thread=thread: work(thread) for thread in range(THREADS)])
    puts = [request for request in made if request[0] == "PUT"]
    assert all("/_delta_log/" in path for _, path, _ in puts)
    # Commits, their checksums, and a checkpoint now and then, all together.
    assert len(puts) < 2 * THREADS
    assert delta.snapshot().files.num_rows == 2 * THREADS + 1
    sizes = [int((each.info.tags or {}).get("optimist.group.size", 1)) for each in delta.history()]
    assert sum(sizes) == 2 * THREADS + 2
