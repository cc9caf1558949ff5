"""Random changes of a table's columns between random writes, against a model of columns and rows.

In the model a value belongs to a column, not to a name: old rows have null in new columns, a
renamed column keeps its values, and one that was dropped never comes back under its name.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable as OtherTable
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odd_names import quoted
from optimist.core import DeltaLog
from optimist.core.requests.columns import ColumnChange, NewColumn

ARROW = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "decimal(20,0)": pa.decimal128(20, 0),
    "string": pa.string(),
}
SQL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
WIDER = {"byte": "short", "short": "integer", "integer": "long", "long": "decimal(20,0)"}
NAMES = ["a", "B", "c d", "e.f", "ä", "`g`", "first", "1"]


@dataclass
class Node:
    """A column of the model, or a field of a struct; columns are told apart by identity."""

    name: str
    kind: str  # a primitive type, `struct` or `list`, a list of structs
    children: list[Node] = field(default_factory=list)

    @property
    def arrow(self) -> pa.DataType:
        if not self.children:
            return ARROW[self.kind]
        struct = pa.struct([pa.field(item.name, item.arrow) for item in self.children])
        return pa.list_(struct) if self.kind == "list" else struct

    @property
    def sql(self) -> str:
        if not self.children:
            return SQL.get(self.kind, self.kind)
        inner = ", ".join(f"{quoted(item.name)}: {item.sql}" for item in self.children)
        return f"array<struct<{inner}>>" if self.kind == "list" else f"struct<{inner}>"

    def seen(self, value):
        """A value as readers see it, which is kept by the identities of fields."""
        if value is None or not self.children:
            return value
        if self.kind == "list":
            return [self.fields_seen(item) for item in value]
        return self.fields_seen(value)

    def fields_seen(self, value):
        if value is None:
            return None
        return {item.name: item.seen(value.get(id(item))) for item in self.children}

    def made(self, draw):
        """A value: what is written, and what the model keeps of it."""
        if draw(st.integers(0, 4)) == 0:
            return None, None
        if self.kind == "list":
            pairs = [self.fields_made(draw) for _ in range(draw(st.integers(0, 2)))]
            return [item for item, _ in pairs], [item for _, item in pairs]
        if self.children:
            return self.fields_made(draw)
        value = draw(
            st.sampled_from(["", "x", "ü"] if self.kind == "string" else [-128, 0, 1, 127])
        )
        return value, value

    def fields_made(self, draw):
        pairs = [(item, item.made(draw)) for item in self.children]
        written = {item.name: pair[0] for item, pair in pairs}
        return written, {id(item): pair[1] for item, pair in pairs}


class Columns(RuleBasedStateMachine):
    """One table; the column `k` numbers its rows, and stays as it is."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.log = DeltaLog.for_path(str(self.folder))
        self.root = Node("", "struct", [Node("k", "long"), Node("a", "byte")])
        self.rows = {}
        self.dropped = []

    def teardown(self):
        shutil.rmtree(self.folder)

    @initialize(mapped=st.booleans())
    def begin(self, mapped):
        self.is_mapped = mapped
        self.log.append(pa.table({"k": pa.array([], pa.int64()), "a": pa.array([], pa.int8())}))
        mode = {"delta.columnMapping.mode": "name"} if mapped else {}
        vectors = {"delta.enableDeletionVectors": "true"} if mapped else {}
        self.log.alter.set_properties({"delta.enableTypeWidening": "true", **mode, **vectors})

    # Places in the model

    def structs(self):
        """Each struct, with the path of its fields in ALTER TABLE."""
        waiting = [((), self.root)]
        while waiting:
            path, node = waiting.pop(0)
            yield path, node
            for item in node.children:
                if item.children:
                    inner = (*path, item.name, *(("element",) if item.kind == "list" else ()))
                    waiting.append((inner, item))

    def pick(self, data, kinds=None):
        found = [
            (path, struct, item)
            for path, struct in self.structs()
            for item in struct.children
            if item.name != "k" and (kinds is None or item.kind in kinds)
        ]
        return data.draw(st.sampled_from(found)) if found else (None, None, None)

    def free_name(self, data, struct):
        taken = {item.name.lower() for item in struct.children}
        names = NAMES if self.is_mapped else ["a", "B", "c_d", "ä", "first"]
        free = [name for name in names if name.lower() not in taken]
        return data.draw(st.sampled_from(free)) if free else None

    # What is done to the table

    @rule(data=st.data(), count=st.integers(1, 3))
    def append(self, data, count):
        columns, kept = {}, [{} for _ in range(count)]
        keys = range(len(self.rows), len(self.rows) + count)
        for item in self.root.children:
            if item.name == "k":
                columns["k"] = pa.array(keys, pa.int64())
                continue
            if data.draw(st.booleans()):
                continue
            pairs = [item.made(data.draw) for _ in range(count)]
            columns[item.name] = pa.array([pair[0] for pair in pairs], item.arrow)
            for row, pair in zip(kept, pairs, strict=True):
                row[id(item)] = pair[1]
        self.log.append(pa.table(columns))
        self.rows |= dict(zip(keys, kept, strict=True))

    @rule(data=st.data())
    def delete(self, data):
        live = [key for key, row in self.rows.items() if row is not None]
        if live:
            key = data.draw(st.sampled_from(live))
            self.log.delete(f"k = {key}")
            self.rows[key] = None

    @rule(data=st.data(), kind=st.sampled_from(["byte", "integer", "string", "struct", "list"]))
    def add(self, data, kind):
        path, struct = data.draw(st.sampled_from(list(self.structs())))
        name = self.free_name(data, struct)
        if name is None or len(path) > 3:
            return
        children = [Node("x", "byte"), Node("y", "string")] if kind in ("struct", "list") else []
        node = Node(name, kind, children)
        after = data.draw(st.sampled_from([None, *(item.name for item in struct.children)]))
        first = after is None and data.draw(st.booleans())
        new = NewColumn((*path, name), node.sql, first=first, after=after)
        self.log.alter.add_columns([new])
        names = [item.name for item in struct.children]
        place = 0 if first else len(names) if after is None else names.index(after) + 1
        struct.children.insert(place, node)

    @precondition(lambda self: self.is_mapped)
    @rule(data=st.data())
    def rename(self, data):
        path, struct, item = self.pick(data)
        name = self.free_name(data, struct) if struct else None
        if name is not None:
            self.log.alter.rename_column((*path, item.name), name)
            item.name = name

    @precondition(lambda self: self.is_mapped)
    @rule(data=st.data())
    def drop(self, data):
        path, struct, item = self.pick(data)
        if struct and len(struct.children) > 1:
            self.log.alter.drop_columns([(*path, item.name)])
            struct.children.remove(item)
            self.dropped.append(item)  # so that no new column gets its identity

    @rule(data=st.data())
    def move(self, data):
        path, struct, item = self.pick(data)
        if not struct:
            return
        others = [other for other in struct.children if other is not item]
        after = data.draw(st.sampled_from([None, *others]))
        change = ColumnChange(
            (*path, item.name),
            comment="moved",
            first=after is None,
            after=None if after is None else after.name,
        )
        self.log.alter.change_columns([change])
        struct.children.remove(item)
        place = 0 if after is None else struct.children.index(after) + 1
        struct.children.insert(place, item)

    @rule(data=st.data())
    def widen(self, data):
        path, _, item = self.pick(data, list(WIDER))
        if item is not None:
            item.kind = WIDER[item.kind]
            self.log.alter.change_columns([ColumnChange((*path, item.name), item.sql)])

    # What must be so at all times

    @invariant()
    def rows_are_those_of_the_model(self):
        if not hasattr(self, "is_mapped"):
            return
        assert self.log.snapshot().schema.names == tuple(item.name for item in self.root.children)
        found = sorted(self.log.to_arrow().to_pylist(), key=lambda row: row["k"])
        assert found == [
            {item.name: self.value(key, row, item) for item in self.root.children}
            for key, row in self.rows.items()
            if row is not None
        ]

    def value(self, key, row, item):
        return key if item.name == "k" else item.seen(row.get(id(item)))

    @precondition(lambda self: len(self.rows) > 1)
    @rule()
    def another_engine_agrees(self):
        other = OtherTable(str(self.folder))
        assert [item.name for item in other.schema().fields] == list(
            self.log.snapshot().schema.names
        )
        if not self.is_mapped:  # its count passes over vectors, which mapped tables have here
            assert other.count() == sum(row is not None for row in self.rows.values())


TestColumns = Columns.TestCase
TestColumns.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
