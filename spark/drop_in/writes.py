"""Rows that Spark's writers and INSERT put into a table: from their nodes and calls to `write`.

`df.write.format("delta").save(path)` is one call, `save`. Everything else that writes into a table
that is there, by name or by path, is one of three nodes of Spark's plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.commands.table_definition import TableDefinition
from optimist.core.errors import UsageError
from optimist.core.foreign_text import listed
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.protocol.clustering import clustering_columns
from optimist.spark.commands.create_as_select import create_as_select
from optimist.spark.commands.write import write_rows
from optimist.spark.commands.write_options import WriteRequest
from optimist.spark.drop_in.expressions import TargetExpressions
from optimist.spark.drop_in.inserted_rows import InsertedRows
from optimist.spark.drop_in.opened_table import OpenedTable
from optimist.spark.drop_in.options import only_path, write_options
from optimist.spark.drop_in.staged_tables import StagedTable
from optimist.spark.session.conf import open_log
from optimist.spark.session.jvm import Jvm, text_map

__all__ = [
    "append_rows",
    "overwrite_partitions",
    "overwrite_rows",
    "save",
]

_PATH = "path"
_PARTITION_COLUMNS = "__partition_columns"
_CLUSTERING_COLUMNS = "__clustering_columns"


def save(spark: SparkSession, dataset: Any, more: Any) -> None:
    """Save rows at a path, as `df.write.format("delta").save` asks for it.

    Args:
        spark: The session.
        dataset: The rows, a Java `Dataset`.
        more: The name of the mode, and a Java map of the options.

    Raises:
        UsageError: There is no path.
    """
    mode, given = more[0], text_map(spark, more[1])
    folded = {key.lower(): value for key, value in given.items()}
    path = only_path([folded[_PATH]] if _PATH in folded else [])
    partition_by = json.loads(folded.get(_PARTITION_COLUMNS, "[]"))
    cluster_by = json.loads(folded.get(_CLUSTERING_COLUMNS, "[]"))
    request = WriteRequest.of(mode, partition_by, write_options(given))
    rows = DataFrame(dataset, spark)
    if cluster_by:
        _save_clustered(rows, path, cluster_by, request)
    else:
        write_rows(rows, path, request)


def _save_clustered(
    rows: DataFrame, path: str, cluster_by: Sequence[str], request: WriteRequest
) -> None:
    """Make a table that is clustered, or write to one that is clustered alike."""
    log = open_log(rows.sparkSession, path, request.filesystem_options)
    if not log.table_exists():
        definition = TableDefinition(
            partition_by=request.partition_by or (),
            cluster_by=tuple(cluster_by),
            properties=request.properties,
        )
        create_as_select(rows, log, definition, request)
        return
    snapshot = log.update()
    found = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    wanted = [parse_column_path(name) for name in cluster_by]
    if [_folded(column) for column in found] != [_folded(column) for column in wanted]:
        raise UsageError(
            f"The rows are to be clustered by {listed(cluster_by)}, but the table is clustered by "
            f"{listed(['.'.join(column) for column in found]) or 'no column'}. Nothing was "
            "written. Leave clusterBy out, or change the table with ALTER TABLE ... CLUSTER BY.",
            kind="DELTA_CLUSTERING_COLUMNS_MISMATCH",
            path=log.table_path,
        )
    write_rows(rows, path, request)


def _folded(column: Sequence[str]) -> list[str]:
    return [part.lower() for part in column]


def append_rows(spark: SparkSession, node: Any, table: OpenedTable) -> None:
    """INSERT INTO, `insertInto`, `saveAsTable` in mode append, `writeTo(...).append()`."""
    _insert(spark, node, table, mode="append")


def overwrite_rows(spark: SparkSession, node: Any, table: OpenedTable) -> None:
    """INSERT OVERWRITE and REPLACE WHERE: what the condition of the node says is replaced."""
    replaced = TargetExpressions(spark, node.table()).condition(node.deleteExpr())
    _insert(spark, node, table, replace_where=replaced, mode="overwrite")


def overwrite_partitions(spark: SparkSession, node: Any, table: OpenedTable) -> None:
    """INSERT OVERWRITE of the partitions that the rows are in."""
    options = {"partitionOverwriteMode": "dynamic"}
    _insert(spark, node, table, mode="overwrite", options=options)


def _insert(
    spark: SparkSession,
    node: Any,
    table: OpenedTable,
    *,
    mode: str,
    replace_where: Column | None = None,
    options: Mapping[str, object] = MappingProxyType({}),
) -> None:
    jvm = Jvm.of(spark)
    options_given = jvm.root.scala.jdk.javaapi.CollectionConverters.asJava(node.writeOptions())
    rows, given = jvm.frame(node.query()), text_map(spark, options_given)
    if isinstance(table, StagedTable):
        # The SELECT of CREATE or REPLACE TABLE ... AS SELECT.
        table.write(rows, given)
        return
    request = WriteRequest.of(mode, None, {**write_options(given), **options})
    if replace_where is not None:
        request = request.replacing(replace_where)
    write_rows(_fitting_rows(rows, node, table, request), table.path, request)


def _fitting_rows(
    rows: DataFrame, node: Any, table: OpenedTable, request: WriteRequest
) -> DataFrame:
    """The rows under the table's names, and cast where they come from SQL or by position.

    A DataFrame's columns must have types that fit, as in Delta.
    """
    log, merges = open_log(rows.sparkSession, table.path), request.merge_schema
    merges = log.options.schema_auto_merge_enabled if merges is None else merges
    inserted = InsertedRows(rows.sparkSession, log.update(), table.name, merges)
    if not node.isByName():
        return inserted.by_position(rows)
    return inserted.cast(rows) if node.origin().sqlText().isDefined() else rows
