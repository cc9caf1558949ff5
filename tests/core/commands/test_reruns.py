"""Commands that run again after a conflict: how often, for how long, and what they leave."""

from __future__ import annotations

import pytest

from commit_reading import WRITE
from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.errors import ConcurrentAppendException, UsageError
from optimist.core.transaction.conflicts.operations import Operation

DELETE = Operation.delete(["x < 5"]).with_metrics({"numDeletedRows": 1})


def losing(table, times):
    """A DELETE that loses so many races to rows that match; it notes the versions it read."""
    read = []

    def run(txn):
        read.append(txn.read_version)

        def work(_files):
            txn.filter_files("x < 5")
            if len(read) <= times:
                late = table.add(f"late{len(read)}")
                table.log.start_transaction().commit([late], WRITE)
            return Changes((table.remove("f"),), DELETE)

        return run_command(txn, work).commit

    return run, read


def begun(table):
    return lambda: table.log.start_transaction(table.log.snapshot())


def metrics_of(table):
    return table.log.history(1)[0].info.operation_metrics


@pytest.mark.parametrize("by_option", [True, False])
def test_a_command_runs_again_until_it_lands_and_says_how_often(make_table, by_option):
    table = make_table(options={"optimist.conflict.retry": str(by_option).lower()})
    table.create(table.add("f"))
    run, read = losing(table, 2)
    result = run_until_it_lands(begun(table), run, retry=None if by_option else True)
    assert (result.version, read) == (3, [0, 1, 2])
    assert metrics_of(table) == {"numDeletedRows": "1", "numReruns": "2"}
    assert table.live() == ["late1", "late2"]


@pytest.mark.parametrize("by_option", [True, False])
def test_without_a_word_a_conflict_is_the_end(make_table, by_option):
    table = make_table(options={"optimist.conflict.retry": str(not by_option).lower()})
    table.create(table.add("f"))
    run, read = losing(table, 1)
    with pytest.raises(ConcurrentAppendException):
        run_until_it_lands(begun(table), run, retry=None if by_option else False)
    assert read == [0]
    run_until_it_lands(begun(table), run, retry=False)
    assert metrics_of(table) == {"numDeletedRows": "1"}


def test_attempts_end(make_table):
    table = make_table(options={"spark.databricks.delta.maxCommitAttempts": "2"})
    table.create(table.add("f"))
    run, read = losing(table, 9)
    with pytest.raises(ConcurrentAppendException):
        run_until_it_lands(begun(table), run, retry=True)
    assert read == [0, 1, 2]


def test_time_ends(make_table):
    table = make_table(options={"optimist.commit.retry.budgetSeconds": "60"})
    table.create(table.add("f"))
    run, read = losing(table, 9)

    def slow(txn):
        table.clock.advance(25)
        return run(txn)

    with pytest.raises(ConcurrentAppendException):
        run_until_it_lands(begun(table), slow, retry=True)
    assert read == [0, 1, 2]


def test_a_command_that_can_start_no_later_does_not_run_again(make_table):
    table = make_table()
    table.create(table.add("f"))
    run, read = losing(table, 9)
    first = table.log.snapshot()
    with pytest.raises(ConcurrentAppendException):
        run_until_it_lands(lambda: table.log.start_transaction(first), run, retry=True)
    assert read == [0]
    assert table.live() == ["f", "late1"]


def test_another_error_is_the_end(make_table):
    table = make_table().create()
    tried = []

    def run(txn):
        tried.append(txn)
        raise UsageError("no", kind="OPTIMIST_INVALID_ARGUMENT")

    with pytest.raises(UsageError):
        run_until_it_lands(begun(table), run, retry=True)
    assert len(tried) == 1
