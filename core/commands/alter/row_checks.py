"""Checks of a table's rows before a new rule for them goes into its log.

Some rules can be checked by Spark only, so ALTER TABLE calls a `RowChecks`. `LocalRowChecks` reads
the rows in this process, and refuses rules that it can't check exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.alter.default_values import ensure_value_of
from optimist.core.commands.row_rules import first_violation, local_constraint
from optimist.core.data.column_shape import value_at
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.schema.column_paths import type_of_column
from optimist.core.schema.identity_columns import IdentityColumn
from optimist.core.schema.schema_edits import Path, path_text
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from optimist.core.snapshot.local_scan import read_rows
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = [
    "LocalRowChecks",
    "RowChecks",
    "existing_null",
    "existing_violation",
    "not_boolean",
]


class RowChecks(ABC):
    """Checks rules for rows, and the existing rows of a table.

    Each check makes the transaction depend on all rows: a row that another commit adds meanwhile is
    a conflict.
    """

    @property
    def keeps_texts(self) -> bool:
        """Whether quotes in SQL may mean something else here than for other readers."""
        return False

    @abstractmethod
    def ensure_constraint_holds(self, txn: OptimisticTransaction, name: str, sql: str) -> None:
        """Refuse a CHECK constraint that is not a rule for rows, or that a row violates.

        Raises:
            SchemaError: A row violates it (kind `DELTA_NEW_CHECK_CONSTRAINT_VIOLATION`; fields
                `constraint`, `expression`, `values`); or it is not boolean
                (`DELTA_NON_BOOLEAN_CHECK_CONSTRAINT`); or it is not an expression over the table's
                columns.
            UsageError: Only Spark can check it (kind `OPTIMIST_NEEDS_SPARK`).
        """

    @abstractmethod
    def ensure_no_null(self, txn: OptimisticTransaction, path: Path) -> None:
        """Refuse NOT NULL for a column, or a field of structs, if a row has no value in it.

        Raises:
            SchemaError: A row has no value (kind `DELTA_NEW_NOT_NULL_VIOLATION`, field `column`).
        """

    @abstractmethod
    def ensure_default_fits(self, txn: OptimisticTransaction, item: StructField, sql: str) -> None:
        """Refuse a default that is not a constant, or not a value of the column.

        Raises:
            SchemaError: The default is refused (kind `INVALID_DEFAULT_VALUE`).
        """

    @abstractmethod
    def farthest_number(self, txn: OptimisticTransaction, column: IdentityColumn) -> int | None:
        """Find the row's number that is farthest from the start of an identity column's sequence.

        Returns:
            The number, or None if no row has one.
        """


class LocalRowChecks(RowChecks):
    """Reads the rows in this process, and only the columns that the rule needs."""

    def ensure_constraint_holds(self, txn: OptimisticTransaction, name: str, sql: str) -> None:
        """Check the rows (see `RowChecks`)."""
        schema = txn.snapshot.schema
        _ensure_not_of_another_type(name, sql, schema)
        predicate = local_constraint(sql, schema)
        if predicate is None:
            raise UsageError(
                f"The CHECK constraint {shown(name)} ({quoted(sql)}) can be evaluated only by "
                "Spark. Nothing was written. Add it with DeltaTable.alter of optimist.spark.",
                kind="OPTIMIST_NEEDS_SPARK",
                part=sql,
            )
        names = {path[0] for path in predicate.columns()}
        read = StructType(tuple(item for item in schema if item.name in names))
        for batch in _all_rows(txn, read or StructType(schema.fields[:1])):
            values = first_violation(batch, predicate)
            if values is not None:
                raise existing_violation(name, sql, values)

    def ensure_no_null(self, txn: OptimisticTransaction, path: Path) -> None:
        """Check the rows (see `RowChecks`)."""
        top = txn.snapshot.schema.find(path[0])
        for batch in _all_rows(txn, StructType(() if top is None else (top,))):
            values = value_at(batch, path)
            if values.null_count:
                raise existing_null(path)

    def ensure_default_fits(self, txn: OptimisticTransaction, item: StructField, sql: str) -> None:
        """Check the default (see `RowChecks`)."""
        del txn  # the text is enough
        ensure_value_of(path_text((item.name,)), sql, item)

    def farthest_number(self, txn: OptimisticTransaction, column: IdentityColumn) -> int | None:
        """Read the numbers (see `RowChecks`)."""
        item = txn.snapshot.schema.find(column.name)
        is_rising = column.step > 0
        found = []
        for batch in _all_rows(txn, StructType(() if item is None else (item,))):
            ends = pc.min_max(batch[column.name])
            found.append(ends["max" if is_rising else "min"].as_py())
        numbers: list[int] = [number for number in found if number is not None]
        if not numbers:
            return None
        return max(numbers) if is_rising else min(numbers)


def not_boolean(name: str, sql: str) -> SchemaError:
    """Return the error for a constraint whose value is not a boolean or null."""
    return SchemaError(
        f"The CHECK constraint {shown(name)} ({quoted(sql)}) is not a boolean expression. Nothing "
        "was written. Compare its value with something.",
        kind="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
        constraint=name,
        expression=sql,
    )


def existing_violation(name: str, sql: str, values: str) -> SchemaError:
    """Return the error for a row that violates a new constraint.

    Args:
        name: The constraint's name.
        sql: The rule.
        values: The row's values in the columns that the rule reads, as JSON.
    """
    return SchemaError(
        f"The CHECK constraint {shown(name)} ({shown(sql)}) can't be added, because a row of the "
        f"table violates it: {shown(values)}. Nothing was written. Correct or delete such rows "
        "first.",
        kind="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        constraint=name,
        expression=sql,
        values=values,
    )


def existing_null(path: Path) -> SchemaError:
    """Return the error for a row without a value in a column that becomes NOT NULL."""
    column = path_text(path)
    return SchemaError(
        f"The column {shown(column)} can't be set to NOT NULL, because a row of the table has no "
        "value there. Nothing was written. Fill the nulls first.",
        kind="DELTA_NEW_NOT_NULL_VIOLATION",
        column=column,
    )


def _ensure_not_of_another_type(name: str, sql: str, schema: StructType) -> None:
    """Refuse a bare column that is not boolean."""
    try:
        found = type_of_column(parse_column_path(sql), schema)
    except UsageError:
        return
    if found not in (None, PrimitiveType("boolean")):
        raise not_boolean(name, sql)


def _all_rows(txn: OptimisticTransaction, columns: StructType) -> Any:
    txn.filter_files()
    access = txn.table.data_access()
    batches = read_rows(txn.snapshot, columns, access=access)
    return (pa.Table.from_batches([batch]) for batch in batches)
