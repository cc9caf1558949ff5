"""Runs the statements of Delta that have a grammar of their own (`optimist.core.sql`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.errors import UsageError
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.maintenance.optimize.dropped_columns import columns_by_footers
from optimist.core.sql import Command, Parameters, TableName, parse_command
from optimist.core.sql.statements import (
    AddConstraint,
    Analyze,
    Clone,
    ClusterBy,
    ConvertToDelta,
    CreateLike,
    DescribeDetail,
    DescribeHistory,
    DropConstraint,
    DropFeature,
    Generate,
    Optimize,
    Reorg,
    Restore,
    SyncIdentity,
    Vacuum,
)
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.alter import changes_of
from optimist.spark.commands.catalog.missing_tables import (
    as_missing_name,
    as_no_delta_table,
    as_wrong_for,
)
from optimist.spark.commands.catalog.names import named_table, table_path
from optimist.spark.commands.maintenance.clone import CLONE_SCHEMA
from optimist.spark.commands.maintenance.drop_feature import drop_feature
from optimist.spark.commands.maintenance.optimize import OPTIMIZE_SCHEMA, optimize
from optimist.spark.commands.maintenance.restore import RESTORE_SCHEMA, restore
from optimist.spark.commands.maintenance.vacuum import VACUUM_SCHEMA, vacuum
from optimist.spark.commands.reading.history import (
    DETAIL_SCHEMA,
    HISTORY_SCHEMA,
    detail_frame,
    history_frame,
)
from optimist.spark.drop_in.classic.cloned_tables import clone_table
from optimist.spark.drop_in.classic.converted_tables import convert_table
from optimist.spark.drop_in.classic.tables_like import create_like, makes_delta_table
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["plan", "run_command"]

_Run: TypeAlias = Callable[[SparkSession, DeltaLog, Any], DataFrame | None]
_NO_SYNTAX = "PARSE_SYNTAX_ERROR"
_OF_SPARK_TOO = (AddConstraint, DropConstraint, ClusterBy)


def plan(spark: SparkSession, text: str, context: Any) -> Any:
    """The plan of a statement for Spark's parser; None for one that is Spark's.

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
    if isinstance(command, _OF_SPARK_TOO) and not _is_ours(spark, command.table):
        return None
    if isinstance(command, CreateLike) and not makes_delta_table(spark, command):
        return None
    schema = _SCHEMAS.get(type(command), StructType())
    return python_command(
        spark, command.statement, schema, lambda session: run_command(session, command)
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
    if make is not None:
        with original_errors():
            return make(spark, command)
    run = _RUNS.get(type(command))
    if run is None:
        raise not_built_yet(command.statement)
    with original_errors():
        path = command.table.path or table_path(spark, str(command.table))
        log = open_log(spark, path)
        with _told_as_missing(command, path):
            return run(spark, log, command)


def _told_as_missing(command: Command, path: str) -> AbstractContextManager[None]:
    if command.table.path is None:
        return as_missing_name(str(command.table))
    if isinstance(command, DescribeHistory):
        return as_wrong_for(command.statement, path)
    return as_no_delta_table(path)


def _is_ours(spark: SparkSession, table: TableName) -> bool:
    """Whether a table is one of Delta, for statements that Spark runs for others."""
    if table.path is not None:
        return True
    try:
        table_path(spark, str(table))
    except (AnalysisException, UsageError):
        return False
    return True


def _is_of_spark(spark: SparkSession, text: str) -> bool:
    """Whether Spark's own parser knows a statement, which it may refuse for what it asks."""
    jvm = Jvm.of(spark)
    with jvm.as_active():
        try:
            jvm.root.org.apache.spark.sql.execution.SparkSqlParser().parsePlan(text)
        except ParseException as error:
            return error.getCondition() != _NO_SYNTAX
    return True


def _parameters(spark: SparkSession, context: Any) -> Parameters:
    """The values of parameters as SQL, which Spark's constants can tell."""
    params = context.params()
    if str(context.getClass().getSimpleName()).startswith("Named"):
        java = Jvm.of(spark).root.scala.jdk.javaapi.CollectionConverters.asJava(params)
        return Parameters(named={str(name): str(java[name].sql()) for name in java})
    return Parameters(positional=[str(value.sql()) for value in iterate(params)])


def _history(spark: SparkSession, log: DeltaLog, command: DescribeHistory) -> DataFrame:
    return history_frame(spark, log, command.limit)


def _detail(spark: SparkSession, log: DeltaLog, command: DescribeDetail) -> DataFrame:
    is_path = command.table.path is not None
    entry = None if is_path else named_table(spark, str(command.table))[1]
    return detail_frame(spark, log, None if entry is None else entry.shown_name)


def _generate(_spark: SparkSession, log: DeltaLog, command: Generate) -> None:
    log.generate(command.mode)


def _analyze(_spark: SparkSession, log: DeltaLog, _command: Analyze) -> None:
    log.recompute_statistics()


def _optimize(spark: SparkSession, log: DeltaLog, command: Optimize) -> DataFrame:
    wanted = Rearrangement(z_order_by=command.zorder_by, is_full=command.is_full)
    return optimize(spark, log, wanted, None if command.where is None else command.where.sql)


def _reorg(spark: SparkSession, log: DeltaLog, command: Reorg) -> DataFrame:
    if command.uniform_version is not None:
        raise not_built_yet(f"{command.statement} APPLY (UPGRADE UNIFORM)")
    where = None if command.where is None else command.where.sql
    wanted = Rearrangement(purges=True, columns_of=columns_by_footers(log.table))
    return optimize(spark, log, wanted, where)


def _restore(spark: SparkSession, log: DeltaLog, command: Restore) -> DataFrame:
    to = command.travel
    return restore(spark, log, version=to.version, timestamp=to.timestamp)


def _add_constraint(spark: SparkSession, log: DeltaLog, command: AddConstraint) -> None:
    changes_of(spark, log).add_constraint(command.name, command.condition.sql)


def _drop_constraint(spark: SparkSession, log: DeltaLog, command: DropConstraint) -> None:
    changes_of(spark, log).drop_constraint(command.name, if_exists=command.if_exists)


def _drop_feature(spark: SparkSession, log: DeltaLog, command: DropFeature) -> None:
    drop_feature(spark, log, command.feature, truncates_history=command.truncates_history)


def _cluster_by(spark: SparkSession, log: DeltaLog, command: ClusterBy) -> None:
    changes_of(spark, log).cluster_by(command.columns)


def _sync_identity(spark: SparkSession, log: DeltaLog, command: SyncIdentity) -> None:
    changes_of(spark, log).sync_identity(command.column)


_RUNS: Mapping[type, _Run] = MappingProxyType(
    {
        DescribeHistory: _history,
        DescribeDetail: _detail,
        Generate: _generate,
        Analyze: _analyze,
        Optimize: _optimize,
        Reorg: _reorg,
        Restore: _restore,
        Vacuum: vacuum,
        AddConstraint: _add_constraint,
        DropConstraint: _drop_constraint,
        DropFeature: _drop_feature,
        ClusterBy: _cluster_by,
        SyncIdentity: _sync_identity,
    }
)
_MAKES: Mapping[type, Callable[[SparkSession, Any], DataFrame | None]] = MappingProxyType(
    {CreateLike: create_like, Clone: clone_table, ConvertToDelta: convert_table}
)
"""Statements that make tables, and find their places themselves."""
_SCHEMAS: Mapping[type, StructType] = MappingProxyType(
    {
        Clone: CLONE_SCHEMA,
        DescribeHistory: HISTORY_SCHEMA,
        DescribeDetail: DETAIL_SCHEMA,
        Optimize: OPTIMIZE_SCHEMA,
        Reorg: OPTIMIZE_SCHEMA,
        Restore: RESTORE_SCHEMA,
        Vacuum: VACUUM_SCHEMA,
    }
)
