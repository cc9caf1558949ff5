"""What every conversion asks for and commits, whatever the files were a table of (spec 10.13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from optimist.core.data.parquet_footers import Footer, FooterWish
from optimist.core.errors import ConfigError, SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import normalize_configuration
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import COLUMN_MAPPING_PREFIX, StructType, schema_to_json
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.conflicts.row_ids import is_row_tracking_on
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = [
    "COLUMN_MAPPING_MODE",
    "ICEBERG",
    "PARQUET",
    "ConvertRequest",
    "ReadFooters",
    "operation_of",
    "set_metadata",
    "wish_of",
]

PARQUET, ICEBERG = "parquet", "iceberg"
COLUMN_MAPPING_MODE = COLUMN_MAPPING_PREFIX + "mode"
_NONE = StructType()
_NOT_MAPPED: Mapping[str, str] = MappingProxyType({})
_DEFAULTS = "spark.databricks.delta.properties.defaults."

ReadFooters = Callable[[Sequence[str], FooterWish], Iterable[Footer]]
"""Reads the footers of files, in the order of their full paths."""


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """What is to be converted, and how.

    Attributes:
        partition_columns: The partition columns, as the directories name them.
        collects_statistics: Whether statistics are taken from the footers.
        zone: The time zone of times in directories' names.
        catalog_table: The name of the table in a catalog, for the history.
        properties: Properties that a catalog has for the table.
        comment: What a catalog says of the table, for people.
        columns: The columns that a catalog has for the table, with their order and comments.
        source_format: Of what the files are a table: `parquet`, a directory, or `iceberg`.
        metadata_file: Which version of a table of Iceberg, by the name of its metadata file; None
            for the newest.
    """

    partition_columns: StructType = _NONE
    collects_statistics: bool = True
    zone: str = "UTC"
    catalog_table: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    columns: StructType | None = None
    source_format: str = PARQUET
    metadata_file: str | None = None


def wish_of(
    txn: OptimisticTransaction, partition_columns: tuple[str, ...], request: ConvertRequest
) -> FooterWish:
    """What is wanted of the footers."""
    properties = TableMetadata.of(Metadata("", schema_to_json(StructType()))).properties
    return FooterWish(
        txn.table.data_access(),
        partition_columns,
        properties.data_skipping_num_indexed_cols if request.collects_statistics else None,
    )


def set_metadata(
    txn: OptimisticTransaction,
    schema: StructType,
    partition_columns: tuple[str, ...],
    request: ConvertRequest,
    *,
    mapping: Mapping[str, str] = _NOT_MAPPED,
) -> None:
    """Set the metadata of the new table, by the session's defaults.

    Args:
        txn: The transaction.
        schema: The columns.
        partition_columns: The names of those that the table is partitioned by.
        request: What else it has.
        mapping: The properties of column mapping that fit the files.

    Raises:
        SchemaError, ConfigError: See `convert`.
    """
    options = txn.table.options
    configuration = normalize_configuration(
        request.properties,
        allow_arbitrary=options.allow_arbitrary_properties,
        enforce_retention=options.enforce_retention_compatibility,
    )
    txn.update_metadata_for_new_table(
        Metadata(
            id="",
            schema_string=schema_to_json(schema),
            description=request.comment,
            partition_columns=partition_columns,
            configuration={**configuration, **mapping},
        )
    )
    mode = TableMetadata.of(txn.metadata).properties.column_mapping_mode
    if mode != mapping.get(COLUMN_MAPPING_MODE, "none"):
        raise ConfigError(
            f"The property {COLUMN_MAPPING_PREFIX}mode can't be {shown(mode)} for a table that is "
            "converted: its files have their columns by plain names. Nothing was written. Unset "
            f"{_DEFAULTS}columnMapping.mode, and set the property afterwards.",
            kind="DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
            mode=mode,
        )
    if not request.collects_statistics and is_row_tracking_on(txn.protocol, txn.metadata):
        raise SchemaError(
            "The rows of a converted table can't be tracked without statistics, which tell how "
            "many rows a file has. Nothing was written. Convert it without NO STATISTICS, or unset "
            f"{_DEFAULTS}enableRowTracking.",
            kind="DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS",
        )


def operation_of(
    num_files: int, partition_columns: tuple[str, ...], request: ConvertRequest
) -> Operation:
    """What the history says of a conversion."""
    parameters: dict[str, object] = {
        "numFiles": num_files,
        "partitionedBy": json_text(partition_columns),
        "collectStats": request.collects_statistics,
        "sourceFormat": request.source_format,
    }
    if request.catalog_table is not None:
        parameters["catalogTable"] = request.catalog_table
    return Operation("CONVERT", parameters).with_metrics({"numConvertedFiles": num_files})
