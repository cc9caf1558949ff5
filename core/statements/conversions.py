"""CONVERT TO DELTA over a path, and the paths of files that statements name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import ICEBERG, PARQUET, ConvertRequest
from optimist.core.maintenance.convert.convert import convert
from optimist.core.paths import name_of, parent_of
from optimist.core.requests.table_definition import Column
from optimist.core.schema.types import StructType
from optimist.core.sql.statements import ColumnType, ConvertToDelta, TableName
from optimist.core.statements.context import OpenTable, StatementContext
from optimist.core.statements.result_rows import NO_ROWS
from optimist.core.transaction.result import CommitResult

__all__ = [
    "ConvertedPath",
    "convert_files",
    "convert_named_files",
    "convert_path",
    "converted_path",
    "ensure_convertible",
    "format_of_files",
    "partition_columns_of",
    "path_of_files",
]


_HIVE = "hive"
_SERDE_OF_PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


@dataclass(frozen=True, slots=True)
class ConvertedPath:
    """The files of a path that a statement names.

    Attributes:
        path: The directory of the table.
        source_format: See `ConvertRequest`.
        metadata_file: See `ConvertRequest`.
    """

    path: str
    source_format: str = PARQUET
    metadata_file: str | None = None

    def request(self, request: ConvertRequest) -> ConvertRequest:
        """Return the request for the files at the path."""
        return replace(request, source_format=self.source_format, metadata_file=self.metadata_file)


def convert_path(context: StatementContext, statement: ConvertToDelta) -> pa.Table:
    """Run CONVERT TO DELTA, which leaves an existing Delta table as it is.

    Raises:
        UsageError: The context knows no such name; or the path is of a format that can't be
            converted (kind `DELTA_CONVERT_NON_PARQUET_TABLE`).
        OptimistError: See `core.maintenance.convert.convert`.
    """
    columns = partition_columns_of(statement.partitioned_by)
    request = ConvertRequest(columns, statement.collects_statistics, context.zone)
    source = converted_path(statement.table)
    if source is None:
        convert_files(context, context.open_name(statement.table), request)
    else:
        convert_files(context, context.open_path(source.path), source.request(request))
    return NO_ROWS


def convert_files(
    context: StatementContext, log: OpenTable, request: ConvertRequest
) -> CommitResult | None:
    """Convert the files at a path, or return None if there is a Delta table already."""
    return convert(log.start_transaction(), request, context.footers())


def converted_path(table: TableName) -> ConvertedPath | None:
    """Return the path that a statement names, as ``parquet.`/p` ``, or None for a name.

    For ``iceberg.`/p` `` it may also be the path of a metadata file.

    Raises:
        UsageError: The path is of another format (kind `DELTA_CONVERT_NON_PARQUET_TABLE`).
    """
    if not _is_path(table):
        return None
    found = path_of_files(table)
    if found is not None:
        return found
    if table.parts[0].lower() != "delta":
        raise UsageError(
            "CONVERT TO DELTA only supports tables of parquet and iceberg, but you are trying to "
            f"convert a {shown(table.parts[0])} source: {shown(str(table))}. Nothing was written. "
            "Read it with its own format, and write the rows to a new table.",
            kind="DELTA_CONVERT_NON_PARQUET_TABLE",
            format=table.parts[0],
        )
    return ConvertedPath(table.parts[1])


def path_of_files(table: TableName) -> ConvertedPath | None:
    """Return the path in ``parquet.`/p` `` or ``iceberg.`/p` ``, or None for other names."""
    source_format, path = table.parts[0].lower(), table.parts[-1]
    if not _is_path(table) or source_format not in (PARQUET, ICEBERG):
        return None
    if source_format == PARQUET:
        return ConvertedPath(path)
    is_file = path.endswith((".metadata.json", ".metadata.json.gz"))
    directory = parent_of(parent_of(path)) if is_file else path
    return ConvertedPath(directory, ICEBERG, name_of(path) if is_file else None)


def format_of_files(provider: str, serde: str | None) -> str:
    """Return the format of a catalog's table, which for some of Hive's own is Parquet.

    Args:
        provider: The format in the entry.
        serde: The class with which Hive reads and writes the table, if the entry names one.
    """
    is_hives = provider.lower() == _HIVE and serde == _SERDE_OF_PARQUET
    return PARQUET if is_hives else provider


def ensure_convertible(name: str, provider: str | None) -> None:
    """Refuse to convert a table of a catalog that is not one of Parquet.

    Args:
        name: The name, as SQL writes it.
        provider: The format of the table; None for a view.

    Raises:
        SchemaError: It is a view (kind `DELTA_OPERATION_NOT_ALLOWED_DETAIL`).
        UsageError: It is of another format (kind `DELTA_CONVERT_NON_PARQUET_TABLE`).
    """
    if provider is None:
        raise SchemaError(
            f"Operation not allowed: {shown(name)} is a view, and a view can't be converted to a "
            "Delta table. Nothing was written. Create a table with its rows.",
            kind="DELTA_OPERATION_NOT_ALLOWED_DETAIL",
            name=name,
        )
    if provider.lower() != PARQUET:
        raise UsageError(
            f"CONVERT TO DELTA only supports parquet tables, but you are trying to convert a "
            f"{shown(provider)} source: {shown(name)}. Nothing was written. Create a table with "
            "its rows.",
            kind="DELTA_CONVERT_NON_PARQUET_TABLE",
            format=provider,
        )


def convert_named_files(
    context: StatementContext,
    statement: ConvertToDelta,
    path: str,
    known: ConvertRequest,
) -> None:
    """Convert the files of a table that a catalog knows.

    Args:
        context: The context of the statement.
        statement: The statement.
        path: Where the files are.
        known: What the catalog says of them.

    Raises:
        SchemaError: The statement names other partition columns than the catalog (kind
            `DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER`).
        OptimistError: See `core.maintenance.convert.convert`.
    """
    given, partitions = partition_columns_of(statement.partitioned_by), known.partition_columns
    if statement.partitioned_by and str(given).lower() != str(partitions).lower():
        raise SchemaError(
            f"CONVERT TO DELTA was called with the partition columns {given}, but those of the "
            f"catalog are {partitions}. Nothing was written. Leave PARTITIONED BY out.",
            kind="DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
            name=str(statement.table),
        )
    request = replace(known, collects_statistics=statement.collects_statistics)
    convert_files(context, context.open_path(path), request)


def _is_path(table: TableName) -> bool:
    return len(table.parts) == 2 and ("/" in table.parts[1] or ":" in table.parts[1])


def partition_columns_of(columns: Iterable[ColumnType]) -> StructType:
    """Return the partition columns that a statement names.

    Raises:
        SchemaError: A text is no type.
    """
    return StructType(
        tuple(
            Column(each.name, each.type_text.sql, each.is_nullable, each.comment).field()
            for each in columns
        )
    )
