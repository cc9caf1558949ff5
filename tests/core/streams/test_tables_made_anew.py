"""A table that is dropped and made anew while a stream is over it."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import TableError
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.unblocked import Allowed
from tracked_streams import SOURCE, add, log_of, stream

OTHER = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def made(path: str, first: int) -> DeltaLog:
    """A table with the commits 0 to 4, one row each."""
    log = DeltaLog.for_path(path)
    for number in range(first, first + 5):
        log.append(pa.table({"id": [number]}))
    return log


def make_anew(path: str) -> None:
    shutil.rmtree(path)
    made(path, 100)


@pytest.mark.parametrize("changes", [False, True])
def test_a_follower_gives_no_rows_of_the_table_that_has_taken_the_place(tmp_path, changes):
    path = str(tmp_path / "t")
    DeltaLog.for_path(path).create(
        pa.schema([("id", pa.int64())]), properties={"delta.enableChangeDataFeed": "true"}
    )
    following = made(path, 0).follow(starting_version=1, changes=changes)
    assert next(following).to_arrow()["id"].to_pylist() == [0]
    make_anew(path)
    with pytest.raises(TableError) as caught:
        next(following)
    assert caught.value.kind == OTHER


def test_a_follower_with_a_log_of_schemas_records_no_change_of_the_other_table(tmp_path):
    path, place = str(tmp_path / "t"), str(tmp_path / "schemas")
    following = made(path, 0).follow(starting_version=0, schemaTrackingLocation=place)
    assert next(following).to_arrow()["id"].to_pylist() == [0]
    shutil.rmtree(path)
    log = made(path, 100)
    log.alter.set_properties({"delta.appendOnly": "true"})
    with pytest.raises(TableError) as caught:
        next(following)
    assert caught.value.kind == OTHER


def test_a_stream_with_a_log_of_schemas_reads_no_first_version_of_the_other_table(tmp_path):
    path = str(tmp_path / "t")
    log = made(path, 0)
    first = stream(log)
    begin = StreamOffset.before(log.metadata.id, 4, is_initial=True)
    end = first.latest_offset(None, first.capacity())
    assert end == begin.at(5)
    add(log, id=5)

    def newest():
        """The newest version, of a table that is made anew right after it was listed."""
        found = log.snapshot()
        make_anew(path)
        return found

    options = StreamOptions.parse({}, int)
    planner = StreamPlanner.of(log.table, options, log.snapshot, log_of(log))
    planner.tracking.begin(SOURCE, Allowed(options, {}), checks_path=True)
    planner.newest = newest
    with pytest.raises(TableError) as caught:
        planner.views_between(None, begin.at(4, 2))
    assert caught.value.kind == OTHER
