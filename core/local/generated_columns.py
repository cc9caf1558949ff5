"""Generated columns without Spark: new rows get the values that their expressions give (spec 10.4).

An expression that only Spark can evaluate is refused, before anything is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.row_rules import constraint_violated, values_at
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions.moments import Moment
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.stored_values import Value, stored_as
from optimist.core.local.values import parse_value
from optimist.core.predicates.functions.zones import holds_times, is_bare_name, names_times
from optimist.core.predicates.resolution import resolve_column
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.types import DECLARED_TYPE, PrimitiveType, StructField, StructType

__all__ = ["GeneratedColumns", "parse_column_sql", "with_values"]

_TIMESTAMP = PrimitiveType("timestamp")
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


@dataclass(frozen=True, slots=True)
class GeneratedColumns:
    """The generated columns of a table.

    Attributes:
        schema: The table's schema.
        values: The computation of each column, by its name.
    """

    schema: StructType
    values: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: StructType, moment: Moment | None = None) -> GeneratedColumns:
        """Resolve the expressions of a table.

        Args:
            schema: The table's schema.
            moment: When the statement began; if it names no zone, expressions of times are left to
                Spark, whose sessions have one.

        Raises:
            UsageError: Only Spark can compute one (kind `OPTIMIST_NEEDS_SPARK`).
        """
        zone = None if moment is None else moment.zone_name
        found = {item.name: _generated_value(item, schema, zone) for item in schema}
        return cls(schema, {name: value for name, value in found.items() if value is not None})

    def completed(self, rows: pa.Table, given: Collection[str]) -> pa.Table:
        """Return rows with the computed values, and check those that the rows bring.

        Args:
            rows: The rows, with the table's columns.
            given: The columns whose values the rows bring.

        Raises:
            SchemaError: A value does not fit its column, or differs from the computed one (kind
                `DELTA_VIOLATE_CONSTRAINT_WITH_VALUES`).
        """
        for name, value in self.values.items():
            if name in given:
                _ensure_as_computed(rows, self.schema, name, value)
        computed = {name: value for name, value in self.values.items() if name not in given}
        return with_values(rows, computed)


def parse_column_sql(
    sql: str, item: StructField, schema: StructType, what: str, *, zone: str | None = None
) -> Value:
    """Parse the SQL of a column, as far as its value depends on no session, or on the given zone.

    Args:
        sql: The SQL.
        item: The column.
        schema: The columns that it may name.
        what: What the SQL is, for errors.
        zone: The time zone of the session; None leaves times to Spark.

    Raises:
        UsageError: Only Spark can compute it (kind `OPTIMIST_NEEDS_SPARK`).
        SchemaError: It is a constant that does not fit the column.
    """
    if zone is not None:
        return stored_as(parse_value(sql, schema, zone=zone), item.data_type, item.name, zone)
    parsed = parse_value(sql, schema)
    if item.data_type == _TIMESTAMP and not parsed.columns:
        _refuse(item, sql, what)  # the meaning of its text depends on the zone of Spark's session
    reads_times = any(_reads_times(path, schema) for path in parsed.columns)
    if (reads_times or names_times(sql)) and not is_bare_name(sql):
        _refuse(item, sql, what)  # so does the day of a time
    return stored_as(parsed, item.data_type, item.name)


def _reads_times(path: tuple[str, ...], schema: StructType) -> bool:
    column = resolve_column(path, schema)
    return column is not None and holds_times(column.data_type)


def with_values(rows: pa.Table, values: Mapping[str, Value]) -> pa.Table:
    """Return the rows with computed values in some columns, all computed from the rows as given."""
    seen = rows
    for name, value in values.items():
        index = rows.column_names.index(name)
        computed = value.compute(seen)
        column = computed if isinstance(computed, pa.ChunkedArray) else pa.chunked_array([computed])
        rows = rows.set_column(index, rows.schema.field(index), column)
    return rows


def _generated_value(item: StructField, schema: StructType, zone: str | None) -> Value | None:
    """Return the computation of a generated column, or None for another column."""
    sql = generation_expression(item)
    if sql is None:
        return None
    value = parse_column_sql(sql, item, schema, "generation expression", zone=zone)
    read = [schema.find(path[0]) for path in value.columns]
    if any(column is not None and DECLARED_TYPE in column.metadata for column in (item, *read)):
        _refuse(item, sql, "generation expression")  # is a char padded before or after?
    return value


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
