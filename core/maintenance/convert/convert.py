"""CONVERT TO DELTA: write a log for Parquet files at their path (spec 10.13).

1. If a log exists, only the properties that a catalog has for the table are added to it.
2. The directory is listed. Partition values come from directory names.
3. The footers are read and their columns merged. Columns whose types can't be merged are refused.
4. The directory is listed again. A file that came, went or grew meanwhile is refused.
5. The commit of version 0 is tried once.

The files stay as they are, so the directory can still be read as Parquet. Such readers also see
rows that the table has deleted or updated.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from optimist.core.data.parquet.parquet_footers import Footer, FooterReader, FooterWish
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import (
    ICEBERG,
    ConvertRequest,
    FilesFound,
    ReadFooters,
    asked_properties,
    operation_of,
    properties_added,
    set_metadata,
    wish_of,
)
from optimist.core.maintenance.convert.iceberg_files import iceberg_files
from optimist.core.maintenance.convert.parquet_directory import (
    ParquetFile,
    parquet_files,
    partition_values_of,
)
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile
from optimist.core.protocol.schema_merge import merge_schemas
from optimist.core.runtime.progress import ProgressReport
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.types import (
    StructType,
    schema_from_json,
    schema_to_json,
)
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["convert", "files_found", "read_footers"]

_READERS = 16
_TRIED = 8


def read_footers(
    paths: Sequence[str], wish: FooterWish, report: ProgressReport | None = None
) -> Iterable[Footer]:
    """Read footers in this process, by threads if the first footers show that reading waits.

    Footers on a near disk cost Python work and no waiting; threads would slow that down.

    Args:
        paths: The files.
        wish: What is wanted of each footer.
        report: Is told of each footer.
    """
    footers = _footers(paths, wish)
    return footers if report is None else report.each("footers", footers, len(paths))


def _footers(paths: Sequence[str], wish: FooterWish) -> Iterable[Footer]:
    reader = FooterReader(wish)
    started_s, busy_s = time.perf_counter(), time.thread_time()
    first = [reader(path) for path in paths[:_TRIED]]
    elapsed_s, busy_s = time.perf_counter() - started_s, time.thread_time() - busy_s
    rest = paths[_TRIED:]
    if elapsed_s < 2 * busy_s:
        return chain(first, map(reader, rest))
    return chain(first, read_ahead(reader, rest, threads=_READERS, ahead=4 * _READERS))


def convert(
    txn: OptimisticTransaction, request: ConvertRequest, read: ReadFooters = read_footers
) -> CommitResult | None:
    """Make a table from Parquet files.

    Args:
        txn: A transaction that has just begun, at the directory of the files.
        request: The files and how they are converted.
        read: Reads the footers.

    Returns:
        The commit; None if a table exists already, and has the properties that a catalog tells.

    Raises:
        UsageError: A table exists already, with other properties than those of the catalog (kind
            `DELTA_CONVERT_METASTORE_METADATA_MISMATCH`).
        SchemaError: Rows are to be tracked, and statistics are not wanted (kind
            `DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS`); or a Delta table can't have the
            columns; or see `files_found`.
        ConfigError: The session's defaults ask for column mapping, which the files lack (kind
            `DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING`).
        TableNotFoundError, TableError, UsageError: See `files_found`; or somebody wrote to the
            directory meanwhile.
        ConcurrentWriteException: Another commit came first.

    Nothing was written if any of these is raised.
    """
    if txn.read_version >= 0:
        return properties_added(txn, request)
    found = files_found(txn.table, request, read)
    set_metadata(txn, found, request)
    found.ensure_unchanged()
    return txn.commit_large(found.adds, operation_of(found, request))


def files_found(
    table: TableRef, request: ConvertRequest, read: ReadFooters = read_footers
) -> FilesFound:
    """Find the files of a table of another format and their columns.

    Args:
        table: The directory, as the Delta table that it may become.
        request: The format of the files and how they are converted.
        read: Reads the footers.

    Raises:
        TableNotFoundError: The directory has no files.
        SchemaError: The files' columns can't be merged (kind `DELTA_FAILED_TO_MERGE_FIELDS`); or
            see `partition_values_of`.
        TableError: A file is not Parquet, or is damaged.
        UsageError: The directory can't be one table, or has files outside a catalog's partitions
            (kind `OPTIMIST_CATALOG_PARTITIONS_DIFFER`).
        ConfigError: A property in the catalog is not valid.
    """
    asked_properties(table, request)  # refused here, before any file is read
    if request.source_format == ICEBERG:
        return iceberg_files(table, request, read)
    columns = request.partition_columns
    files = parquet_files(table, columns)
    _ensure_in_catalog(table, files, request)
    zone = request.zone or table.options.zone
    values = [partition_values_of(file, columns, zone=zone) for file in files]
    paths = [join(table.table_path, file.path) for file in files]
    wish = wish_of(table, columns.names, request)
    footers = list(read(paths, wish))
    schema = _table_schema(paths, footers, request)
    stats = _statistics_of_files(paths, footers, schema, wish, read)

    def ensure_unchanged() -> None:
        if parquet_files(table, columns) != files:
            raise UsageError(
                f"The files of {shown(table.table_path)} changed while they were read: "
                "somebody writes to the directory. Nothing was committed. Stop the writers, and "
                "run it again.",
                kind="OPTIMIST_DIRECTORY_BEING_WRITTEN",
                path=table.table_path,
            )

    return FilesFound(
        schema,
        columns.names,
        [
            _add_of_file(file, each, text)
            for file, each, text in zip(files, values, stats, strict=True)
        ],
        ensure_unchanged,
        comment=request.comment,
    )


def _ensure_in_catalog(
    table: TableRef, files: Iterable[ParquetFile], request: ConvertRequest
) -> None:
    """Refuse files outside the catalog's partitions, which readers by table name have not seen."""
    if request.directories is None:
        return
    for file in files:
        directory = file.path.rpartition("/")[0]
        if directory not in request.directories:
            raise UsageError(
                f"The directory {shown(directory)} of {shown(table.table_path)} is not a partition "
                f"of the table {shown(request.catalog_table)} in the catalog, so nobody has seen "
                "its rows there. Nothing was written. Run MSCK REPAIR TABLE if they are to count, "
                "or move the directory away.",
                kind="OPTIMIST_CATALOG_PARTITIONS_DIFFER",
                path=table.table_path,
            )


def _table_schema(
    paths: Sequence[str], footers: Sequence[Footer], request: ConvertRequest
) -> StructType:
    """Merge the columns of all files with those of the directory names."""
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


def _statistics_of_files(
    paths: Sequence[str],
    footers: Sequence[Footer],
    schema: StructType,
    wish: FooterWish,
    read: ReadFooters,
) -> list[str | None]:
    """Return the statistics of the files by the table's schema."""
    if wish.num_stats_columns is None:
        return [None] * len(footers)
    table = schema_to_json(schema)
    partitions = {name.lower() for name in wish.partition_columns}
    data = schema_to_json(
        StructType(tuple(item for item in schema if item.name.lower() not in partitions))
    )
    # Most files have exactly the table's columns; the footers of the others are read again.
    others = [path for path, each in zip(paths, footers, strict=True) if each.schema != data]
    again = dict(zip(others, read(others, replace(wish, table_schema=table)), strict=True))
    return [again.get(path, each).stats for path, each in zip(paths, footers, strict=True)]


def _add_of_file(file: ParquetFile, values: Mapping[str, str | None], stats: str | None) -> AddFile:
    return AddFile(
        path=file.reference,
        partition_values=values,
        size=file.size_bytes,
        modification_time=file.modified_ms,
        data_change=True,
        stats=stats,
    )
