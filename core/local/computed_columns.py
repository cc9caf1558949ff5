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

import pyarrow as pa

from optimist.core.data.column_shape import find_name
from optimist.core.data.identity_numbers import with_identity_numbers
from optimist.core.expressions.moments import Moment
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.generated_columns import GeneratedColumns, parse_column_sql, with_values
from optimist.core.local.stored_values import Value, stored_as
from optimist.core.local.values import parse_value
from optimist.core.schema.types import StructField, StructType

__all__ = ["complete_rows", "with_defaults"]

_DEFAULT = "CURRENT_DEFAULT"


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
    generated = GeneratedColumns.of(schema, moment)
    filled = with_values(rows, defaults)
    numbered, numbered_names = with_identity_numbers(filled, schema, names, num_before=num_before)
    return generated.completed(numbered, names), numbered_names


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
        zone = None if moment is None else moment.zone_name
        return parse_column_sql(sql, item, schema, "default", zone=zone)
    return stored_as(parse_value(moment.fixed(sql, ()), schema), item.data_type, item.name)
