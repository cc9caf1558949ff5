"""CONVERT TO DELTA of a table of Iceberg: one version becomes a log over its files (spec 10.13).

1. The newest metadata are read, and the manifests that they name.
2. The footers are read: columns are found by their ids, and must have the types of the table.
3. The metadata are looked for again: where there are newer ones, somebody writes to the table.
4. One attempt is made to commit version 0.

The columns keep Iceberg's ids, and new ones get others than any column of Iceberg ever had: the
files still hold those that were dropped.
"""

from __future__ import annotations

from dataclasses import replace

from optimist.core.care.conversion import (
    COLUMN_MAPPING_MODE,
    ConvertRequest,
    ReadFooters,
    operation_of,
    set_metadata,
    wish_of,
)
from optimist.core.care.iceberg_table import IcebergFile, IcebergTable, newest_metadata
from optimist.core.data.partition_values import uri_reference
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile
from optimist.core.schema.types import COLUMN_MAPPING_PREFIX, schema_to_json
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["convert_iceberg"]


def convert_iceberg(
    txn: OptimisticTransaction, request: ConvertRequest, read: ReadFooters
) -> CommitResult:
    """Make a Delta table of a table of Iceberg; see `convert`.

    Raises:
        UsageError: The table has what can't be carried over (kind
            `OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE`), or was written to meanwhile; or partition
            columns are given (`DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES`).
        TableError, SchemaError: A file is damaged, or has a column without an id or of another
            type than the table.
    """
    if len(request.partition_columns):
        raise SchemaError(
            "Partition schema cannot be specified when converting Iceberg tables: the table itself "
            "says how it is partitioned. Nothing was written. Leave PARTITIONED BY out.",
            kind="DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES",
        )
    newest = newest_metadata(txn.table) if request.metadata_file is None else request.metadata_file
    found = IcebergTable.at(txn.table, newest)
    table_schema = schema_to_json(found.schema)
    names = found.partition_columns
    wish = replace(wish_of(txn, names, request), table_schema=table_schema, by_id=True)
    paths = [join(txn.table.table_path, file.path) for file in found.files]
    footers = list(read(paths, wish))
    set_metadata(
        txn,
        found.schema,
        names,
        replace(request, comment=found.comment),
        mapping={
            COLUMN_MAPPING_MODE: "id",
            COLUMN_MAPPING_PREFIX + "maxColumnId": str(found.last_column_id),
        },
    )
    adds = [
        _add(file, footer.stats, found.modified_ms)
        for file, footer in zip(found.files, footers, strict=True)
    ]
    if request.metadata_file is None and newest_metadata(txn.table) != newest:
        raise UsageError(
            f"Somebody wrote to the table of Iceberg at {shown(txn.table.table_path)} while it was "
            "looked at. Nothing was written. Stop the writers, and convert it again.",
            kind="OPTIMIST_DIRECTORY_BEING_WRITTEN",
            path=txn.table.table_path,
        )
    return txn.commit_large(adds, operation_of(len(adds), names, request))


def _add(file: IcebergFile, stats: str | None, modified_ms: int) -> AddFile:
    return AddFile(
        path=uri_reference(file.path),
        partition_values=file.partition_values,
        size=file.size_bytes,
        modification_time=modified_ms,
        data_change=True,
        stats=stats,
    )
