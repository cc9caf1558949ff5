"""Commits that follow rows which another one only moved (spec 2.12)."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numbered_rows import row_ids
from optimist.core import DeltaLog
from optimist.core.errors import (
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
)
from optimist.core.local.commands import CommandOptions
from optimist.core.local.commands import delete as delete_rows
from optimist.core.log.file_table import add_files
from optimist.core.transaction.conflicts.table import CONFLICT_TABLE
from row_histories import (
    DEFAULTS,
    appends,
    as_table,
    compact_file_of,
    compacts,
    copies,
    deletes,
    ensure_serial,
    histories,
    make,
    play,
    rearrange,
    rows_of,
    schedules,
    updates,
    upserts,
)

READ_NOTHING = {"spark.optimist.conflict.readFiles": "0"}
TRACKS_ROWS = {"enableRowTracking": "true"}
NO_VECTORS = {"enableDeletionVectors": "false"}
LOSERS = [
    deletes(0, 1),
    deletes(2, 6),
    deletes(0, 4),
    deletes(0, 8),
    updates(1, 3, 100),
    updates(0, 8, 2),
    upserts({2: 50, 60: 60}),
    upserts({3: 50, 60: 60}, only_low=True),
    copies(1, 6, 1000),
]


def begin(log):
    return log.start_transaction(log.snapshot())


def ends(log, loser, *winners):
    """How a command ends that began before the winners landed; and the table is right."""
    begun = begin(log)
    for winner in winners:
        winner.run(log, begin(log))
    try:
        loser.run(log, begun)
    except DeltaConcurrentModificationException as error:
        ensure_serial(log, list(winners))
        return str(error)
    ensure_serial(log, [*winners, loser])
    return "ok"


def follow(log, loser, *winners):
    assert ends(log, loser, *winners) == "ok"


def refuse(log, loser, *winners, because):
    assert because in ends(log, loser, *winners)


# Hits: where the rows are now can be told


@pytest.mark.parametrize("loser", LOSERS, ids=str)
@pytest.mark.parametrize("count", [1, 2])
def test_rows_in_their_old_order_are_followed(tmp_path, loser, count):
    follow(make(tmp_path / "t"), loser, compacts(count))


@pytest.mark.parametrize("loser", LOSERS, ids=str)
@pytest.mark.parametrize("count", [1, 2])
def test_rows_with_ids_are_followed_in_whatever_order(tmp_path, loser, count):
    log = make(tmp_path / "t", **TRACKS_ROWS)
    before = row_ids(log)
    follow(log, loser, compacts(count, turned=True))
    after = row_ids(log)
    assert {i: after[i] for i in before if i in after} == {
        i: before[i] for i in before if i in after
    }
    assert len(set(after.values())) == len(after)


@pytest.mark.parametrize("has_files", [False, True])
def test_a_chain_of_winners_is_followed(tmp_path, monkeypatch, has_files):
    if has_files:
        monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    log = make(tmp_path / "t", **TRACKS_ROWS)
    winners = [
        deletes(0, 1),
        compacts(1),
        deletes(5, 6),
        compacts(2, turned=True),
        updates(7, 8, 9),
    ]
    follow(log, deletes(2, 5), *winners)
    # What lost attempts had written is gone.
    named = {
        file.deletion_vector.path_or_inline_dv
        for file in add_files(log.snapshot().files)
        if file.deletion_vector
    }
    assert len(named) == (1 if has_files else len(named))


def test_a_change_of_the_moved_row_is_still_a_conflict(tmp_path):
    log = make(tmp_path / "t")
    begun = begin(log)
    compacts(2).run(log, begin(log))
    log.delete("v = 3")
    with pytest.raises(ConcurrentDeleteReadException):
        deletes(2, 4).run(log, begun)
    ensure_serial(log, [compacts(2), deletes(3, 4)])


def test_a_new_row_that_would_have_been_read_is_still_a_conflict(tmp_path):
    refuse(make(tmp_path / "t"), deletes(2, 4), compacts(2), appends(50, 3), because="were added")


def test_what_a_read_found_may_move_and_must_not_change_there(tmp_path):
    log = make(tmp_path / "t")
    refuse(log, copies(1, 6, 1000), compacts(2), deletes(0, 1), because="were deleted")


def test_files_whose_rows_all_go_are_followed_without_a_look_at_them(tmp_path):
    follow(make(tmp_path / "t", READ_NOTHING), deletes(0, 8), compacts(2, turned=True))


def test_a_rewrite_takes_the_place_of_a_compaction_of_the_same_files(tmp_path):
    log = make(tmp_path / "t", READ_NOTHING, **NO_VECTORS)
    follow(log, updates(1, 6, 100), compacts(2, turned=True))
    assert log.snapshot().num_files == 1


def test_files_of_another_partition_do_not_stand_in_the_way(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for part in (0, 1):
        table = as_table({i: i for i in range(4 * part, 4 * part + 4)})
        log.append(table.append_column("p", pa.array([part] * 4)), partition_by=["p"])
    begun = begin(log)
    winner = begin(log)
    rearrange(winner, add_files(winner.snapshot.files))
    delete_rows(begun, "v = 1", CommandOptions())
    assert rows_of(log.to_arrow()) == {i: i for i in range(8) if i != 1}


# Misses: the error says why


def test_rows_in_another_order_are_not_followed_without_ids(tmp_path):
    log = make(tmp_path / "t")
    because = "it only rearranged their rows, but where these stand now can't be told: the table"
    refuse(log, deletes(0, 1), compacts(1, turned=True), because=because)


@pytest.mark.parametrize("properties", [{}, TRACKS_ROWS], ids=["by order", "by id"])
@pytest.mark.parametrize("limit", ["readFiles", "readBytes"])
def test_no_more_is_read_than_the_options_allow(tmp_path, properties, limit):
    log = make(tmp_path / "t", {f"spark.optimist.conflict.{limit}": "0"}, **properties)
    refuse(log, deletes(0, 1), compacts(2), because="would pass conflict.read")


def test_rows_that_lost_their_ids_are_not_followed(tmp_path):
    log = make(tmp_path / "t", **TRACKS_ROWS)
    begun = begin(log)
    compact_file_of(log, 2, {i: i for i in range(4)})
    with pytest.raises(ConcurrentDeleteReadException, match="other ids"):
        deletes(2, 4).run(log, begun)


def test_rows_that_were_changed_in_a_rearrangement_are_not_followed(tmp_path):
    log = make(tmp_path / "t")
    begun = begin(log)
    compact_file_of(log, 2, {i: 7 * i for i in range(4)})
    with pytest.raises(ConcurrentDeleteReadException, match="another order"):
        deletes(2, 4).run(log, begun)


def test_a_rewrite_does_not_take_rows_along_that_it_has_not_read(tmp_path):
    log = make(tmp_path / "t", **NO_VECTORS)
    refuse(log, updates(1, 3, 100), compacts(2), because="hold other rows, too")


def test_a_new_file_that_is_gone_again_is_not_followed(tmp_path):
    log = make(tmp_path / "t")
    begun = begin(log)
    before = set((tmp_path / "t").rglob("*.parquet"))
    compacts(1).run(log, begin(log))
    (new,) = {*(tmp_path / "t").rglob("*.parquet")} - before
    new.unlink()
    with pytest.raises(ConcurrentDeleteReadException, match="can't be read"):
        deletes(2, 4).run(log, begun)


def test_two_compactions_of_one_file_conflict(tmp_path):
    refuse(make(tmp_path / "t"), compacts(2), compacts(1), because="only rearranged")


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_by_file_nothing_is_followed(tmp_path, granularity):
    log = make(tmp_path / "t", {"spark.optimist.conflict.granularity": granularity})
    refuse(log, deletes(0, 1), compacts(1), because="version 2")


# Odd rows


ODD = pa.table(
    {
        "id": pa.array([1, 1, 2, 2, None, 3], pa.int64()),
        "x.y": [math.nan, math.nan, -0.0, 0.0, None, 1.5],
        "d": pa.array(
            [Decimal("12345678901234567890123456789012345.678")] * 6, pa.decimal128(38, 3)
        ),
        "n": [{"a": [math.nan, None], "b": "é"}] * 4 + [None, {"a": [], "b": None}],
    }
)


@pytest.mark.parametrize(
    ("condition", "others"),
    [
        ("id = 1", "id <> 1 OR id IS NULL"),
        ("id = 2", "id <> 2 OR id IS NULL"),
        ("id IS NULL", "id IS NOT NULL"),
        ("id = 3", "id <> 3 OR id IS NULL"),
        ("id < 3", "id >= 3 OR id IS NULL"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_rows_that_are_alike_go_all_of_them(tmp_path, condition, others, turned):
    """The same file twice, and so rows that can't be told from each other."""
    log = DeltaLog.for_path(str(tmp_path / "t"), {f"{DEFAULTS}enableDeletionVectors": "true"})
    for _ in range(2):
        log.append(ODD)
    expected = sorted(map(repr, log.to_arrow(others).to_pylist()))
    begun, winner = begin(log), begin(log)
    rearrange(winner, add_files(winner.snapshot.files), turned=turned)
    if turned:
        with pytest.raises(ConcurrentDeleteReadException):
            delete_rows(begun, condition, CommandOptions())
        return
    delete_rows(begun, condition, CommandOptions())
    assert sorted(map(repr, log.to_arrow().to_pylist())) == expected


# The model


@pytest.mark.again
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    histories(2),
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from(list(schedules(3))),
    st.booleans(),
    st.booleans(),
)
def test_a_history_with_a_compaction_is_one_after_the_other(
    tmp_path_factory, commands, count, turned, schedule, tracks_rows, has_vectors
):
    properties = {"enableRowTracking": tracks_rows, "enableDeletionVectors": has_vectors}
    texts = {name: str(value).lower() for name, value in properties.items()}
    log = make(tmp_path_factory.mktemp("history") / "t", **texts)
    ensure_serial(log, play(log, [*commands, compacts(count, turned=turned)], schedule))
    if tracks_rows:
        assert len(set(row_ids(log).values())) == log.count()


def test_the_model_finds_rows_that_are_not_followed(tmp_path, monkeypatch):
    rules = tuple(
        replace(rule, rebase=None) if rule.name == "concurrent moves of rows" else rule
        for rule in CONFLICT_TABLE
    )
    monkeypatch.setattr("optimist.core.transaction.conflicts.table.CONFLICT_TABLE", rules)
    log = make(tmp_path / "t")
    landed = play(log, [compacts(2), deletes(2, 6)], (0, 1, 0, 1))
    assert len(landed) == 2
    with pytest.raises(AssertionError):
        ensure_serial(log, landed)
