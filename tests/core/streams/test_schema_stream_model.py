"""Random changes of schema, crashes and restarts: each row comes once, as it was then (11.5)."""

from functools import partial
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core import ColumnChange, DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.paths import join
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.schema_log import SchemaLog
from optimist.core.streams.unblocked import Allowed

PROPERTIES = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
STEPS = ("append", "append", "rename", "drop", "add", "widen", "property", "optimize", "look")
EVOLVED = "DELTA_STREAMING_METADATA_EVOLUTION"


class DriverDiedError(Exception):
    """The driver dies."""


class Table:
    """A table whose columns change, and each row as it was when it was added."""

    def __init__(self, path):
        self.log = DeltaLog.for_path(path / "table", {})
        self.columns = {"id": "bigint", "c0": "int"}
        schema = pa.schema([("id", pa.int64()), ("c0", pa.int32())])
        self.log.create(schema, properties=PROPERTIES)
        self.rows, self.names = [], 1
        self.append()

    def append(self, num_files=1):
        for _ in range(num_files):
            row = dict.fromkeys(self.columns, len(self.rows))
            types = {"int": pa.int32(), "bigint": pa.int64()}
            arrays = {name: pa.array([row[name]], types[self.columns[name]]) for name in row}
            self.log.append(pa.table(arrays))
            self.rows.append(row)

    def _new_name(self):
        self.names += 1
        return f"c{self.names}"

    def _others(self):
        return [name for name in self.columns if name != "id"]

    def take(self, step, number):
        """One step of another writer."""
        others = self._others()
        if step == "append":
            self.append(number)
        elif step == "optimize":
            self.log.optimize()
        elif step == "property":
            self.log.alter.set_properties({"delta.appendOnly": "false", "owner": str(number)})
        elif step == "add":
            name = self._new_name()
            self.log.alter.add_columns([NewColumn(name, "int")])
            self.columns[name] = "int"
        elif not others:
            return
        elif step == "rename":
            old, new = others[number % len(others)], self._new_name()
            self.log.alter.rename_column(old, new)
            self.columns = {new if k == old else k: v for k, v in self.columns.items()}
        elif step == "drop":
            self.log.alter.drop_columns([others[0]])
            del self.columns[others[0]]
        elif step == "widen":
            self.log.alter.change_columns([ColumnChange(others[-1], data_type="bigint")])
            self.columns[others[-1]] = "bigint"


class Follower:
    """Who follows a table without Spark; it may die at each step, as `Driver` may."""

    def __init__(self, table, options, deaths):
        self.log, self.options, self.deaths = table.log, options, list(deaths)
        self.position, self.given, self.waiting = None, [], []

    @property
    def has_begun(self):
        return self.position is not None

    def _may_die(self):
        if self.deaths and self.deaths.pop(0):
            raise DriverDiedError

    def run(self):
        """One run to its end; the kind of its error, or what stands for a crash."""
        try:
            self._run()
        except OptimistError as error:
            return error.kind
        except DriverDiedError:
            return "crash"
        return None

    def _run(self):
        self.waiting = []
        # Another handle, so that nothing is known from the run before.
        log = DeltaLog(self.log.table_path, self.log.store)
        add_entry = SchemaLog.add

        def add(schema_log, number, entry):
            self._may_die()
            add_entry(schema_log, number, entry)
            self._may_die()

        with patch.object(SchemaLog, "add", add):
            place = join(self.log.table_path, "ck")
            for item in log.follow(self.position, schemaTrackingLocation=place, **self.options):
                self._may_die()
                rows = item.to_arrow().to_pylist()
                self._may_die()
                self.take(rows, item.position)
                self._may_die()

    def take(self, rows, position):
        """Store the rows and the position together."""
        self.given += rows
        self.position = position


class LateFollower(Follower):
    """One that stores only some positions before it asks for more, with the rows since the last."""

    def __init__(self, table, options, deaths, stored):
        Follower.__init__(self, table, options, deaths)
        self.stored = list(stored)

    def take(self, rows, position):
        self.waiting += rows
        if not self.stored or self.stored.pop(0):
            self.given, self.waiting = self.given + self.waiting, []
            self.position = position


class Driver:
    """A query with its checkpoint; it may die at each step, as often as it is told to."""

    def __init__(self, table, options, deaths):
        self.log, self.options, self.deaths = table.log, options, list(deaths)
        self.offsets, self.num_done, self.given = [], 0, []

    @property
    def has_begun(self):
        return bool(self.offsets)

    def _may_die(self):
        if self.deaths and self.deaths.pop(0):
            raise DriverDiedError

    def run(self):
        """One run to its end; the kind of its error, or what stands for a crash."""
        try:
            self._run()
        except OptimistError as error:
            return error.kind
        except DriverDiedError:
            return "crash"
        return None

    def _run(self):
        place = join(self.log.table_path, "ck")
        log_of = partial(SchemaLog.of, self.log.store, place, tracking_id=None)
        planner = StreamPlanner.of(self.log.table, self.options, self.log.snapshot, log_of)
        planner.tracking.begin("file:/ck/sources/0", Allowed(self.options, {}), checks_path=True)
        self._may_die()
        while True:
            if self.num_done == len(self.offsets):
                start = self.offsets[-1] if self.offsets else None
                end = planner.latest_offset(start, planner.capacity())
                self._may_die()
                if end == start:
                    return
                self.offsets.append(end)
                self._may_die()
                if start is not None:
                    planner.done_with(start)
            start = self.offsets[-2] if len(self.offsets) > 1 else None
            views = planner.views_between(start, self.offsets[-1])
            found = [row for view in views for row in to_arrow(view).to_pylist()]
            self._may_die()
            # The sink takes a batch once, whatever happens afterwards.
            self.given += found
            self.num_done += 1


STORIES = {
    "steps": st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 3)), max_size=12),
    "start": st.sampled_from([None, "1", "latest"]),
    "deaths": st.lists(st.booleans(), max_size=30),
}


ALLOWED = {
    "allowSourceColumnRename": "always",
    "allowSourceColumnDrop": "always",
    "allowSourceColumnTypeChange": "always",
}


def ensure_each_row_comes_once(table, reader, steps, start):
    """Take the steps, and let the reader run where they say so and at the end."""
    num_before = None
    for step, number in [*steps, *[("look", 1)] * 40]:
        if step != "look":
            table.take(step, number)
            continue
        outcome = reader.run()
        assert outcome in (None, "crash", EVOLVED)
        if num_before is None and reader.has_begun:
            num_before = len(table.rows)
    assert outcome is None
    expected = table.rows[num_before:] if start == "latest" else table.rows
    whole = num_before if start is None else 0
    by_id = sorted(reader.given, key=lambda row: row["id"])
    assert [row["id"] for row in by_id] == [row["id"] for row in expected]
    # Those of the first snapshot have the columns of then, all others those of their commit.
    assert by_id[whole:] == expected[whole:]


@given(max_files=st.sampled_from(["1", "2", "1000"]), **STORIES)
def test_each_row_comes_once_by_the_schema_that_it_was_added_with(
    tmp_path_factory, steps, max_files, start, deaths
):
    table = Table(tmp_path_factory.mktemp("t"))
    options = {"maxFilesPerTrigger": max_files, **ALLOWED}
    if start is not None:
        options["startingVersion"] = start
    driver = Driver(table, StreamOptions.parse(options, int), deaths)
    ensure_each_row_comes_once(table, driver, steps, start)


@given(**STORIES)
def test_a_follower_gives_each_row_once_by_the_schema_that_it_was_added_with(
    tmp_path_factory, steps, start, deaths
):
    table = Table(tmp_path_factory.mktemp("t"))
    follower = Follower(table, {"starting_version": start, **ALLOWED}, deaths)
    ensure_each_row_comes_once(table, follower, steps, start)


@pytest.mark.again
@given(**STORIES, stored=st.lists(st.booleans(), max_size=30))
def test_positions_that_are_stored_late_only_bring_rows_again(
    tmp_path_factory, steps, start, deaths, stored
):
    table = Table(tmp_path_factory.mktemp("t"))
    follower = LateFollower(table, {"starting_version": start, **ALLOWED}, deaths, stored)
    ensure_each_row_comes_once(table, follower, steps, start)
