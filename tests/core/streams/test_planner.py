"""Which files each batch of a stream has: starts, limits, and commits it can't read (spec 11.2)."""

import shutil
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.streams import indexed_files
from optimist.core.streams.indexed_files import Capacity, IndexedFiles
from optimist.core.streams.offset import BASE_INDEX, StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner

LENIENT = {"spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def log(tmp_path):
    """A table of three commits with two rows each."""
    found = DeltaLog.for_path(tmp_path / "table", {})
    for first in (0, 2, 4):
        add(found, first, first + 1)
    return found


def add(log, *ids):
    log.append(pa.table({"id": pa.array(ids, pa.int64())}))


def stream(log, conf=None, **options):
    """A new run of a stream, as a driver that starts makes it."""
    fresh = DeltaLog.for_path(log.table_path, conf or {})
    parsed = StreamOptions.parse({key: str(value) for key, value in options.items()}, int)
    return StreamPlanner.of(fresh.table, parsed, fresh.snapshot)


def ids(views):
    (view,) = views
    return sorted(to_arrow(view)["id"].to_pylist())


def batches(log, start=None, **options):
    """The rows of each batch until nothing is new, and where the last one ended."""
    planner, found = stream(log, **options), []
    while True:
        end = planner.latest_offset(start, planner.capacity())
        if end == start:
            return found, start
        # What a driver that has crashed in the batch would run again.
        again = StreamOffset.from_json(end.to_json())
        before = None if start is None else StreamOffset.from_json(start.to_json())
        rows = ids(planner.views_between(start, end))
        repeated = stream(log, **options)
        assert ids(repeated.views_between(before, again)) == rows
        found.append(rows)
        start = end


def refused(kind, log, start=None, **options):
    with pytest.raises(OptimistError) as caught:
        batches(log, start, **options)
    assert caught.value.kind == kind
    return caught.value


def place(log, version, index=BASE_INDEX, *, is_initial=False):
    return StreamOffset(log.metadata.id, version, index, is_initial)


# Where a stream begins


def test_the_whole_table_comes_first_and_then_each_commit(log):
    found, end = batches(log)
    assert found == [[0, 1, 2, 3, 4, 5]]
    add(log, 6)
    add(log, 7)
    assert batches(log, end)[0] == [[6, 7]]


def test_a_table_without_rows_gives_a_first_batch_without_rows(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    log.append(pa.table({"id": pa.array([], pa.int64())}))
    found, end = batches(log)
    assert found == [[]]
    assert end == place(log, log.snapshot().version + 1)


def test_a_starting_version_begins_with_its_commit(log):
    assert batches(log, startingVersion=1)[0] == [[2, 3, 4, 5]]
    error = refused("DELTA_VERSION_NOT_FOUND", log, startingVersion=3)
    assert error.fields["latest"] == 2


def test_the_start_latest_is_a_batch_of_its_own_that_a_crash_can_not_lose(log):
    planner = stream(log, startingVersion="latest")
    pinned = planner.latest_offset(None, planner.capacity())
    assert pinned == place(log, 3)
    assert ids(planner.views_between(None, pinned)) == []
    add(log, 6)
    # The driver has crashed in batch 0; the next one finds its end in the checkpoint.
    again = stream(log, startingVersion="latest")
    assert ids(again.views_between(None, pinned)) == []
    assert batches(log, pinned, startingVersion="latest")[0] == [[6]]


def test_a_starting_time_is_pinned_as_well(log):
    times = [record.timestamp_ms for record in reversed(log.history())]
    found, _ = batches(log, startingTimestamp=times[1])
    assert found[0] == []
    assert sorted(row for rows in found for row in rows) == [2, 3, 4, 5]
    assert batches(log, startingTimestamp=times[0] - 1000)[0][1:] == [[0, 1, 2, 3, 4, 5]]
    later = times[2] + 60_000
    refused("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", log, startingTimestamp=later)


def test_a_starting_time_is_the_first_commit_that_the_log_has(log):
    times = [record.timestamp_ms for record in reversed(log.history())]
    log.checkpoint()  # of version 2, from which on the table can be loaded
    add(log, 6)
    Path(log.log_path, f"{0:020}.json").unlink()
    for start, expected in ((times[0] - 1000, [2, 3, 4, 5, 6]), (times[1], [2, 3, 4, 5, 6])):
        assert batches(log, startingTimestamp=start)[0] == [[], expected]
    assert batches(log, startingTimestamp=times[1] + 1)[0] == [[], [4, 5, 6]]
    (_, *items) = log.follow(starting_timestamp=times[1])
    assert [item.to_arrow()["id"].to_pylist() for item in items] == [[2, 3], [4, 5], [6]]


def test_a_starting_time_is_found_beside_lost_commits(log):
    add(log, 6)
    add(log, 7)
    log.checkpoint()
    times = [record.timestamp_ms for record in reversed(log.history())]
    for lost in (0, 2):
        Path(log.log_path, f"{lost:020}.json").unlink()
    found, _ = batches(log, startingTimestamp=times[3], failOnDataLoss="false")
    assert found == [[], [6, 7]]
    found, _ = batches(log, startingTimestamp=times[1], failOnDataLoss="false")
    assert found == [[], [2, 3, 6, 7]]


def test_a_run_of_one_batch_from_a_time_has_the_rows(log):
    """As `Trigger.Once` asks: there is no later batch that would give them."""
    times = [record.timestamp_ms for record in reversed(log.history())]
    planner = stream(log, startingTimestamp=times[1])
    end = planner.latest_offset(None, Capacity())
    assert ids(planner.views_between(None, end)) == [2, 3, 4, 5]
    add(log, 6)
    again = stream(log, startingTimestamp=times[1])  # the driver has crashed in the batch
    assert ids(again.views_between(None, end)) == [2, 3, 4, 5]
    later = {"startingTimestamp": times[-1] + 1_000_000}
    waiting = stream(log, LENIENT, **later)
    assert waiting.latest_offset(None, Capacity()) == place(log, 4)  # which a crash can't lose
    now = stream(log, startingVersion="latest").latest_offset(None, Capacity())
    assert now == place(log, 4)


def test_a_start_that_is_yet_to_come_is_waited_for_where_that_is_allowed(log):
    planner = stream(log, LENIENT, startingVersion=5)
    for number in (6, 7):  # versions 3 and 4
        assert planner.latest_offset(None, planner.capacity()) is None
        assert list(DeltaLog.for_path(log.table_path, LENIENT).follow(starting_version=5)) == []
        add(log, number)
    assert planner.latest_offset(None, planner.capacity()) is None
    add(log, 8)
    end = planner.latest_offset(None, planner.capacity())
    assert ids(planner.views_between(None, end)) == [8]
    (item,) = DeltaLog.for_path(log.table_path, LENIENT).follow(starting_version=5)
    assert item.to_arrow()["id"].to_pylist() == [8]
    refused("DELTA_VERSION_NOT_FOUND", log, startingVersion=7)


def test_a_stream_reads_no_older_version(log):
    for name in ("versionAsOf", "timestampAsOf", "VERSIONASOF"):
        refused("DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS", log, **{name: "1"})


def test_two_starts_are_refused(log):
    kind = "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"
    refused(kind, log, startingVersion=1, startingTimestamp=5)


# How much a batch takes


def test_a_batch_takes_so_many_files_and_never_goes_from_the_snapshot_to_commits(log):
    planner = stream(log, maxFilesPerTrigger=2)
    first = planner.latest_offset(None, planner.capacity())
    assert first == place(log, 2, 1, is_initial=True)
    add(log, 6)
    assert batches(log, first, maxFilesPerTrigger=2)[0] == [[4, 5], [6]]
    assert batches(log, maxFilesPerTrigger=2)[0] == [[0, 1, 2, 3], [4, 5, 6]]


def test_limits_hold_across_commits(log):
    for number in range(6, 10):
        add(log, number)
    found, _ = batches(log, place(log, 0), maxFilesPerTrigger=3)
    assert found == [[0, 1, 2, 3, 4, 5], [6, 7, 8], [9]]


def test_a_batch_may_end_and_the_next_begin_within_a_commit(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    for first in (0, 3):
        rows = pa.table({"id": pa.array(range(first, first + 3), pa.int64())})
        log.append(rows.append_column("part", rows["id"]), partition_by=["part"])
    found, _ = batches(log, place(log, 0), maxFilesPerTrigger=2)
    assert [len(rows) for rows in found] == [2, 2, 2]
    assert sorted(row for rows in found for row in rows) == [0, 1, 2, 3, 4, 5]


def test_a_file_is_taken_if_there_was_room_before_it(log):
    size = log.files()["size"][0].as_py()
    assert batches(log, place(log, 0), maxBytesPerTrigger=1)[0] == [[0, 1], [2, 3], [4, 5]]
    assert batches(log, place(log, 0), maxBytesPerTrigger=size + 1)[0] == [[0, 1, 2, 3], [4, 5]]
    both = {"maxBytesPerTrigger": "1g", "maxFilesPerTrigger": 1}
    assert batches(log, **both)[0] == [[0, 1], [2, 3], [4, 5]]


def test_a_commit_without_files_takes_no_room(log):
    log.alter.set_properties({"owner": "us"})
    add(log, 6)
    size = log.files()["size"][0].as_py()
    for limit in ({"maxBytesPerTrigger": 3 * size + 1}, {"maxFilesPerTrigger": 4}):
        assert batches(log, place(log, 0), **limit)[0] == [[0, 1, 2, 3, 4, 5, 6]]


def test_files_of_the_snapshot_go_by_time_and_path(log):
    order = [("modificationTime", "ascending"), ("path", "ascending")]
    paths = log.files().sort_by(order)["path"].to_pylist()
    planner, start, found = stream(log, maxFilesPerTrigger=1), None, []
    for _ in paths:
        end = planner.latest_offset(start, planner.capacity())
        (view,) = planner.views_between(start, end)
        found += view.files["path"].to_pylist()
        start = end
    assert found == paths


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxFilesPerTrigger", "0"),
        ("maxFilesPerTrigger", "many"),
        ("maxBytesPerTrigger", "-1"),
        ("maxBytesPerTrigger", "5 bananas"),
        ("startingVersion", "-1"),
        ("ignoreDeletes", "perhaps"),
        ("excludeRegex", "("),
    ],
)
def test_values_that_do_not_parse_are_refused(log, name, value):
    assert refused("DELTA_ILLEGAL_OPTION", log, **{name: value}).fields["key"] == name


def test_no_batch_ends_within_the_first_snapshot_where_event_times_count(log):
    options = {"maxFilesPerTrigger": 1, "maxBytesPerTrigger": 1}
    assert len(batches(log, **options)[0]) > 1
    found, end = batches(log, withEventTimeOrder="true", **options)
    assert found == batches(log, maxFilesPerTrigger=1000)[0]
    assert len(found) == 1
    add(log, 7)
    add(log, 8)
    assert batches(log, end, withEventTimeOrder="true", **options)[0] == [[7], [8]]
    # A checkpoint of a stream that began without it may stand within the snapshot.
    planner = stream(log, **options)
    within = planner.latest_offset(None, planner.capacity())
    assert within.is_initial
    rest, _ = batches(log, within, withEventTimeOrder="true", **options)
    assert len(rest[0]) > 1
    refused("DELTA_ILLEGAL_OPTION", log, withEventTimeOrder="perhaps")


# What commits have


def test_rearranged_rows_are_passed_over(log):
    _, end = batches(log)
    log.optimize()
    assert log.snapshot().num_files == 1
    add(log, 6)
    assert batches(log, end)[0] == [[6]]


def test_commits_that_remove_rows_stop_the_stream_unless_options_allow_them(log):
    _, end = batches(log)
    log.delete("id < 2")  # a whole file
    add(log, 6)
    error = refused("DELTA_SOURCE_IGNORE_DELETE", log, end)
    assert error.fields["version"] == 3
    for option in ("ignoreDeletes", "ignoreChanges", "skipChangeCommits", "ignoreFileDeletion"):
        assert batches(log, end, **{option: "true"})[0] == [[6]]


@pytest.mark.parametrize("properties", [{}, VECTORS])
def test_commits_that_rewrite_rows_are_given_again_or_skipped(log, properties):
    if properties:
        log.alter.set_properties(properties)
    _, end = batches(log)
    log.delete("id = 2")
    add(log, 6)
    refused("DELTA_SOURCE_TABLE_IGNORE_CHANGES", log, end)
    refused("DELTA_SOURCE_TABLE_IGNORE_CHANGES", log, end, ignoreDeletes="true")
    assert batches(log, end, ignoreChanges="true")[0] == [[3, 6]]
    assert batches(log, end, skipChangeCommits="true")[0] == [[6]]


def test_deleted_rows_of_the_snapshot_are_not_given(log):
    log.alter.set_properties(VECTORS)
    log.delete("id IN (0, 3)")
    assert batches(log)[0] == [[1, 2, 4, 5]]


def test_excluded_files_keep_their_places(log):
    paths = log.files()["path"].to_pylist()
    found, end = batches(log, excludeRegex=paths[1], maxFilesPerTrigger=2)
    assert len(sorted(row for rows in found for row in rows)) == 4
    assert end == place(log, 3)


def test_a_commit_that_is_gone_stops_the_stream_unless_the_option_says_so(log):
    start = place(log, 0)
    add(log, 6)
    log.checkpoint()
    Path(log.log_path, f"{1:020}.json").unlink()
    error = refused("DELTA_MISSING_FILES_UNEXPECTED_VERSION", log, start)
    assert (error.fields["startVersion"], error.fields["earliestVersion"]) == (1, 2)
    assert batches(log, start, failOnDataLoss="false")[0] == [[0, 1, 4, 5, 6]]
    refused("DELTA_MISSING_FILES_UNEXPECTED_VERSION", log, startingVersion=1)


def test_lost_commits_are_one_step_however_many_they_are(log, monkeypatch):
    for number in range(6, 36):
        add(log, number)
    log.checkpoint()
    add(log, 36)
    for version in range(1, 32):
        Path(log.log_path, f"{version:020}.json").unlink()
    start, options = place(log, 0), {"failOnDataLoss": "false"}
    items = list(DeltaLog(log.table_path, log.store).follow(start.to_json(), failOnDataLoss=False))
    assert [item.to_arrow()["id"].to_pylist() for item in items] == [[0, 1], [], [35], [36]]
    planner, reads = stream(log, **options), []
    store = type(planner.table.store)
    real = store.read_bytes
    monkeypatch.setattr(
        store, "read_bytes", lambda self, path: reads.append(path) or real(self, path)
    )
    end = planner.latest_offset(start, planner.capacity())
    assert ids(planner.views_between(start, end)) == [0, 1, 35, 36]
    backlog = planner.backlog(start)
    assert (backlog.files, backlog.versions) == (3, 34)
    assert len(reads) < 12


def test_what_came_before_a_commit_that_stops_the_stream_is_given_first(log):
    planner = stream(log)
    start = planner.latest_offset(None, planner.capacity())
    add(log, 6)
    log.delete("id < 2")
    end = planner.latest_offset(start, planner.capacity())
    assert ids(planner.views_between(start, end)) == [6]
    refused("DELTA_SOURCE_IGNORE_DELETE", log, end)


# Another schema, another table


def test_a_new_column_stops_the_stream_until_it_is_started_again(log):
    planner = stream(log)
    end = planner.latest_offset(None, planner.capacity())
    log.alter.add_columns([NewColumn("x", "long")])
    log.append(pa.table({"id": [6], "x": [1]}))
    with pytest.raises(OptimistError) as caught:
        planner.latest_offset(end, planner.capacity())
    assert caught.value.kind == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    assert caught.value.fields["retryable"] is True
    assert batches(log, end)[0] == [[6]]


def test_a_dropped_column_stops_the_stream_for_good(log):
    log.alter.set_properties({"delta.columnMapping.mode": "name"})
    log.alter.add_columns([NewColumn("x", "long")])
    start = place(log, log.snapshot().version + 1)
    log.alter.add_columns([NewColumn("y", "long")])
    log.alter.drop_columns(["x"])
    error = refused("DELTA_SCHEMA_CHANGED_WITH_VERSION", log, start)
    assert error.fields["retryable"] is False


def test_a_table_that_was_made_anew_is_not_read_on(log, tmp_path):
    _, end = batches(log)
    shutil.rmtree(log.table_path)
    other = DeltaLog.for_path(log.table_path, {})
    for number in range(5):
        add(other, number)
    refused("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", other, end)


def test_an_offset_past_the_log_is_refused(log):
    refused("DELTA_VERSION_NOT_FOUND", log, place(log, 4))
    refused("DELTA_VERSION_NOT_FOUND", log, place(log, 3, 0))


def test_a_batch_that_another_engine_ended_among_the_commits_is_run_again_whole(log):
    planner = stream(log)
    add(log, 6)
    end = place(log, 3, 0)
    assert ids(planner.views_between(None, end)) == [0, 1, 2, 3, 4, 5, 6]


# What it costs, and what is left to read


def test_a_look_that_finds_nothing_costs_one_listing(log, monkeypatch):
    planner = stream(log)
    end = planner.latest_offset(None, planner.capacity())
    store, calls = planner.table.store, []
    for name in ("find", "list_from", "read_bytes", "open_read"):
        real = getattr(type(store), name)

        def counted(self, *arguments, real=real, name=name, **more):
            calls.append(name)
            return real(self, *arguments, **more)

        monkeypatch.setattr(type(store), name, counted)
    assert planner.latest_offset(end, planner.capacity()) == end
    # On a local disk looks at names are cheaper than a listing: at the newest commit, at the next,
    # and at two behind that, which show a hole.
    assert calls == (["find"] * 4 if store.finds_cheaply else ["list_from"])


def test_the_backlog_counts_files_and_bytes_that_are_left(log):
    planner = stream(log, maxFilesPerTrigger=2)
    end = planner.latest_offset(None, planner.capacity())
    size = sum(log.files()["size"].to_pylist()[2:])
    assert (planner.backlog(end).files, planner.backlog(end).size_bytes) == (1, size)
    add(log, 6)
    end = planner.latest_offset(end, planner.capacity())
    assert (planner.backlog(end).files, planner.backlog(end).versions) == (1, 1)
    end = planner.latest_offset(end, planner.capacity())
    assert (planner.backlog(end).files, planner.backlog(end).versions) == (0, 0)


def test_no_object_is_made_per_file_of_the_first_snapshot(log, monkeypatch):
    counted = []
    monkeypatch.setattr(indexed_files, "range", counted.append, raising=False)
    many = pa.concat_tables([stream(log).newest().files] * 40_000)
    tracemalloc.start()
    try:
        files = IndexedFiles.of(many)
        taken = Capacity(files=10).take(files.between(BASE_INDEX))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(files), taken, files.indexes[-1].as_py()) == (120_000, 10, 119_999)
    assert (counted, peak < len(files)) == ([], True)


def test_the_first_snapshot_of_a_large_table_is_read_in_part(log, read_in_part):
    DeltaLog.for_path(log.table_path, {"optimist.checkpoint.rowGroupRows": "2"}).checkpoint()
    add(log, 6)
    found, end = batches(log, maxFilesPerTrigger=2)
    assert (sorted(row for rows in found for row in rows), len(found)) == ([*range(7)], 2)
    assert not end.is_initial
