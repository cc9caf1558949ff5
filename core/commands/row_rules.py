"""The rules of a table for its rows, as far as they need no Spark (spec 10.3).

These are NOT NULL, lengths of texts and CHECK constraints. A CHECK constraint is evaluated here
only if the answer is the same as Spark's for every row: what `core/predicates` and its table of
functions know for certain. Times are left to Spark, because the time zone of its
session decides what their texts mean.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.column_shape import value_at
from optimist.core.data.declared_text import with_declared_length
from optimist.core.data.parquet.partitioned_rows import without_empty_text
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import NOT_NULL_VIOLATED
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.functions.zones import holds_times, names_times
from optimist.core.predicates.resolution import (
    ensure_columns,
    find_bare_columns,
    resolve_column,
)
from optimist.core.predicates.tree import Literal, Opaque
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.types import GENERATION_EXPRESSION, PrimitiveType, StructField, StructType
from optimist.core.snapshot.row_filter import is_exact

__all__ = [
    "as_stored",
    "constraint_violated",
    "ensure_constraints_hold",
    "ensure_rows_can_be_checked",
    "ensure_rules_kept",
    "first_violation",
    "local_constraint",
    "values_at",
]

_DEFAULT = "CURRENT_DEFAULT"
_NEEDS_EXPRESSIONS = {
    "delta.invariants": "an invariant",
    GENERATION_EXPRESSION: "a generation expression",
    _DEFAULT: "a default value",
}
"""The keys of columns' metadata that hold SQL, and what an error calls it."""
_TIMES = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))


def ensure_rows_can_be_checked(
    metadata: Metadata,
    schema: StructType,
    given: StructType,
    *,
    evaluated: Collection[str] = frozenset(),
    in_session: bool = False,
) -> None:
    """Refuse a table that has rules in SQL which can't be evaluated without Spark.

    Args:
        metadata: The table's metadata.
        schema: The table's schema.
        given: The columns that the rows have; a default matters only for one that they lack.
        evaluated: The keys of columns' metadata whose SQL the caller evaluates itself; it does so
            for columns, not for fields of structs.
        in_session: Whether a session of Spark runs the command, whose confs may give functions
            another meaning; constraints may then only compare.

    Raises:
        UsageError: It has such a rule (kind `OPTIMIST_NEEDS_SPARK`).
    """
    constraints = TableMetadata.of(metadata).properties.constraints
    known = {name: local_constraint(sql, schema) for name, sql in constraints.items()}
    unknown = (name for name, item in known.items() if not _may_check(item, in_session=in_session))
    reason = next((f"the CHECK constraint {shown(name)}" for name in unknown), None)
    for path, item in _fields(schema):
        for key, what in _NEEDS_EXPRESSIONS.items():
            is_given = key == _DEFAULT and named_path(path, given) is not None
            is_evaluated = key in evaluated and len(path) == 1
            if key in item.metadata and not (is_given or is_evaluated):
                reason = f"{what} on the column {shown('.'.join(path))}"
    if reason is not None:
        raise UsageError(
            f"The table has {reason}, which only Spark can evaluate. Nothing was written. Use "
            "optimist.spark, which has the same commands.",
            kind="OPTIMIST_NEEDS_SPARK",
        )


def _may_check(constraint: Predicate | None, *, in_session: bool) -> bool:
    return constraint is not None and (constraint.is_exact or not in_session)


def as_stored(rows: pa.Table, schema: StructType, partition_columns: Sequence[str]) -> pa.Table:
    """Return the values as a reader will find them, with texts of their declared lengths.

    An empty text in a partition column becomes null here, before NOT NULL is checked.
    """
    columns = []
    for item, values in zip(schema, rows.columns, strict=True):
        fitted = with_declared_length(values, item)
        columns.append(without_empty_text(fitted) if item.name in partition_columns else fitted)
    return pa.table(columns, schema=rows.schema)


def ensure_rules_kept(rows: pa.Table, metadata: Metadata, schema: StructType) -> None:
    """Refuse rows that violate a NOT NULL or a CHECK constraint.

    Args:
        rows: The rows as they will be stored.
        metadata: The table's metadata, which `ensure_rows_can_be_checked` has passed.
        schema: The table's schema.

    Raises:
        SchemaError: See `_ensure_not_null` and `ensure_constraints_hold`.
    """
    _ensure_not_null(rows, schema)
    ensure_constraints_hold(rows, TableMetadata.of(metadata).properties.constraints, schema)


def local_constraint(sql: str, schema: StructType) -> Predicate | None:
    """Parse a constraint, or return None if only Spark can evaluate it for all rows.

    Args:
        sql: The constraint, as the table's log has it.
        schema: The table's schema.
    """
    try:
        predicate = find_bare_columns(Predicate.parse(sql), schema)
    except UsageError:
        return None
    columns = [resolve_column(path, schema) for path in predicate.columns()]
    types = [column.data_type for column in columns if column is not None]
    if len(types) < len(columns) or any(data_type in _TIMES for data_type in types):
        return None
    if any(literal.kind.startswith("timestamp") for literal in _find_literals(predicate)):
        return None
    computed = [node for node in predicate.walk() if isinstance(node, Opaque)]
    if computed and (any(map(holds_times, types)) or any(names_times(it.sql) for it in computed)):
        return None
    resolved = ensure_columns(predicate, schema)
    return resolved if is_exact(resolved, schema) else None


def ensure_constraints_hold(
    rows: pa.Table, constraints: Mapping[str, str], schema: StructType
) -> None:
    """Refuse rows for which a CHECK constraint is false or null.

    Args:
        rows: The rows, in the table's columns and types.
        constraints: The constraints by name; each is a `local_constraint`.
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
    """Find the first row for which a constraint is false or null.

    Args:
        rows: The rows, with at least the columns that the constraint reads.
        predicate: A `local_constraint`.

    Returns:
        The values of the columns that the constraint reads, as JSON; None if there is no such row.
    """
    holds = evaluate(predicate, rows)
    if holds is None:
        raise ValueError(f"the constraint {predicate} can't be evaluated here")
    first = pc.index(pc.fill_null(holds, False), False).as_py()
    if first < 0:
        return None
    return values_at(rows, first, {path[0] for path in predicate.columns()})


def values_at(rows: pa.Table, row: int, names: Collection[str]) -> str:
    """Return the values of some columns in one row, as JSON, for an error."""
    found = rows.select([item for item in rows.column_names if item in names]).slice(row, 1)
    values = found.to_pylist()[0] if names else {}
    return json.dumps(values, ensure_ascii=False, default=str, separators=(",", ":"))


def constraint_violated(
    name: str, sql: str, values: str, *, kind: str = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
) -> SchemaError:
    """Return the error for a row that breaks a rule.

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


def _ensure_not_null(rows: pa.Table, schema: StructType) -> None:
    """Refuse nulls in NOT NULL columns and fields of structs, but not inside arrays and maps.

    A struct that is null violates the NOT NULL of its fields.
    """
    for path, item in _fields(schema):
        if item.nullable:
            continue
        values = value_at(rows, path)
        if values.null_count:
            raise SchemaError(
                f"NOT NULL constraint violated for column: {shown('.'.join(path))}. The data has "
                f"{values.null_count} null values there. Nothing was written. Fill them.",
                kind=NOT_NULL_VIOLATED,
                column=".".join(path),
            )


def _fields(
    schema: StructType, parents: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Yield the columns and the fields of structs with their paths, but none in arrays or maps."""
    for item in schema:
        path = (*parents, item.name)
        yield path, item
        if isinstance(item.data_type, StructType):
            yield from _fields(item.data_type, path)


def _find_literals(node: object) -> Iterator[Literal]:
    if isinstance(node, Literal):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _find_literals(part)
    elif is_dataclass(node):
        for item in fields(node):
            yield from _find_literals(getattr(node, item.name))
