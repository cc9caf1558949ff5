"""The files of a Parquet table of a Spark Connect server's catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import unquote

from pyspark.sql import SparkSession

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
from optimist.core.schema.types import StructType
from optimist.core.sql import parts_of_name
from optimist.spark.commands.catalog.places import is_below
from optimist.spark.commands.catalog.server_names import ServerEntry, raise_unknown, server_entry
from optimist.spark.session.conf import session_zone_name
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["files_on_server"]

_HIDDEN = "*********(redacted)"
"""What Spark shows in the place of a value whose key matches `spark.redaction.regex`."""


def files_on_server(spark: SparkSession, name: str) -> tuple[str, ConvertRequest] | None:
    """Return where a table's files are, and what the catalog says of them; None if it has none.

    Args:
        spark: A Spark Connect client.
        name: The name of a table of any format, or of a view.

    Raises:
        AnalysisException: Spark does not know the name.
        UsageError: Some files are elsewhere than below the table (kind
            `OPTIMIST_CATALOG_PARTITIONS_DIFFER`), or the server hides a property (kind
            `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    entry = server_entry(spark, parts_of_name(name))
    if entry is None:
        raise_unknown(spark, name)
    if entry.location is None or not entry.is_parquet:
        return None
    columns = spark.catalog.listColumns(entry.name)
    partitioned = {each.name for each in columns if each.isPartition}
    schema = from_spark_schema(spark.table(entry.name).schema)
    _ensure_below(spark, entry, entry.location)
    request = ConvertRequest(
        StructType(tuple(item for item in schema if item.name in partitioned)),
        zone=session_zone_name(spark),
        catalog_table=entry.shown_name,
        properties=_properties(spark, entry),
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


def _properties(spark: SparkSession, entry: ServerEntry) -> Mapping[str, str]:
    """Return the properties that users gave the table, and Hive.

    SHOW TBLPROPERTIES would also tell the options of the files among them.

    Raises:
        UsageError: The server hides the value of one.
    """
    (row,) = spark.sql(f"DESCRIBE EXTENDED {entry.name} AS JSON").collect()
    told: Mapping[str, str] = json.loads(row[0]).get("table_properties") or {}
    for key, value in told.items():
        if value == _HIDDEN:
            raise UsageError(
                f"The table {shown(entry.shown_name)} has the property {shown(key)}, whose value "
                "the server hides, since its name matches spark.redaction.regex. Nothing was "
                "written. Unset the property, or run the statement in a classic session.",
                kind="OPTIMIST_UNSUPPORTED_STATEMENT",
                statement=f"A table with the hidden property {key}",
            )
    return told
