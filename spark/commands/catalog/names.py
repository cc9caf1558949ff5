"""Search for a table by name: ``delta.`/path` ``, or a name of Spark's session catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.errors import TableError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.sql import parts_of_name, path_in_name
from optimist.spark.commands.catalog.server_names import raise_unknown, server_entry
from optimist.spark.session.jvm import Jvm, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = [
    "CatalogTable",
    "catalog_entry",
    "catalog_table",
    "in_session_catalog",
    "is_delta",
    "is_enabled",
    "known_path",
    "name_parts",
    "named_table",
    "table_path",
    "without_location",
]

_MAYBE_NAME = re.compile(r"[^/:]+")
_SESSION_CATALOG = "spark_catalog"
_PATH_CATALOG = "delta"
_TEMPORARY_PARTS = ["system", "session"]
_CATALOG_CONF = f"spark.sql.catalog.{_SESSION_CATALOG}"
_OWN_CATALOG = "optimist.dropin.DeltaCatalog"
_DELTA = "delta"
_CLASS_IN_JAR = "org.apache.spark.sql.delta.sources.DeltaDataSource"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A Delta table's entry in Spark's session catalog.

    Attributes:
        name: Its name with all parts, as SQL writes it.
        shown_name: The name without quotes, as Delta shows it.
        parts: The parts of the name, the catalog first.
        path: The table's path.
        is_managed: True if the catalog removes the files with the entry.
        owner: The owner; may be empty.
    """

    name: str
    shown_name: str
    parts: tuple[str, ...]
    path: str
    is_managed: bool
    owner: str

    @classmethod
    def of(cls, spark: SparkSession, entry: Any) -> CatalogTable:
        """Convert a Java `CatalogTable`.

        Raises:
            TableError: The entry has no location (kind `OPTIMIST_TABLE_WITHOUT_LOCATION`).
        """
        identifier = entry.identifier()
        name, shown_name = str(identifier.quotedString()), str(identifier.unquotedString())
        location = entry.storage().locationUri()
        if location.isEmpty():
            raise without_location(name)
        path = Jvm.of(spark).root.org.apache.hadoop.fs.Path(location.get()).toString()
        kind = str(entry.tableType().name())
        parts = tuple(map(str, iterate(identifier.nameParts())))
        return cls(name, shown_name, parts, str(path), kind == "MANAGED", str(entry.owner() or ""))


def without_location(name: str) -> TableError:
    """Return the error for an entry of a catalog that tells no location."""
    return TableError(
        f"The catalog's entry {name} has no location. Nothing was read or written. Drop it, and "
        "create the table again.",
        kind="OPTIMIST_TABLE_WITHOUT_LOCATION",
        name=name,
    )


def is_delta(source: object) -> bool:
    """Check whether a format is Delta's, by its name or by its class in Delta's jar."""
    return isinstance(source, str) and (source.lower() == _DELTA or source == _CLASS_IN_JAR)


def is_enabled(spark: SparkSession) -> bool:
    """Check whether `enable` was called for the session, so that Spark's SQL reaches Delta tables.

    A new session is enabled like its parent, but only once it has parsed a name or a statement.
    """
    if is_connect(spark):
        return False
    spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(_SESSION_CATALOG)
    return spark.conf.get(_CATALOG_CONF, None) == _OWN_CATALOG


def known_path(spark: SparkSession, text: str) -> str:
    """Return the path of a Delta table's name, or the text itself as a path."""
    if path_in_name(text) is None and not _MAYBE_NAME.fullmatch(text):
        return text
    try:
        return table_path(spark, text)
    except (AnalysisException, UsageError):
        return text


def table_path(spark: SparkSession, name: str) -> str:
    """Return the path of the table with a name, with arguments and errors of `named_table`."""
    return named_table(spark, name)[0]


def named_table(spark: SparkSession, name: str) -> tuple[str, CatalogTable | None]:
    """Return the path of a named table, and its entry in the catalog or None.

    Args:
        spark: A classic session, or a Spark Connect client.
        name: ``delta.`/path` ``, or a name in the session catalog with or without its database.

    Raises:
        UsageError: The name belongs to a view, or to a table that is not a Delta table (kind
            `DELTA_TABLE_ONLY_OPERATION`).
        AnalysisException: Spark does not know the table.
    """
    path = path_in_name(name)
    if path is not None:
        return path, None
    entry = _server_table(spark, name) if is_connect(spark) else catalog_table(spark, name)
    return entry.path, entry


def _server_table(spark: SparkSession, name: str) -> CatalogTable:
    """Return the entry of a Delta table in the catalog of a Spark Connect server."""
    entry = server_entry(spark, parts_of_name(name))
    if entry is None:
        raise_unknown(spark, name)
    if entry.kind == "VIEW":
        raise _not_delta(name, "is a view")
    if not is_delta(entry.provider):
        raise _not_delta(name, "is of another format")
    if entry.location is None:
        raise without_location(entry.name)
    is_managed = entry.kind == "MANAGED"
    return CatalogTable(
        entry.name, entry.shown_name, entry.parts, entry.location, is_managed, entry.owner
    )


def name_parts(spark: SparkSession, name: str) -> list[str]:
    """Return the parts of a name of the catalog, as Spark's parser reads it."""
    parser = Jvm.of(spark).session.sessionState().sqlParser()
    return [str(part) for part in iterate(parser.parseMultipartIdentifier(name))]


def in_session_catalog(spark: SparkSession, name: str) -> list[str] | None:
    """Return the database, if any, and the table of a name in the session catalog.

    Names are read as by Spark's analyzer: if the first part is a catalog, it is that catalog;
    otherwise the name is in the session's current catalog. The catalog `delta` has the names of the
    session catalog; a name without a database is in its database `delta`.

    Args:
        spark: A classic session.
        name: The name.

    Returns:
        None if the name belongs to another catalog.
    """
    jvm = Jvm.of(spark)
    parts = name_parts(spark, name)
    if [part.lower() for part in parts[:2]] == _TEMPORARY_PARTS:
        return parts[1:]
    manager = jvm.session.sessionState().catalogManager()
    names_catalog = len(parts) > 1 and manager.isCatalogRegistered(parts[0])
    catalog = parts[0] if names_catalog else str(manager.currentCatalog().name())
    within = parts[1:] if names_catalog else parts
    if len(within) == 1 and catalog == _PATH_CATALOG:
        current = [] if names_catalog else [str(part) for part in manager.currentNamespace()]
        within = [*(current or [_PATH_CATALOG]), *within]
    is_known = catalog.lower() == _SESSION_CATALOG or catalog == _PATH_CATALOG
    return within if is_known and len(within) <= 2 else None


def catalog_table(spark: SparkSession, name: str) -> CatalogTable:
    """Return the entry of a Delta table in the session catalog.

    It raises the errors of `table_path`.
    """
    entry = catalog_entry(spark, name)
    provider = entry.provider()
    if str(entry.tableType().name()) == "VIEW":
        raise _not_delta(name, "is a view")
    if provider.isEmpty() or not is_delta(str(provider.get())):
        raise _not_delta(name, "is of another format")
    return CatalogTable.of(spark, entry)


def catalog_entry(spark: SparkSession, name: str) -> Any:
    """Return the entry of a table or view in the session catalog, a Java `CatalogTable`.

    Raises:
        AnalysisException: Spark does not know the name.
        UsageError: The name belongs to another catalog (kind `DELTA_TABLE_ONLY_OPERATION`).
    """
    jvm = Jvm.of(spark)
    given = name_parts(spark, name)
    parts = given if _is_temporary(jvm, given) else in_session_catalog(spark, name)
    if parts is None:
        raise _not_delta(name, "is in a catalog that Optimist does not know")
    return _find_entry(jvm, _make_identifier(jvm, parts))


def _is_temporary(jvm: Jvm, parts: Sequence[str]) -> bool:
    """Check for a temporary view's name, which comes before tables of any catalog."""
    catalog = jvm.session.sessionState().catalog()
    return len(parts) < 3 and bool(catalog.isTempView(_make_identifier(jvm, parts)))


def _make_identifier(jvm: Jvm, parts: Sequence[str]) -> Any:
    database = jvm.root.scala.Option.apply(parts[-2] if parts[1:] else None)
    return jvm.catalyst.TableIdentifier(parts[-1], database)


def _find_entry(jvm: Jvm, identifier: Any) -> Any:
    """Return the entry of a name, where `session.v` may be a temporary view or a table."""
    catalog = jvm.session.sessionState().catalog()
    try:
        return catalog.getTempViewOrPermanentTableMetadata(identifier)
    except AnalysisException:
        if not catalog.tableExists(identifier):
            jvm.session.table(identifier.quotedString())  # raises Spark's own error
            raise
        return catalog.getTableMetadata(identifier)


def _not_delta(name: str, problem: str) -> UsageError:
    return UsageError(
        f"{shown(name)} is not a Delta table: it {problem}. Nothing was read or written. Name a "
        "Delta table, or give its path.",
        kind="DELTA_TABLE_ONLY_OPERATION",
        name=name,
    )
