"""Checks of new rules for a table, and of the existing rows, by Spark (spec 10.3)."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.commands.alter.default_values import invalid_default
from optimist.core.commands.alter.row_checks import (
    LocalRowChecks,
    RowChecks,
    existing_null,
    existing_violation,
    not_boolean,
)
from optimist.core.commands.row_rules import local_constraint
from optimist.core.errors import SchemaError
from optimist.core.schema.identity_columns import IdentityColumn
from optimist.core.schema.schema_edits import Path, path_text
from optimist.core.schema.types import StructField
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.checks import columns_read
from optimist.spark.commands.dml.driver_shortcut import can_be_read_for, readable_bytes
from optimist.spark.planes.planes import RowPlane, plane_of
from optimist.spark.rows.row_shape import column_of
from optimist.spark.spark_schema import to_spark_type
from optimist.spark.sql.table_sql import TableSql

__all__ = ["SparkRowChecks"]

_CHANGING_TEXTS = (
    "spark.sql.ansi.doubleQuotedIdentifiers",
    "spark.sql.parser.escapedStringLiterals",
)


class SparkRowChecks(RowChecks):
    """Checks by Spark, which also reads the rows unless the files are few and small.

    The driver reads rows only for rules that the engine can evaluate for every row.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._here = LocalRowChecks()

    @property
    def keeps_texts(self) -> bool:
        """See `RowChecks`."""
        found = (self._spark.conf.get(key, "false") or "" for key in _CHANGING_TEXTS)
        return any(text.lower() == "true" for text in found)

    def ensure_constraint_holds(self, txn: OptimisticTransaction, name: str, sql: str) -> None:
        """See `RowChecks`."""
        schema, plane = txn.snapshot.schema, plane_of(self._spark, txn.table)
        condition = self._table_sql(txn).constraint(name, sql)
        rows = _every_row(plane, txn)
        if not isinstance(rows.select(condition).schema.fields[0].dataType, st.BooleanType):
            raise not_boolean(name, sql)
        local = local_constraint(sql, schema)
        # What a function means may depend on the session, so the driver only compares.
        if self._reads_here(txn, plane) and local is not None and local.is_exact:
            self._here.ensure_constraint_holds(txn, name, sql)
            return
        values = _first_violation(txn, rows, condition, columns_read(sql, schema))
        if values is not None:
            raise existing_violation(name, sql, values)

    def ensure_no_null(self, txn: OptimisticTransaction, path: Path) -> None:
        """See `RowChecks`."""
        plane = plane_of(self._spark, txn.table)
        if self._reads_here(txn, plane):
            self._here.ensure_no_null(txn, path)
            return
        value = column_of(path[0])
        for name in path[1:]:
            value = value.getField(name)
        rows = _every_row(plane, txn)
        if _first_violation(txn, rows, value.isNotNull(), ()) is not None:
            raise existing_null(path)

    def ensure_default_fits(self, txn: OptimisticTransaction, item: StructField, sql: str) -> None:
        """See `RowChecks`."""
        given = StructField(item.name, item.data_type, metadata={"CURRENT_DEFAULT": sql})
        column = path_text((item.name,))
        try:
            value = self._table_sql(txn).default(given)
        except SchemaError as error:
            raise invalid_default(column, sql, str(error.args[0])) from None
        if not _fits_column(self._spark, value, item):
            raise invalid_default(column, sql, f"it does not become {item.data_type}")

    def farthest_number(self, txn: OptimisticTransaction, column: IdentityColumn) -> int | None:
        """See `RowChecks`."""
        plane = plane_of(self._spark, txn.table)
        if self._reads_here(txn, plane):
            return self._here.farthest_number(txn, column)
        txn.filter_files()
        farthest = sf.max if column.step > 0 else sf.min
        found = _every_row(plane, txn).agg(farthest(column_of(column.name))).first()
        return None if found is None or found[0] is None else int(found[0])

    def _table_sql(self, txn: OptimisticTransaction) -> TableSql:
        table = txn.table
        return TableSql(self._spark, table.table_path, txn.snapshot.schema, is_new=True)

    def _reads_here(self, txn: OptimisticTransaction, plane: RowPlane) -> bool:
        """Check whether this process reaches the files, and they are few and small."""
        max_bytes = readable_bytes(self._spark, txn.table, plane)
        return can_be_read_for(txn.snapshot, max_bytes)


def _fits_column(spark: SparkSession, value: Column, item: StructField) -> bool:
    """Check whether a constant has a value in the column's type, as Spark casts it."""
    target = to_spark_type(item.data_type)
    try:
        found = spark.range(1).select(value.isNull(), value.try_cast(target).isNull()).first()
    except AnalysisException:
        return False
    return found is not None and found[0] == found[1]


def _every_row(plane: RowPlane, txn: OptimisticTransaction) -> DataFrame:
    """Return the table's rows, where damaged or missing files are always errors."""
    return plane.scan_files(txn.snapshot, txn.snapshot.files)


def _first_violation(
    txn: OptimisticTransaction, rows: DataFrame, condition: Column, columns: tuple[str, ...]
) -> str | None:
    """Return JSON of a row for which a condition is not true, or None.

    From now on, the transaction depends on all rows.
    """
    txn.filter_files()
    shown = sf.lit("{}")
    if columns:
        struct = sf.struct(*map(column_of, columns))
        shown = sf.to_json(struct, {"ignoreNullFields": "false"})
    failing = rows.where(~sf.coalesce(condition, sf.lit(False)))
    first = failing.select(shown.alias("row")).take(1)
    return str(first[0][0]) if first else None
