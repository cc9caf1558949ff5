"""Tables of the session's catalog that are none of Delta's, and what it says of their files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
from optimist.core.schema.types import StructType
from optimist.core.statements.conversions import format_of_files
from optimist.spark.commands.catalog.names import CatalogTable
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import Jvm, iterate, text_map
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["CatalogFiles", "provider_of"]


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
        """Read a Java `CatalogTable`.

        Raises:
            TableError: The entry has no location (kind `OPTIMIST_TABLE_WITHOUT_LOCATION`).
            UsageError: A partition is elsewhere than below the table, by its values (kind
                `OPTIMIST_CATALOG_PARTITIONS_DIFFER`).
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
            directories=_directories(spark, entry, known.shown_name),
        )
        return cls(known.path, known.shown_name, request)


def provider_of(entry: Any) -> str | None:
    """Return the format of a table of the catalog (`format_of_files`), or None for a view."""
    if str(entry.tableType().name()) == "VIEW":
        return None
    provider, serde = entry.provider(), entry.storage().serde()
    if provider.isEmpty():
        return "unknown"
    return format_of_files(str(provider.get()), str(serde.get()) if serde.isDefined() else None)


def _partition_columns(entry: Any) -> StructType:
    names = {str(name) for name in iterate(entry.partitionColumnNames())}
    return StructType(tuple(item for item in _schema(entry.schema()) if item.name in names))


def _directories(spark: SparkSession, entry: Any, shown_name: str) -> frozenset[str] | None:
    """Return the paths of the partitions that the catalog knows, or None without them."""
    if not entry.tracksPartitionsInCatalog() or entry.partitionColumnNames().isEmpty():
        return None
    jvm = Jvm.of(spark)
    path_of, names = jvm.root.org.apache.hadoop.fs.Path, entry.partitionColumnNames()
    place_of = jvm.catalyst.catalog.ExternalCatalogUtils.generatePartitionPath
    root, catalog = path_of(entry.location()), jvm.session.sessionState().catalog()
    found = set()
    for each in iterate(catalog.listPartitions(entry.identifier(), jvm.root.scala.Option.empty())):
        location = path_of(each.location()).toString()
        own = place_of(each.spec(), names, root).toString()
        if location != own:
            raise UsageError(
                f"A partition of {shown(shown_name)} lies in {shown(location)}, and not where its "
                f"values say, in {shown(own)}. Nothing was written. Drop the partition, and copy "
                "its files below the table; or create a table with the rows.",
                kind="OPTIMIST_CATALOG_PARTITIONS_DIFFER",
                path=location,
            )
        found.add(location.removeprefix(f"{root.toString()}/"))
    return frozenset(found)


def _schema(schema: Any) -> StructType:
    found = st.StructType.fromJson(json.loads(schema.json()))
    return from_spark_schema(found)


def _properties(spark: SparkSession, entry: Any) -> dict[str, str]:
    java = Jvm.of(spark).root.scala.jdk.javaapi.CollectionConverters.asJava(entry.properties())
    return text_map(spark, java)
