"""Races of every two commands: the table holds what they make of it one after the other."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from optimist.core.testing.logstore_races import run_in_threads
from row_histories import (
    appends,
    copies,
    deletes,
    ensure_in_order_of_versions,
    make,
    run_until_landed,
    updates,
    upserts,
)

ONE = {
    "append": appends(500, 2),
    "delete": deletes(0, 3),
    "update": updates(1, 4, 100),
    "merge": upserts({2: 50, 60: 1}),
    "copy": copies(0, 3, 1000),
}
OTHER = {
    "append": appends(501, 3),
    "delete": deletes(2, 5),
    "update": updates(3, 6, -3),
    "merge": upserts({3: 2, 60: 9}),
    "copy": copies(2, 5, 2000),
}
APART = {
    "delete": deletes(3, 4),
    "update": updates(3, 4, 200),
    "merge": upserts({3: 300}),
}


def race(log, commands):
    """Each command by a thread of its own; all have begun before the first one commits."""
    barrier = threading.Barrier(len(commands))
    racers = [partial(run_until_landed, log, command, barrier.wait) for command in commands]
    return list(zip(run_in_threads(racers), commands, strict=True))


def num_reruns(log):
    """How often a command ran again, by the history."""
    metrics = [commit.info.operation_metrics for commit in log.history()]
    return sum(int(item.get("numReruns", 0)) for item in metrics)


@pytest.mark.parametrize("has_vectors", ["true", "false"])
@pytest.mark.parametrize("other", OTHER)
@pytest.mark.parametrize("one", ONE)
def test_two_commands_at_once_are_one_after_the_other(tmp_path, one, other, has_vectors):
    log = make(tmp_path / "t", enableDeletionVectors=has_vectors)
    ensure_in_order_of_versions(log, race(log, [ONE[one], OTHER[other]]))


@pytest.mark.parametrize("other", APART)
@pytest.mark.parametrize("one", ["delete", "update"])
def test_two_commands_on_different_rows_of_a_file_never_run_again(tmp_path, one, other):
    log = make(tmp_path / "t")
    first = {"delete": deletes(0, 2), "update": updates(0, 2, 100)}[one]
    ensure_in_order_of_versions(log, race(log, [first, APART[other]]))
    assert num_reruns(log) == 0


def test_four_commands_on_the_rows_of_one_file(tmp_path):
    log = make(tmp_path / "t")
    commands = [deletes(i, i + 1) for i in range(3)] + [updates(3, 4, 100)]
    ensure_in_order_of_versions(log, race(log, commands))
    assert num_reruns(log) == 0
    assert log.snapshot().num_files == 2  # the file with four rows less is gone
