"""SHOW CREATE TABLE: the statement that makes a table like one that is there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from optimist.core.commands.existing_definition import definition_of
from optimist.core.snapshot import Snapshot
from optimist.spark.commands.names import CatalogTable
from optimist.spark.commands.table_statement import create_statement
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.rows.local_rows import local_frame

__all__ = ["show_statement"]

_SCHEMA = StructType([StructField("createtab_stmt", StringType(), False)])


def show_statement(
    spark: SparkSession, snapshot: Snapshot, name: str, entry: CatalogTable | None
) -> Any:
    """A plan with the statement in one row; it can be run again, under another name.

    Spark's own would leave out what is generated and what may not be null. CHECK constraints are
    among the properties, as Delta shows them.

    Args:
        spark: The session.
        snapshot: The version.
        name: The table's name, as SQL writes it.
        entry: Its entry in the catalog; None for a path.
    """
    definition = definition_of(snapshot)
    location = None if entry is None or entry.is_managed else entry.path
    text = create_statement(name, definition, location)

    def run(session: SparkSession) -> DataFrame:
        return local_frame(session, pa.table({"createtab_stmt": [text]}), _SCHEMA)

    return python_command(spark, f"SHOW CREATE TABLE {name}", _SCHEMA, run)
