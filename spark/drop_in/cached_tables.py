"""Refreshes Spark's cache of a table after a commit of this process, as Delta does.

A commit of another process leaves the cache as it is: nobody tells of it.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from optimist.core.data.table_ref import TableRef
from optimist.core.plugins.table_place import place_of
from optimist.core.snapshot import Snapshot
from optimist.core.table.commit_watchers import watch_commits
from optimist.spark.commands.catalog.names import CatalogTable
from optimist.spark.drop_in.compiler import dropin
from optimist.spark.drop_in.table_identity import note_version
from optimist.spark.session.conf import open_log
from optimist.spark.session.jvm import Jvm

__all__ = ["place", "refresh_after_commits"]


def refresh_after_commits(spark: SparkSession) -> None:
    """Have Spark read anew what it has cached of tables, after each commit of this process."""
    jvm = Jvm.of(spark)
    context: SparkContext = spark.sparkContext

    def refresh(table: TableRef, snapshot: Snapshot | None) -> None:
        if context._jsc is None:
            return  # stopped, and its cache with it
        if snapshot is not None:
            note_version(jvm, table, snapshot)
        dropin(jvm).CachedTables.refresh(place_of(table.table_path, table.store))

    watch_commits("Spark's cache", refresh)


def place(spark: SparkSession, identifier: Any, entry: Any) -> str:
    """Return the path of a table that is refreshed or dropped.

    Args:
        spark: The session.
        identifier: The name within the catalog; for a table by its path, the path.
        entry: The `CatalogTable`, or None for a path.
    """
    path = str(identifier.name()) if entry is None else CatalogTable.of(spark, entry).path
    log = open_log(spark, path)
    return place_of(log.table_path, log.store)
