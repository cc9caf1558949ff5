"""Streams of changes with a log of schemas, past several changes without rows between (11.5)."""

from itertools import pairwise

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.paths import join, parent_of
from tracked_streams import EVOLVED, MAPPED, Query, add

FEED = {"delta.enableChangeDataFeed": "true"}
ALLOWED = {"allowSourceColumnRename": "always"}
NUMBERS = [1, 2, 3, 4]


@pytest.fixture
def log(tmp_path):
    """A table with two columns and one row, at version 1."""
    found = DeltaLog.for_path(tmp_path / "table", {})
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    found.create(schema, properties={**MAPPED, **FEED})
    add(found, id=1, name="one")
    return found


def renamed_often(log, count):
    """Rename one column so many times; its last name."""
    names = ["name", *(f"name{number}" for number in range(count))]
    for old, new in pairwise(names):
        log.alter.rename_column(old, new)
    return names[-1]


def followed(log, position):
    """One run of a follower: its rows, where it is, and the kind of its error."""
    place, found = join(parent_of(log.table_path), "ck"), []
    try:
        for item in log.follow(position, changes=True, schemaTrackingLocation=place, **ALLOWED):
            found += item.to_arrow().to_pylist()
            position = item.position
    except OptimistError as error:
        return found, position, error.kind
    return found, position, None


@pytest.mark.parametrize("count", NUMBERS)
def test_a_follower_goes_past_them(log, count):
    _, position, _ = followed(log, None)
    name = renamed_often(log, count)
    add(log, id=2, **{name: "two"})
    found, position, kind = followed(log, position)
    assert (found, kind) == ([], EVOLVED)
    found, _, kind = followed(log, position)
    assert ([(row["id"], row[name]) for row in found], kind) == ([(2, "two")], None)


@pytest.mark.parametrize("count", NUMBERS)
def test_a_query_goes_past_them(log, count):
    query = Query(log, readChangeFeed="true")
    assert query.run() is None
    name = renamed_often(log, count)
    add(log, id=2, **{name: "two"})
    query.seen.clear()
    outcomes = [query.run() for _ in range(count + 2)]
    assert outcomes[-1] is None
    assert set(outcomes) == {EVOLVED, None}
    assert [(row["id"], row[name]) for row in query.seen] == [(2, "two")]
