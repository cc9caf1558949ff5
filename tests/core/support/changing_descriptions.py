"""Random histories of what a table is like, and what its readers are to give (spec 10.11, 11.3).

A column is known by an object of its own, whatever it is called, and a row by its id; a row keeps
the value that each column had when it was written. So what a version's rows look like under the
names of that version is known without a look at any file. A reader gives just that, or refuses.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from optimist.core import ColumnChange, DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.log.names import commit_path
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import Metadata, action_to_json
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import schema_from_json, schema_to_json

FEED = {"delta.enableChangeDataFeed": "true", "delta.enableTypeWidening": "true"}
MODE = "delta.columnMapping.mode"
NAMES = ("a", "b", "c")
TYPES = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string()}
STEPS = (
    *("append", "append", "append", "delete", "add", "rename", "drop", "widen"),
    *("map", "unmap", "replace", "overwrite", "restore", "vectors", "protocol", "note", "optimize"),
)
REFUSALS = {
    "DELTA_SCHEMA_CHANGED_WITH_VERSION",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
    "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
}


Rows: TypeAlias = list[tuple[str, dict[str, object]]]
"""Rows, each with the kind of its change."""


@dataclass(eq=False)
class Column:
    """A column, whatever it is called."""

    kind: str


@dataclass(frozen=True)
class Version:
    """What a version has: the columns by their names, and the ids of its rows."""

    columns: dict[str, Column]
    live: frozenset[int]


@dataclass
class Story:
    """A table, and what is known of each of its versions.

    Attributes:
        log: The table.
        versions: What each version has.
        rows: The values of each row that was ever written.
    """

    log: DeltaLog
    versions: list[Version] = field(default_factory=list)
    rows: dict[int, dict[Column, object]] = field(default_factory=dict)

    @classmethod
    def begun(cls, path: object, properties: dict[str, str]) -> Story:
        """A table of two columns and a row."""
        made = cls(DeltaLog.for_path(path, {}))
        made.log.create(
            pa.schema([("id", pa.int64()), ("a", pa.int32())]), properties={**FEED, **properties}
        )
        made.versions.append(Version({"a": Column("int")}, frozenset()))
        made.take("append", 1)
        return made

    @property
    def newest(self) -> int:
        """The newest version."""
        return len(self.versions) - 1

    # What a writer does

    def take(self, step: str, number: int) -> None:
        """One step of a writer; one that the table's rules refuse changes nothing."""
        now = self.versions[-1]
        try:
            after = getattr(self, f"_{step}")(now, number)
        except OptimistError:
            after = now
        for _ in range(len(self.versions), self.log.snapshot().version + 1):
            self.versions.append(after)

    def _append(self, now: Version, number: int) -> Version:
        ids = range(len(self.rows), len(self.rows) + number)
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        values = {column: [] for column in now.columns.values()}
        for place, (name, column) in enumerate(now.columns.items()):
            values[column] = [10 * each + place for each in ids]
            if column.kind == "string":
                values[column] = [str(value) for value in values[column]]
            rows = rows.append_column(name, pa.array(values[column], TYPES[column.kind]))
        self.log.append(rows)
        for place, each in enumerate(ids):
            self.rows[each] = {column: found[place] for column, found in values.items()}
        return replace(now, live=now.live | set(ids))

    def _delete(self, now: Version, number: int) -> Version:
        if not now.live:
            return now
        gone = sorted(now.live)[number % len(now.live)]
        self.log.delete(f"id = {gone}")
        return replace(now, live=now.live - {gone})

    def _add(self, now: Version, number: int) -> Version:
        name = _free(now, number)
        self.log.alter.add_columns([NewColumn(name, "int")])
        return replace(now, columns={**now.columns, name: Column("int")})

    def _rename(self, now: Version, number: int) -> Version:
        old, new = _chosen(now, number), _free(now, number)
        self.log.alter.rename_column(old, new)
        columns = {new if name == old else name: each for name, each in now.columns.items()}
        return replace(now, columns=columns)

    def _drop(self, now: Version, number: int) -> Version:
        gone = _chosen(now, number)
        self.log.alter.drop_columns([gone])
        columns = {name: each for name, each in now.columns.items() if name != gone}
        return replace(now, columns=columns)

    def _widen(self, now: Version, number: int) -> Version:
        name = _chosen(now, number)
        self.log.alter.change_columns([ColumnChange(name, data_type="bigint")])
        now.columns[name].kind = "bigint"
        return now

    def _map(self, now: Version, _: int) -> Version:
        self.log.alter.set_properties({MODE: "name"})
        return now

    def _unmap(self, now: Version, _: int) -> Version:
        self.log.drop_feature("columnMapping")
        return now

    def _vectors(self, now: Version, number: int) -> Version:
        text = "true" if number % 2 else "false"
        self.log.alter.set_properties({"delta.enableDeletionVectors": text})
        return now

    def _protocol(self, now: Version, _: int) -> Version:
        self.log.alter.add_feature("v2Checkpoint")
        return now

    def _note(self, now: Version, number: int) -> Version:
        self.log.alter.set_properties({"owner": str(number)})
        return now

    def _optimize(self, now: Version, _: int) -> Version:
        self.log.optimize()
        return now

    def _restore(self, now: Version, number: int) -> Version:
        version = self.newest - min(self.newest, number + 1)
        before = len(self.versions)
        self.log.restore(version=version)
        return self.versions[version] if self.log.snapshot().version >= before else now

    def _replace(self, now: Version, number: int) -> Version:
        """A table of the same names, mapped or not, partitioned or not; its id is a new one."""
        columns = {name: Column("int") for name in now.columns}
        schema = pa.schema([("id", pa.int64()), *((name, pa.int32()) for name in columns)])
        properties = {**FEED, MODE: "name" if number % 2 else "none"}
        partitions = list(columns)[:1] if number > 1 else []
        self.log.create(schema, properties=properties, partition_by=partitions, mode="replace")
        return Version(columns, frozenset())

    def _overwrite(self, now: Version, number: int) -> Version:
        """As Spark overwrites a table with another type or partitioning: the id stays."""
        if not now.columns:
            return now
        name = _chosen(now, number)
        self.log.delete()
        empty = replace(now, live=frozenset())
        for _ in range(len(self.versions), self.log.snapshot().version + 1):
            self.versions.append(empty)
        metadata = self.log.metadata
        if number % 2:
            other = () if metadata.partition_columns else (name,)
            self._put(replace(metadata, partition_columns=other))
            return empty
        declared = json.loads(schema_to_json(schema_from_json(metadata.schema_string)))
        for item in declared["fields"]:
            if item["name"] == name:
                item["type"] = "integer" if now.columns[name].kind == "string" else "string"
                item["metadata"] = {
                    key: value
                    for key, value in item["metadata"].items()
                    if "typeChanges" not in key
                }
                kind = "int" if item["type"] == "integer" else "string"
        self._put(replace(metadata, schema_string=json.dumps(declared)))
        return replace(empty, columns={**now.columns, name: Column(kind)})

    def _put(self, metadata: Metadata) -> None:
        path = commit_path(self.log.log_path, self.log.snapshot().version + 1)
        found = self.log.store.put_if_absent(path, action_to_json(metadata).encode())
        assert found is PutOutcome.CREATED

    # What readers are to give

    def whole(self, version: int) -> Rows:
        """All rows of a version, as inserts."""
        at = self.versions[version]
        return [("insert", self.shown(each, at)) for each in sorted(at.live)]

    def changes(self, version: int) -> Rows:
        """What a commit inserted, by its own columns, and deleted, by those of before."""
        at = self.versions[version]
        before = self.versions[version - 1] if version else Version({}, frozenset())
        inserted = [("insert", self.shown(each, at)) for each in sorted(at.live - before.live)]
        return inserted + [
            ("delete", self.shown(each, before)) for each in sorted(before.live - at.live)
        ]

    def added(self, version: int) -> Rows:
        """What a stream that skips commits which remove rows has of one."""
        return [] if self._removes(version) else self.changes(version)

    def shown(self, number: int, at: Version) -> dict[str, object]:
        values = self.rows[number]  # by columns, so that names are those of the version
        return {"id": number, **{name: values.get(each) for name, each in at.columns.items()}}

    def _removes(self, version: int) -> bool:
        lines = self.log.store.read_bytes(commit_path(self.log.log_path, version)).splitlines()
        found = (json.loads(line).get("remove") for line in lines)
        return any(body is not None and body["dataChange"] for body in found)

    def is_steady(self, first: int, last: int) -> bool:
        """Whether all versions from one to another have one description, so none may be refused."""
        found = {self._description(version) for version in range(max(0, first), last + 1)}
        return len(found) == 1

    def _description(self, version: int) -> object:
        metadata = self.log.snapshot(version=version).metadata
        table = TableMetadata.of(metadata)
        return metadata.id, schema_to_json(table.schema), metadata.partition_columns


def _chosen(now: Version, number: int) -> str:
    """A column; of a table without one, a name that it does not have."""
    names = sorted(now.columns) or list(NAMES)
    return names[number % len(names)]


def _free(now: Version, number: int) -> str:
    """A name that no column has, if there is one."""
    names = [name for name in NAMES if name not in now.columns] or list(NAMES)
    return names[number % len(names)]


def ensure_given(
    story: Story, given: Rows, expected: Rows, versions: range, *, named_at: int
) -> None:
    """Hold what a reader gave against the rows as they were written.

    A file that was written again may give a row as deleted and inserted at once. A row lacks
    columns that came later, which are null, and never has another value in any.

    Args:
        story: The table.
        given: What came, each row with its kind.
        expected: What was to come.
        versions: Of which versions.
        named_at: The version whose names the reader gives: the end of what it reads.
    """
    assert _net(given) == _net(expected)
    around = [*range(max(0, versions[0] - 1), versions[-1] + 1)[-9:], named_at]
    descriptions = [story.versions[each] for each in around]
    for kind, row in given:
        known = [written for _, written in expected if written["id"] == row["id"]]
        # A RESTORE may bring a column back, and remove rows that were written with it. They have
        # that column under the name that it has at the end.
        known += [story.shown(row["id"], at) for at in descriptions]
        assert any(_is_shown_as(row, written, kind) for written in known), (row, known)


def _net(rows: Rows) -> Counter[object]:
    counted: Counter[object] = Counter()
    for kind, row in rows:
        counted[row["id"]] += -1 if kind == "delete" else 1
    return Counter({key: number for key, number in counted.items() if number})


def _is_shown_as(row: dict[str, object], written: dict[str, object], kind: str) -> bool:
    """Whether a row has the values that it was written with, and no other."""
    is_same = all(value == written.get(name) for name, value in row.items())
    lacks = any(value is not None and name not in row for name, value in written.items())
    return is_same and (kind == "delete" or not lacks)


def steps(most: int) -> st.SearchStrategy[list[tuple[str, int]]]:
    """Steps of writers, and looks of readers."""
    kinds = st.sampled_from((*STEPS, *("look",) * 8))
    return st.lists(st.tuples(kinds, st.integers(0, 3)), max_size=most)
