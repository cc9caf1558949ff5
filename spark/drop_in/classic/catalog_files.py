"""Tables of the session's catalog that are none of Delta's, and what it says of their files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.care.conversion import ConvertRequest
from optimist.core.schema.types import StructType
from optimist.spark.commands.names import CatalogTable
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import Jvm, iterate, text_map
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["CatalogFiles", "entry_of_name", "provider_of"]


@dataclass(frozen=True, slots=True)
class CatalogFiles:
    """The files of a table that is none of Delta's.

    Attributes:
        path: Where they are.
        shown_name: The table's name with all parts, without quotes.
        request: What the catalog says of them.
    """

    path: str
    shown_name: str
    request: ConvertRequest

    @classmethod
    def of(cls, spark: SparkSession, entry: Any) -> CatalogFiles:
        """From a Java `CatalogTable`.

        Raises:
            TableError: The entry has no location (kind `OPTIMIST_TABLE_WITHOUT_LOCATION`).
        """
        known = CatalogTable.of(spark, entry)
        comment = entry.comment()
        request = ConvertRequest(
            _partition_columns(entry),
            zone=session_zone_name(spark),
            catalog_table=known.name,
            properties=_properties(spark, entry),
            comment=str(comment.get()) if comment.isDefined() else None,
            columns=_schema(entry.dataSchema()),
        )
        return cls(known.path, known.shown_name, request)


def entry_of_name(spark: SparkSession, name: str) -> Any:
    """What the session's catalog has of a name, a Java `CatalogTable`.

    Raises:
        AnalysisException: Spark knows no such table.
    """
    state = Jvm.of(spark).session.sessionState()
    identifier = state.sqlParser().parseTableIdentifier(name)
    return state.catalog().getTempViewOrPermanentTableMetadata(identifier)


def provider_of(entry: Any) -> str | None:
    """The format of a table of the catalog, as it was given; None for a view."""
    if str(entry.tableType().name()) == "VIEW":
        return None
    provider = entry.provider()
    return str(provider.get()) if provider.isDefined() else "unknown"


def _partition_columns(entry: Any) -> StructType:
    names = {str(name) for name in iterate(entry.partitionColumnNames())}
    return StructType(tuple(item for item in _schema(entry.schema()) if item.name in names))


def _schema(schema: Any) -> StructType:
    found = st.StructType.fromJson(json.loads(schema.json()))
    return from_spark_schema(found)


def _properties(spark: SparkSession, entry: Any) -> dict[str, str]:
    java = Jvm.of(spark).root.scala.jdk.javaapi.CollectionConverters.asJava(entry.properties())
    return text_map(spark, java)
