"""CREATE and REPLACE TABLE, with and without AS SELECT, for names and for paths.

The table's log gets one commit, and then the name goes into Spark's catalog. A statement that fails
before its commit leaves neither. If the name can't be registered after it, the table is complete;
where the catalog keeps the files, they are removed again, since nobody could find them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.create.create import create_table
from optimist.core.errors import UsageError
from optimist.core.forking import ForkSafeLock
from optimist.core.requests.table_definition import CreateMode, TableDefinition
from optimist.spark.commands.catalog.catalog_entries import (
    ensure_named,
    place_of_identifier,
    register,
)
from optimist.spark.commands.catalog.places import Place
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.create_as_select import create_as_select
from optimist.spark.commands.writing.write import write_rows
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.classic.definitions import Definition
from optimist.spark.drop_in.classic.opened_table import OpenedTable
from optimist.spark.drop_in.shared.options import write_options
from optimist.spark.session.jvm import Jvm
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["StagedTable", "create", "stage"]

_SAVE_AS_TABLE = "saveAsTable"
_MODES = {
    "create": CreateMode.CREATE,
    "replace": CreateMode.REPLACE,
    "createOrReplace": CreateMode.CREATE_OR_REPLACE,
    _SAVE_AS_TABLE: CreateMode.CREATE_OR_REPLACE,
}
_TAKEN = "TABLE_OR_VIEW_ALREADY_EXISTS"
_LOCK = ForkSafeLock()


def create(spark: SparkSession, identifier: Any, more: Any) -> Any:
    """Run CREATE TABLE.

    Args:
        spark: The session.
        identifier: A Java `Identifier`.
        more: Java `Column`s, `Transform`s, and a map of properties.

    Returns:
        None, or the Java error that tells Spark that there is such a name by now.
    """
    definition = Definition.of(Jvm.of(spark), *more)
    place = place_of_identifier(spark, identifier, definition.location)
    with _LOCK:  # of the threads of this process, one makes and registers a table at a time
        log = open_target(spark, place.path)
        create_table(log.start_transaction, _request(definition, place, CreateMode.CREATE))
        if place.is_new_name:
            return _registered(spark, place)
        ensure_named(spark, place, log, is_new=False)
    return None


def stage(spark: SparkSession, identifier: Any, more: Any) -> Any:
    """Stage REPLACE TABLE, or CREATE TABLE ... AS SELECT, up to its definition.

    Args:
        spark: The session.
        identifier: A Java `Identifier`.
        more: How (`create`, `replace`, `createOrReplace`, or `saveAsTable` for one that overwrites
            an existing table's rows), and then as for `create`.

    Returns:
        A Java `StagedDeltaTable`.
    """
    how, *parts = more
    definition = Definition.of(Jvm.of(spark), *parts)
    place = place_of_identifier(spark, identifier, definition.location)
    return StagedTable(spark, place, definition, str(how)).staged()


class StagedTable(OpenedTable):
    """A table that a statement makes or replaces when it is committed."""

    def __init__(self, spark: SparkSession, place: Place, definition: Definition, how: str) -> None:
        super().__init__(spark, open_target(spark, place.path), place.name)
        self._place = place
        self._definition = definition
        self._how = how
        self._is_written = False
        self._is_new = not self.log.table_exists()

    def staged(self) -> Any:
        """Return the table for Spark, a Java `StagedDeltaTable`."""
        schema = self._request().schema()
        return self.java(to_spark_schema(schema), kind="StagedDeltaTable")

    def write(self, rows: DataFrame, options: Mapping[str, str]) -> None:
        """Make or replace the table with its rows, in one commit."""
        given = write_options({**self._definition.options, **options})
        if self._how == _SAVE_AS_TABLE and not self._place.is_new_name:
            self._overwrite(rows, given)
        else:
            is_saved = self._how == _SAVE_AS_TABLE
            if not is_saved and not given.keys().isdisjoint(("replaceOn", "replaceUsing")):
                raise UsageError(
                    "The options replaceOn and replaceUsing replace rows of a table that is there, "
                    "and this statement makes or replaces the whole table. Nothing was written. "
                    "Leave them out, or use saveAsTable in mode overwrite.",
                    kind="DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING",
                )
            request = WriteRequest.of("overwrite" if is_saved else "error", None, given)
            properties = {**self._definition.properties, **request.properties}
            definition = replace(self._request(), properties=properties)
            create_as_select(rows, self.log, definition, request)
        self._is_written = True

    def _overwrite(self, rows: DataFrame, options: Mapping[str, object]) -> None:
        """Run `saveAsTable` in mode overwrite, which changes a schema only by `overwriteSchema`."""
        request = WriteRequest.of("overwrite", self._definition.partition_by, options)
        is_managed, needs_table = self._place.is_managed, not self._is_new
        request = replace(request, saves_managed_table=is_managed, needs_table=needs_table)
        write_rows(rows, self.path, request)

    def _request(self) -> TableDefinition:
        return _request(self._definition, self._place, _MODES[self._how])

    def _answer(self, what: str, argument: Any) -> Any:
        if what == "commit":
            self._commit()
            return None
        if what == "abort":
            return None
        return super()._answer(what, argument)

    def _commit(self) -> None:
        if not self._is_written:
            create_table(self.log.start_transaction, self._request())
        ensure_named(self.spark, self._place, self.log, is_new=self._is_new)


def _request(definition: Definition, place: Place, mode: CreateMode) -> TableDefinition:
    return TableDefinition(
        columns=definition.columns,
        partition_by=definition.partition_by,
        cluster_by=definition.cluster_by,
        properties=definition.properties,
        comment=definition.comment,
        mode=mode,
        is_new_name=place.is_new_name,
        is_managed=place.is_managed,
    )


def _registered(spark: SparkSession, place: Place) -> Any:
    """Register a table, or raise Spark's Java error where the name is taken by now."""
    try:
        register(spark, place)
    except PySparkException as error:
        origin = getattr(error, "_origin", None)
        if origin is None or error.getCondition() != _TAKEN:
            raise
        return origin
    return None
