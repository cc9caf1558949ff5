"""Conflicts decided by row (spec 2.12): what both may change, what neither may, and the model."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numbered_rows import row_ids, vector_files
from optimist.core import DeltaLog
from optimist.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
)
from optimist.core.log.file_table import add_files
from optimist.core.transaction.commit_loop import CommitLoop
from optimist.core.transaction.conflicts.table import CONFLICT_TABLE
from row_histories import (
    appends,
    appends_rows,
    as_table,
    compact_file_of,
    compacts,
    copies,
    deletes,
    ensure_serial,
    histories,
    make,
    play,
    restore_vectors,
    rows_of,
    schedules,
    updates,
    upserts,
)

pytestmark = pytest.mark.sample(1)

BOTH = (0, 1, 0, 1)
"""The schedule in which both commands begin, and the first one lands first."""
READ_NOTHING = {"spark.optimist.conflict.readFiles": "0"}
BY_VECTORS = "spark.databricks.delta.delete.deletionVectors.persistent"


def outcome(log, winner, loser):
    """How the loser ends that began before the winner landed."""
    begun = log.start_transaction(log.snapshot())
    winner.run(log, log.start_transaction(log.snapshot()))
    try:
        loser.run(log, begun)
    except ConcurrentAppendException:
        return "CA"
    except ConcurrentDeleteReadException:
        return "DR"
    return "ok"


# The rows of the first file have the values 0 to 3, those of the second one 4 to 7.
OUTCOMES = [
    (deletes(0, 1), deletes(2, 4), "ok"),
    (deletes(0, 2), deletes(1, 3), "DR"),
    (deletes(0, 4), deletes(1, 3), "DR"),  # the winner leaves no row of the file
    (deletes(0, 1), deletes(0, 4), "DR"),
    (deletes(0, 1), deletes(4, 6), "ok"),
    (updates(0, 1, 100), deletes(2, 4), "ok"),
    (updates(0, 1, 100), updates(2, 4, 100), "ok"),
    (updates(0, 1, 2), deletes(2, 4), "CA"),  # a row moves to where the loser looks
    (updates(2, 3, 100), deletes(2, 4), "DR"),  # a row moves away from there
    (updates(0, 2, 100), updates(1, 3, 100), "DR"),
    (appends(50, 3), deletes(2, 4), "CA"),
    (appends(50, 9), deletes(2, 4), "ok"),
    (deletes(0, 1), copies(2, 4, 10), "DR"),  # it needs the whole file that it read
    (updates(0, 1, 5), copies(6, 8, 10), "ok"),
    (updates(0, 1, 6), copies(6, 8, 10), "CA"),
    (deletes(0, 1), upserts({2: 50, 60: 60}), "ok"),
    (deletes(2, 3), upserts({2: 50}), "DR"),
    (updates(2, 3, 50), upserts({2: 50}), "CA"),  # the row is another one, with the same id
    (deletes(3, 4), upserts({3: 50, 60: 60}, only_low=True), "DR"),  # the row would be added then
    (deletes(4, 5), upserts({3: 50, 60: 60}, only_low=True), "ok"),
    (upserts({60: 1}), upserts({60: 2}), "CA"),
    (upserts({60: 1}), upserts({61: 2}), "ok"),
    (upserts({2: 50}), deletes(3, 4), "ok"),
    (upserts({2: 3}), deletes(3, 4), "CA"),
    (deletes(0, 1), compacts(2), "DR"),
]


@pytest.mark.parametrize(("winner", "loser", "expected"), OUTCOMES, ids=str)
def test_outcome_of_a_command_against_a_winner(tmp_path, winner, loser, expected):
    log = make(tmp_path / "t")
    assert outcome(log, winner, loser) == expected
    ensure_serial(log, [winner, loser] if expected == "ok" else [winner])


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_by_file_two_vectors_of_one_file_conflict(tmp_path, granularity):
    log = make(tmp_path / "t", {"spark.optimist.conflict.granularity": granularity})
    assert outcome(log, deletes(0, 1), deletes(2, 4)) == "CA"
    ensure_serial(log, [deletes(0, 1)])


# A closer look at new rows


AROUND = {90: -50, 91: 50}
"""Rows on either side of those that the loser looks for, so that statistics do not decide."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "ok"),
        ({"spark.optimist.conflict.readFiles": "0"}, "CA"),
        ({"spark.optimist.conflict.readBytes": "10"}, "CA"),
        ({"spark.optimist.conflict.granularity": "file"}, "CA"),
    ],
    ids=str,
)
def test_a_new_file_whose_statistics_do_not_decide_is_read(tmp_path, options, expected):
    log = make(tmp_path / "t", options)
    winner = appends_rows(AROUND)
    assert outcome(log, winner, deletes(2, 4)) == expected
    ensure_serial(log, [winner, deletes(2, 4)] if expected == "ok" else [winner])


def test_a_new_file_that_holds_a_row_that_matches_is_a_conflict(tmp_path):
    log = make(tmp_path / "t")
    assert outcome(log, appends_rows({**AROUND, 92: 3}), deletes(2, 4)) == "CA"


def test_a_row_that_the_winner_has_deleted_from_its_own_file_does_not_count(tmp_path):
    log = make(tmp_path / "t")
    begun = log.start_transaction(log.snapshot())
    appends_rows({**AROUND, 92: 3, 93: 60}).run(log, log.start_transaction(log.snapshot()))
    # The append by itself is a conflict, though the row is gone by the time of the check.
    log.delete("id = 92")
    with pytest.raises(ConcurrentAppendException):
        deletes(2, 4).run(log, begun)


def test_a_new_file_that_can_not_be_read_is_a_conflict(tmp_path):
    log = make(tmp_path / "t")
    begun = log.start_transaction(log.snapshot())
    before = set((tmp_path / "t").rglob("*.parquet"))
    appends_rows(AROUND).run(log, log.start_transaction(log.snapshot()))
    (new,) = {*(tmp_path / "t").rglob("*.parquet")} - before
    new.unlink()
    with pytest.raises(ConcurrentAppendException):
        deletes(2, 4).run(log, begun)


# What the rebased commit looks like


def commit_of(path, version):
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("has_files", [False, True])
def test_the_loser_removes_what_the_winner_left_and_adds_the_union(
    tmp_path, monkeypatch, has_files
):
    if has_files:
        monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    path = tmp_path / "t"
    log = make(path)
    assert outcome(log, updates(0, 1, 100), deletes(2, 4)) == "ok"
    actions = commit_of(path, 3)
    info = next(line["commitInfo"] for line in actions if "commitInfo" in line)
    (add,) = [line["add"] for line in actions if "add" in line]
    (remove,) = [line["remove"] for line in actions if "remove" in line]
    winner = next(
        line["add"] for line in commit_of(path, 2) if "deletionVector" in line.get("add", {})
    )
    assert remove["deletionVector"] == winner["deletionVector"]
    assert add["deletionVector"]["cardinality"] == 3
    stats = json.loads(add["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (4, False)
    metrics = info["operationMetrics"]
    names = ("Added", "Removed", "Updated")
    assert [metrics[f"numDeletionVectors{name}"] for name in names] == ["1", "1", "1"]
    assert metrics["numDeletedRows"] == "2"
    # The loser's first file of vectors is named by no version, and gone.
    assert len(vector_files(path)) == (2 if has_files else 0)
    assert (
        rows_of(pa_table(path)) == rows_of(log.to_arrow()) == {0: 100, 1: 1, 4: 4, 5: 5, 6: 6, 7: 7}
    )


def pa_table(path):
    engine = QueryBuilder().register("t", DeltaTable(str(path)))
    return pa.table(engine.execute("SELECT id, v FROM t").read_all())


def test_a_file_that_both_empty_together_is_removed(tmp_path):
    log = make(tmp_path / "t")
    assert outcome(log, deletes(0, 2), deletes(2, 4)) == "ok"
    actions = commit_of(tmp_path / "t", 3)
    assert not [line for line in actions if "add" in line]
    info = next(line["commitInfo"] for line in actions if "commitInfo" in line)
    metrics = info["operationMetrics"]
    names = ("numRemovedFiles", "numDeletionVectorsAdded", "numDeletionVectorsUpdated")
    assert [metrics[name] for name in names] == ["1", "0", "0"]
    ensure_serial(log, [deletes(0, 2), deletes(2, 4)])
    assert log.snapshot().num_files == 1


def test_a_later_conflict_leaves_no_file_of_vectors(tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    log = make(tmp_path / "t")
    begun = log.start_transaction(log.snapshot())
    lost = put_after(log, [deletes(0, 1), deletes(2, 3)], monkeypatch)
    with pytest.raises(ConcurrentDeleteReadException):
        deletes(2, 4).run(log, begun)
    assert lost == []
    assert len(vector_files(tmp_path / "t")) == 2  # those of the two winners
    ensure_serial(log, [deletes(0, 1), deletes(2, 3)])


def put_after(log, commands, monkeypatch):
    """Let one of the commands land right before each attempt of the next one."""
    waiting = list(commands)
    do_commit = CommitLoop.do_commit

    def slow(loop, ours):
        if waiting:
            command = waiting.pop(0)
            with monkeypatch.context() as patch:
                patch.setattr(CommitLoop, "do_commit", do_commit)
                command.run(log, log.start_transaction(log.snapshot()))
        return do_commit(loop, ours)

    monkeypatch.setattr(CommitLoop, "do_commit", slow)
    return waiting


def test_a_command_that_runs_again_leaves_nothing_of_its_first_try(tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    path = tmp_path / "t"
    log = make(path)
    put_after(log, [updates(1, 2, 100)], monkeypatch)
    done = log.update(set={"v": 70}, predicate="v >= 1 AND v < 4", retry=True)
    assert (done.num_updated, done.commit.version) == (2, 3)
    assert log.history(1)[0].info.operation_metrics["numReruns"] == "1"
    assert rows_of(log.to_arrow()) == {0: 0, 1: 101, 2: 70, 3: 70, 4: 4, 5: 5, 6: 6, 7: 7}
    live = {file.path for file in add_files(log.snapshot().files)}
    assert {str(file.relative_to(path)) for file in path.rglob("*.parquet")} == live
    assert len(vector_files(path)) == 2


@pytest.mark.parametrize("has_files", [False, True])
def test_many_winners_one_after_the_other(tmp_path, monkeypatch, has_files):
    if has_files:
        monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    log = make(tmp_path / "t")
    begun = log.start_transaction(log.snapshot())
    winners = [deletes(0, 1), updates(1, 2, 100), deletes(4, 6)]
    put_after(log, winners, monkeypatch)
    deletes(3, 4).run(log, begun)
    ensure_serial(log, [*winners, deletes(3, 4)])
    # The loser's vectors of lost attempts are gone.
    assert len(vector_files(tmp_path / "t")) == (4 if has_files else 0)


def test_row_ids_and_the_change_feed_are_right_after_a_rebase(tmp_path):
    properties = {"enableRowTracking": "true", "enableChangeDataFeed": "true"}
    log = make(tmp_path / "t", **properties)
    before = dict(row_ids(log))
    assert outcome(log, deletes(0, 1), deletes(2, 4)) == "ok"
    assert row_ids(log) == {i: before[i] for i in (1, 4, 5, 6, 7)}
    names = ["_commit_version", "_change_type", "id"]
    feed = log.changes(columns=names, starting_version=2).to_pylist()
    found = sorted(tuple(row.values()) for row in feed)
    assert found == [(2, "delete", 0), (3, "delete", 2), (3, "delete", 3)]


# Rewrites of whole files


def test_without_vectors_a_file_that_was_only_looked_at_may_be_rewritten(tmp_path):
    log = make(tmp_path / "t", enableDeletionVectors="false")
    log.append(as_table(AROUND))  # a DELETE of 2 and 3 has to look at it
    winner = deletes(-60, -40)
    assert outcome(log, winner, deletes(2, 4)) == "ok"
    assert rows_of(log.to_arrow()) == {0: 0, 1: 1, 4: 4, 5: 5, 6: 6, 7: 7, 91: 50}


def test_without_vectors_a_rewritten_file_is_a_conflict(tmp_path):
    log = make(tmp_path / "t", enableDeletionVectors="false")
    assert outcome(log, deletes(0, 1), deletes(2, 4)) == "CA"
    ensure_serial(log, [deletes(0, 1)])


@pytest.mark.parametrize("loser_has_vectors", [False, True])
def test_a_vector_and_a_rewrite_of_one_file_conflict(tmp_path, loser_has_vectors):
    log = make(tmp_path / "t")
    rewriting = DeltaLog.for_path(
        str(tmp_path / "t"), {"spark.databricks.delta.delete.deletionVectors.persistent": "false"}
    )
    first, second = (rewriting, log) if loser_has_vectors else (log, rewriting)
    begun = second.start_transaction(second.snapshot())
    first.delete("v = 0")
    with pytest.raises(DeltaConcurrentModificationException):
        deletes(2, 4).run(second, begun)
    ensure_serial(log, [deletes(0, 1)])


def test_a_file_that_was_only_looked_at_may_be_compacted(tmp_path):
    log = make(tmp_path / "t")
    log.append(as_table(AROUND))
    begun = log.start_transaction(log.snapshot())
    compact_file_of(log, -50)
    deletes(2, 4).run(log, begun)
    assert rows_of(log.to_arrow()) == {0: 0, 1: 1, 4: 4, 5: 5, 6: 6, 7: 7, **AROUND}


def test_a_rearrangement_that_adds_rows_is_none(tmp_path):
    log = make(tmp_path / "t", READ_NOTHING)
    log.append(as_table(AROUND))
    begun = log.start_transaction(log.snapshot())
    compact_file_of(log, -50, {**AROUND, 92: 3})
    with pytest.raises(ConcurrentAppendException):
        deletes(2, 4).run(log, begun)


# Rows that come back


def test_rows_that_a_winner_brings_back_are_new_rows(tmp_path):
    log = make(tmp_path / "t")
    log.delete("v = 2")
    begun = log.start_transaction(log.snapshot())
    restore_vectors(log, version=1)
    with pytest.raises(DeltaConcurrentModificationException):
        deletes(1, 4).run(log, begun)
    ensure_serial(log, [])


# The model


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    histories(3),
    st.sampled_from(list(schedules(3))),
    st.booleans(),
    st.booleans(),
)
def test_a_history_leaves_what_its_commits_make_one_after_the_other(
    tmp_path_factory, commands, schedule, has_files, has_vectors
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0 if has_files else 256
        )
        text = str(has_vectors).lower()
        path = tmp_path_factory.mktemp("history") / "t"
        log = make(path, {BY_VECTORS: text})
        ensure_serial(log, play(log, commands, schedule))


@pytest.mark.parametrize(
    ("check", "commands"),
    [
        ("concurrent_row_conflict", [updates(0, 2, 100), updates(1, 4, 50)]),
        ("concurrent_append_conflict", [updates(0, 1, 2), deletes(2, 4)]),
        ("concurrent_delete_read_conflict", [deletes(0, 2), copies(1, 4, 100)]),
    ],
)
def test_the_model_finds_a_check_that_is_left_out(tmp_path, monkeypatch, check, commands):
    rules = tuple(
        replace(rule, check=None) if rule.check and rule.check.__name__ == check else rule
        for rule in CONFLICT_TABLE
    )
    monkeypatch.setattr("optimist.core.transaction.conflicts.table.CONFLICT_TABLE", rules)
    log = make(tmp_path / "t")
    landed = play(log, commands, BOTH)
    assert len(landed) == 2
    with pytest.raises(AssertionError):
        ensure_serial(log, landed)
