"""CHECK constraints of a table, as far as they need no Spark (spec 10.3).

A constraint is evaluated here only where the answer is Spark's own for every row: comparisons of
columns with constants, and what else `core/predicates` knows for certain. Times are left to Spark,
because what their texts mean depends on the time zone of its session.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.resolution import ensure_columns, resolve_column
from optimist.core.predicates.tree import Literal
from optimist.core.schema.types import PrimitiveType, StructType
from optimist.core.snapshot.row_filter import is_exact

__all__ = [
    "constraint_violated",
    "ensure_constraints_hold",
    "first_violation",
    "local_constraint",
    "values_at",
]

_TIMES = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))


def local_constraint(sql: str, schema: StructType) -> Predicate | None:
    """A constraint that can be evaluated here for any rows; None for one that needs Spark.

    Args:
        sql: Its text, as the table's log has it.
        schema: The table's schema.
    """
    try:
        predicate = Predicate.parse(sql)
    except UsageError:
        return None
    columns = [resolve_column(path, schema) for path in predicate.columns()]
    types = [column.data_type for column in columns if column is not None]
    if len(types) < len(columns) or any(data_type in _TIMES for data_type in types):
        return None
    if any(literal.kind.startswith("timestamp") for literal in _literals(predicate)):
        return None
    resolved = ensure_columns(predicate, schema)
    return resolved if is_exact(resolved, schema) else None


def ensure_constraints_hold(
    rows: pa.Table, constraints: Mapping[str, str], schema: StructType
) -> None:
    """Refuse rows for which a CHECK constraint is false or null.

    Args:
        rows: The rows, in the table's columns and types.
        constraints: Names and texts, each a `local_constraint`.
        schema: The table's schema.

    Raises:
        SchemaError: A row violates a constraint (kind `DELTA_VIOLATE_CONSTRAINT_WITH_VALUES`,
            fields `constraint`, `expression`, `values`).
    """
    for name, sql in constraints.items():
        predicate = local_constraint(sql, schema)
        if predicate is None:
            raise ValueError(f"the constraint {name} can't be evaluated here")
        values = first_violation(rows, predicate)
        if values is not None:
            raise constraint_violated(name, sql, values)


def first_violation(rows: pa.Table, predicate: Predicate) -> str | None:
    """The first row for which a constraint is false or null; None if it is true for all.

    Args:
        rows: The rows, with the columns that the constraint reads, and perhaps others.
        predicate: A `local_constraint`.

    Returns:
        The values of the columns that the constraint reads, as JSON.
    """
    holds = evaluate(predicate, rows)
    if holds is None:
        raise ValueError(f"the constraint {predicate} can't be evaluated here")
    first = pc.index(pc.fill_null(holds, False), False).as_py()
    if first < 0:
        return None
    return values_at(rows, first, {path[0] for path in predicate.columns()})


def values_at(rows: pa.Table, place: int, names: Collection[str]) -> str:
    """The values of some columns in one row, as JSON, for an error."""
    row = rows.select([item for item in rows.column_names if item in names]).slice(place, 1)
    values = row.to_pylist()[0] if names else {}
    return json.dumps(values, ensure_ascii=False, default=str, separators=(",", ":"))


def constraint_violated(
    name: str, sql: str, values: str, *, kind: str = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
) -> SchemaError:
    """The error for a row that breaks a rule.

    Args:
        name: The constraint's or the column's name.
        sql: The rule.
        values: The values of the columns that it reads, as JSON.
        kind: The kind of the error.
    """
    return SchemaError(
        f"A row violates the constraint {shown(name)} ({shown(sql)}): {shown(values)}. Nothing was "
        "committed. Correct the data, or leave such rows out.",
        kind=kind,
        constraint=name,
        expression=sql,
        values=values,
    )


def _literals(node: object) -> Iterator[Literal]:
    if isinstance(node, Literal):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _literals(part)
    elif is_dataclass(node):
        for item in fields(node):
            yield from _literals(getattr(node, item.name))
