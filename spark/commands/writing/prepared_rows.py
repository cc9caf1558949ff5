"""Rows as a table stores them: in its columns and types, numbered, and checked (spec 10.3)."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from optimist.spark.commands.checks import RowCheck, checked_rows
from optimist.spark.commands.writing.data_writer import DataWriter
from optimist.spark.rows.identity_values import with_identity_values
from optimist.spark.rows.row_shape import shape_rows

__all__ = ["prepared_rows"]


def prepared_rows(
    df: DataFrame, writer: DataWriter, missing: Collection[str], more: tuple[RowCheck, ...] = ()
) -> DataFrame:
    """Return the rows as they will be written, with every check on them.

    Args:
        df: The data.
        writer: The writer of the rows.
        missing: The identity columns whose numbers the rows get.
        more: Checks besides those of the table.
    """
    sql = writer.table_sql(df.sparkSession)
    shaped = shape_rows(df, sql)
    rows = with_identity_values(shaped, sql, dict.fromkeys(missing, sf.lit(True)))
    return checked_rows(rows, sql, writer.txn.metadata, more)
