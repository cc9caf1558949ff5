"""INSERT of rows that the statement itself holds, or that its caller gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from optimist.core.data.partition_values import (
    partition_schema,
    serialize_partition_values,
    value_for_text,
)
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.local.stored_values import stored_as
from optimist.core.local.values import parse_value
from optimist.core.local.write import write
from optimist.core.local.write_request import LocalWrite
from optimist.core.predicates import Predicate
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import StructField, StructType
from optimist.core.skipping.partition_predicate import partition_predicate
from optimist.core.snapshot import Snapshot
from optimist.core.sql.spark_statements.inserts import rows_of_values
from optimist.core.sql.spark_statements.table_statements import Insert
from optimist.core.sql.statements import SqlText
from optimist.core.statements.context import OpenTable, StatementContext, needs_spark
from optimist.core.statements.result_rows import NO_ROWS

__all__ = ["ensure_insertable", "insert", "partition_values"]

_NO_COLUMNS = StructType()
_ONE_ROW = pa.table({"row": [0]})


def insert(context: StatementContext, log: OpenTable, statement: Insert) -> pa.Table:
    """Run INSERT INTO, OVERWRITE or REPLACE WHERE of VALUES.

    Raises:
        UsageError: The rows are those of another query (kind `OPTIMIST_NEEDS_SPARK`).
        SchemaError: The rows do not fit the table; nothing was written.
    """
    _ensure_here(statement)
    rows = rows_of_values(statement.query.sql)
    if rows is None:
        raise needs_spark("INSERT of a query", "Or write the rows with DeltaLog.write.")
    snapshot = log.snapshot()
    given = partition_values(statement, snapshot)
    columns = _columns(statement, snapshot, given)
    whole = [(*row, *given.values()) for row in rows]
    zone = context.zone_of(log)
    new_rows = _table(whole, columns, str(statement.table), zone)
    request = LocalWrite(
        "overwrite" if statement.is_overwrite else "append",
        _replaced(statement, given, snapshot, zone),
    )
    write(log.start_transaction(snapshot), new_rows.to_reader(), request)
    return NO_ROWS


def _replaced(
    statement: Insert, given: Mapping[str, SqlText], snapshot: Snapshot, zone: str
) -> str | Predicate | None:
    """Return the condition of the rows that are replaced, or None if the mode says it."""
    if statement.replace_where is not None:
        return statement.replace_where.sql
    if not statement.is_overwrite or not given:
        return None
    fields = partition_schema(snapshot.schema, tuple(given))
    values = {
        item.name: value_for_text(_array([given[item.name]], item, zone)[0]) for item in fields
    }
    return partition_predicate(fields, serialize_partition_values(values, fields).values())


def _ensure_here(statement: Insert) -> None:
    if statement.is_by_name:
        raise needs_spark("INSERT ... BY NAME", "Or name the columns behind the table.")
    if statement.evolves_schema:
        raise needs_spark("INSERT WITH SCHEMA EVOLUTION", "Or add the columns first.")


def partition_values(statement: Insert, snapshot: Snapshot) -> Mapping[str, SqlText]:
    """Return the values that PARTITION gives, by the table's names of the columns.

    Raises:
        SchemaError: It names another column (kind `DELTA_PARTITION_COLUMN_NOT_FOUND`).
        UsageError: It names one twice (kind `DELTA_DUPLICATE_COLUMNS_ON_INSERT`).
    """
    names = tuple(name for name, _ in statement.partition)
    own = {name.lower(): name for name in snapshot.metadata.partition_columns}
    unknown = [name for name in names if name.lower() not in own]
    if unknown:
        raise SchemaError(
            f"{listed(unknown)} is not a partition column of the table. Nothing was written. Its "
            f"partition columns are: {listed(own.values()) or 'none'}.",
            kind="DELTA_PARTITION_COLUMN_NOT_FOUND",
            column=unknown[0],
        )
    ensure_insertable(names, snapshot.schema, str(statement.table))
    return {own[name.lower()]: value for name, value in statement.partition if value is not None}


def _columns(
    statement: Insert, snapshot: Snapshot, given: Mapping[str, SqlText]
) -> tuple[StructField, ...]:
    """Return the columns of the rows, in their order, those of PARTITION last."""
    schema = snapshot.schema
    fixed = {name.lower() for name in given}
    names = statement.columns or tuple(name for name in schema.names if name.lower() not in fixed)
    wanted = (*names, *given)
    ensure_insertable(wanted, schema, str(statement.table))
    found = (schema.find(name) for name in wanted)
    return tuple(item for item in found if item is not None)


def ensure_insertable(
    columns: Sequence[str], schema: StructType, name: str, *, may_add: bool = False
) -> None:
    """Refuse a list of columns with one that the table lacks, or with one that stands twice.

    Args:
        columns: The columns that an INSERT names.
        schema: The columns of the table.
        name: The name of the table, for messages.
        may_add: Whether the table gets the columns that it lacks.

    Raises:
        SchemaError: The table lacks a column (kind `DELTA_COLUMN_NOT_FOUND`).
        UsageError: A column stands twice (kind `DELTA_DUPLICATE_COLUMNS_ON_INSERT`).
    """
    unknown = [column for column in columns if schema.find(column) is None]
    if unknown and not may_add:
        raise SchemaError(
            f"The rows can't be inserted into {shown(name)}: the table has no column "
            f"{listed(unknown)}. Nothing was written. Its columns are {listed(schema.names)}.",
            kind="DELTA_COLUMN_NOT_FOUND",
            column=unknown[0],
        )
    if len({column.lower() for column in columns}) < len(columns):
        raise UsageError(
            f"A column stands twice in the list {listed(columns)}. Nothing was written. Name each "
            "once.",
            kind="DELTA_DUPLICATE_COLUMNS_ON_INSERT",
        )


def _table(
    rows: Sequence[Sequence[SqlText]], columns: tuple[StructField, ...], name: str, zone: str
) -> pa.Table:
    for row in rows:
        if len(row) != len(columns):
            raise SchemaError(
                f"The rows can't be inserted into {shown(name)}: {len(columns)} values are "
                f"expected, but a row has {len(row)}. Nothing was written. Give one for each "
                "column.",
                kind="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
                expected=len(columns),
                given=len(row),
            )
    left = _left_to_default(rows, len(columns))
    kept = [at for at in range(len(columns)) if at not in left]
    schema = to_arrow_schema(StructType(tuple(columns[at] for at in kept)))
    arrays = [_array([row[at] for row in rows], columns[at], zone) for at in kept]
    return pa.table(arrays, schema=schema)


def _left_to_default(rows: Sequence[Sequence[SqlText]], count: int) -> set[int]:
    """Return the columns for which every row says DEFAULT."""
    said = [[value.sql.upper() == "DEFAULT" for value in row] for row in rows]
    left = {at for at in range(count) if all(row[at] for row in said)}
    if any(row[at] for row in said for at in range(count) if at not in left):
        raise needs_spark(
            "DEFAULT in some rows of a column", "Or insert those rows by a statement of their own."
        )
    return left


def _array(values: Sequence[SqlText], column: StructField, zone: str) -> pa.ChunkedArray:
    parts = []
    for value in values:
        parsed = parse_value(value.sql, _NO_COLUMNS, zone=zone)
        made = stored_as(parsed, column.data_type, column.name, zone).compute(_ONE_ROW)
        parts.append(made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made)
    return pa.chunked_array(parts)
