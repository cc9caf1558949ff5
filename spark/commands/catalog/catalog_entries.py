"""Entries of Spark's session catalog: how they are found and created.

An entry says that a name is a Delta table, and where the table is. Columns and properties are only
in the table's log, so an entry never becomes stale.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.catalog.names import CatalogTable, in_session_catalog
from optimist.spark.commands.catalog.places import Place, is_one_place
from optimist.spark.commands.catalog.relocation import ensure_movable, not_of_paths
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.case_classes import make_case_class, with_field
from optimist.spark.session.jvm import Jvm

__all__ = [
    "become_delta",
    "ensure_named",
    "known_name",
    "move",
    "place_of_identifier",
    "place_of_name",
    "register",
]

_CATALOG = "org.apache.spark.sql.catalyst.catalog"
_DELTA = "delta"
_TAKEN = "TABLE_OR_VIEW_ALREADY_EXISTS"


def place_of_identifier(spark: SparkSession, identifier: Any, location: str | None) -> Place:
    """Return the location that a name has, or will have.

    Args:
        spark: The session.
        identifier: A Java `Identifier`: a name, or a path without a namespace.
        location: The statement's location.

    Raises:
        UsageError: The name belongs to a view, or to a table that is not a Delta table (kind
            `DELTA_NOT_A_DELTA_TABLE`); or the statement gives two locations (kinds
            `DELTA_TABLE_LOCATION_MISMATCH`, `DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE`).
        AnalysisException: The database does not exist.
    """
    name, namespace = str(identifier.name()), list(identifier.namespace())
    if not namespace and ("/" in name or ":" in name):
        return _place_of_path(name, location)
    jvm = Jvm.of(spark)
    database = namespace[-1] if namespace else _DELTA
    option = jvm.root.scala.Option.apply(database)
    known = jvm.catalyst.TableIdentifier(name, option)
    catalog = jvm.session.sessionState().catalog()
    if catalog.tableExists(known):
        return _place_of_entry(jvm, known, catalog.getTableMetadata(known), location)
    catalog.getDatabaseMetadata(database)  # a missing database is an error
    where = catalog.defaultTablePath(known) if location is None else location
    path = str(jvm.root.org.apache.hadoop.fs.Path(where).toString())
    text = str(known.quotedString())
    return Place(path, text, known, is_new_name=True, is_managed=location is None)


def _place_of_path(path: str, location: str | None) -> Place:
    if location is not None and not is_one_place(path, location):
        raise UsageError(
            f"The statement gives two places for the table: the path {shown(path)}, and the "
            f"location {shown(location)}. Nothing was written. Leave the location out.",
            kind="DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE",
            path=path,
            location=location,
        )
    return Place(path, f"delta.{quoted(path)}")


def _place_of_entry(jvm: Jvm, known: Any, entry: Any, location: str | None) -> Place:
    """Return the location of a table that the catalog has."""
    provider, where = entry.provider(), entry.storage().locationUri()
    path = None
    if where.isDefined():
        path = str(jvm.root.org.apache.hadoop.fs.Path(where.get()).toString())
    place = Place.of_entry(
        str(known.quotedString()),
        str(entry.tableType().name()),
        str(provider.get()) if provider.isDefined() else None,
        path,
        location,
    )
    return replace(place, identifier=known)


def place_of_name(spark: SparkSession, name: str, location: str | None) -> Place:
    """Return the location that a name in a statement has, or will have.

    It also raises the errors of `place_of_identifier`.

    Raises:
        UsageError: The name belongs to another catalog (kind `DELTA_NOT_A_DELTA_TABLE`).
    """
    known = known_name(spark, name)
    jvm = Jvm.of(spark)
    identifier = jvm.root.org.apache.spark.sql.connector.catalog.Identifier
    namespace = jvm.array(jvm.root.java.lang.String, [str(known.database().get())])
    return place_of_identifier(spark, identifier.of(namespace, known.table()), location)


def known_name(spark: SparkSession, name: str) -> Any:
    """Return a name in the session's catalog as a Java `TableIdentifier` with its database.

    Raises:
        UsageError: See `place_of_name`.
    """
    jvm = Jvm.of(spark)
    parts = in_session_catalog(spark, name)
    if parts is None:
        raise UsageError(
            f"The name {shown(name)} is in a catalog that Optimist does not know. Nothing was "
            "written. Name a table of the session's catalog, or give a path.",
            kind="DELTA_NOT_A_DELTA_TABLE",
            name=name,
        )
    database = parts[0] if parts[1:] else jvm.session.sessionState().catalog().getCurrentDatabase()
    option = jvm.root.scala.Option.apply(str(database))
    return jvm.catalyst.TableIdentifier(parts[-1], option)


def register(spark: SparkSession, place: Place) -> None:
    """Give a table its name in the session catalog.

    Raises:
        AnalysisException: Spark's catalog refuses the name, for example because it exists already.
    """
    jvm = Jvm.of(spark)
    path = jvm.root.org.apache.hadoop.fs.Path(place.path)
    uri = path.getFileSystem(jvm.hadoop_settings()).makeQualified(path).toUri()
    kinds = jvm.root.org.apache.spark.sql.catalyst.catalog.CatalogTableType
    kind = kinds.MANAGED() if place.is_managed else kinds.EXTERNAL()
    table = _make_entry(jvm, place.identifier, kind, uri)
    jvm.session.sessionState().catalog().createTable(table, False, False)


def become_delta(spark: SparkSession, entry: Any) -> None:
    """Turn the entry of a converted table into one of a Delta table.

    Args:
        spark: The session.
        entry: The Java `CatalogTable`.
    """
    jvm = Jvm.of(spark)
    uri = entry.storage().locationUri().get()
    table = _make_entry(jvm, entry.identifier(), entry.tableType(), uri)
    catalog = jvm.session.sessionState().catalog()
    catalog.alterTable(table)
    catalog.refreshTable(entry.identifier())


def ensure_named(spark: SparkSession, place: Place, log: DeltaLog, *, is_new: bool) -> None:
    """Give a table its name after a statement that has made or replaced it.

    A new name is registered. If that fails, and nobody else could find the table, it is removed. A
    name that was there may have been dropped meanwhile, before the table was made; then the
    catalog's table gets it again.

    Args:
        spark: The session.
        place: The table's location.
        log: The table.
        is_new: True if the statement has created the table.
    """
    if not place.is_new_name:
        _ensure_kept(spark, place, log)
        return
    try:
        register(spark, place)
    except PySparkException:
        if is_new and place.is_managed and log.snapshot().version == 0:
            _remove_unnamed(spark, place)
        raise


def _ensure_kept(spark: SparkSession, place: Place, log: DeltaLog) -> None:
    """Name a table again whose name was dropped: DROP TABLE left no files, so it was made since.

    Where the catalog does not keep the files, DROP TABLE leaves them, and the name stays dropped.
    """
    if place.identifier is None or not place.is_managed:
        return
    catalog = Jvm.of(spark).session.sessionState().catalog()
    if not catalog.tableExists(place.identifier) and log.table_exists():
        try:
            register(spark, place)
        except PySparkException as error:
            if error.getCondition() != _TAKEN:
                raise  # else somebody has named it at this moment


def _remove_unnamed(spark: SparkSession, place: Place) -> None:
    jvm = Jvm.of(spark)
    if jvm.session.sessionState().catalog().tableExists(place.identifier):
        return  # somebody else's table at the same location
    path = jvm.root.org.apache.hadoop.fs.Path(place.path)
    path.getFileSystem(jvm.hadoop_settings()).delete(path, True)


def move(spark: SparkSession, identifier: Any, entry: Any, location: str) -> None:
    """Let a name mean the table at another location, without touching any files.

    Args:
        spark: The session.
        identifier: The name within the catalog, or the path of a table named by its path.
        entry: The Java `CatalogTable`, or None for a path.
        location: The new location.

    Raises:
        UsageError: The table has only a path (kind `DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER`).
        SchemaError: The other table has other columns (kind `DELTA_SET_LOCATION_SCHEMA_MISMATCH`).
        TableNotFoundError: No table is at the new location.
    """
    if entry is None:
        raise not_of_paths(str(identifier.name()))
    jvm = Jvm.of(spark)
    known, path = CatalogTable.of(spark, entry), jvm.root.org.apache.hadoop.fs.Path(location)
    ensure_movable(spark, known.name, known.path, str(path.toString()))
    uri = path.getFileSystem(jvm.hadoop_settings()).makeQualified(path).toUri()
    storage = with_field(entry.storage(), "locationUri", jvm.root.scala.Option.apply(uri))
    jvm.session.sessionState().catalog().alterTable(with_field(entry, "storage", storage))


def _make_entry(jvm: Jvm, identifier: Any, kind: Any, uri: Any) -> Any:
    """Make the Java `CatalogTable` of a Delta table."""
    some = jvm.root.scala.Option.apply
    no_serde = (jvm.none, jvm.none, jvm.none, False, jvm.empty_map)
    storage = make_case_class(jvm, f"{_CATALOG}.CatalogStorageFormat", some(uri), *no_serde)
    no_columns = jvm.root.org.apache.spark.sql.types.StructType()
    return make_case_class(
        jvm, f"{_CATALOG}.CatalogTable", identifier, kind, storage, no_columns, some(_DELTA)
    )
