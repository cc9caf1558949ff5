"""What the table was like where a stream starts or goes on, if it was another since (spec 11.3)."""

from dataclasses import replace

import pyarrow as pa
import pytest

from optimist.core import DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.log.names import commit_path
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import action_to_json
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import schema_to_json
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.streams import planner as planning
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner

CHANGED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {**FEED, "delta.columnMapping.mode": "name"}
COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
ANOTHER = pa.schema([("id", pa.int64()), ("name", pa.int32())])


def make(path, properties=FEED):
    log = DeltaLog.for_path(path / "table", {})
    log.create(COLUMNS, properties=properties)
    add(log, 1)
    return log


def add(log, number):
    log.append(pa.table({"id": [number], "name": [f"row {number}"]}))


def made_anew(log):
    log.alter.drop_columns(["name"])
    log.alter.add_columns([NewColumn("name", "string")])


def renamed(log):
    log.alter.rename_column("name", "title")


def partitioned(log):
    overwritten(log, partition_columns=("name",))


def of_another_type(log):
    overwritten(log, schema_string=schema_to_json(from_arrow_schema(ANOTHER)))


def overwritten(log, **changed):
    """As Spark overwrites a table with other columns: the id stays."""
    log.delete()
    metadata = replace(log.metadata, **changed)
    path = commit_path(log.log_path, log.snapshot().version + 1)
    assert log.store.put_if_absent(path, action_to_json(metadata).encode()) is PutOutcome.CREATED


def replaced(log):
    log.create(COLUMNS, properties=FEED, mode="replace")


def unmapped(log):
    log.drop_feature("columnMapping")


CHANGES = {
    "a column made anew": (MAPPED, made_anew),
    "a column renamed": (MAPPED, renamed),
    "other partition columns": (FEED, partitioned),
    "another type": (FEED, of_another_type),
    "no column mapping any more": (MAPPED, unmapped),
}


@pytest.fixture(params=CHANGES.values(), ids=CHANGES)
def log(request, tmp_path):
    """A table with a row at version 1, which no longer has its columns as they were then."""
    properties, change = request.param
    found = make(tmp_path, properties)
    change(found)
    return found


def refused(kind, ask):
    with pytest.raises(OptimistError) as caught:
        ask()
    assert caught.value.kind == kind
    return caught.value


def position(log, version):
    return StreamOffset.before(log.metadata.id, version)


def planner(log, **options):
    parsed = StreamOptions.parse({key: str(value) for key, value in options.items()}, int)
    return StreamPlanner.of(log.table, parsed, log.snapshot)


def rows(items):
    return [row for item in items for row in item.to_arrow().to_pylist()]


@pytest.mark.parametrize("changes", [False, True])
def test_a_follower_does_not_give_old_rows_by_new_columns(log, changes):
    at = position(log, 1).to_json()
    refused(CHANGED, lambda: list(log.follow(at, changes=changes)))
    refused(CHANGED, lambda: list(log.follow(starting_version=1, changes=changes)))
    last = position(log, log.snapshot().version).to_json()
    assert rows(log.follow(last, changes=changes)) == []


@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true"}])
def test_a_query_that_goes_on_asks_what_the_table_was_like(log, options):
    begin, end = position(log, 1), position(log, 2)
    asked = planner(log, **options)
    refused(CHANGED, lambda: asked.latest_offset(begin, asked.capacity()))
    # The batch was planned before its driver died.
    refused(CHANGED, lambda: planner(log, **options).views_between(begin, end))
    fresh = planner(log, startingVersion=1, **options)
    refused(CHANGED, lambda: fresh.latest_offset(None, fresh.capacity()))


def test_a_column_that_is_dropped_under_a_stream_stops_it_and_a_restart_goes_on(tmp_path):
    log = make(tmp_path, MAPPED)
    running = planner(log)
    at = running.latest_offset(None, running.capacity())
    add(log, 2)
    log.alter.drop_columns(["name"])
    log.append(pa.table({"id": [3]}))
    at = running.latest_offset(at, running.capacity())
    error = refused(CHANGED, lambda: running.latest_offset(at, running.capacity()))
    assert (error.fields["retryable"], at.version) == (False, 3)
    again = planner(log)
    end = again.latest_offset(at, again.capacity())
    (view,) = again.views_between(at, end)
    assert to_arrow(view).to_pylist() == [{"id": 3}]
    # Where rows from before the change are yet to be read, a restart does not help.
    refused(CHANGED, lambda: planner(log).latest_offset(position(log, 2), running.capacity()))


@pytest.mark.parametrize("changes", [False, True])
def test_a_start_before_a_table_was_replaced_is_of_another_table(tmp_path, changes):
    log = make(tmp_path)
    replaced(log)
    kind = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    refused(kind, lambda: list(log.follow(starting_version=1, changes=changes)))
    refused(kind, lambda: list(log.follow(position(log, 1).to_json(), changes=changes)))


def forget(log, *versions):
    """Let the log lose commits, as a cleanup does."""
    for version in versions:
        log.store.delete(commit_path(log.log_path, version))
    return DeltaLog(log.table_path, log.store)


@pytest.mark.parametrize("properties", [FEED, MAPPED])
def test_where_the_table_can_not_be_loaded_only_mapped_columns_are_refused(tmp_path, properties):
    log = make(tmp_path, properties)
    for number in (2, 3):
        add(log, number)
    log.checkpoint()
    log.alter.add_columns([NewColumn("more", "int")])
    log = forget(log, 0)
    at = position(log, 1).to_json()
    if properties is MAPPED:
        kind = "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT"
        assert refused(kind, lambda: list(log.follow(at))).fields["version"] == 1
        refused(kind, lambda: list(log.follow(at, failOnDataLoss=False)))
    else:
        assert [row["id"] for row in rows(log.follow(at))] == [1, 2, 3]
    later = position(log, 3).to_json()
    assert rows(log.follow(later)) == [{"id": 3, "name": "row 3", "more": None}]


@pytest.mark.parametrize("changes", [False, True])
def test_a_change_among_lost_commits_is_found_where_the_log_goes_on(tmp_path, changes):
    log = make(tmp_path, MAPPED)
    made_anew(log)  # versions 2 and 3
    add(log, 4)
    log.checkpoint()
    renamed(log)
    log = forget(log, 0, 1, 2, 3)
    refused(
        CHANGED,
        lambda: list(log.follow(position(log, 1).to_json(), failOnDataLoss=False, changes=changes)),
    )


def test_a_hole_under_a_running_stream_may_have_changed_the_columns(tmp_path):
    log = make(tmp_path, MAPPED)
    following = planner(log, failOnDataLoss="false")
    at = following.latest_offset(None, following.capacity())
    made_anew(log)  # versions 2 and 3
    add(log, 4)
    log.checkpoint()
    forget(log, 2, 3)
    refused(CHANGED, lambda: following.latest_offset(at, following.capacity()))


def test_the_table_is_loaded_once_however_often_a_follower_looks(tmp_path, monkeypatch):
    log = make(tmp_path)
    add(log, 2)
    log.alter.set_properties({"owner": "x"})
    real, loaded = planning.load_same, []

    def load(table, version, latest):
        loaded.append(version)
        return real(table, version, latest)

    monkeypatch.setattr(planning, "load_same", load)
    stream = planner(log, maxFilesPerTrigger=1)
    at = position(log, 1)
    while (end := stream.latest_offset(at, stream.capacity())) != at:
        stream.views_between(at, end)
        at = end
    assert loaded == [1]
