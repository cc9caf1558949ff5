"""How far a reader lags behind a table: against what it then reads, and where it will stop."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog, NewColumn
from optimist.core.errors import StorageError, TableError, TableNotFoundError
from optimist.core.log.names import commit_name
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.streams import lag as lag_module
from optimist.core.streams.checkpoint_progress import read_progress
from optimist.core.streams.lag import LagCounter
from optimist.core.streams.offset import AFTER_CHANGE, BASE_INDEX, CHANGE, StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner


@pytest.fixture
def log(tmp_path):
    """A table of three commits of two files, one that moves rows, and one that deletes some."""
    found = DeltaLog.for_path(tmp_path / "t")
    for first in (0, 2, 4):
        add(found, first)
    found.optimize()
    add(found, 6)
    found.delete("id = 6")
    return found


def add(log, first):
    rows = pa.table({"p": [0, 1], "id": [first, first + 1]})
    log.append(rows, partition_by=("p",))


def at(log, version, index=BASE_INDEX, *, is_initial=False):
    return StreamOffset(log.metadata.id, version, index, is_initial)


def lag_at(log, position):
    return LagCounter(log.table).lag(position, log.snapshot())


def test_the_lag_at_each_batch_is_what_comes_after_it(log):
    options = StreamOptions.parse({"maxFilesPerTrigger": "1", "ignoreChanges": "true"}, int)
    planner = StreamPlanner.of(log.table, options, log.snapshot)
    add(log, 8)
    log.append(pa.table({"p": [0], "id": [9]}), partition_by=("p",))
    position, batches = None, []
    while (end := planner.latest_offset(position, planner.capacity())) != position:
        (view,) = planner.views_between(position, end)
        sizes = view.files["size"].to_pylist()
        batches.append((end, len(sizes), sum(sizes), to_arrow(view).num_rows))
        position = end
    assert len(batches) > 5
    counter = LagCounter(log.table)
    for number, (end, *_) in enumerate(batches):
        rest = batches[number + 1 :]
        told = counter.lag(end, log.snapshot())
        assert (told.files, told.size_bytes, told.rows) == tuple(
            sum(each[column] for each in rest) for column in (1, 2, 3)
        )
        assert told.versions == log.snapshot().version + 1 - end.version
        assert (told.is_whole, told.problem) == (True, None)
        assert (told.since_ms is None) == (not told.files)


def test_the_time_is_that_of_the_first_commit_with_rows_to_read(log):
    times = {each.version: each.timestamp_ms for each in log.history()}
    assert lag_at(log, at(log, 1)).since_ms == times[1]
    assert lag_at(log, at(log, 3)).since_ms == times[4], "version 3 only moves rows"
    assert lag_at(log, at(log, 2, is_initial=True)).since_ms == times[2]
    newest = log.snapshot().version
    assert lag_at(log, at(log, newest + 1)).since_ms is None
    log.optimize()
    told = lag_at(log, at(log, newest + 1))
    assert (told.versions, told.files, told.since_ms) == (1, 0, None)


def test_an_older_delta_spark_stays_at_the_last_file_of_a_commit(log):
    newest = log.snapshot().version
    add(log, 20)
    told = lag_at(log, at(log, newest + 1, 1))
    assert (told.versions, told.files, told.since_ms, told.is_whole) == (0, 0, None, True)
    told = lag_at(log, at(log, newest + 1, 0))
    assert (told.versions, told.files, told.rows) == (1, 1, 1)
    for index in (CHANGE, AFTER_CHANGE):
        assert lag_at(log, at(log, newest + 1, index)).files == 2


def test_a_commit_that_is_gone_stops_the_reader_there(log):
    for version in (0, 1, 2):
        (Path(log.log_path) / commit_name(version)).unlink()
    log.checkpoint()
    told = lag_at(log, at(log, 1))
    assert (told.is_whole, told.files, told.versions) == (False, 0, 5)
    assert "earliest available version" in told.problem
    assert told.since_ms is None
    told = lag_at(log, at(log, 1, is_initial=True))
    assert told.problem is not None


def test_changes_of_columns_stop_no_count(log):
    log.alter.add_columns([NewColumn("more", "string")])
    add(log, 30)
    assert lag_at(log, at(log, 0)).is_whole


def test_a_position_of_another_table_or_another_past_is_refused(log, tmp_path):
    with pytest.raises(TableError) as caught:
        lag_at(log, StreamOffset("another", 0, BASE_INDEX, False))
    assert caught.value.kind == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    with pytest.raises(TableError) as caught:
        lag_at(log, at(log, 99))
    assert caught.value.kind == "DELTA_VERSION_NOT_FOUND"


def test_what_was_counted_is_not_read_again_and_belongs_to_one_log(log, tmp_path, monkeypatch):
    shutil.copytree(log.table_path, tmp_path / "before")
    counter, read = LagCounter(log.table), []
    real = LagCounter._read
    monkeypatch.setattr(LagCounter, "_read", lambda *given: read.append(given[1]) or real(*given))
    counter.lag(at(log, 1), log.snapshot())
    assert sorted(read) == [1, 2, 3, 4, 5]
    read.clear()
    counter.lag(at(log, 2), log.snapshot())
    assert read == []
    add(log, 40)
    counter.lag(at(log, 2), log.snapshot())
    assert read == [6]
    shutil.rmtree(log.table_path)
    shutil.copytree(tmp_path / "before", log.table_path)
    log.delete("true")
    told = counter.lag(at(log, 2), log.snapshot())
    assert told == LagCounter(log.table).lag(at(log, 2), log.snapshot())


def test_only_so_many_versions_are_counted(log, monkeypatch):
    monkeypatch.setattr(lag_module, "_MOST_COUNTED", 2)
    told = lag_at(log, at(log, 0))
    assert (told.versions, told.files, told.is_whole) == (6, 4, False)
    told = lag_at(log, at(log, 4))
    assert (told.versions, told.is_whole) == (2, True)


# What a stream has written of its progress


def write(path, batch, *lines, is_done=True):
    for name in ("offsets", "commits"):
        (path / name).mkdir(parents=True, exist_ok=True)
    about = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {}})
    (path / "offsets" / str(batch)).write_text("\n".join(("v1", about, *lines)))
    (path / "offsets" / f".{batch}.crc").write_text("x")
    if is_done:
        (path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def progress(log, path):
    return read_progress(DeltaLog.for_path(path).table, log.metadata.id)


def test_the_last_batch_that_is_done_counts(log, tmp_path):
    path = tmp_path / "checkpoint"
    other = StreamOffset("another", 4, BASE_INDEX, False).to_json()
    for batch in (8, 9, 10, 11):
        write(path, batch, '{"topic":{"0":7}}', "-", at(log, batch).to_json(), other)
    write(path, 12, "-", "-", at(log, 99).to_json(), other, is_done=False)
    (told,) = progress(log, path)
    assert (told.position, told.source) == (at(log, 11), 2)
    assert (told.batch, told.running) == (11, 12)
    modified = (path / "commits" / "11").stat().st_mtime
    assert abs(told.done_ms - modified * 1000) < 1000
    write(path, 12, at(log, 3).to_json(), "-", at(log, 4, 2).to_json(), other)
    assert [(each.source, each.position.version) for each in progress(log, path)] == [
        (0, 3),
        (2, 4),
    ]
    assert {each.running for each in progress(log, path)} == {None}


def test_a_stream_whose_first_batch_is_not_done_has_no_position(log, tmp_path):
    write(tmp_path / "c", 0, at(log, 3).to_json(), is_done=False)
    (told,) = progress(log, tmp_path / "c")
    assert (told.position, told.batch, told.running) == (None, None, 0)


def test_a_file_with_a_position_of_a_follower(log, tmp_path):
    *_, last = log.follow()
    (tmp_path / "position").write_text(f"{last.position}\n")
    (told,) = progress(log, tmp_path / "position")
    assert (told.position.to_json(), told.source) == (last.position, None)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (None, "PATH_NOT_FOUND"),
        ("", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("\x00\xff{", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("[" * 100_000, "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (
            StreamOffset("x", 1, BASE_INDEX, False).to_json(),
            "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        ),
    ],
    ids=["none", "empty", "binary", "deep", "other"],
)
@pytest.mark.sample(1)
def test_what_is_no_progress_of_this_table_is_refused(log, tmp_path, content, kind):
    path = tmp_path / "x" / "y"
    if content is not None:
        path.parent.mkdir()
        path.write_text(content)
    with pytest.raises(TableError) as caught:
        progress(log, path)
    assert caught.value.kind == kind
    assert isinstance(caught.value, TableNotFoundError) == (content is None)


def test_a_damaged_checkpoint_is_refused(log, tmp_path):
    write(tmp_path / "c", 0, "{", "[" * 100_000, "-")
    with pytest.raises(TableError, match="not of this table"):
        progress(log, tmp_path / "c")
    offset = {**json.loads(at(log, 1).to_json()), "sourceVersion": 9}
    write(tmp_path / "c", 1, json.dumps(offset))
    with pytest.raises(TableError) as caught:
        progress(log, tmp_path / "c")
    assert caught.value.kind == "DELTA_INVALID_SOURCE_VERSION"
    with (tmp_path / "c" / "offsets" / "1").open("wb") as file:
        file.truncate(5 << 20)
    with pytest.raises(TableError, match="5,242,880 bytes"):
        progress(log, tmp_path / "c")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableNotFoundError):
        progress(log, tmp_path / "empty")


def test_a_store_that_fails_is_told(log, monkeypatch):
    def fail(*_):
        raise StorageError("no answer", kind="OPTIMIST_STORAGE_FAILED", retryable=True)

    snapshot = log.snapshot()
    monkeypatch.setattr(type(log.store), "read_bytes", fail)
    with pytest.raises(StorageError, match="no answer"):
        LagCounter(log.table).lag(at(log, 1), snapshot)
