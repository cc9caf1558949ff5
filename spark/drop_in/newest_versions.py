"""Frames follow their table: a query reads the newest version of each, unless one was chosen.

Delta's frames do so as well: what was analysed once is read as it is when a query runs. The columns
stay those that were analysed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.snapshot import Snapshot
from optimist.spark.drop_in.classic.opened_table import OpenedTable, opened_table
from optimist.spark.drop_in.table_identity import table_identity
from optimist.spark.rows.row_shape import column_of
from optimist.spark.rows.same_columns import ensure_same_columns
from optimist.spark.session.jvm import Jvm, analyzed_plan

__all__ = ["newest_versions"]

_METADATA = "_metadata"


def newest_versions(spark: SparkSession, tables: Any, names: Any) -> Any:
    """Return the plans of the newest versions of tables, as one query reads them.

    Args:
        spark: The session.
        tables: Java `DeltaTable`s; one that is read twice is there twice.
        names: For each the columns that the query has of it, joined by zero characters.

    Returns:
        A Java list: for each table the plan, or None if its version is the newest one.

    Raises:
        TableError: A table no longer has the columns that the query was made with (kind
            `DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS`).
    """
    jvm = Jvm.of(spark)
    plans = jvm.root.java.util.ArrayList()
    versions: dict[str, Snapshot] = {}
    for java_table, wanted in zip(tables, names, strict=True):
        table = opened_table(java_table)
        if table.path not in versions:
            versions[table.path] = table.log.snapshot()
            table_identity(jvm, table.log.table, versions[table.path])
        frame = _newer_frame(table, versions[table.path], wanted.split("\0"))
        plans.add(None if frame is None else analyzed_plan(frame))
    return plans


def _newer_frame(table: OpenedTable, newest: Snapshot, names: Sequence[str]) -> DataFrame | None:
    if table.version is None:
        return None
    before = table.version.snapshot
    if newest.is_same_version(before):
        return None
    tracking = [one.has_active("rowTracking") for one in (before, newest)]
    is_other_metadata = _METADATA in names and tracking[0] != tracking[1]
    ensure_same_columns(table.name, before, newest, *([_METADATA] if is_other_metadata else ()))
    frame = table.version.at(newest).frame(table.spark)
    return frame if frame.columns == list(names) else frame.select(*map(column_of, names))
