"""CLONE on Spark, into a path or into a name of the session's catalog (spec 10.13)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.copies.clone import ClonedTable
from optimist.core.paths import scheme_of
from optimist.core.requests.table_definition import CreateMode
from optimist.core.sql import path_in_name
from optimist.core.statements.clones import CloneOptions, clone_to
from optimist.core.statements.context import OpenTable
from optimist.spark.commands.catalog.catalog_entries import ensure_named, place_of_name
from optimist.spark.commands.catalog.named_tables import ensure_names_known
from optimist.spark.commands.catalog.server_entries import ensure_still_named, named_place
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.statement_context import SparkStatements
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["clone_path", "clone_to_name", "clone_to_path"]


def clone_to_path(
    spark: SparkSession,
    source: OpenTable,
    path: str,
    options: CloneOptions,
    *,
    before_commit: Callable[[], None] | None = None,
) -> ClonedTable | None:
    """Clone a table to a path (`clone_to`).

    Args:
        spark: The session, whose time zone applies to a time without a zone.
        source: The table that is cloned.
        path: The place of the clone.
        options: How it is cloned.
        before_commit: See `clone_to`.
    """
    target = open_target(spark, path)
    return clone_to(SparkStatements(spark), source, target, options, before_commit=before_commit)


def clone_to_name(
    spark: SparkSession,
    source: OpenTable,
    name: str,
    options: CloneOptions,
    location: str | None = None,
) -> ClonedTable | None:
    """Clone a table to a name of the session's catalog, which is registered afterwards.

    Args:
        spark: The session.
        source: The table that is cloned.
        name: The name, as SQL writes it.
        options: How it is cloned.
        location: The place of the clone; None leaves that to the catalog.

    Raises:
        UsageError: The session does not know Delta tables by name (kind
            `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`); and as `DeltaLog.clone`.
        TableNotFoundError: On Spark Connect, see `ensure_still_named`.
    """
    if is_connect(spark):
        return _clone_on_server(spark, source, name, options, location)
    ensure_names_known(spark, name)
    place = place_of_name(spark, name, location)
    if place.is_new_name and options.mode is CreateMode.CREATE_IF_NOT_EXISTS:
        options = replace(options, mode=CreateMode.CREATE)  # a table there has another name
    log = open_target(spark, place.path)
    is_new = not log.table_exists()
    done = clone_to_path(spark, source, place.path, options)
    ensure_named(spark, place, log, is_new=is_new)
    return done


def _clone_on_server(
    spark: SparkSession,
    source: OpenTable,
    name: str,
    options: CloneOptions,
    location: str | None,
) -> ClonedTable | None:
    with named_place(spark, name, location, options.mode) as place:
        if place is None:
            return None
        if place.is_new_name and options.mode is CreateMode.CREATE_IF_NOT_EXISTS:
            options = replace(options, mode=CreateMode.CREATE)  # a table there has another name
        check = partial(ensure_still_named, spark, place)
        return clone_to_path(spark, source, place.path, options, before_commit=check)


def clone_path(target: str) -> str | None:
    """Return the path that the target of a clone is, or None for a name.

    Raises:
        UsageError: The path is relative (kind `DELTA_INVALID_CLONE_PATH`).
    """
    path = path_in_name(target)
    if path is not None:
        return path
    if target.startswith("/") or scheme_of(target):
        return target
    if "/" in target:
        raise UsageError(
            f"The target of a clone needs to be an absolute path or a table's name, and not "
            f"{shown(target)}. Nothing was written. Give the whole path.",
            kind="DELTA_INVALID_CLONE_PATH",
            path=target,
        )
    return None
