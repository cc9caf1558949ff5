"""CONVERT TO DELTA: a log for Parquet files, where they are (spec 10.13).

1. If there is a log already, nothing is done.
2. The directory is listed. Partition values come from its names.
3. The footers are read. Their columns are merged; columns whose types can't be are refused.
4. The directory is listed again: a file that came, went or grew meanwhile is refused.
5. One attempt is made to commit version 0.

The files stay as they are, so the directory can be read as Parquet as before; but rows that are
deleted or updated in the table are still in the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from optimist.core.care.parquet_directory import ParquetFile, parquet_files, partition_values_of
from optimist.core.data.parquet_footers import Footer, FooterWish, read_footer
from optimist.core.errors import ConfigError, SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.protocol.properties import normalize_configuration
from optimist.core.protocol.schema_merge import merge_schemas
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.running.read_ahead import read_ahead
from optimist.core.schema.types import (
    COLUMN_MAPPING_PREFIX,
    StructType,
    schema_from_json,
    schema_to_json,
)
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.conflicts.row_ids import is_row_tracking_on
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["ConvertRequest", "ReadFooters", "convert", "read_footers"]

_READERS = 16
_NONE = StructType()
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
    """

    partition_columns: StructType = _NONE
    collects_statistics: bool = True
    zone: str = "UTC"
    catalog_table: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    columns: StructType | None = None


def read_footers(paths: Sequence[str], wish: FooterWish) -> Iterable[Footer]:
    """Read footers in this process, by threads."""
    read = partial(read_footer, wish=wish)
    return read_ahead(read, paths, threads=_READERS, ahead=4 * _READERS)


def convert(
    txn: OptimisticTransaction, request: ConvertRequest, read: ReadFooters = read_footers
) -> CommitResult | None:
    """Make a table of Parquet files.

    Args:
        txn: A transaction that has just begun, at the directory of the files.
        request: What is to be converted, and how.
        read: Reads the footers.

    Returns:
        The commit; None if there is a table already.

    Raises:
        TableNotFoundError: There are no files.
        SchemaError: Files have columns that don't go together (kind
            `DELTA_FAILED_TO_MERGE_FIELDS`), or that no table can have; or see
            `partition_values_of`. Or rows are to be tracked, and statistics are not wanted (kind
            `DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS`).
        TableError: A file is no Parquet, or is damaged.
        ConfigError: The session's defaults ask for column mapping, which the files don't have (kind
            `DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING`).
        UsageError: The directory can't be one table, or was written to meanwhile.
        ConcurrentWriteException: Another commit came first.

    Nothing was written if any of these is raised.
    """
    if txn.read_version >= 0:
        return None
    columns = request.partition_columns
    files = parquet_files(txn.table, columns)
    values = [partition_values_of(file, columns, zone=request.zone) for file in files]
    paths = [join(txn.table.table_path, file.path) for file in files]
    wish = _wish(txn, request)
    footers = list(read(paths, wish))
    schema = _table_schema(paths, footers, request)
    _set_metadata(txn, schema, request)
    stats = _stats(paths, footers, schema, wish, read)
    adds = [_add(file, each, text) for file, each, text in zip(files, values, stats, strict=True)]
    if parquet_files(txn.table, columns) != files:
        raise UsageError(
            f"The files of {shown(txn.table.table_path)} changed while they were looked at: "
            "somebody writes to the directory. Nothing was written. Stop the writers, and convert "
            "it again.",
            kind="OPTIMIST_DIRECTORY_BEING_WRITTEN",
            path=txn.table.table_path,
        )
    return txn.commit_large(adds, _operation(len(adds), request))


def _wish(txn: OptimisticTransaction, request: ConvertRequest) -> FooterWish:
    properties = TableMetadata.of(Metadata("", schema_to_json(StructType()))).properties
    return FooterWish(
        txn.table.data_access(),
        request.partition_columns.names,
        properties.data_skipping_num_indexed_cols if request.collects_statistics else None,
    )


def _table_schema(
    paths: Sequence[str], footers: Sequence[Footer], request: ConvertRequest
) -> StructType:
    """The columns of all files together, and those of the directories' names."""
    first_with = {footer.schema: path for path, footer in zip(paths, footers, strict=True)}
    merged = StructType() if request.columns is None else request.columns
    for text, path in first_with.items():
        try:
            merged = merge_schemas(merged, schema_from_json(text))
        except SchemaError as error:
            fields = {**error.fields, "path": path}
            raise SchemaError(
                f"The columns of the file {shown(path)} don't go with those of other files, or of "
                f"the catalog. {error.args[0]}",
                kind=error.kind,
                **fields,
            ) from None
    by_name = {item.name.lower(): item for item in request.partition_columns}
    own = [by_name.pop(item.name.lower(), item) for item in merged]
    return StructType((*own, *by_name.values()))


def _set_metadata(txn: OptimisticTransaction, schema: StructType, request: ConvertRequest) -> None:
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
            partition_columns=request.partition_columns.names,
            configuration=configuration,
        )
    )
    mode = TableMetadata.of(txn.metadata).properties.column_mapping_mode
    if mode != "none":
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


def _stats(
    paths: Sequence[str],
    footers: Sequence[Footer],
    schema: StructType,
    wish: FooterWish,
    read: ReadFooters,
) -> list[str | None]:
    """The statistics of the files by the table's schema."""
    if wish.num_stats_columns is None:
        return [None] * len(footers)
    table = schema_to_json(schema)
    partitions = {name.lower() for name in wish.partition_columns}
    data = schema_to_json(
        StructType(tuple(item for item in schema if item.name.lower() not in partitions))
    )
    # Most files have just the table's columns; the footers of the others are read once more.
    others = [path for path, each in zip(paths, footers, strict=True) if each.schema != data]
    again = dict(zip(others, read(others, replace(wish, table_schema=table)), strict=True))
    return [again.get(path, each).stats for path, each in zip(paths, footers, strict=True)]


def _add(file: ParquetFile, values: Mapping[str, str | None], stats: str | None) -> AddFile:
    return AddFile(
        path=file.reference,
        partition_values=values,
        size=file.size_bytes,
        modification_time=file.modified_ms,
        data_change=True,
        stats=stats,
    )


def _operation(num_files: int, request: ConvertRequest) -> Operation:
    parameters: dict[str, object] = {
        "numFiles": num_files,
        "partitionedBy": json_text(request.partition_columns.names),
        "collectStats": request.collects_statistics,
        "sourceFormat": "parquet",
    }
    if request.catalog_table is not None:
        parameters["catalogTable"] = request.catalog_table
    return Operation("CONVERT", parameters).with_metrics({"numConvertedFiles": num_files})
