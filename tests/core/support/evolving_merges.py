"""Random MERGEs whose source has other columns, fields and types than the table, row by row.

A case is its seed. The model stores each value as the rules of store assignment say, and finds the
schema after the MERGE by itself.
"""

from __future__ import annotations

import random  # noqa: TID251 - a case is its seed: the same chance each time it is run
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from evolving_types import (
    WHOLE,
    Row,
    along,
    evolved,
    kind_at,
    named,
    other_type,
    over,
    random_type,
    random_value,
    spelled,
    stored,
    value_at,
    with_value,
)
from local_tables import opened
from optimist.core import DeltaLog
from optimist.core.schema.arrow_types import to_arrow_schema

# The table before its first file was followed by changes of columns


_SQL_NAMES = {pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"}


@dataclass(frozen=True)
class Past:
    """What a column was when the first file was written.

    Attributes:
        column: The column as it is.
        name: Its name then.
        kind: Its type then; an integer is narrower, and a struct has a field `q` more.
    """

    column: pa.Field
    name: str
    kind: pa.DataType

    @classmethod
    def of(cls, draw: random.Random, column: pa.Field, *, is_mapped: bool, widens: bool) -> Past:
        name, kind = column.name, column.type
        if name in ("id", "p") or draw.random() < 0.5:
            return cls(column, name, kind)
        if is_mapped and draw.random() < 0.5:
            name = f"old_{name}"
        if is_mapped and pa.types.is_struct(kind) and draw.random() < 0.5:
            kind = pa.struct([*kind, ("q", pa.int64())])
        if widens and kind in _SQL_NAMES:
            kind = WHOLE[draw.randrange(WHOLE.index(kind))]
        return cls(column, name, kind)

    def now(self, value: Any) -> Any:
        """A value as the column has it now."""
        if value is not None and pa.types.is_struct(self.kind):
            return {item.name: value[item.name] for item in self.column.type}
        return value

    def change(self, log: DeltaLog) -> None:
        """Make the column what it is now."""
        if pa.types.is_struct(self.kind) and self.kind != self.column.type:
            log.alter.drop_columns([f"{self.name}.q"])
        elif self.kind != self.column.type:
            log.alter.change_columns({self.name: _SQL_NAMES[self.column.type]})
        if self.name != self.column.name:
            log.alter.rename_column(self.name, self.column.name)


# Clauses


@dataclass(frozen=True)
class Assignment:
    """A column or a field that gets a column or a field of the source, or a constant.

    Attributes:
        target: The path in the table.
        source: The path in the source; None for null.
    """

    target: tuple[str, ...]
    source: tuple[str, ...] | None

    @property
    def name(self) -> str:
        return ".".join(self.target)

    @property
    def sql(self) -> str:
        return "NULL" if self.source is None else ".".join(("s", *self.source))


@dataclass(frozen=True)
class Clause:
    """A clause; `items` are None for a DELETE and for all columns."""

    kind: str
    action: str
    above: int | None
    items: tuple[Assignment, ...] | None

    @property
    def takes_all(self) -> bool:
        return self.action != "delete" and self.items is None

    @property
    def condition(self) -> str | None:
        side = "t" if self.kind == "NOT MATCHED BY SOURCE" else "s"
        return None if self.above is None else f"{side}.id > {self.above}"

    def holds(self, number: int) -> bool:
        return self.above is None or number > self.above


@dataclass
class Case:
    """A table, a source, and a MERGE of them by `id`."""

    seed: int
    properties: dict[str, str] = field(default_factory=dict)
    has_vectors: bool = True
    partition_by: tuple[str, ...] = ()
    table: pa.DataType = field(default_factory=lambda: pa.struct([]))
    source: pa.DataType = field(default_factory=lambda: pa.struct([]))
    past: list[Past] = field(default_factory=list)
    dropped: str | None = None
    first: list[Row] = field(default_factory=list)
    files: list[list[Row]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    evolves: bool = True

    @classmethod
    def of(cls, seed: int) -> Case:
        draw = random.Random(seed)
        self = cls(seed)
        mapping = draw.choice([None, None, "name", "id"])
        given = {
            "enableChangeDataFeed": draw.choice(["true", "false"]),
            "enableTypeWidening": draw.choice(["true", "false"]),
            "enableRowTracking": draw.choice(["true", "false", "false"]),
        }
        self.properties = {name: value for name, value in given.items() if value == "true"}
        if mapping:
            self.properties["columnMapping.mode"] = mapping
        self.has_vectors = draw.random() < 0.5
        names = draw.sample(["u", "v", "w", "y"], draw.randint(2, 4))
        columns = [("id", pa.int64()), *((name, random_type(draw)) for name in names)]
        if draw.random() < 0.3:
            columns.insert(draw.randint(0, len(columns)), ("p", pa.string()))
            self.partition_by = ("p",)
        self.table = pa.struct(columns)
        if mapping and draw.random() < 0.5:
            self.dropped = draw.choice(["z", "e"])
        self._draw_source(draw)
        ids = iter(draw.sample(range(12), 12))
        widens = "enableTypeWidening" in self.properties
        for item in self.table:
            self.past.append(Past.of(draw, item, is_mapped=mapping is not None, widens=widens))
        then = pa.struct([(each.name, each.kind) for each in self.past])
        self.first = self._rows(draw, then, [next(ids) for _ in range(3)])
        self.files.append(
            [{p.column.name: p.now(row[p.name]) for p in self.past} for row in self.first]
        )
        for _ in range(draw.randint(0, 2)):
            self.files.append(self._rows(draw, self.table, [next(ids) for _ in range(3)]))
        self.rows = self._rows(draw, self.source, draw.sample(range(12), draw.randint(3, 10)))
        self._draw_clauses(draw)
        return self

    def _draw_source(self, draw: random.Random) -> None:
        self.evolves = draw.random() < 0.85
        columns = []
        for item in self.table:
            if item.name == "id":
                columns.append(("id", pa.int64()))
            elif item.name == "p" or not self.evolves or draw.random() < 0.8:
                kind = other_type(draw, item.type, may_lack=self.evolves)
                columns.append((spelled(draw, item.name), kind))
        for name in ("e", "z"):
            if draw.random() < 0.4:
                columns.append((name, random_type(draw)))
        draw.shuffle(columns)
        self.source = pa.struct(columns)

    def _rows(self, draw: random.Random, kind: pa.DataType, ids: list[int]) -> list[Row]:
        def row(number: int) -> Row:
            found = {item.name: random_value(draw, item.type) for item in kind}
            found.update({name: value or None for name, value in found.items() if name in "pP"})
            return {**found, "id": number}

        return [row(number) for number in ids]

    def _draw_clauses(self, draw: random.Random) -> None:
        for _ in range(draw.randint(1, 4)):
            kind, action = draw.choice(
                [
                    *[("MATCHED", "update")] * 4,
                    ("MATCHED", "delete"),
                    ("NOT MATCHED", "insert"),
                    ("NOT MATCHED", "insert"),
                    ("NOT MATCHED BY SOURCE", "update"),
                    ("NOT MATCHED BY SOURCE", "delete"),
                ]
            )
            items = None
            if action != "delete" and (kind == "NOT MATCHED BY SOURCE" or draw.random() < 0.5):
                items = self._draw_items(draw, kind, action)
            above = draw.choice([None, None, 2, 6])
            self.clauses.append(Clause(kind, action, above, items))
        kept = []
        for at, clause in enumerate(self.clauses):
            later = any(other.kind == clause.kind for other in self.clauses[at + 1 :])
            if clause.above is not None or not later:
                kept.append(clause)
        self.clauses = kept

    def _draw_items(self, draw: random.Random, kind: str, action: str) -> tuple[Assignment, ...]:
        found: dict[str, Assignment] = {}
        for _ in range(draw.randint(1, 3)):
            if kind == "NOT MATCHED BY SOURCE":
                path = self._draw_path(draw, self.table)
                found.setdefault(path[0].lower(), Assignment(path, None))
                continue
            path = self._draw_path(draw, self.source, only_columns=action == "insert")
            known = self._path_in_table(path)
            target = path if known is None else known
            if known is not None or self.evolves:
                found.setdefault(path[0].lower(), Assignment(target, path))
        if action == "insert":
            found.setdefault("id", Assignment(("id",), ("id",)))
        if not found:
            found["id"] = Assignment(("id",), ("id",))
        return tuple(found.values())

    def _draw_path(
        self, draw: random.Random, kind: pa.DataType, *, only_columns: bool = False
    ) -> tuple[str, ...]:
        item = draw.choice([each for each in kind if each.name != "id"] or [named(kind, "id")])
        path: tuple[str, ...] = (item.name,)
        while pa.types.is_struct(item.type) and not only_columns and draw.random() < 0.5:
            item = draw.choice(list(item.type))
            path = (*path, item.name)
        return path

    def _path_in_table(self, path: tuple[str, ...]) -> tuple[str, ...] | None:
        kind, found = self.table, []
        for name in path:
            item = named(kind, name) if pa.types.is_struct(kind) else None
            if item is None:
                return None
            found.append(item.name)
            kind = item.type
        return tuple(found)

    # What is expected

    @property
    def after(self) -> pa.DataType:
        """The schema of the table after the MERGE."""
        if not self.evolves:
            return self.table
        if any(clause.takes_all for clause in self.clauses):
            brought = self.source
        else:
            paths = [
                item.target
                for clause in self.clauses
                if clause.kind != "NOT MATCHED BY SOURCE"
                for item in clause.items or ()
            ]
            brought = along(self.source, paths)
        return evolved(self.table, brought, widens="enableTypeWidening" in self.properties)

    def expected(self) -> Outcome:
        """What the MERGE makes of the rows.

        Raises:
            DoesNotFitError: A value does not fit its column.
        """
        after, done = self.after, Outcome()
        live = [stored(row, self.table, after) for rows in self.files for row in rows]
        own_by_id = {row["id"]: row for row in live}
        given_by_id = {row["id"]: row for row in self.rows}
        for number, own in own_by_id.items():
            given = given_by_id.get(number)
            kind = "NOT MATCHED BY SOURCE" if given is None else "MATCHED"
            clause = self._chosen(kind, number)
            if clause is None:
                done.rows.append(own)
            elif clause.action == "delete":
                done.changes.append(("delete", own))
            else:
                new = self._updated(clause, own, given)
                done.rows.append(new)
                done.changes += [("update_preimage", own), ("update_postimage", new)]
        for number, given in given_by_id.items():
            clause = None if number in own_by_id else self._chosen("NOT MATCHED", number)
            if clause is not None:
                new = self._inserted(clause, given)
                done.rows.append(new)
                done.changes.append(("insert", new))
        return done

    def _chosen(self, kind: str, number: int) -> Clause | None:
        return next((c for c in self.clauses if c.kind == kind and c.holds(number)), None)

    def _updated(self, clause: Clause, own: Row, given: Row | None) -> Row:
        after = self.after
        if clause.items is not None:
            return self._assigned(clause.items, own, given)
        if given is None:
            raise ValueError("a clause by source takes no columns of the source")
        new = dict(own)
        for item in after:
            found = named(self.source, item.name)
            if found is not None and self.evolves:
                new[item.name] = over(own[item.name], given[found.name], found.type, item.type)
            elif found is not None:
                new[item.name] = stored(given[found.name], found.type, item.type)
        return new

    def _inserted(self, clause: Clause, given: Row) -> Row:
        nothing: Row = {item.name: None for item in self.after}
        if clause.items is not None:
            return self._assigned(clause.items, nothing, given)
        for item in self.after:
            found = named(self.source, item.name)
            if found is not None:
                value = given[found.name]
                nothing[item.name] = stored(value, found.type, item.type)
        return nothing

    def _assigned(self, items: Sequence[Assignment], own: Row, given: Row | None) -> Row:
        new = own
        for item in items:
            value, kind = None, kind_at(self.after, item.target)
            if item.source is not None:
                source = kind_at(self.source, item.source)
                value = stored(value_at(given, item.source), source, kind)
            new = with_value(new, self.after, item.target, value)
        return new


@dataclass
class Outcome:
    """The rows afterwards, and what changed."""

    rows: list[Row] = field(default_factory=list)
    changes: list[tuple[str, Row]] = field(default_factory=list)


# Tables


def made(path: Path, case: Case) -> DeltaLog:
    """The table of a case, whose first file is older than changes of its columns."""
    log = opened(path, has_vectors=case.has_vectors, **case.properties)
    then = pa.schema([(each.name, each.kind) for each in case.past])
    first = pa.Table.from_pylist(case.first, then)
    if case.dropped is not None:
        first = first.append_column(case.dropped, [["old"] * first.num_rows])
    log.append(first, partition_by=case.partition_by)
    if case.dropped is not None:
        log.alter.drop_columns([case.dropped])
    for each in case.past:
        each.change(log)
    for rows in case.files[1:]:
        log.append(pa.Table.from_pylist(rows, pa.schema(list(case.table))))
    return log


def ensure_as_expected(log: DeltaLog, case: Case, before: int, outcome: Outcome) -> None:
    """Compare columns, rows and changes with the model's, in the order of its fields."""
    found = pa.struct(list(to_arrow_schema(log.snapshot().schema)))
    assert shape_of(found) == shape_of(case.after)
    rows = [("row", row) for row in outcome.rows]
    assert counted(("row", row) for row in log.to_arrow().to_pylist()) == counted(
        in_order(rows, case.after)
    )
    if "enableChangeDataFeed" in case.properties and log.snapshot().version > before:
        names = [*(item.name for item in case.after), "_change_type"]
        changes = log.changes(columns=names, starting_version=before + 1).to_pylist()
        told = ((row.pop("_change_type"), row) for row in changes)
        assert counted(told) == counted(in_order(outcome.changes, case.after))


def in_order(rows: Sequence[tuple[str, Row]], kind: pa.DataType) -> Iterator[tuple[str, Row]]:
    table = pa.Table.from_pylist([row for _, row in rows], pa.schema(list(kind)))
    return zip((name for name, _ in rows), table.to_pylist(), strict=True)


def counted(rows: Iterable[tuple[str, Row]]) -> Counter[str]:
    return Counter(f"{name} {row!r}" for name, row in rows)


def shape_of(kind: pa.DataType) -> Any:
    """A type without the names that Arrow gives to the parts of lists and maps."""
    if pa.types.is_struct(kind):
        return [(item.name, shape_of(item.type)) for item in kind]
    if pa.types.is_list(kind):
        return ("list", shape_of(kind.value_type))
    if pa.types.is_map(kind):
        return ("map", shape_of(kind.key_type), shape_of(kind.item_type))
    return str(kind)
