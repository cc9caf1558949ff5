"""Finding a table by its name: ``delta.`/path` ``, or a name of Spark's session catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.errors import TableError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.sql import path_in_name
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
]

_MAYBE_NAME = re.compile(r"[^/:]+")
_SESSION_CATALOG = "spark_catalog"
_PATH_CATALOG = "delta"
_OF_TEMPORARY = ["system", "session"]
_CATALOG_CONF = f"spark.sql.catalog.{_SESSION_CATALOG}"
_OWN_CATALOG = "optimist.dropin.DeltaCatalog"
_DELTA = "delta"
_CLASS_IN_JAR = "org.apache.spark.sql.delta.sources.DeltaDataSource"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A Delta table's entry in Spark's session catalog.

    Attributes:
        name: Its name with all parts, as SQL writes it.
        shown_name: The same without quotes, as Delta tells it.
        parts: The same in parts, the catalog first.
        path: Where the table is.
        is_managed: Whether the files go with the entry.
        owner: Whose it is; may be empty.
    """

    name: str
    shown_name: str
    parts: tuple[str, ...]
    path: str
    is_managed: bool
    owner: str

    @classmethod
    def of(cls, spark: SparkSession, entry: Any) -> CatalogTable:
        """From a Java `CatalogTable`.

        Raises:
            TableError: The entry has no location (kind `OPTIMIST_TABLE_WITHOUT_LOCATION`).
        """
        identifier = entry.identifier()
        name, shown_name = str(identifier.quotedString()), str(identifier.unquotedString())
        location = entry.storage().locationUri()
        if location.isEmpty():
            raise TableError(
                f"The catalog's entry {name} has no location. Nothing was read or written. Drop "
                "it, and create the table again.",
                kind="OPTIMIST_TABLE_WITHOUT_LOCATION",
                name=name,
            )
        path = Jvm.of(spark).root.org.apache.hadoop.fs.Path(location.get()).toString()
        kind = str(entry.tableType().name())
        parts = tuple(map(str, iterate(identifier.nameParts())))
        return cls(name, shown_name, parts, str(path), kind == "MANAGED", str(entry.owner() or ""))


def is_delta(source: object) -> bool:
    """Whether a format is Delta's: by its name, or by that of its class in Delta's jar."""
    return isinstance(source, str) and (source.lower() == _DELTA or source == _CLASS_IN_JAR)


def is_enabled(spark: SparkSession) -> bool:
    """Whether Spark's own SQL and catalog reach Delta tables: `enable` was called for the session.

    A new session is enabled like the one that it was made from, and knows so once it has parsed
    a name or a statement.
    """
    if is_connect(spark):
        return False
    spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(_SESSION_CATALOG)
    return spark.conf.get(_CATALOG_CONF, None) == _OWN_CATALOG


def known_path(spark: SparkSession, text: str) -> str:
    """The path that a text names; a text that is not the name of a Delta table is itself a path."""
    if path_in_name(text) is None and (is_connect(spark) or not _MAYBE_NAME.fullmatch(text)):
        return text
    try:
        return table_path(spark, text)
    except (AnalysisException, UsageError):
        return text


def table_path(spark: SparkSession, name: str) -> str:
    """The path of the table with a name; arguments and errors are those of `named_table`."""
    return named_table(spark, name)[0]


def named_table(spark: SparkSession, name: str) -> tuple[str, CatalogTable | None]:
    """The path of the table with a name, and its entry in the catalog; None for a path.

    Args:
        spark: A classic session, or a Spark Connect client, which knows paths only.
        name: ``delta.`/path` ``, or a name in the session catalog with or without its database.

    Raises:
        UsageError: The name is one of a catalog, in Spark Connect (kind
            `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`); or it is the name of a view, or of a table that
            is no Delta table (kind `DELTA_TABLE_ONLY_OPERATION`).
        AnalysisException: Spark knows no such table.
    """
    path = path_in_name(name)
    if path is not None:
        return path, None
    if is_connect(spark):
        raise UsageError(
            f"The name {name!r} is a name in the server's catalog, from which a client can't "
            "learn where the table is. Use DeltaTable.forPath(spark, path), or a name of the form "
            "delta.`path`.",
            kind="OPTIMIST_CATALOG_NAMES_UNSUPPORTED",
            name=name,
        )
    entry = catalog_table(spark, name)
    return entry.path, entry


def name_parts(spark: SparkSession, name: str) -> list[str]:
    """The parts of a name of the catalog, as Spark's parser reads it."""
    parser = Jvm.of(spark).session.sessionState().sqlParser()
    return [str(part) for part in iterate(parser.parseMultipartIdentifier(name))]


def in_session_catalog(spark: SparkSession, name: str) -> list[str] | None:
    """The database, if any, and the table that a name means in the session catalog.

    As Spark's analyzer reads names: a first part that is a catalog is that one, and what names no
    catalog is in the session's current one. The catalog `delta` has the names of the session
    catalog, and those that name no database in its database `delta`.

    Args:
        spark: A classic session.
        name: The name.

    Returns:
        None if the name is one of another catalog.
    """
    jvm = Jvm.of(spark)
    parts = name_parts(spark, name)
    if [part.lower() for part in parts[:2]] == _OF_TEMPORARY:
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
    """The entry of a Delta table in the session catalog; Raises as `table_path`."""
    entry = catalog_entry(spark, name)
    provider = entry.provider()
    if str(entry.tableType().name()) == "VIEW":
        raise _not_delta(name, "is a view")
    if provider.isEmpty() or not is_delta(str(provider.get())):
        raise _not_delta(name, "is of another format")
    return CatalogTable.of(spark, entry)


def catalog_entry(spark: SparkSession, name: str) -> Any:
    """What the session catalog has of a name, a Java `CatalogTable`: a table or a view.

    Raises:
        AnalysisException: Spark knows no such name.
        UsageError: It is a name of another catalog (kind `DELTA_TABLE_ONLY_OPERATION`).
    """
    jvm = Jvm.of(spark)
    given = name_parts(spark, name)
    parts = given if _is_temporary(jvm, given) else in_session_catalog(spark, name)
    if parts is None:
        raise _not_delta(name, "is in a catalog that Optimist does not know")
    return _entry(jvm, _identifier(jvm, parts))


def _is_temporary(jvm: Jvm, parts: Sequence[str]) -> bool:
    """Whether a name is that of a temporary view, which comes before tables of any catalog."""
    catalog = jvm.session.sessionState().catalog()
    return len(parts) < 3 and bool(catalog.isTempView(_identifier(jvm, parts)))


def _identifier(jvm: Jvm, parts: Sequence[str]) -> Any:
    database = jvm.root.scala.Option.apply(parts[-2] if parts[1:] else None)
    return jvm.catalyst.TableIdentifier(parts[-1], database)


def _entry(jvm: Jvm, identifier: Any) -> Any:
    """The entry of a name; `session.v` is a temporary view, or a table in schema `session`."""
    catalog = jvm.session.sessionState().catalog()
    try:
        return catalog.getTempViewOrPermanentTableMetadata(identifier)
    except AnalysisException:
        if not catalog.tableExists(identifier):
            jvm.session.table(identifier.quotedString())  # Spark says it as in any statement
            raise
        return catalog.getTableMetadata(identifier)


def _not_delta(name: str, problem: str) -> UsageError:
    return UsageError(
        f"{shown(name)} is not a Delta table: it {problem}. Nothing was read or written. Name a "
        "Delta table, or give its path.",
        kind="DELTA_TABLE_ONLY_OPERATION",
        name=name,
    )
