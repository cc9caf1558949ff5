"""Values for columns that new rows lack, computed exactly without Spark (spec 10.4, 10.7).

1. A column with a default gets it.
2. An identity column gets numbers.
3. A generated column is computed from the others. If the rows have a value for it, the value is
   compared with the computed one.

An expression that only Spark can evaluate is refused, before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.row_rules import constraint_violated, values_at
from optimist.core.data.column_shape import find_name
from optimist.core.data.identity_numbers import with_identity_numbers
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions.moments import Moment
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.stored_values import Value, stored_as
from optimist.core.local.values import parse_value
from optimist.core.predicates.functions.zones import is_bare_name, names_times
from optimist.core.predicates.resolution import resolve_column
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.types import DECLARED_TYPE, PrimitiveType, StructField, StructType

__all__ = ["complete_rows", "with_defaults"]

_DEFAULT = "CURRENT_DEFAULT"
_TIMESTAMP, _TIMESTAMP_NTZ = PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz")
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


def complete_rows(
    rows: pa.Table,
    schema: StructType,
    given: Iterable[str],
    *,
    num_before: int = 0,
    moment: Moment | None = None,
) -> tuple[pa.Table, tuple[str, ...]]:
    """Fill in the columns that new rows lack.

    Args:
        rows: The rows, with exactly the table's columns.
        schema: The table's schema.
        given: The columns that the rows have, in any case.
        num_before: The number of rows of the same write that were completed before.
        moment: When the statement began; None leaves defaults such as `now()` to Spark.

    Raises:
        UsageError: Only Spark can compute a value (kind `OPTIMIST_NEEDS_SPARK`), or the rows have
            identity values that they may not have.
        SchemaError: A value does not fit its column, or a value of a generated column differs from
            the computed one (kind `DELTA_VIOLATE_CONSTRAINT_WITH_VALUES`).
    """
    names = [name for name in (find_name(schema.names, name) for name in given) if name]
    missing = [item for item in schema if item.name not in names]
    defaults = _default_values(missing, schema, moment)
    generated = {item.name: value for item in schema if (value := _generated_value(item, schema))}
    filled = _with_values(rows, defaults)
    numbered, numbered_names = with_identity_numbers(filled, schema, names, num_before=num_before)
    for name, value in generated.items():
        if name in names:
            _ensure_as_computed(numbered, schema, name, value)
    computed = {name: value for name, value in generated.items() if name not in names}
    return _with_values(numbered, computed), numbered_names


def with_defaults(assignments: LocalAssignments, moment: Moment | None = None) -> LocalAssignments:
    """Add the defaults of columns that an INSERT does not name.

    Args:
        assignments: The values of the others.
        moment: As for `complete_rows`.

    Raises:
        UsageError: Only Spark can compute a default (kind `OPTIMIST_NEEDS_SPARK`).
        SchemaError: A default does not fit its column.
    """
    schema = assignments.schema
    missing = (item for item in schema if item.name not in assignments.targets)
    values = dict(assignments.values)
    for name, value in _default_values(missing, schema, moment).items():
        values[(name,)] = value
    return replace(assignments, values=values)


def _default_values(
    columns: Iterable[StructField], schema: StructType, moment: Moment | None
) -> dict[str, Value]:
    return {
        item.name: _default_value(str(item.metadata[_DEFAULT]), item, schema, moment)
        for item in columns
        if _DEFAULT in item.metadata
    }


def _default_value(sql: str, item: StructField, schema: StructType, moment: Moment | None) -> Value:
    if moment is None or not moment.is_instant(sql):
        return _parse_column_sql(sql, item, schema, "default")
    return stored_as(parse_value(moment.fixed(sql, ()), schema), item.data_type, item.name)


def _generated_value(item: StructField, schema: StructType) -> Value | None:
    """Return the computation of a generated column, or None for another column."""
    sql = generation_expression(item)
    if sql is None:
        return None
    value = _parse_column_sql(sql, item, schema, "generation expression")
    read = [schema.find(path[0]) for path in value.columns]
    if any(column is not None and DECLARED_TYPE in column.metadata for column in (item, *read)):
        _refuse(item, sql, "generation expression")  # is a char padded before or after?
    return value


def _parse_column_sql(sql: str, item: StructField, schema: StructType, what: str) -> Value:
    parsed = parse_value(sql, schema)
    if item.data_type == _TIMESTAMP and not parsed.columns:
        _refuse(item, sql, what)  # the meaning of its text depends on the zone of Spark's session
    reads_times = any(_is_time(path, schema) for path in parsed.columns)
    if (reads_times or names_times(sql)) and not is_bare_name(sql):
        _refuse(item, sql, what)  # so does the day of a time
    return stored_as(parsed, item.data_type, item.name)


def _is_time(path: tuple[str, ...], schema: StructType) -> bool:
    column = resolve_column(path, schema)
    return column is not None and column.data_type in (_TIMESTAMP, _TIMESTAMP_NTZ)


def _with_values(rows: pa.Table, values: dict[str, Value]) -> pa.Table:
    seen = rows
    for name, value in values.items():
        index = rows.column_names.index(name)
        computed = value.compute(seen)
        column = computed if isinstance(computed, pa.ChunkedArray) else pa.chunked_array([computed])
        rows = rows.set_column(index, rows.schema.field(index), column)
    return rows


def _ensure_as_computed(rows: pa.Table, schema: StructType, name: str, value: Value) -> None:
    """Refuse rows whose value for a generated column differs from the computed one (spec 10.3)."""
    item = schema.find(name)
    sql = "" if item is None else generation_expression(item) or ""
    found, wanted = rows[name], value.compute(rows)
    if item is None or pa.types.is_nested(found.type):
        raise _needs_spark(name, sql, "generation expression")
    same: Any = pc.fill_null(pc.equal(found, wanted), False)
    same = pc.or_(same, pc.and_(pc.is_null(found), pc.is_null(wanted)))
    if item.data_type in _FLOATS:
        both = pc.and_(pc.is_nan(found), pc.is_nan(wanted))
        same = pc.or_(same, pc.fill_null(both, False))
    first = pc.index(same, False).as_py()
    if first >= 0:
        names = {name, *(path[0] for path in value.columns)}
        raise constraint_violated(name, f"`{name}` <=> {sql}", values_at(rows, first, names))


def _refuse(item: StructField, sql: str, what: str) -> NoReturn:
    raise _needs_spark(item.name, sql, what)


def _needs_spark(column: str, sql: str, what: str) -> UsageError:
    return UsageError(
        f"Only Spark can compute the {what} {quoted(sql)} of the column {shown(column)}. "
        f"{RUN_WITH_SPARK}",
        kind="OPTIMIST_NEEDS_SPARK",
        column=column,
    )
