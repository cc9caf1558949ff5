"""A table carried from one store to another: every commit once, whatever interrupts the carrier."""

from itertools import islice

import pyarrow as pa
import pytest
from azure.storage.blob import ContainerClient

from carry import carry
from optimist.core import DeltaLog
from optimist.core.errors import ConcurrentTransactionException


@pytest.fixture
def source(s3_server, fresh_name):
    client = s3_server.client("s3")
    client.create_bucket(Bucket=fresh_name)
    options = s3_server.s3a_options
    log = DeltaLog.for_path(f"s3a://{fresh_name}/events", options)
    for number in range(6):
        rows = pa.table({"day": ["mon", "tue/x y"], "number": [number, number + 100]})
        log.append(rows, partition_by=["day"], txn=("loader", number))
    return log


@pytest.fixture
def target(azure_server, fresh_name):
    connection = azure_server.connection_string
    with ContainerClient.from_connection_string(connection, fresh_name) as client:
        client.create_container()
    options = {"optimist.store.azure.connectionString": connection}
    return lambda: DeltaLog(
        f"az://{fresh_name}/events",
        DeltaLog.for_path(f"az://{fresh_name}/events", options).store,
    )


def rows_of(log):
    return sorted(log.to_arrow().select(["day", "number"]).to_pylist(), key=str)


def test_carried_table_has_the_same_rows_versions_and_applications(source, target):
    log = target()
    carried = list(carry(source, log))
    assert [item.source_version for item in carried] == list(range(6))
    assert [item.target_version for item in carried] == list(range(6))
    assert rows_of(log) == rows_of(source)
    snapshot = log.snapshot()
    assert snapshot.set_transactions["loader"].version == 5
    assert snapshot.partition_columns == ("day",)
    assert snapshot.schema == source.snapshot().schema


def test_carrier_that_was_stopped_goes_on_where_it_was(source, target):
    assert len(list(islice(carry(source, target()), 2))) == 2
    assert [item.source_version for item in carry(source, target())] == [2, 3, 4, 5]
    assert list(carry(source, target())) == []
    assert rows_of(target()) == rows_of(source)


def test_files_of_a_commit_that_was_not_made_are_used_by_the_next_run(source, target):
    log = target()

    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    put = log.store.put_if_absent
    log.store.put_if_absent = die
    with pytest.raises(Killed):
        list(carry(source, log))
    log.store.put_if_absent = put
    assert len(list(carry(source, target()))) == 6
    assert rows_of(target()) == rows_of(source)


def test_second_carrier_at_the_same_time_is_told_and_doubles_nothing(source, target):
    slow, quick = target(), target()
    list(islice(carry(source, slow), 1))
    waiting = slow.start_transaction()
    list(islice(carry(source, quick), 1))
    app_id = f"carry:{source.snapshot().metadata.id}"
    assert waiting.txn_version(app_id) == 0
    carried = carry(source, slow)
    slow.start_transaction = lambda: waiting
    with pytest.raises(ConcurrentTransactionException):
        next(carried)
    del slow.start_transaction
    assert [item.source_version for item in carry(source, target())] == [2, 3, 4, 5]
    assert rows_of(target()) == rows_of(source)
