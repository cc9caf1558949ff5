"""Which changes of columns a stream may go on after, and who says so (spec 11.5)."""

from dataclasses import replace

import pyarrow as pa
import pytest

from optimist.core import ColumnChange, DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.streams.options import StreamOptions
from tracked_streams import (
    BLOCKED,
    EVOLVED,
    MAPPED,
    Query,
    dropped,
    entries,
    mapped_table,
    renamed,
    schema_log,
    stream,
)


@pytest.fixture
def log(tmp_path):
    return mapped_table(tmp_path / "table")


def widened(log):
    log.alter.change_columns([ColumnChange("small", data_type="bigint")])


def renamed_and_dropped(log):
    log.alter.rename_column("name", "title")
    log.alter.drop_columns(["small"])


def renamed_and_widened(log):
    renamed(log)
    widened(log)


def dropped_and_widened(log):
    dropped(log)
    widened(log)


def all_three(log):
    log.alter.rename_column("id", "number")
    dropped_and_widened(log)


RENAME, DROP, WIDEN = (
    "allowSourceColumnRename",
    "allowSourceColumnDrop",
    "allowSourceColumnTypeChange",
)


@pytest.fixture
def blocked(tmp_path):
    """Gives a query over a table that has changed since, blocked by the change."""

    def start(change):
        log = DeltaLog.for_path(tmp_path / change.__name__, {})
        schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("small", pa.int32())])
        log.create(schema, properties={**MAPPED, "delta.enableTypeWidening": "true"})
        log.append(pa.table({"id": [1]}))
        query = Query(log)
        assert query.run() is None
        change(log)
        assert query.run() == EVOLVED
        return query, log.snapshot().version

    return start


@pytest.mark.parametrize(
    ("change", "needed", "name"),
    [
        (renamed, [RENAME], "RENAME COLUMN"),
        (dropped, [DROP], "DROP COLUMN"),
        (widened, [WIDEN], "TYPE WIDENING"),
        (renamed_and_dropped, [RENAME, DROP], "RENAME AND DROP COLUMN"),
        (renamed_and_widened, [RENAME, WIDEN], "RENAME AND TYPE WIDENING"),
        (dropped_and_widened, [DROP, WIDEN], "DROP AND TYPE WIDENING"),
        (all_three, [RENAME, DROP, WIDEN], "RENAME, DROP AND TYPE WIDENING"),
    ],
)
def test_a_stream_goes_on_once_all_that_was_changed_is_allowed(blocked, change, needed, name):
    query, version = blocked(change)
    with pytest.raises(OptimistError) as caught:
        stream(query.log, {})
    assert (caught.value.kind, caught.value.fields["opType"]) == (BLOCKED, name)
    assert caught.value.fields["currentSchemaChangeVersion"] == version
    for left_out in needed:
        others = {key: "always" for key in (RENAME, DROP, WIDEN) if key != left_out}
        assert query.run({}, **others) == BLOCKED
        assert query.run({}, **others, **{left_out: version - 1}) == BLOCKED
    assert query.run({}, **dict.fromkeys(needed, version)) is None
    assert query.run({}) == BLOCKED  # as long as this is the last change
    assert query.run({}, **dict.fromkeys(needed, "always")) is None


# "file:/ck/sources/0".hashCode() in Java
CHECKPOINT = "ckpt_-1531015453"


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (renamed, (RENAME, "allowSourceColumnRenameAndDrop")),
        (dropped, (DROP, "allowSourceColumnRenameAndDrop")),
        (widened, (WIDEN,)),
    ],
)
def test_the_conf_allows_changes_for_all_streams_or_for_one(blocked, change, keys):
    query, version = blocked(change)
    for key in keys:
        name = f"spark.databricks.delta.streaming.{key}"
        for conf in (
            {name: "always"},
            {name: "ALWAYS"},
            {f"{name}.{CHECKPOINT}": "always"},
            {f"{name}.{CHECKPOINT}": str(version)},
        ):
            assert query.run(conf) is None
        for conf in ({name: str(version)}, {name: "true"}, {f"{name}.{CHECKPOINT}": "1"}):
            assert query.run(conf) == BLOCKED
    others = {RENAME, DROP, WIDEN, "allowSourceColumnRenameAndDrop"} - set(keys)
    assert query.run({f"spark.databricks.delta.streaming.{key}": "always" for key in others}) == (
        BLOCKED
    )


def test_a_column_of_another_type_stops_the_stream_for_good(log):
    query = Query(log)
    query.run()
    (entry,) = entries(log)
    other = replace(entry, version=2, data_schema=entry.data_schema.replace("long", "string"))
    schema_log(log).add(1, other)
    assert query.run() == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


@pytest.mark.parametrize("name", [RENAME, DROP, WIDEN])
def test_what_is_allowed_must_be_always_or_a_version(name):
    with pytest.raises(OptimistError) as caught:
        StreamOptions.parse({name: "true"}, int)
    assert (caught.value.kind, caught.value.fields["key"]) == ("DELTA_ILLEGAL_OPTION", name)
