"""The one way through a command: replays, progress, what an error leaves, and what must land."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from optimist.core import DeltaLog
from optimist.core.commands.command import Changes, Done, run_command
from optimist.core.commands.row_balance import RowBalance
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.errors import ProtocolError, TableError, UsageError
from optimist.core.protocol.actions import DeletionVectorDescriptor, Protocol
from optimist.core.testing import ManualClock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore

DELETE = Operation.delete(["true"])
APP_TXN = ("app", 7)


def forbidden(files):
    raise AssertionError("the command was to do nothing")


def adding(table, name="a", **kwargs):
    return lambda _files: Changes((table.add(name),), DELETE, **kwargs)


def nothing(**kwargs):
    return lambda _files: Changes((), DELETE, **kwargs)


def progress_of(table):
    return table.log.start_transaction().txn_version(APP_TXN[0])


def test_a_command_commits_its_changes_with_the_progress(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    assert run_command(txn, adding(table), app_txn=APP_TXN).commit.version == 1
    assert table.log.snapshot().files["path"].to_pylist() == [table.add("a").path]
    assert progress_of(table) == 7


def test_a_replay_does_nothing(make_table):
    table = make_table().create()
    run_command(table.log.start_transaction(), adding(table), app_txn=APP_TXN)
    assert run_command(table.log.start_transaction(), forbidden, app_txn=APP_TXN) == Done()
    conf = {"spark.databricks.delta.write.txnAppId": "app"}
    log = table.handle({**conf, "spark.databricks.delta.write.txnVersion": "6"})
    assert run_command(log.start_transaction(), forbidden) == Done()


def test_a_negative_version_is_refused_and_not_taken_for_a_replay(make_table):
    table = make_table().create()
    with pytest.raises(UsageError) as caught:
        run_command(table.log.start_transaction(), forbidden, app_txn=("app", -1))
    assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT"


def test_a_table_that_can_not_be_written_is_refused_before_any_work(make_table):
    protocol = Protocol(1, 7, writer_features=("someday",))
    table = make_table(protocol=protocol).create()
    with pytest.raises(ProtocolError):
        run_command(table.log.start_transaction(), forbidden)


@pytest.mark.parametrize(
    ("is_progress", "expected"),
    [(True, 7), (False, -1)],
)
def test_a_command_that_found_nothing_says_whether_that_is_progress(
    make_table, is_progress, expected
):
    table = make_table().create()
    work = nothing(is_progress=is_progress)
    run_command(table.log.start_transaction(), work, app_txn=APP_TXN)
    assert progress_of(table) == expected


def test_an_empty_commit_lands_only_where_it_must(make_table):
    table = make_table(configuration={"delta.isolationLevel": "Serializable"}).create()
    assert run_command(table.log.start_transaction(), nothing()).commit is None
    assert run_command(table.log.start_transaction(), nothing(must_land=True)).commit.version == 1


def test_an_error_of_the_work_removes_what_it_wrote(tmp_path):
    log = DeltaLog(str(tmp_path / "table"), LocalLogStore({}), clock=ManualClock())
    directory = Path(log.table_path) / "data-x"

    def work(files):
        files.register(str(directory))
        directory.mkdir(parents=True)
        (directory / "part.parquet").write_bytes(b"rows")
        raise KeyError("no more")

    with pytest.raises(KeyError):
        run_command(log.start_transaction(), work)
    assert not directory.exists()


def replacing(table, removed, added, balance):
    """A work that removes the files `removed` and adds the files `added`."""
    gone = tuple(file.remove(5) for file in removed)
    return lambda _files: Changes((*gone, *added), DELETE, balance=balance)


@pytest.mark.parametrize("balance", RowBalance)
def test_a_command_must_keep_as_many_rows_as_it_says(make_table, balance):
    table = make_table()
    old, new, more = (table.add(name) for name in ("old", "new", "more"))
    table.create(old)

    def lands(*added):
        try:
            run_command(table.log.start_transaction(), replacing(table, [old], added, balance))
        except TableError as error:
            assert error.kind == "DELTA_NUM_RECORDS_MISMATCH"
            assert (error.fields["added"], error.fields["removed"]) == (10 * len(added), 10)
            return False
        old_again = replacing(table, added, [old], RowBalance.ANY)
        run_command(table.log.start_transaction(), old_again)
        return True

    expected = {
        RowBalance.ANY: (True, True, True),
        RowBalance.NO_MORE: (True, True, False),
        RowBalance.EQUAL: (False, True, False),
    }
    assert (lands(), lands(new), lands(new, more)) == expected[balance]


def test_deleted_rows_do_not_count_and_unknown_ones_refuse_nothing(make_table):
    table = make_table()
    vector = DeletionVectorDescriptor("i", "x", 4, 3)
    old = replace(table.add("old"), deletion_vector=vector)
    seven = replace(table.add("seven"), stats='{"numRecords":7}')
    unknown = table.add("unknown", stats=False)
    table.create(old)
    with pytest.raises(TableError) as caught:
        work = replacing(table, [old], [table.add("ten")], RowBalance.EQUAL)
        run_command(table.log.start_transaction(), work)
    assert (caught.value.fields["added"], caught.value.fields["removed"]) == (10, 7)
    for removed, added in (([old], [seven]), ([seven], [unknown]), ([unknown], [seven])):
        work = replacing(table, removed, added, RowBalance.EQUAL)
        assert run_command(table.log.start_transaction(), work).commit is not None


def test_a_stopwatch_tells_laps_and_the_whole():
    clock = ManualClock()
    watch = Stopwatch(clock)
    clock.advance(1.5)
    watch.lap("scanTimeMs")
    clock.advance(0.5)
    watch.lap("rewriteTimeMs")
    clock.advance(1)
    assert watch.metrics() == {"executionTimeMs": 3000, "scanTimeMs": 1500, "rewriteTimeMs": 500}
