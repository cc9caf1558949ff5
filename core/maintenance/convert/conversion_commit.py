"""The request, the files and the commit that all conversions share (spec 10.13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optimist.core.data.parquet.parquet_footers import Footer, FooterWish
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import ConfigError, SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.protocol.properties import FEATURE_PREFIX, normalize_configuration
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import COLUMN_MAPPING_PREFIX, StructType, schema_to_json
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.conflicts.row_ids import is_row_tracking_on
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = [
    "COLUMN_MAPPING_MODE",
    "ICEBERG",
    "PARQUET",
    "ConvertRequest",
    "FilesFound",
    "ReadFooters",
    "asked_properties",
    "operation_of",
    "properties_added",
    "set_metadata",
    "wish_of",
]

PARQUET, ICEBERG = "parquet", "iceberg"
COLUMN_MAPPING_MODE = COLUMN_MAPPING_PREFIX + "mode"
_NONE = StructType()
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_VERSIONS = ("delta.minreaderversion", "delta.minwriterversion")
_OF_HIVE = "transient_lastDdlTime"
"""A property that Hive adds to entries itself: when they were changed last."""

ReadFooters = Callable[[Sequence[str], FooterWish], Iterable[Footer]]
"""Reads the footers of files, in the order of their full paths."""


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """A request for a conversion.

    Attributes:
        partition_columns: The partition columns, as the directories name them.
        collects_statistics: Whether the footers' statistics are put in the log.
        zone: The time zone of timestamps in directory names; None for that of the options.
        catalog_table: The name of the table in a catalog, for the history.
        properties: Properties that a catalog has for the table.
        comment: The table's comment in a catalog.
        name: What the table calls itself.
        columns: The columns that a catalog has for the table, with their order and comments.
        directories: The paths of the table's partitions in a catalog, below the table; None to take
            the directories that exist.
        source_format: The format of the files: `parquet` for a directory, or `iceberg`.
        metadata_file: The name of the metadata file of an Iceberg table's version; None for the
            newest.
    """

    partition_columns: StructType = _NONE
    collects_statistics: bool = True
    zone: str | None = None
    catalog_table: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    name: str | None = None
    columns: StructType | None = None
    directories: frozenset[str] | None = None
    source_format: str = PARQUET
    metadata_file: str | None = None


@dataclass(frozen=True, slots=True)
class FilesFound:
    """The files of a table of another format, and their columns.

    Attributes:
        schema: The columns.
        partition_columns: The names of the partition columns.
        adds: The files, as a log records them.
        ensure_unchanged: Lists the files again; raises a `UsageError` of the kind
            `OPTIMIST_DIRECTORY_BEING_WRITTEN` if somebody has written meanwhile.
        comment: The table's own comment.
        mapping: The properties of column mapping that fit the files.
    """

    schema: StructType
    partition_columns: tuple[str, ...]
    adds: Sequence[AddFile]
    ensure_unchanged: Callable[[], None]
    comment: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)

    def metadata(self, properties: Mapping[str, str]) -> Metadata:
        """Return the metadata of a table of these files.

        Args:
            properties: The table's properties, except those of column mapping.
        """
        return Metadata(
            id="",
            schema_string=schema_to_json(self.schema),
            description=self.comment,
            partition_columns=self.partition_columns,
            configuration={**properties, **self.mapping},
        )


def wish_of(
    table: TableRef, partition_columns: tuple[str, ...], request: ConvertRequest
) -> FooterWish:
    """Return what the reader of the footers has to collect."""
    properties = TableMetadata.of(Metadata("", schema_to_json(StructType()))).properties
    return FooterWish(
        table.data_access(),
        partition_columns,
        properties.data_skipping_num_indexed_cols if request.collects_statistics else None,
    )


def asked_properties(table: TableRef, request: ConvertRequest) -> dict[str, str]:
    """Return the table's properties in a catalog, normalized as in a log.

    Raises:
        ConfigError: One of them is not valid.
    """
    given = {key: text for key, text in request.properties.items() if key != _OF_HIVE}
    return normalize_configuration(
        given,
        allow_arbitrary=table.options.allow_arbitrary_properties,
        enforce_retention=table.options.enforce_retention_compatibility,
    )


def set_metadata(txn: OptimisticTransaction, found: FilesFound, request: ConvertRequest) -> None:
    """Set the metadata of the new table, with the session's defaults.

    Raises:
        SchemaError, ConfigError: See `convert`.
    """
    metadata = found.metadata(asked_properties(txn.table, request))
    txn.update_metadata_for_new_table(replace(metadata, name=request.name))
    mode = TableMetadata.of(txn.metadata).properties.column_mapping_mode
    if mode != found.mapping.get(COLUMN_MAPPING_MODE, "none"):
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


def properties_added(txn: OptimisticTransaction, request: ConvertRequest) -> CommitResult | None:
    """Add a catalog's properties to a table that was converted before, by its path.

    Properties that only change the protocol are left: the table had its own when it was made.

    Returns:
        The commit; None if there is nothing to add.

    Raises:
        UsageError: The table has properties already, and not all of these (kind
            `DELTA_CONVERT_METASTORE_METADATA_MISMATCH`).
    """
    asked = asked_properties(txn.table, request) if request.catalog_table is not None else {}
    given = {key: text for key, text in asked.items() if not _is_of_protocol(key)}
    known = txn.metadata.configuration
    if given.items() <= known.items():
        return None
    if known:
        raise UsageError(
            f"The directory {shown(txn.table.table_path)} has a Delta log already. Its properties "
            f"{shown(dict(known))} don't match those of the catalog, {shown(given)}. Nothing was "
            "written. Make them alike: use ALTER TABLE delta.`path` SET TBLPROPERTIES, or unset "
            "them in the catalog.",
            kind="DELTA_CONVERT_METASTORE_METADATA_MISMATCH",
            path=txn.table.table_path,
        )
    txn.ensure_writable(to_alter=True)
    txn.update_metadata(replace(txn.metadata, configuration=given))
    return txn.commit((), _operation(0, (), replace(request, collects_statistics=False)))


def _is_of_protocol(key: str) -> bool:
    return key.lower().startswith((FEATURE_PREFIX, *_VERSIONS))


def operation_of(found: FilesFound, request: ConvertRequest) -> Operation:
    """Return the entry of a conversion for the history."""
    num_files = len(found.adds)
    operation = _operation(num_files, found.partition_columns, request)
    return operation.with_metrics({"numConvertedFiles": num_files})


def _operation(
    num_files: int, partition_columns: Sequence[str], request: ConvertRequest
) -> Operation:
    parameters: dict[str, object] = {
        "numFiles": num_files,
        "partitionedBy": json_text(partition_columns),
        "collectStats": request.collects_statistics,
        "sourceFormat": request.source_format,
    }
    if request.catalog_table is not None:
        parameters["catalogTable"] = request.catalog_table
    return Operation("CONVERT", parameters)
