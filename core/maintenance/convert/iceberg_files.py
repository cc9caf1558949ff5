"""The files of an Iceberg table, for CONVERT TO DELTA and CLONE (spec 10.13).

1. The newest metadata and the manifests that they name are read.
2. The footers are read. Columns are found by their ids and must have the table's types.
3. The newest metadata are looked up again. If they are newer, somebody writes to the table.

The columns keep Iceberg's ids. New columns get ids that no Iceberg column ever had, since the files
still hold dropped columns.
"""

from __future__ import annotations

from dataclasses import replace

from optimist.core.data.partition_values import uri_reference
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import (
    COLUMN_MAPPING_MODE,
    ConvertRequest,
    FilesFound,
    ReadFooters,
    wish_of,
)
from optimist.core.maintenance.convert.iceberg_table import (
    IcebergFile,
    IcebergTable,
    newest_metadata,
)
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile
from optimist.core.schema.types import COLUMN_MAPPING_PREFIX, schema_to_json

__all__ = ["iceberg_files"]


def iceberg_files(table: TableRef, request: ConvertRequest, read: ReadFooters) -> FilesFound:
    """Find the files of an Iceberg table (see `files_found`).

    Raises:
        UsageError: The table has something that can't be converted (kind
            `OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE`); or partition columns are given
            (`DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES`).
        TableError, SchemaError: A file is damaged, or a column has no id or another type than the
            table's.
    """
    if len(request.partition_columns):
        raise SchemaError(
            "Partition schema cannot be specified when converting Iceberg tables: the table itself "
            "says how it is partitioned. Nothing was written. Leave PARTITIONED BY out.",
            kind="DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES",
        )
    newest = newest_metadata(table) if request.metadata_file is None else request.metadata_file
    found = IcebergTable.at(table, newest)
    names = found.partition_columns
    wish = replace(
        wish_of(table, names, request), table_schema=schema_to_json(found.schema), by_id=True
    )
    footers = read([join(table.table_path, file.path) for file in found.files], wish)

    def ensure_unchanged() -> None:
        if request.metadata_file is None and newest_metadata(table) != newest:
            raise UsageError(
                f"Somebody wrote to the table of Iceberg at {shown(table.table_path)} while it was "
                "read. Nothing was committed. Stop the writers, and run it again.",
                kind="OPTIMIST_DIRECTORY_BEING_WRITTEN",
                path=table.table_path,
            )

    return FilesFound(
        found.schema,
        names,
        [
            _add_of_file(file, footer.stats, found.modified_ms)
            for file, footer in zip(found.files, footers, strict=True)
        ],
        ensure_unchanged,
        comment=found.comment,
        mapping={
            COLUMN_MAPPING_MODE: "id",
            COLUMN_MAPPING_PREFIX + "maxColumnId": str(found.last_column_id),
        },
    )


def _add_of_file(file: IcebergFile, stats: str | None, modified_ms: int) -> AddFile:
    return AddFile(
        path=uri_reference(file.path),
        partition_values=file.partition_values,
        size=file.size_bytes,
        modification_time=modified_ms,
        data_change=True,
        stats=stats,
    )
