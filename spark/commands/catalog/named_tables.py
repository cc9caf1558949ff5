"""Tables with a name in Spark's catalog, created from values and not from a statement's text.

With a statement's text, Spark would replace `${...}` by values, and read a comment within an
expression as the statement's. It would also lose data that a statement can't express, such as
users' metadata of columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from optimist.core.commands.create.create import create_table
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.requests.table_definition import CreateMode, TableDefinition
from optimist.spark.commands.catalog.catalog_entries import (
    ensure_named,
    known_name,
    place_of_name,
)
from optimist.spark.commands.catalog.names import is_enabled
from optimist.spark.commands.catalog.places import Place
from optimist.spark.commands.catalog.server_entries import named_place
from optimist.spark.commands.reading.read import open_target
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.jvm import Jvm
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["complete_for_place", "create_named", "ensure_names_known"]

_WAREHOUSE = "spark.sql.warehouse.dir"


def create_named(
    spark: SparkSession, name: str, definition: TableDefinition, location: str | None
) -> None:
    """Create or replace a table by its name, at a location that the catalog decides.

    Args:
        spark: The session.
        name: The name, as SQL writes it.
        definition: The table.
        location: Its location, if the caller gives one.

    Raises:
        UsageError: The session does not know Delta tables by name (kind
            `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`), or see `place_of_name`.
        AnalysisException: The name exists already, or does not exist and should be replaced.
    """
    if is_connect(spark):
        _create_on_server(spark, name, definition, location)
        return
    ensure_names_known(spark, name)
    with original_errors():
        if _is_kept(spark, name, definition.mode):
            return
        place = place_of_name(
            spark, name, None if location is None else _absolute_location(spark, location)
        )
        log = open_target(spark, place.path)
        is_new = not log.table_exists()
        create_table(log.start_transaction, complete_for_place(place, definition))
        ensure_named(spark, place, log, is_new=is_new)


def _create_on_server(
    spark: SparkSession, name: str, definition: TableDefinition, location: str | None
) -> None:
    with original_errors(), named_place(spark, name, location, definition.mode) as place:
        if place is not None:
            log = open_target(spark, place.path)
            create_table(log.start_transaction, complete_for_place(place, definition))


def _is_kept(spark: SparkSession, name: str, mode: CreateMode) -> bool:
    """Check whether a name exists, and its table is kept.

    Raises:
        AnalysisException: The name exists and should be new, or it does not exist and should be
            replaced. Spark raises it, as for any statement.
    """
    catalog = Jvm.of(spark).session.sessionState().catalog()
    known = known_name(spark, name)
    is_there = bool(catalog.tableExists(known))
    if is_there and mode is CreateMode.CREATE:
        catalog.createTable(catalog.getTableMetadata(known), False, False)
    if not is_there and mode is CreateMode.REPLACE:
        catalog.getTableMetadata(known)
    return is_there and mode is CreateMode.CREATE_IF_NOT_EXISTS


def ensure_names_known(spark: SparkSession, name: str) -> None:
    """Refuse a named table if the session's catalog does not take Delta tables.

    Raises:
        UsageError: See `create_named`.
    """
    if not is_enabled(spark):
        raise _no_names(name, "is a name in the catalog, where this session has no Delta tables")


def complete_for_place(place: Place, definition: TableDefinition) -> TableDefinition:
    """Complete the definition for a location, and accept a table there that has no name yet."""
    mode = definition.mode
    if place.is_new_name and mode is CreateMode.CREATE_IF_NOT_EXISTS:
        mode = CreateMode.CREATE
    return replace(
        definition, mode=mode, is_new_name=place.is_new_name, is_managed=place.is_managed
    )


def _absolute_location(spark: SparkSession, location: str) -> str:
    """Return a location as Spark's catalog takes it: a relative path is in the warehouse."""
    jvm = Jvm.of(spark)
    shared: Any = jvm.session.sharedState()
    warehouse = shared.conf().get(_WAREHOUSE)
    utils = jvm.catalyst.catalog.CatalogUtils
    return str(utils.makeQualifiedDBObjectPath(warehouse, location, jvm.hadoop_settings()))


def _no_names(name: str, problem: str) -> UsageError:
    return UsageError(
        f"The name {shown(name)} {problem}. Nothing was written. Call optimist.spark.enable(spark) "
        "in a classic session first, or give the table's path by location(path) alone.",
        kind="OPTIMIST_CATALOG_NAMES_UNSUPPORTED",
        name=name,
    )
