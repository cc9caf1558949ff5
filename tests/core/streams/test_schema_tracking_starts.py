"""Where streams with a log of schemas begin, and that log with them (spec 11.5)."""

from contextlib import suppress

import pytest

from optimist.core import NewColumn
from optimist.core.errors import OptimistError
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from tracked_streams import EVOLVED, Query, add, dropped, entries, mapped_table, renamed, stream


@pytest.fixture
def log(tmp_path):
    return mapped_table(tmp_path / "table")


def test_a_start_before_a_change_is_read_by_the_schema_of_then(log):
    renamed(log)
    add(log, id=2, title="two")
    query = Query(log, startingVersion=1)
    assert query.run() == EVOLVED  # the frame had the new one
    assert query.run() == EVOLVED  # at the change
    assert query.run() is None
    assert query.seen == [{"id": 1, "name": "one"}, {"id": 2, "title": "two"}]


def test_a_start_that_is_latest_begins_its_log_with_the_newest_version(log):
    query = Query(log, startingVersion="latest")
    assert query.run() is None
    renamed(log)
    add(log, id=2, title="two")
    assert query.run() == EVOLVED
    assert query.run() is None
    assert query.seen == [{"id": 2, "title": "two"}]
    assert [entry.version for entry in entries(log)] == [1, 2]


def test_a_table_that_changed_before_the_first_batch_was_planned_is_begun_anew(log):
    begun_only(log)
    dropped(log)
    query = Query(log)
    assert query.run({}) == EVOLVED
    assert query.run({}) is None  # no row was given by what is dropped
    assert [(entry.version, entry.previous) for entry in entries(log)] == [(1, None), (2, -1)]
    assert query.seen == [{"id": 1}]


def begun_only(log, **options):
    """A run whose driver dies before it has planned a batch."""
    planner = stream(log, **options)
    with suppress(OptimistError):
        planner.latest_offset(None, planner.capacity())


def test_a_start_at_latest_that_moved_past_a_change_is_begun_anew(log):
    begun_only(log, startingVersion="latest")
    renamed(log)
    query = Query(log, startingVersion="latest")
    assert query.run({}) == EVOLVED
    assert query.run({}) is None
    add(log, id=2, title="two")
    assert query.run({}) is None
    assert query.seen == [{"id": 2, "title": "two"}]


def test_a_start_that_is_moved_across_a_change_before_any_batch_is_begun_anew(log):
    renamed(log)
    add(log, id=2, title="two")
    begun_only(log, startingVersion=1)
    query = Query(log, startingVersion=3)
    assert [query.run({}) for _ in range(2)] == [EVOLVED, None]
    assert query.seen == [{"id": 2, "title": "two"}]


def test_a_start_that_is_moved_back_across_a_change_is_begun_anew(log):
    renamed(log)
    add(log, id=2, title="two")
    begun_only(log, startingVersion=3)
    query = Query(log, startingVersion=1)
    assert [query.run() for _ in range(3)] == [EVOLVED, EVOLVED, None]
    assert query.seen == [{"id": 1, "name": "one"}, {"id": 2, "title": "two"}]


def test_a_stream_that_ran_without_a_log_begins_it_where_it_is(log):
    plain = StreamPlanner.of(log.table, StreamOptions(), log.snapshot)
    start = plain.latest_offset(None, plain.capacity())
    query = Query(log)
    query.offsets, query.num_done = [start], 1
    renamed(log)
    assert query.run() == EVOLVED  # the frame had the new schema
    add(log, id=2, title="two")
    assert query.run() == EVOLVED
    assert query.run() is None
    assert query.seen == [{"id": 2, "title": "two"}]
    assert [entry.version for entry in entries(log)] == [1, 2]


def test_a_planned_batch_across_changes_begins_the_log_if_one_schema_fits_it(log):
    plain = StreamPlanner.of(log.table, StreamOptions(), log.snapshot)
    start = plain.latest_offset(None, plain.capacity())
    log.alter.add_columns([NewColumn("more", "int")])
    add(log, id=2)
    query = Query(log)
    query.offsets, query.num_done = [start, StreamOffset.before(log.metadata.id, 4)], 1
    assert query.run() is None
    assert query.seen == [{"id": 2, "name": None, "more": None}]
    assert [entry.version for entry in entries(log)] == [3]


def test_a_planned_batch_across_changes_that_no_schema_fits_is_refused(log):
    plain = StreamPlanner.of(log.table, StreamOptions(), log.snapshot)
    start = plain.latest_offset(None, plain.capacity())
    renamed(log)
    add(log, id=2)
    query = Query(log)
    query.offsets, query.num_done = [start, StreamOffset.before(log.metadata.id, 4)], 1
    assert query.run() == "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA"
    assert entries(log) == []
