"""`DeltaLog.follow`: rows commit by commit, and a position to go on from."""

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore


def add(log, *ids):
    log.append(pa.table({"id": pa.array(ids, pa.int64())}))


@pytest.fixture
def log(tmp_path):
    """A table of two commits, whose waits pass at once."""
    found = DeltaLog(str(tmp_path / "table"), LocalLogStore({}), clock=ManualClock())
    add(found, 0, 1)
    add(found, 2)
    return found


def rows(item):
    return sorted(item.to_arrow()["id"].to_pylist())


def test_the_whole_table_comes_first_and_then_each_commit(log):
    (first,) = log.follow()
    assert (first.version, rows(first), first.num_files) == (1, [0, 1, 2], 2)
    add(log, 3)
    add(log, 4, 5)
    found = [(item.version, rows(item)) for item in log.follow(first.position)]
    assert found == [(2, [3]), (3, [4, 5])]
    assert list(log.follow(list(log.follow())[-1].position)) == []


def test_positions_are_those_of_delta_s_streams(log):
    (first,) = log.follow()
    table_id = log.metadata.id
    assert first.position == (
        f'{{"sourceVersion":1,"reservoirId":"{table_id}","reservoirVersion":2,"index":-1,'
        '"isStartingVersion":false}'
    )


def test_a_follower_can_begin_at_a_version_or_now(log):
    assert [rows(item) for item in log.follow(starting_version=1)] == [[2]]
    (start,) = log.follow(starting_version="latest")
    assert (rows(start), start.num_files) == ([], 0)
    add(log, 3)
    assert [rows(item) for item in log.follow(start.position)] == [[3]]


def test_a_follower_that_waits_looks_again_and_again(log):
    found = log.follow(wait_s=5)
    assert rows(next(found)) == [0, 1, 2]
    before = log.clock.monotonic_s()
    real = log.clock.sleep

    def then_add(duration_s):
        real(duration_s)
        if len(log.clock.sleeps) == 3:
            add(log, 9)

    log.clock.sleep = then_add
    assert rows(next(found)) == [9]
    assert log.clock.monotonic_s() - before == 15


def test_the_rules_of_streams_hold(log):
    (first,) = log.follow()
    log.delete("id < 2")
    add(log, 3)
    with pytest.raises(OptimistError) as caught:
        list(log.follow(first.position))
    assert caught.value.kind == "DELTA_SOURCE_IGNORE_DELETE"
    items = list(log.follow(first.position, ignoreDeletes=True))
    assert [(item.version, rows(item)) for item in items] == [(2, []), (3, [3])]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"ignoreDelete": True}, "DELTA_ILLEGAL_OPTION"),
        ({"position": "7"}, "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ({"starting_version": "first"}, "DELTA_ILLEGAL_OPTION"),
        ({"starting_version": 0, "starting_timestamp": 0}, None),
        ({"wait_s": 0}, "OPTIMIST_INVALID_ARGUMENT"),
        ({"wait_s": float("nan")}, "OPTIMIST_INVALID_ARGUMENT"),
    ],
)
def test_wrong_arguments_are_refused(log, given, kind):
    with pytest.raises(OptimistError) as caught:
        list(log.follow(**given))
    expected = kind or "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"
    assert caught.value.kind == expected
