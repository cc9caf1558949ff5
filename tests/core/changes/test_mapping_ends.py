"""Changes across the end of column mapping, and across tables that took another's place (10.11)."""

import pyarrow as pa
import pytest

from optimist.core import DeltaLog, NewColumn
from optimist.core.changes.schemas import reading_problem
from optimist.core.errors import OptimistError
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import Metadata
from optimist.core.schema.types import (
    COLUMN_ID,
    PHYSICAL_NAME,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
)

FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {**FEED, "delta.columnMapping.mode": "name"}
KIND = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
ONE = pa.table({"id": [1], "name": ["one"]})


@pytest.fixture
def log(tmp_path):
    """A table that is mapped, with a row at version 1."""
    found = DeltaLog.for_path(tmp_path / "table", {})
    found.create(COLUMNS, properties=MAPPED)
    found.append(ONE)
    return found


def rows(log, first, last=None):
    found = log.changes(starting_version=first, ending_version=last).to_pylist()
    return sorted(
        (row["_commit_version"], row["_change_type"], *list(row.values())[:-3]) for row in found
    )


def refused(log, first, last=None):
    with pytest.raises(OptimistError) as caught:
        log.changes(starting_version=first, ending_version=last)
    assert caught.value.kind == KIND
    return caught.value


def mapping_is_dropped(log):
    log.drop_feature("columnMapping")


def table_is_replaced(log):
    log.create(COLUMNS, properties={**FEED, "delta.columnMapping.mode": "none"}, mode="replace")


@pytest.mark.parametrize("end", [mapping_is_dropped, table_is_replaced])
def test_rows_of_a_mapped_table_are_not_read_as_those_of_an_unmapped_one(log, end):
    end(log)
    last = log.snapshot().version
    assert refused(log, 1).fields["column"] == "id"
    log.append(ONE)
    assert refused(log, 1).fields["column"] == "id"
    assert rows(log, 1, 1) == [(1, "insert", 1, "one")]
    assert rows(log, last + 1) == [(last + 1, "insert", 1, "one")]


def test_rows_that_a_replaced_table_had_are_not_read_by_the_columns_that_took_their_place(log):
    table_is_replaced(log)
    refused(log, 2, 2)
    refused(log, 2)


def test_a_table_that_is_put_back_gives_no_rows_of_between_by_its_own_columns(log):
    table_is_replaced(log)
    log.append(pa.table({"id": [2], "name": ["two"]}))
    log.restore(version=1)
    refused(log, 1)
    refused(log, 3)
    refused(log, 4)
    log.append(pa.table({"id": [3], "name": ["three"]}))
    assert rows(log, 5) == [(5, "insert", 3, "three")]


def test_columns_that_keep_their_places_in_files_are_read_across_the_end(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    log.create(COLUMNS, properties=FEED)
    log.append(ONE)
    log.alter.set_properties({"delta.columnMapping.mode": "name"})
    log.append(ONE)
    log.drop_feature("columnMapping")
    log.append(ONE)
    versions = [row[0] for row in rows(log, 1)]
    assert rows(log, 1) == [(version, "insert", 1, "one") for version in versions]
    assert len(versions) == 3


def test_a_column_that_was_made_anew_is_another_one(log):
    log.alter.drop_columns(["name"])
    log.alter.add_columns([NewColumn("name", "string")])
    log.append(ONE)
    assert "added again" in str(refused(log, 1))


def test_a_commit_that_replaces_a_table_gives_what_was_there_without_the_columns_that_it_drops(
    tmp_path,
):
    log = DeltaLog.for_path(tmp_path / "table", {})
    log.create(COLUMNS, properties=FEED)
    log.append(ONE)
    log.create(COLUMNS.remove(1), properties=FEED, mode="replace")
    assert rows(log, 2) == [(2, "delete", 1)]
    refused(log, 1)  # whoever asks for older rows too, wants all that these have


def test_rows_of_another_partitioning_are_refused_by_the_commit_that_removes_them(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    log.create(COLUMNS, properties=FEED)
    log.append(ONE)
    log.create(COLUMNS, properties=FEED, partition_by=["name"], mode="replace")
    assert "Version 2 changed this" in str(refused(log, 2))


def test_a_commit_that_removes_what_the_log_no_longer_describes_is_refused(log):
    table_is_replaced(log)
    log.checkpoint()
    for version in (0, 1):
        log.store.delete(commit_path(log.log_path, version))
    fresh = DeltaLog(log.table_path, log.store)
    assert "no longer tells" in str(refused(fresh, 2))
    log.append(ONE)
    assert rows(fresh, 3) == [(3, "insert", 1, "one")]


def test_changes_of_metadata_without_rows_do_not_count(log):
    log.alter.rename_column("name", "title")
    log.alter.rename_column("title", "name")
    log.append(ONE)
    assert rows(log, 1) == [(1, "insert", 1, "one"), (4, "insert", 1, "one")]
    log.alter.rename_column("name", "title")
    refused(log, 1)


def described(mode, **columns):
    """Metadata whose columns have these physical names and ids."""
    fields = [
        StructField(name, PrimitiveType("long"), metadata={PHYSICAL_NAME: place, COLUMN_ID: number})
        for name, (place, number) in columns.items()
    ]
    configuration = {"delta.columnMapping.mode": mode}
    return Metadata("id", schema_to_json(StructType(tuple(fields))), configuration=configuration)


@pytest.mark.parametrize(
    ("before", "after", "is_readable"),
    [
        (described("name", a=("p", 1)), described("name", a=("p", 1)), True),
        (described("name", a=("p", 1)), described("none", a=("p", 1)), False),
        (described("none", a=("p", 1)), described("name", a=("p", 1)), False),
        (described("none", a=("p", 1)), described("none", a=("q", 2)), True),
        (described("name", a=("a", 1)), described("none", a=("x", 1)), True),
        (described("name", a=("p", 1)), described("id", a=("p", 1)), True),
        (described("id", a=("p", 1)), described("id", a=("p", 2)), False),
        (described("none", a=("a", 1)), described("id", a=("a", 1)), False),
        (described("name", a=("b", 1)), described("none", a=("x", 1), b=("y", 2)), False),
        (described("none", a=("x", 1)), described("name", b=("a", 1)), False),
    ],
)
def test_a_column_is_read_where_its_files_have_it(before, after, is_readable):
    assert (reading_problem(before, after) is None) is is_readable
