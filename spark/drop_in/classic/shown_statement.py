"""SHOW CREATE TABLE and SHOW TBLPROPERTIES: what a table says of itself."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from optimist.core.commands.create.existing_definition import definition_of
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import implied_features
from optimist.core.snapshot import Snapshot
from optimist.spark.commands.catalog.names import CatalogTable
from optimist.spark.commands.catalog.table_statement import create_statement
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.rows.local_rows import local_frame

__all__ = ["show_statement", "shown_properties", "statement_text"]

_SCHEMA = StructType([StructField("createtab_stmt", StringType(), False)])


def show_statement(
    spark: SparkSession, snapshot: Snapshot, name: str, entry: CatalogTable | None
) -> Any:
    """A plan with `statement_text` in one row.

    Args:
        spark: The session.
        snapshot: The version.
        name: The table's name, as SQL writes it.
        entry: Its entry in the catalog; None for a path.
    """
    text = statement_text(snapshot, name, entry)

    def run(session: SparkSession) -> DataFrame:
        return local_frame(session, pa.table({"createtab_stmt": [text]}), _SCHEMA)

    return python_command(spark, f"SHOW CREATE TABLE {name}", _SCHEMA, run)


def statement_text(snapshot: Snapshot, name: str, entry: CatalogTable | None) -> str:
    """The statement that makes a table like one that is there; it can be run under another name.

    Spark's own would leave out what is generated and what may not be null. CHECK constraints are
    among the properties, as Delta shows them. For the arguments see `show_statement`.
    """
    location = None if entry is None or entry.is_managed else entry.path
    return create_statement(name, definition_of(snapshot), location)


def shown_properties(snapshot: Snapshot) -> dict[str, str]:
    """The properties of a table as Delta shows them: with its protocol, comment and clustering."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    shown = dict(metadata.configuration)
    clustered = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    if clustered:
        shown["clusteringColumns"] = json.dumps(clustered, separators=(",", ":"))
    shown["delta.minReaderVersion"] = str(protocol.min_reader_version)
    shown["delta.minWriterVersion"] = str(protocol.min_writer_version)
    if protocol.min_writer_version >= 7:
        for feature in implied_features(protocol):
            shown[f"delta.feature.{feature}"] = "supported"
    if metadata.description is not None:
        shown["comment"] = metadata.description
    return shown
