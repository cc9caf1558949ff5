"""`DeltaLog.follow` with a log of schemas: where it stops, and what reads on (spec 11.5)."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import ColumnChange, DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.schema_log import SchemaLog
from optimist.core.streams.tracking import SchemaTracking
from tracked_streams import BLOCKED, EVOLVED, SOURCE, Query, add, dropped, mapped_table, renamed
from tracked_streams import entries as entries_of

PLACE = "schemaTrackingLocation"
ALLOWED = {
    "allowSourceColumnRename": "always",
    "allowSourceColumnDrop": "always",
    "allowSourceColumnTypeChange": "always",
}


class Follower:
    """Who follows a table, and stores each position with the rows before it."""

    def __init__(self, log, **options):
        self.log, self.options = log, {PLACE: f"{log.table_path}/../ck", **options}
        self.position, self.seen = None, []

    def run(self, position=None, **options):
        """One run to its end or its error; the kind of the error."""
        given = {**ALLOWED, **self.options, **options}
        try:
            for item in self.log.follow(position or self.position, **given):
                self.seen += item.to_arrow().to_pylist()
                self.position = item.position
        except OptimistError as error:
            return error.kind
        return None

    @property
    def version(self):
        return StreamOffset.from_json(self.position).version


@pytest.fixture
def log(tmp_path):
    return mapped_table(tmp_path / "table")


def entries(log):
    return [(entry.version, entry.previous) for entry in entries_of(log)]


def refused(ask):
    with pytest.raises(OptimistError) as caught:
        ask()
    return caught.value


# Where it stops


def test_a_follower_stops_at_a_change_and_goes_on_by_the_new_schema(log):
    follower = Follower(log)
    assert follower.run() is None
    add(log, id=2, name="two")
    renamed(log)
    add(log, id=3, title="three")
    assert [follower.run() for _ in range(3)] == [EVOLVED, None, None]
    assert follower.seen == [
        {"id": 1, "name": "one"},
        {"id": 2, "name": "two"},
        {"id": 3, "title": "three"},
    ]
    assert entries(log) == [(1, None), (3, None)]


def test_what_one_follower_is_told_by_the_conf_does_not_count_for_another(log, tmp_path):
    first = Follower(log)
    second = Follower(log, schemaTrackingLocation=str(tmp_path / "other"))
    for follower in (first, second):
        follower.run()
    renamed(log)
    add(log, id=2, title="two")
    untold = {"allowSourceColumnRename": None}
    assert [follower.run() for follower in (first, second)] == [EVOLVED, EVOLVED]
    with pytest.raises(OptimistError) as caught:
        list(log.follow(first.position, **{**ALLOWED, **first.options, **untold}))
    key = re.search(r"the key (\S+) of the conf", str(caught.value))[1]
    told = DeltaLog.for_path(log.table_path, {key: "always"})
    for follower in (first, second):
        follower.log = told
    assert [follower.run(**untold) for follower in (first, second)] == [None, BLOCKED]


CHANGES = {
    "drop": (lambda log: log.alter.drop_columns(["name"]), {"id": 2}),
    "add": (
        lambda log: log.alter.add_columns([NewColumn("more", "int")]),
        {"id": 2, "name": None, "more": None},
    ),
    "property": (
        lambda log: log.alter.set_properties({"delta.logRetentionDuration": "60 days"}),
        {"id": 2, "name": None},
    ),
    "protocol": (
        lambda log: log.alter.set_properties({"delta.enableDeletionVectors": "true"}),
        {"id": 2, "name": None},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_schema_properties_or_protocol_stops_it(log, change):
    follower = Follower(log)
    follower.run()
    alter, row = CHANGES[change]
    alter(log)
    add(log, id=2)
    assert [follower.run(), follower.run()] == [EVOLVED, None]
    assert follower.seen[1:] == [row]


def test_a_wider_type_is_that_of_its_commits_on(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    schema = pa.schema([("id", pa.int64()), ("small", pa.int32())])
    log.create(schema, properties={"delta.enableTypeWidening": "true"})
    follower = Follower(log)
    follower.run()
    log.append(pa.table({"id": [1], "small": pa.array([1], pa.int32())}))
    log.alter.change_columns([ColumnChange("small", data_type="bigint")])
    log.append(pa.table({"id": [2], "small": [1 << 40]}))
    types = []
    for _ in range(2):
        try:
            for item in log.follow(follower.position, **follower.options, **ALLOWED):
                types += [item.to_arrow().schema.field("small").type] * item.num_files
                follower.position = item.position
        except OptimistError as error:
            assert error.kind == EVOLVED
    assert types == [pa.int32(), pa.int64()]


def test_what_was_dropped_or_renamed_needs_an_option(log):
    follower = Follower(log)
    follower.run()
    renamed(log)
    add(log, id=2, title="two")
    none = dict.fromkeys(ALLOWED)
    assert [follower.run(**none) for _ in range(3)] == [EVOLVED, BLOCKED, BLOCKED]
    assert follower.run(**{**none, "allowSourceColumnRename": 1}) == BLOCKED
    assert follower.run(**{**none, "allowSourceColumnRename": 2}) is None
    assert follower.seen[1:] == [{"id": 2, "title": "two"}]


def test_keys_of_the_conf_count_as_the_options_do(log):
    key = "spark.databricks.delta.streaming.allowSourceColumnDrop"
    follower = Follower(DeltaLog.for_path(log.table_path, {key: "always"}))
    follower.run()
    dropped(log)
    none = dict.fromkeys(ALLOWED)
    assert [follower.run(**none) for _ in range(2)] == [EVOLVED, None]


def test_changes_without_rows_between_them_are_taken_up_at_once(log):
    follower = Follower(log)
    follower.run()
    renamed(log)
    log.alter.add_columns([NewColumn("more", "int")])
    log.alter.drop_columns(["title"])
    add(log, id=2)
    assert follower.run() == EVOLVED
    assert follower.run(**dict.fromkeys(ALLOWED)) == BLOCKED
    assert follower.run() is None
    assert entries(log) == [(1, None), (2, None), (4, 0)]
    assert follower.seen[1:] == [{"id": 2, "more": None}]


def test_a_follower_may_be_stopped_between_changes_that_were_taken_up_at_once(log):
    follower = Follower(log)
    follower.run()
    renamed(log)
    log.alter.add_columns([NewColumn("more", "int")])
    log.alter.rename_column("title", "name")
    add(log, id=2, name="two")
    assert follower.run() == EVOLVED
    while follower.version < 6:
        item = next(log.follow(follower.position, **follower.options, **ALLOWED))
        follower.position = item.position
        follower.seen += item.to_arrow().to_pylist()
    assert entries(log) == [(1, None), (2, None), (4, 0)]
    assert follower.seen[1:] == [{"id": 2, "name": "two", "more": None}]


def test_they_are_taken_up_one_by_one_where_the_conf_says_so(log):
    one_by_one = "spark.databricks.delta.streaming.schemaTracking.mergeConsecutiveSchemaChanges"
    log = DeltaLog.for_path(log.table_path, {f"{one_by_one}.enabled": "false"})
    follower = Follower(log)
    follower.run()
    renamed(log)
    log.alter.add_columns([NewColumn("more", "int")])
    only = {"allowSourceColumnRename": None}
    assert follower.run() == EVOLVED
    assert follower.run(**only) == BLOCKED  # of the rename, though an addition follows
    assert [follower.run() for _ in range(2)] == [EVOLVED, None]
    assert entries(log) == [(1, None), (2, None), (3, None)]


def test_a_change_that_brings_rows_is_read_by_its_own_schema(log):
    follower = Follower(log)
    follower.run()
    with log.transaction() as step:
        step.alter.rename_column("name", "title")
        step.append(pa.table({"id": [2], "title": ["two"]}))
    assert [follower.run() for _ in range(2)] == [EVOLVED, None]
    assert follower.seen[1:] == [{"id": 2, "title": "two"}]


def test_changes_of_rows_come_by_the_schema_of_their_commit(log):
    log.alter.set_properties(
        {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    )
    follower = Follower(log, changes=True)
    follower.run()
    log.update(set={"name": "'uno'"}, predicate="id = 1")
    renamed(log)
    log.update(set={"title": "'eins'"}, predicate="id = 1")
    log.alter.drop_columns(["title"])
    log.delete("id = 1")
    assert [follower.run() for _ in range(3)] == [EVOLVED, EVOLVED, None]
    assert {
        (row["_commit_version"], row["_change_type"], row.get("name"), row.get("title"))
        for row in follower.seen
    } == {
        (2, "insert", "one", None),
        (3, "update_preimage", "one", None),
        (3, "update_postimage", "uno", None),
        (5, "update_preimage", None, "uno"),
        (5, "update_postimage", None, "eins"),
        (7, "delete", None, None),
    }


def test_a_feed_that_is_turned_off_stops_it_for_good(log):
    log.alter.set_properties({"delta.enableChangeDataFeed": "true"})
    follower = Follower(log, changes=True)
    follower.run()
    add(log, id=2, name="two")
    log.alter.set_properties({"delta.enableChangeDataFeed": "false"})
    assert [follower.run() for _ in range(2)] == ["DELTA_MISSING_CHANGE_DATA"] * 2
    assert [row["id"] for row in follower.seen] == [1, 2]
    assert entries(log) == [(2, None)]


# What the caller stores, and when


def test_no_entry_is_written_before_the_caller_asks_for_what_follows_the_change(log):
    follower = Follower(log)
    follower.run()
    add(log, id=2, name="two")
    renamed(log)
    items = log.follow(follower.position, **follower.options)
    assert next(items).version == 2
    assert entries(log) == [(1, None)]
    assert refused(lambda: next(items)).kind == EVOLVED
    assert entries(log) == [(1, None), (3, None)]
    assert list(items) == []


def test_a_position_from_before_a_change_is_read_by_the_schema_of_then(log):
    follower = Follower(log)
    follower.run()
    old = follower.position
    for name, new in (("name", "title"), ("title", "label")):
        add(log, id=2, **{name: "two"})
        log.alter.rename_column(name, new)
    add(log, id=3, label="three")
    for _ in range(2):  # as a caller that had stored nothing
        follower.seen, follower.position = [], old
        assert [follower.run() for _ in range(3)] == [EVOLVED, EVOLVED, None]
        assert follower.seen == [
            {"id": 2, "name": "two"},
            {"id": 2, "title": "two"},
            {"id": 3, "label": "three"},
        ]
        assert entries(log) == [(1, None), (3, None), (5, None)]


def test_a_caller_that_takes_all_items_at_once_loses_none(log):
    follower = Follower(log)
    follower.run()
    add(log, id=2, name="two")
    renamed(log)
    position, seen = follower.position, []
    assert refused(lambda: list(log.follow(position, **follower.options))).kind == EVOLVED
    for item in log.follow(position, **follower.options):
        seen += item.to_arrow().to_pylist()
        break
    assert seen == [{"id": 2, "name": "two"}]


def test_a_position_past_a_change_that_the_log_was_not_told_of_stops_it(log):
    follower = Follower(log)
    follower.run()
    renamed(log)
    add(log, id=2, title="two")
    (*_, last) = log.follow(starting_version=3)
    add(log, id=3, title="three")
    follower.position = last.position
    none = dict.fromkeys(ALLOWED)
    assert [follower.run(**none) for _ in range(2)] == [EVOLVED, BLOCKED]
    assert follower.run() is None
    assert follower.seen[1:] == [{"id": 3, "title": "three"}]


def test_a_follower_that_ran_without_a_log_begins_it_where_it_is(log):
    (whole,) = log.follow()
    renamed(log)
    add(log, id=2, title="two")
    follower = Follower(log)
    follower.position = whole.position
    assert [follower.run() for _ in range(2)] == [EVOLVED, None]
    assert follower.seen == [{"id": 2, "title": "two"}]
    assert entries(log) == [(1, None), (2, None)]


def test_a_position_from_before_its_log_begins_is_read_by_the_schema_of_then(log):
    (whole,) = log.follow()
    renamed(log)
    add(log, id=2, title="two")
    Follower(log).run()  # begins the log with the newest version
    follower = Follower(log)
    follower.position = whole.position
    assert [follower.run() for _ in range(2)] == [EVOLVED, None]
    assert follower.seen == [{"id": 2, "title": "two"}]


# Where it begins


def test_a_start_before_a_change_is_read_by_the_schema_of_then(log):
    renamed(log)
    add(log, id=2, title="two")
    follower = Follower(log, starting_version=1)
    assert [follower.run() for _ in range(2)] == [EVOLVED, None]
    assert follower.seen == [{"id": 1, "name": "one"}, {"id": 2, "title": "two"}]


@pytest.mark.parametrize("start", [None, "latest", 1, 3])
def test_a_follower_that_died_before_its_first_item_begins_anew(log, start):
    renamed(log)
    add(log, id=2, title="two")
    place = {PLACE: f"{log.table_path}/../ck"}
    first = log.follow(starting_version=start, **place)
    next(first)
    dropped_title = lambda: log.alter.drop_columns(["title"])  # noqa: E731
    dropped_title()
    add(log, id=3)
    follower = Follower(log, starting_version=start)
    none = dict.fromkeys(ALLOWED)
    if start in (None, "latest"):
        assert follower.run(**none) is None
        expected = [{"id": 1}, {"id": 2}, {"id": 3}] if start is None else []
        assert follower.seen == expected
        add(log, id=4)
        assert follower.run(**none) is None  # nothing was read by the entry before
        assert follower.seen == [*expected, {"id": 4}]
        return
    while (kind := follower.run()) is not None:
        assert kind == EVOLVED
    expected = [{"id": 1, "name": "one"}, {"id": 2, "title": "two"}, {"id": 3}]
    assert follower.seen == expected[0 if start == 1 else 1 :]


def test_a_follower_may_start_once_more_with_its_old_log(log):
    follower = Follower(log)
    follower.run()
    for name, new in (("name", "title"), ("title", "label")):
        log.alter.rename_column(name, new)
        add(log, id=2, **{new: "two"})
        assert [follower.run() for _ in range(2)] == [EVOLVED, None]
    again = Follower(log, starting_version=1, **dict.fromkeys(ALLOWED))
    again.position = None
    assert again.run() == EVOLVED
    assert again.run() == BLOCKED
    again.options |= ALLOWED
    assert [again.run() for _ in range(3)] == [EVOLVED, None, None]
    assert again.seen == follower.seen


def test_a_start_by_time_at_the_first_version_goes_on_from_there(log):
    time_ms = log.snapshot(version=0).timestamp_ms
    follower = Follower(log, starting_timestamp=time_ms)
    item = next(log.follow(starting_timestamp=time_ms, **{PLACE: follower.options[PLACE]}))
    follower.position = item.position
    assert follower.run() is None
    assert follower.seen == [{"id": 1, "name": "one"}]


# Whose log it is


def test_the_log_of_a_stream_is_refused_and_a_stream_refuses_that_of_a_follower(log):
    query = Query(log)
    query.run()
    follower = Follower(log)
    assert follower.run() == "OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM"
    other = Follower(log, **{PLACE: f"{log.table_path}/../other"})
    assert other.run() is None
    mine = SchemaLog.of(log.store, f"{log.table_path}/../other", log.metadata.id, None)
    tracking = SchemaTracking.of(mine, log.table, log.snapshot())
    error = refused(lambda: tracking.claim(SOURCE, checks_path=True))
    assert error.kind == "OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM"


def test_a_stream_s_log_and_offset_may_be_taken_over_where_the_conf_lets_it(log):
    query = Query(log)
    query.run()
    renamed(log)
    add(log, id=2, title="two")
    log.alter.add_columns([NewColumn("more", "int")])
    assert query.run() == EVOLVED
    free = {"spark.databricks.delta.streaming.schemaTracking.metadataPathCheck.enabled": "false"}
    for offset in query.offsets[-2:]:  # at the change, and just after it
        follower = Follower(DeltaLog.for_path(log.table_path, free))
        follower.position = offset.to_json()
        assert [follower.run() for _ in range(2)] == [EVOLVED, None]
        assert follower.seen == [{"id": 2, "title": "two"}]
        assert follower.version == 5
        assert entries(log) == [(1, None), (2, None), (4, None)]


def test_two_followers_with_one_log_write_each_entry_once(log):
    first, second = Follower(log), Follower(log)
    for follower in (first, second):
        follower.run()
    renamed(log)
    add(log, id=2, title="two")
    items = [log.follow(one.position, **one.options, **ALLOWED) for one in (first, second)]
    assert [refused(lambda each=each: next(each)).kind for each in items] == [EVOLVED] * 2
    assert entries(log) == [(1, None), (2, None)]
    for follower in (first, second):
        assert follower.run() is None
        assert follower.seen[1:] == [{"id": 2, "title": "two"}]


def test_followers_of_one_place_may_have_ids(log):
    for name in ("a", "b"):
        assert Follower(log, streamingSourceTrackingId=name).run() is None
    found = {path.name[-2:] for path in Path(log.table_path, "../ck").iterdir()}
    assert found == {"_a", "_b"}


def test_the_conf_may_refuse_logs_of_schemas(log):
    off = {"spark.databricks.delta.streaming.schemaTracking.enabled": "false"}
    other = DeltaLog.for_path(log.table_path, off)
    error = refused(lambda: other.follow(**{PLACE: f"{log.table_path}/../ck"}))
    assert (error.kind, error.fields["key"]) == ("DELTA_ILLEGAL_OPTION", PLACE)
    assert not Path(log.table_path, "../ck").exists()
    assert len(list(other.follow())) == 1


@pytest.mark.parametrize("given", ["", " "])
def test_a_place_has_to_be_one(log, given):
    error = refused(lambda: list(log.follow(**{PLACE: given})))
    assert (error.kind, error.fields["key"]) == ("DELTA_ILLEGAL_OPTION", PLACE)


def test_a_place_may_be_a_path_object(log, tmp_path):
    assert Follower(log, **{PLACE: tmp_path / "with ö 100%"}).run() is None
    assert len(list(tmp_path.glob("with ö 100%/_schema_log_*/0"))) == 1


def test_lost_commits_are_not_passed_over(log):
    error = refused(lambda: log.follow(failOnDataLoss=False, **{PLACE: "ck"}))
    assert error.kind == "DELTA_ILLEGAL_OPTION"


def test_an_entry_that_names_itself_as_the_one_before_is_no_end_of_it(log):
    follower = Follower(log)
    follower.run()
    old = follower.position
    add(log, id=2, name="two")
    renamed(log)
    assert [follower.run() for _ in range(2)] == [EVOLVED, None]
    (path,) = Path(log.table_path, "../ck").glob("_schema_log_*/1")
    path.write_text(path.read_text()[:-1] + ',"previousMetadataSeqNum":1}')
    follower.position = old
    assert [follower.run() for _ in range(2)] == [EVOLVED, None]
