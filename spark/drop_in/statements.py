"""Makes commands of Spark of the statements of Delta, which `core/statements` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.requests.alterations import AddConstraint, ClusterBy, DropConstraint
from optimist.core.sql import Command, Parameters, TableName, parse_command
from optimist.core.sql.statements import AlterTable, Clone, ConvertToDelta, CreateLike
from optimist.core.statements.run import run_statement
from optimist.core.statements.statement_columns import columns_of
from optimist.spark.commands.catalog.names import table_path
from optimist.spark.commands.statement_context import SparkStatements
from optimist.spark.drop_in.classic.cloned_tables import clone_table
from optimist.spark.drop_in.classic.converted_tables import convert_table
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.drop_in.shared.tables_like import create_like, makes_delta_table
from optimist.spark.rows.local_rows import result_frame, spark_columns
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["is_ours", "plan", "run_command"]

_NO_SYNTAX = "PARSE_SYNTAX_ERROR"
_OF_SPARK_TOO = (AddConstraint, DropConstraint, ClusterBy)


def plan(spark: SparkSession, text: str, context: Any) -> Any:
    """Return the plan of a statement for Spark's parser, or None for one that is Spark's.

    Args:
        spark: A classic session.
        text: The statement.
        context: The values of its parameters, a Java `ParameterContext`; else None.

    Raises:
        UsageError: See `parse_command`.
    """
    parameters = None if context is None else _parameters(spark, context)
    command = parse_command(text, parameters, is_of_spark=lambda: _is_of_spark(spark, text))
    if command is None:
        return None
    if not is_ours(spark, command):
        return None
    if isinstance(command, CreateLike) and not makes_delta_table(spark, command):
        return None
    columns = spark_columns(columns_of(command))
    return python_command(
        spark, command.statement, columns, lambda session: run_command(session, command)
    )


def run_command(spark: SparkSession, command: Command) -> DataFrame | None:
    """Run a statement.

    Args:
        spark: A classic session, or a Spark Connect client.
        command: The statement.

    Returns:
        Its rows, as Delta has them; None if it has none.

    Raises:
        UsageError: The statement is not built yet (kind `OPTIMIST_NOT_BUILT_YET`), or the table is
            not one of Delta (kind `DELTA_TABLE_ONLY_OPERATION`), or is named in a catalog, on Spark
            Connect (kind `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`).
    """
    make = _MAKES.get(type(command))
    with original_errors():
        rows = (
            run_statement(SparkStatements(spark), command).rows
            if make is None
            else make(spark, command)
        )
        return result_frame(spark, rows) if rows.column_names else None


def is_ours(spark: SparkSession, command: Command) -> bool:
    """Tell whether a statement is not one that Spark runs for a table of another format."""
    is_shared = isinstance(command, AlterTable) and isinstance(command.change, _OF_SPARK_TOO)
    return not is_shared or _is_delta_table(spark, command.table)


def _is_delta_table(spark: SparkSession, table: TableName) -> bool:
    if table.path is not None:
        return True
    try:
        table_path(spark, str(table))
    except (AnalysisException, UsageError):
        return False
    return True


def _is_of_spark(spark: SparkSession, text: str) -> bool:
    """Tell whether Spark's own parser knows a statement, even if it refuses what it asks."""
    jvm = Jvm.of(spark)
    with jvm.as_active():
        try:
            jvm.root.org.apache.spark.sql.execution.SparkSqlParser().parsePlan(text)
        except ParseException as error:
            return error.getCondition() != _NO_SYNTAX
    return True


def _parameters(spark: SparkSession, context: Any) -> Parameters:
    """Return the values of parameters as SQL."""
    params = context.params()
    if str(context.getClass().getSimpleName()).startswith("Named"):
        java = Jvm.of(spark).root.scala.jdk.javaapi.CollectionConverters.asJava(params)
        return Parameters(named={str(name): str(java[name].sql()) for name in java})
    return Parameters(positional=[str(value.sql()) for value in iterate(params)])


_MAKES: Mapping[type, Callable[[SparkSession, Any], pa.Table]] = MappingProxyType(
    {CreateLike: create_like, Clone: clone_table, ConvertToDelta: convert_table}
)
"""Statements that make tables, and may give them names in the session's catalog."""
