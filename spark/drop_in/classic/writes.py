"""Rows that Spark's writers and INSERT put into a table: from their nodes and calls to `write`.

`df.write.format("delta").save(path)` is one call, `save`. Everything else that writes into a table
that is there, by name or by path, is one of three nodes of Spark's plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.spark.commands.writing.clustered_write import write_clustered
from optimist.spark.commands.writing.inserted_rows import InsertedRows
from optimist.spark.commands.writing.inserted_write import write_inserted
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.classic.expressions import TargetExpressions
from optimist.spark.drop_in.classic.opened_table import OpenedTable
from optimist.spark.drop_in.classic.staged_tables import StagedTable
from optimist.spark.drop_in.shared.options import only_path, write_options
from optimist.spark.session.conf import open_log
from optimist.spark.session.jvm import Jvm, text_map

__all__ = [
    "append_rows",
    "overwrite_partitions",
    "overwrite_rows",
    "save",
    "write_directory",
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
    write_clustered(DataFrame(dataset, spark), path, cluster_by, request)


def write_directory(spark: SparkSession, about: Any, more: Any) -> None:  # noqa: ARG001 - an answer
    """Refuse INSERT OVERWRITE DIRECTORY ... USING delta, as Delta does.

    Raises:
        SchemaError: Always (kind `DELTA_OPERATION_NOT_ALLOWED`).
    """
    raise SchemaError(
        "INSERT OVERWRITE DIRECTORY is not supported for Delta tables. Nothing was written. Use "
        "INSERT OVERWRITE delta.`path`, or CREATE TABLE ... LOCATION.",
        kind="DELTA_OPERATION_NOT_ALLOWED",
        operation="INSERT OVERWRITE DIRECTORY",
    )


def append_rows(spark: SparkSession, node: Any, table: OpenedTable) -> None:
    """Append rows: INSERT INTO, `insertInto`, `saveAsTable`, `writeTo(...).append()`."""
    _insert(spark, node, table, mode="append")


def overwrite_rows(spark: SparkSession, node: Any, table: OpenedTable) -> None:
    """Replace the rows of the node's condition: INSERT OVERWRITE and REPLACE WHERE."""
    replaced = TargetExpressions(spark, node.table()).condition(node.deleteExpr())
    _insert(spark, node, table, replace_where=replaced, mode="overwrite")


def overwrite_partitions(spark: SparkSession, node: Any, table: OpenedTable) -> None:
    """Replace the partitions that the rows are in: INSERT OVERWRITE."""
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
    evolves = {"mergeSchema": True} if _evolves_schema(node) else {}
    request = WriteRequest.of(mode, None, {**write_options(given), **options, **evolves})
    if replace_where is not None:
        request = request.replacing(replace_where)
    request = replace(request, needs_table=True)
    if not node.isByName():
        _ensure_same_places(rows, request, table)
    inserted = InsertedRows.of(spark, open_log(spark, table.path), table.name, request)
    fitting = inserted.cast(rows) if node.isByName() else inserted.by_position(rows)
    write_inserted(inserted, _under_alias(fitting, node.query()), table.path, request)


def _evolves_schema(node: Any) -> bool:
    """Return whether the statement, or the writer, lets the table's schema grow."""
    # The nodes of older Sparks do not know of it.
    return "withSchemaEvolution" in dir(node) and bool(node.withSchemaEvolution())


def _under_alias(rows: DataFrame, query: Any) -> DataFrame:
    """Return the rows under the alias by which `replaceOn` may call them."""
    is_aliased = str(query.getClass().getSimpleName()) == "SubqueryAlias"
    return rows.alias(str(query.alias())) if is_aliased else rows


def _ensure_same_places(rows: DataFrame, request: WriteRequest, table: OpenedTable) -> None:
    """Refuse columns by position that replace rows by names at other positions."""
    if not request.replaces_matches or table.snapshot is None:
        return
    own, given = (
        [n.lower() for n in names] for names in (table.snapshot.schema.names, rows.columns)
    )
    # What replaceOn names is in its text; so all names have to be at their places.
    for name in given if request.replace_using is None else request.replace_using:
        folded = name.lower()
        if folded in own and folded in given and own.index(folded) != given.index(folded):
            raise UsageError(
                f"The column {shown(name)} is at another place in the rows than in "
                f"{shown(table.name)}, and columns are taken by their position here, while the "
                "rows to replace are found by names. Nothing was written. Order the columns as the "
                "table has them.",
                kind="INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
                column=name,
            )
