"""Nested columns that lack something: absent from a file, null or empty, at every depth.

1. `nested_types` makes types of structs, arrays and maps around a number and a variant, with fields
   that may be null and fields that may not.
2. `values_of` gives values of a type: each part null, empty and filled.
3. `Lacking.write` makes a table whose files are those of other engines: one has all values, one
   lacks the column, and for each field of a struct one lacks that field.
4. `Lacking.rows` is the model: Python values by the row's number. `Step` says what a command makes
   of it, and which rows it writes, as NOT NULL is judged by these.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from foreign_tables import ForeignTable, field, metadata, protocol
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import data_type_from_json

Rows = dict[int, Any]
VARIANTS = (
    {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"},
    {"value": b"\x00", "metadata": b"\x01\x00\x00"},
)
NUMBER, VARIANT = "long", "variant"
KINDS = ("rewritten", "vectors", "mapped")
"""How tables change rows: by copies, by vectors, or by copies of mapped columns with changes."""
_ONE_FILE = 20
"""The numbers of the rows of one file begin at a multiple of this."""


def nested_types(depth: int, *, is_strict: bool = True) -> Iterator[Any]:
    """Every type with at most so many levels of structs, arrays and maps, as a schema has it.

    Args:
        depth: How many levels.
        is_strict: Whether fields may be NOT NULL, too.
    """
    yield VARIANT
    yield from _composites(depth, is_strict=is_strict)


def _composites(depth: int, *, is_strict: bool) -> Iterator[Any]:
    if not depth:
        return
    for inner in (NUMBER, VARIANT, *_composites(depth - 1, is_strict=is_strict)):
        yield _struct(inner, nullable=True)
        if is_strict:
            yield _struct(inner, nullable=False)
        yield {"type": "array", "elementType": inner, "containsNull": True}
        yield {
            "type": "map",
            "keyType": "string",
            "valueType": inner,
            "valueContainsNull": True,
        }


def _struct(inner: Any, *, nullable: bool) -> Any:
    fields = [field("x", inner) | {"nullable": nullable}, field("b", "long")]
    return {"type": "struct", "fields": fields}


def kind_of(kind: Any) -> str:
    return kind["type"] if isinstance(kind, dict) else str(kind)


def spelled(kind: Any) -> str:
    """A short name of a type, for the names of tests."""
    if not isinstance(kind, dict):
        return kind[0]
    if kind["type"] == "struct":
        inner = kind["fields"][0]
        return ("s" if inner["nullable"] else "S") + spelled(inner["type"])
    return kind["type"][0] + spelled(kind.get("elementType", kind.get("valueType")))


def values_of(kind: Any) -> list[Any]:
    """Values of a type: null, empty, and with each value of its part."""
    name = kind_of(kind)
    if name == NUMBER:
        return [None, 7]
    if name == VARIANT:
        return [None, *VARIANTS]
    if name == "struct":
        inner = kind["fields"][0]
        values = [
            item for item in values_of(inner["type"]) if item is not None or inner["nullable"]
        ]
        return [None, *({"x": item, "b": None if at else 1} for at, item in enumerate(values))]
    inner = values_of(kind.get("elementType", kind.get("valueType")))
    if name == "array":
        return [None, [], inner]
    return [None, [], [(f"k{at}", item) for at, item in enumerate(inner)]]


def breaks_not_null(kind: Any, value: Any) -> bool:
    """Whether a NOT NULL is broken; a null struct breaks that of its fields (spec 10.3)."""
    if kind_of(kind) != "struct":
        return False
    own = value or {"x": None, "b": None}
    inner = kind["fields"][0]
    return (own["x"] is None and not inner["nullable"]) or breaks_not_null(inner["type"], own["x"])


Lack = tuple[str, ...]
"""The path of a field that a file lacks, `*` for the part of an array or a map."""


def lacks_of(kind: Any) -> Iterator[Lack]:
    """The fields that a file of the type may lack: those that may be null."""
    if kind_of(kind) == "struct":
        inner = kind["fields"][0]
        yield ("b",)
        if inner["nullable"]:
            yield ("x",)
        yield from (("x", *rest) for rest in lacks_of(inner["type"]))
    elif kind_of(kind) in ("array", "map"):
        yield from (
            ("*", *rest) for rest in lacks_of(kind.get("elementType", kind.get("valueType")))
        )


def without(value: Any, lack: Lack) -> Any:
    """A value as it is read from a file that lacks a field."""
    if value is None:
        return None
    if lack[0] == "*":
        if value and isinstance(value[0], tuple):
            return [(key, without(item, lack[1:])) for key, item in value]
        return [without(item, lack[1:]) for item in value]
    if len(lack) == 1:
        return {**value, lack[0]: None}
    return {**value, lack[0]: without(value[lack[0]], lack[1:])}


def file_type(kind: Any, lack: Lack = ()) -> pa.DataType:
    """The type in a file that lacks a field; only the two parts of variants are required."""
    name, rest = kind_of(kind), lack[1:]
    if name == VARIANT:
        parts = [pa.field(part, pa.binary(), nullable=False) for part in ("metadata", "value")]
        return pa.struct(parts)
    if name == "struct":
        return pa.struct(
            [
                pa.field(
                    item["name"],
                    file_type(item["type"], rest if lack[:1] == (item["name"],) else ()),
                )
                for item in kind["fields"]
                if lack != (item["name"],)
            ]
        )
    if name == "array":
        return pa.list_(file_type(kind["elementType"], rest))
    if name == "map":
        return pa.map_(pa.string(), file_type(kind["valueType"], rest))
    return pa.int64()


def arrow(values: Iterable[Any], kind: Any, lack: Lack = ()) -> pa.Array:
    """The values as a file of another engine holds them."""
    return pa.array(list(values), file_type(kind, lack))


@dataclass
class Lacking:
    """A table with a number `id` and a nested column `n`, and the rows that it should have.

    Attributes:
        path: Its directory.
        kind: The type of `n`.
        rows: The values of `n` by the number.
        files: The numbers of the rows of each file.
    """

    path: str
    kind: Any
    rows: Rows
    files: list[set[int]]

    @classmethod
    def write(cls, path: Path, kind: Any, how: str) -> Lacking:
        table = ForeignTable(path)
        features = {"vectors": ["deletionVectors"], "mapped": ["columnMapping"]}.get(how, [])
        properties = {
            "vectors": {"delta.enableDeletionVectors": "true"},
            "mapped": {
                "delta.columnMapping.mode": "name",
                "delta.columnMapping.maxColumnId": "99",
                "delta.enableChangeDataFeed": "true",
            },
        }.get(how, {})
        fields = [field("id"), field("n", kind)]
        if how == "mapped":
            fields = _mapped(fields, iter(range(1, 99)))
        found, lines = cls(str(path), kind, {}, []), []
        for values, columns in _files(kind):
            numbers = [len(found.files) * _ONE_FILE + at for at in range(len(values))]
            found.rows.update(zip(numbers, values, strict=True))
            found.files.append(set(numbers))
            lines.append(table.add({"id": numbers, **columns}))
        writers = ["invariants", "changeDataFeed"]
        table.commit(
            protocol(3, 7, *writers, for_readers=["variantType", *features]),
            metadata(*fields, properties=properties),
            *lines,
        )
        return found

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.for_path(self.path)

    def source(self, numbers: Iterable[int], values: Iterable[Any]) -> pa.Table:
        """Rows for a command, in the types that a user of Arrow has."""
        n = pa.array(list(values), to_arrow_type(data_type_from_json(self.kind)))
        return pa.table({"id": pa.array(list(numbers), pa.int64()), "n": n})


def _files(kind: Any) -> Iterator[tuple[list[Any], Mapping[str, pa.Array]]]:
    """The values of each file as they are read, and the file's column, if it has one."""
    values = values_of(kind)
    yield values, {"n": arrow(values, kind)}
    yield [None, None], {}
    for lack in lacks_of(kind):
        read = [None if item is None else without(item, lack) for item in values]
        yield read, {"n": arrow(read, kind, lack)}


def _mapped(fields: list[Any], ids: Iterator[int]) -> list[Any]:
    """The fields with ids; their physical names are their names, as after a change of the mode."""
    found = []
    for item in copy.deepcopy(fields):
        keys = {
            "delta.columnMapping.id": next(ids),
            "delta.columnMapping.physicalName": item["name"],
        }
        item["metadata"] = keys
        item["type"] = _mapped_type(item["type"], ids)
        found.append(item)
    return found


def _mapped_type(kind: Any, ids: Iterator[int]) -> Any:
    if not isinstance(kind, dict):
        return kind
    for part in ("elementType", "valueType"):
        if part in kind:
            kind[part] = _mapped_type(kind[part], ids)
    if "fields" in kind:
        kind["fields"] = _mapped(kind["fields"], ids)
    return kind


@dataclass(frozen=True)
class Step:
    """A command on a `Lacking`.

    Attributes:
        run: Runs it.
        after: The rows afterwards.
        written: The rows that it may write and judge by NOT NULL; none for one that only copies.
        must_be_judged: Those that it certainly writes.
    """

    run: Callable[[], object]
    after: Rows
    written: Rows
    must_be_judged: Rows


def steps(table: Lacking) -> dict[str, Callable[[], Step]]:
    """The commands without Spark, by name; each is made when it is called."""
    log, rows, kind = table.log, table.rows, table.kind
    values = values_of(kind)
    low = {number for number in rows if number % _ONE_FILE < 2}
    first = table.files[0]
    new = dict(zip(range(-len(values), 0), values, strict=True))

    def changed(numbers: Iterable[int], change: Callable[[Any], Any]) -> Rows:
        return {number: change(rows[number]) for number in numbers}

    def judged(own: Rows, run: Callable[[], object], *, after: Rows | None = None) -> Step:
        return Step(run, after if after is not None else rows | own, rows | own, own)

    def copied(run: Callable[[], object], after: Rows) -> Step:
        return Step(run, after, {}, {})

    def appended(own: Rows, data: pa.Table) -> Step:
        return Step(lambda: log.append(data), rows | own, own, own)

    lows = f"id IN ({', '.join(map(str, sorted(low)))})"
    found: dict[str, Callable[[], Step]] = {
        "append": lambda: appended(new, table.source(new, values)),
        "append kept": lambda: appended(
            kept := {key: item for key, item in new.items() if not breaks_not_null(kind, item)},
            table.source(kept, kept.values()),
        ),
        "append without the column": lambda: appended(
            {-1: None, -2: None}, table.source([-1, -2], [None] * 2).drop_columns(["n"])
        ),
        "append hidden nulls": lambda: appended(
            {-1: None},
            pa.table({"id": [-1], "n": pa.nulls(1, table.source([], []).schema.field("n").type)}),
        ),
        "update to null": lambda: judged(
            changed(low, lambda _: None), lambda: log.update(set={"n": "NULL"}, predicate=lows)
        ),
        "update another column": lambda: judged(
            {number + 10_000: rows[number] for number in low},
            lambda: log.update(set={"id": "id + 10000"}, predicate=lows),
            after={number + 10_000 * (number in low): item for number, item in rows.items()},
        ),
        "delete rows": lambda: copied(
            lambda: log.delete(lows),
            {number: item for number, item in rows.items() if number not in low},
        ),
        "delete nulls": lambda: copied(
            lambda: log.delete("n IS NULL"),
            {number: item for number, item in rows.items() if item is not None},
        ),
        "optimize": lambda: copied(log.optimize, rows),
        "z-order": lambda: copied(lambda: log.optimize(z_order_by=["id"]), rows),
        "purge": lambda: copied(lambda: (log.delete("id = 0"), log.purge()), _less(rows, [0])),
        "merge without the column": lambda: judged(
            {-1: None},
            lambda: (
                log.merge(pa.table({"id": [-1, 0]}), "t.id = s.id")
                .when_not_matched_insert({"id": "s.id"})
                .execute()
            ),
        ),
        "merge to null": lambda: judged(
            changed(low, lambda _: None),
            lambda: (
                log.merge(pa.table({"id": sorted(low)}), "t.id = s.id")
                .when_matched_update({"n": "NULL"})
                .execute()
            ),
        ),
        "merge another column": lambda: judged(
            {number + 10_000: rows[number] for number in low},
            lambda: (
                log.merge(pa.table({"id": sorted(low)}), "t.id = s.id")
                .when_matched_update({"id": "s.id + 10000"})
                .execute()
            ),
            after={number + 10_000 * (number in low): item for number, item in rows.items()},
        ),
        "merge values": lambda: judged(
            turned := dict(zip(first, reversed([rows[at] for at in first]), strict=True)) | new,
            lambda: (
                log.merge(table.source(turned, turned.values()), "t.id = s.id")
                .when_matched_update({"n": "s.n"})
                .when_not_matched_insert_all()
                .execute()
            ),
        ),
        "merge to null by source": lambda: judged(
            changed(set(rows) - low, lambda _: None),
            lambda: (
                log.merge(pa.table({"id": sorted(low)}), "t.id = s.id")
                .when_not_matched_by_source_update({"n": "NULL"})
                .execute()
            ),
        ),
    }
    if kind_of(kind) == "struct":
        found["update a field"] = lambda: judged(
            changed(low, lambda item: {**(item or {"x": None}), "b": 9}),
            lambda: log.update(set={"n.b": 9}, predicate=lows),
        )
        found["update a field to null"] = lambda: judged(
            changed(low, lambda item: {**(item or {"b": None}), "x": None}),
            lambda: log.update(set={"n.x": "NULL"}, predicate=lows),
        )
    return found


def _less(rows: Rows, numbers: Iterable[int]) -> Rows:
    return {number: item for number, item in rows.items() if number not in set(numbers)}


def problem(table: Lacking, name: str) -> str | None:
    """What is wrong after a command, and after an OPTIMIZE that follows it; None if nothing is."""
    step = steps(table)[name]()
    after = step.after
    try:
        step.run()
    except OptimistError as error:
        broken = [item for item in step.written.values() if breaks_not_null(table.kind, item)]
        if error.kind != "DELTA_NOT_NULL_CONSTRAINT_VIOLATED" or not broken:
            return f"{name}: {error.kind}: {error}"
        after = table.rows
    except Exception as error:  # noqa: BLE001 - what must never be seen
        return f"{name}: {type(error).__name__}: {error}"
    else:
        if any(breaks_not_null(table.kind, item) for item in step.must_be_judged.values()):
            return f"{name}: a NOT NULL was broken"
    return differs(table, name, after) or _differs_when_copied(table, name, after)


def _differs_when_copied(table: Lacking, name: str, after: Rows) -> str | None:
    """As `differs`, after all rows were copied once more."""
    try:
        table.log.optimize()
    except Exception as error:  # noqa: BLE001 - what must never be seen
        return f"{name}, then optimize: {type(error).__name__}: {error}"
    return differs(table, f"{name}, then optimize", after)


def differs(table: Lacking, name: str, after: Rows) -> str | None:
    """How the rows that are read differ from the model; None if they don't."""
    found = table.log.to_arrow()
    found.validate(full=True)
    read = dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))
    if read != after:
        return f"{name}: {read} instead of {after}"
    try:
        pq.write_table(found, os.devnull)  # as a user may write what was read
    except pa.ArrowException as error:
        return f"{name}: what was read can't be written: {error}"
    return None
