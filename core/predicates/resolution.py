"""Resolution of a predicate's names to the columns of a schema (spec 10.1, 10.8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.expressions.bare_columns import with_bare_columns
from optimist.core.predicates.text import quote_path
from optimist.core.predicates.tree import (
    And,
    CastComparison,
    Column,
    Comparison,
    In,
    IsNull,
    IsTrue,
    Like,
    Not,
    NullSafeEqual,
    Opaque,
    Operand,
    Or,
    Predicate,
    StartsWith,
)
from optimist.core.schema.type_widening import has_been
from optimist.core.schema.types import (
    COLLATIONS,
    DECLARED_TYPE,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    holds_type,
)

__all__ = [
    "ResolvedColumn",
    "SplitPredicate",
    "column_not_found",
    "ensure_columns",
    "find_bare_columns",
    "is_specially_ordered",
    "is_unknown",
    "map_columns",
    "map_leaves",
    "resolve_column",
    "split_conjuncts",
]

_STRING = PrimitiveType("string")
_CHAR = re.compile(r"\bchar\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResolvedColumn:
    """A column that a predicate names, in the schema's terms.

    Attributes:
        path: The logical names, in the schema's spelling.
        physical_path: The names in statistics, partition values and data files.
        data_type: Its type.
        has_plain_order: Whether values compare byte by byte. False for text with a collation, and
            for `char(n)`, also within arrays, maps and structs, because Spark pads the values that
            it compares with.
        was_float: Whether files may hold values from a time when the column was a float.
    """

    path: tuple[str, ...]
    physical_path: tuple[str, ...]
    data_type: DataType
    has_plain_order: bool = True
    was_float: bool = False


@dataclass(frozen=True, slots=True)
class SplitPredicate:
    """A conjunction split in two (spec 1.3). An empty part means TRUE.

    Attributes:
        partition: The conjuncts that name only partition columns.
        data: All others, including those that name both kinds of columns, or none.
    """

    partition: tuple[Predicate, ...] = ()
    data: tuple[Predicate, ...] = ()


def split_conjuncts(predicate: Predicate, partition_columns: Sequence[str]) -> SplitPredicate:
    """Split a predicate by the partition columns' logical names, in any case (spec 1.3, 9.4)."""
    known = {name.lower() for name in partition_columns}
    partition: list[Predicate] = []
    data: list[Predicate] = []
    for conjunct in predicate.conjuncts():
        columns = conjunct.columns()
        is_partition = bool(columns) and all(
            len(path) == 1 and path[0].lower() in known for path in columns
        )
        (partition if is_partition else data).append(conjunct)
    return SplitPredicate(tuple(partition), tuple(data))


def resolve_column(path: tuple[str, ...], schema: StructType) -> ResolvedColumn | None:
    """Return the column or struct field that a path names, or None.

    The first name is a column's. A caller that knows the table by an alias removes the alias first.
    """
    return _descend(path, schema)


def is_unknown(path: tuple[str, ...], schema: StructType) -> bool:
    """Return whether a path certainly names nothing: a column, or a field of a struct.

    What stands behind the name of a map or an array may be a key or an index.
    """
    level: DataType = schema
    for name in path:
        if not isinstance(level, StructType):
            return False
        field = level.find(name)
        if field is None:
            return True
        level = field.data_type
    return False


def ensure_columns(predicate: Predicate, schema: StructType) -> Predicate:
    """Return the same predicate with its columns in the schema's spelling.

    Raises:
        SchemaError: The predicate names a column that the table does not have (kind
            `DELTA_COLUMN_NOT_FOUND`; fields `column`, `candidates`, and `near` for similar names).
    """
    predicate = find_bare_columns(predicate, schema)
    for path in sorted(predicate.columns()):
        if resolve_column(path, schema) is None:
            raise column_not_found(path, schema, f"The predicate {quoted(predicate)} names it")
    return map_leaves(
        predicate, lambda leaf: map_columns(leaf, lambda column: _respell(column, schema))
    )


def find_bare_columns(predicate: Predicate, schema: StructType) -> Predicate:
    """Return the same predicate, in which `current_date` and its like are columns if there are any.

    The text alone does not tell whether such a name is a column or a function.
    """
    return map_leaves(predicate, lambda leaf: _with_bare_columns(leaf, schema))


def _with_bare_columns(leaf: Predicate, schema: StructType) -> Predicate:
    if not isinstance(leaf, Opaque) or not leaf.is_own_text:
        return leaf
    found = with_bare_columns(leaf.sql, schema.names)
    return leaf if found == leaf.sql else Predicate.parse(found)


def column_not_found(path: tuple[str, ...], schema: StructType, source: str) -> SchemaError:
    """Return the error for a name that no column has, with similar names.

    Args:
        path: The names.
        schema: The existing columns.
        source: A sentence, without its end, that says where the name comes from.
    """
    near = _near_names(path, schema)
    remedy = f"Did you mean {listed(near)}?" if near else f"Its columns are {listed(schema.names)}."
    return SchemaError(
        f"The table has no column {shown(quote_path(path))}. {source}. Nothing was done. {remedy}",
        kind="DELTA_COLUMN_NOT_FOUND",
        column=quote_path(path),
        candidates=schema.names,
        near=near,
    )


def _near_names(path: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """Return the columns and struct fields with similar names, the most similar first."""
    known = {".".join(names).lower(): quote_path(names) for names in _walk_paths(schema)}
    wanted = ".".join(path).lower()
    # Without its first name, which may be an unknown alias, the path may be a column.
    bare = [".".join(path[1:]).lower()] if len(path) > 1 else []
    below = [name for name in known if name.endswith("." + wanted)][:3]
    found = [*(name for name in bare if name in known), *get_close_matches(wanted, known, 3, 0.7)]
    found += below  # fields of that name, and columns that need an alias
    return tuple(dict.fromkeys(known[name] for name in found))


def _walk_paths(struct: StructType, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for item in struct:
        path = (*above, item.name)
        yield path
        if isinstance(item.data_type, StructType):
            yield from _walk_paths(item.data_type, path)


def _descend(path: tuple[str, ...], schema: StructType) -> ResolvedColumn | None:
    fields: list[StructField] = []
    level: DataType = schema
    for name in path:
        field = level.find(name) if isinstance(level, StructType) else None
        if field is None:
            return None
        fields.append(field)
        level = field.data_type
    return ResolvedColumn(
        tuple(field.name for field in fields),
        tuple(field.physical_name for field in fields),
        level,
        not (
            any(map(_is_collated, fields))
            or (any(map(_holds_char, fields)) and holds_type(level, _STRING))
        ),
        has_been(fields[-1], "float"),
    )


def is_specially_ordered(field: StructField) -> bool:
    """Tell whether texts of a column or a field, or within it, may not compare byte by byte."""
    return _is_collated(field) or _holds_char(field)


def _is_collated(field: StructField) -> bool:
    return bool(field.metadata.get(COLLATIONS))


def _holds_char(field: StructField) -> bool:
    """Tell whether a column is declared as `char(n)`, or as a type that has it somewhere within."""
    return _CHAR.search(str(field.metadata.get(DECLARED_TYPE, ""))) is not None


def _respell(column: Column, schema: StructType) -> Column:
    resolved = resolve_column(column.path, schema)
    return column if resolved is None else Column(resolved.path)


def map_leaves(predicate: Predicate, change: Callable[[Predicate], Predicate]) -> Predicate:
    """Apply `change` to the leaves of a predicate, and keep the connectives around them."""
    if isinstance(predicate, (And, Or)):
        return replace(predicate, parts=tuple(map_leaves(part, change) for part in predicate.parts))
    if isinstance(predicate, (Not, IsTrue)):
        return replace(predicate, child=map_leaves(predicate.child, change))
    return change(predicate)


def map_columns(leaf: Predicate, change: Callable[[Column], Column]) -> Predicate:
    """Apply `change` to the columns of a leaf. An opaque leaf is SQL text and stays the same."""
    if isinstance(leaf, (Comparison, NullSafeEqual)):
        right: Operand = leaf.right
        right = change(right) if isinstance(right, Column) else right
        return replace(leaf, left=change(leaf.left), right=right)
    if isinstance(leaf, (CastComparison, IsNull, In, StartsWith, Like)):
        return replace(leaf, column=change(leaf.column))
    return leaf
