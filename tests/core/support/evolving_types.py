"""Random types and values, and the values and types that MERGE makes of two of them."""

from __future__ import annotations

import random  # noqa: TID251 - a case is its seed: the same chance each time it is run
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_BITS = {kind: kind.bit_width for kind in WHOLE}
_TEXTS = (None, "", "a", "é")


class DoesNotFitError(Exception):
    """A value does not fit the type of its column."""


# Types, as the table has them and as a source may have them


def random_type(draw: random.Random, depth: int = 2) -> pa.DataType:
    kinds = ["whole", "whole", "text", "float", "decimal"]
    kind = draw.choice(kinds + ["struct", "struct", "struct", "list", "map"] * (depth > 0))
    if kind == "whole":
        return draw.choice(WHOLE)
    if kind == "text":
        return pa.string()
    if kind == "float":
        return draw.choice((pa.float32(), pa.float64()))
    if kind == "decimal":
        return pa.decimal128(6, 2)
    if kind == "struct":
        names = draw.sample(["a", "b", "c"], draw.randint(1, 3))
        return pa.struct([(name, random_type(draw, depth - 1)) for name in names])
    inner = random_type(draw, depth - 1)
    return pa.list_(inner) if kind == "list" else pa.map_(pa.string(), inner)


def other_type(draw: random.Random, kind: pa.DataType, *, may_lack: bool) -> pa.DataType:
    """A type of the source for a column of this type."""
    if pa.types.is_struct(kind):
        kept = [item for item in kind if not may_lack or draw.random() < 0.6] or [kind.field(0)]
        fields = [
            (spelled(draw, f.name), other_type(draw, f.type, may_lack=may_lack)) for f in kept
        ]
        if may_lack and draw.random() < 0.3:
            fields.append(("x", random_type(draw, 0)))
        draw.shuffle(fields)
        return pa.struct(fields)
    if pa.types.is_list(kind):
        return pa.list_(other_type(draw, kind.value_type, may_lack=may_lack))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), other_type(draw, kind.item_type, may_lack=may_lack))
    if draw.random() < 0.6:
        return kind
    if pa.types.is_integer(kind):
        return draw.choice(WHOLE)
    if pa.types.is_float64(kind):
        return draw.choice((pa.float32(), pa.int32()))
    return kind


def spelled(draw: random.Random, name: str) -> str:
    return name.upper() if draw.random() < 0.15 else name


def random_value(draw: random.Random, kind: pa.DataType) -> Any:
    if draw.random() < (0.4 if pa.types.is_struct(kind) else 0.2):
        return None
    if pa.types.is_struct(kind):
        return {item.name: random_value(draw, item.type) for item in kind}
    if pa.types.is_list(kind):
        return [random_value(draw, kind.value_type) for _ in range(draw.randint(0, 2))]
    if pa.types.is_map(kind):
        return [(k, random_value(draw, kind.item_type)) for k in "kl"[: draw.randint(0, 2)]]
    if pa.types.is_integer(kind):
        top = 2 ** (kind.bit_width - 1) - 1
        return draw.choice([0, 1, -1, 7, 100] if draw.random() < 0.9 else [top, -top - 1])
    if pa.types.is_floating(kind):
        return draw.choice([0.0, 1.5, -2.25])
    if pa.types.is_decimal(kind):
        return draw.choice([Decimal("0.00"), Decimal("1.25"), Decimal("-9999.99")])
    return draw.choice(_TEXTS[1:])


# Store assignment


def named(kind: pa.DataType, name: str) -> pa.Field | None:
    return next((item for item in kind if item.name.lower() == name.lower()), None)


def stored(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """A value of the source's type as a column of the target's type has it."""
    if pa.types.is_struct(target):
        if value is None:
            return None
        found = {}
        for item in target:
            given = named(source, item.name)
            inner = None if given is None else value[given.name]
            kind = item.type if given is None else given.type
            found[item.name] = stored(inner, kind, item.type)
        return found
    if value is None:
        return None
    if pa.types.is_list(target):
        kinds = (source.value_type, target.value_type)
        return [stored(each, *kinds) for each in value]
    if pa.types.is_map(target):
        kinds = (source.item_type, target.item_type)
        return [(key, stored(each, *kinds)) for key, each in value]
    if pa.types.is_integer(target):
        top = 2 ** (target.bit_width - 1)
        if not -top <= value < top:
            raise DoesNotFitError
    if pa.types.is_floating(target):
        return float(value)
    return value


def over(own: Any, given: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """What UPDATE SET * makes of a value: fields that the source lacks stay."""
    if not lacks(source, target):
        return stored(given, source, target)
    if own is None and given is None:
        return None
    found = {}
    for item in target:
        before, new = (None if own is None else own[item.name]), named(source, item.name)
        if new is None:
            found[item.name] = before
        else:
            value = None if given is None else given[new.name]
            found[item.name] = over(before, value, new.type, item.type)
    return found


def lacks(source: pa.DataType, target: pa.DataType) -> bool:
    if not (pa.types.is_struct(source) and pa.types.is_struct(target)):
        return False
    pairs = [(named(source, item.name), item) for item in target]
    return any(given is None or lacks(given.type, item.type) for given, item in pairs)


# The schema after a MERGE


def evolved(table: pa.DataType, source: pa.DataType, *, widens: bool) -> pa.DataType:
    if pa.types.is_struct(table) and pa.types.is_struct(source):
        kept = []
        for item in table:
            given = named(source, item.name)
            kind = item.type if given is None else evolved(item.type, given.type, widens=widens)
            kept.append((item.name, kind))
        added = [(item.name, item.type) for item in source if named(table, item.name) is None]
        return pa.struct([*kept, *added])
    if pa.types.is_list(table) and pa.types.is_list(source):
        return pa.list_(evolved(table.value_type, source.value_type, widens=widens))
    if pa.types.is_map(table) and pa.types.is_map(source):
        return pa.map_(pa.string(), evolved(table.item_type, source.item_type, widens=widens))
    is_wider = (table in _BITS and source in _BITS and _BITS[table] < _BITS[source]) or (
        table == pa.float32() and source == pa.float64()
    )
    return source if widens and is_wider else table


def along(kind: pa.DataType, paths: Sequence[tuple[str, ...]]) -> pa.DataType:
    """The fields at the ends of the paths, in structs without their other fields."""
    kept = []
    for item in kind:
        below = [path[1:] for path in paths if path and path[0].lower() == item.name.lower()]
        if () in below:
            kept.append((item.name, item.type))
        elif below and pa.types.is_struct(item.type):
            inner = along(item.type, below)
            kept += [(item.name, inner)] if inner.num_fields else []
    return pa.struct(kept)


def kind_at(kind: pa.DataType, path: Sequence[str]) -> pa.DataType:
    for name in path:
        kind = next(item.type for item in kind if item.name.lower() == name.lower())
    return kind


def value_at(row: Row | None, path: Sequence[str]) -> Any:
    value: Any = row
    for name in path:
        value = None if value is None else value[name]
    return value


def with_value(row: Row | None, kind: pa.DataType, path: Sequence[str], value: Any) -> Row:
    """A struct with a new value at a path; its other fields stay."""
    found: Row = {item.name: None if row is None else row[item.name] for item in kind}
    name = next(item.name for item in kind if item.name.lower() == path[0].lower())
    if len(path) == 1:
        found[name] = value
    else:
        found[name] = with_value(found[name], kind_at(kind, [name]), path[1:], value)
    return found
