"""The files of a Parquet table of a Spark Connect server's catalog."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from pyspark.sql import SparkSession

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import PARQUET, ConvertRequest
from optimist.core.schema.types import StructType
from optimist.core.sql import parts_of_name
from optimist.spark.commands.catalog.places import is_below
from optimist.spark.commands.catalog.server_names import ServerEntry, raise_unknown, server_entry
from optimist.spark.session.conf import session_zone_name
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["files_on_server"]

_INNER = ("transient_lastDdlTime", "owner", "provider", "location", "comment")


def files_on_server(spark: SparkSession, name: str) -> tuple[str, ConvertRequest] | None:
    """Return where a table's files are, and what the catalog says of them; None if it has none.

    Args:
        spark: A Spark Connect client.
        name: The name of a table of any format, or of a view.

    Raises:
        AnalysisException: Spark does not know the name.
        UsageError: Some files are elsewhere than below the table (kind
            `OPTIMIST_CATALOG_PARTITIONS_DIFFER`).
    """
    entry = server_entry(spark, parts_of_name(name))
    if entry is None:
        raise_unknown(spark, name)
    if entry.location is None or (entry.provider or "").lower() != PARQUET:
        return None
    columns = spark.catalog.listColumns(entry.name)
    partitioned = {each.name for each in columns if each.isPartition}
    schema = from_spark_schema(spark.table(entry.name).schema)
    _ensure_below(spark, entry, entry.location)
    request = ConvertRequest(
        StructType(tuple(item for item in schema if item.name in partitioned)),
        zone=session_zone_name(spark),
        catalog_table=entry.shown_name,
        properties=dict(_properties(spark, entry)),
        comment=spark.catalog.getTable(entry.name).description,
        columns=StructType(tuple(item for item in schema if item.name not in partitioned)),
        directories=_directories(spark, entry) if partitioned else None,
    )
    return entry.location, request


def _directories(spark: SparkSession, entry: ServerEntry) -> frozenset[str]:
    """Return the directories of the partitions that the catalog knows, below the table."""
    rows = spark.sql(f"SHOW PARTITIONS {entry.name}").collect()
    return frozenset(str(row["partition"]) for row in rows)


def _ensure_below(spark: SparkSession, entry: ServerEntry, location: str) -> None:
    """Refuse a table with partitions elsewhere, whose place the catalog tells one by one."""
    for file in spark.table(entry.name).inputFiles():
        if not is_below(unquote(file), location):
            raise UsageError(
                f"The file {shown(file)} of {shown(entry.shown_name)} lies outside of the table's "
                f"directory, {shown(location)}. Nothing was written. Copy its partition below the "
                "table; or create a table with the rows.",
                kind="OPTIMIST_CATALOG_PARTITIONS_DIFFER",
                path=file,
            )


def _properties(spark: SparkSession, entry: ServerEntry) -> Iterator[tuple[str, str]]:
    for key, value in spark.sql(f"SHOW TBLPROPERTIES {entry.name}").collect():
        if key not in _INNER:
            yield str(key), str(value)
