"""The rows of SHOW PARTITIONS: the partitions that hold a file, as the log has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import (
    partition_columns_of,
    partition_directory,
    partition_scalar,
    serialize_partition_value,
    value_for_text,
)
from optimist.core.errors import UsageError
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot

__all__ = ["distinct_values", "ensure_partitioned", "partition_rows"]


def ensure_partitioned(snapshot: Snapshot, name: str, wanted: Mapping[str, str]) -> None:
    """Refuse a table without partitions, and names that are no partition columns.

    Raises:
        UsageError: The table is not partitioned (kind
            `DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE`), or has no partition column of a name
            that the statement gives (kind `DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN`).
    """
    known = [field.name for field in snapshot.partition_schema]
    missing = [column for column in wanted if snapshot.partition_schema.find(column) is None]
    if missing or not known:
        raise UsageError(
            f"The table {name} has no partition column {missing[0] if missing else 'at all'}. "
            f"Nothing was read. Its partition columns are: {', '.join(known) or 'none'}.",
            kind="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN"
            if known
            else "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
            columns=tuple(missing),
        )


def partition_rows(snapshot: Snapshot, wanted: Mapping[str, str], zone: str) -> pa.Table:
    """Return the values of the partitions, in the order of the names of their directories.

    Args:
        snapshot: The version.
        wanted: Texts of the values that some columns must have.
        zone: The time zone of times that were written without one.
    """
    fields = snapshot.partition_schema
    table = snapshot.read_columns(
        ("partitionValues",), partial(distinct_values, fields=fields, zone=zone)
    )
    for column, text in wanted.items():
        field = fields.find(column)
        if field is not None:
            value = partition_scalar(text, field.data_type, zone=zone)
            held = table[field.name]
            table = table.filter(pc.equal(held, value) if value.is_valid else pc.is_null(held))
    directories = [_directory(table, row, fields) for row in range(table.num_rows)]
    places = sorted(range(table.num_rows), key=directories.__getitem__)
    return table.take(pa.array(places, pa.int64()))


def distinct_values(
    batches: Iterator[pa.RecordBatch], fields: StructType, zone: str = "UTC"
) -> pa.Table:
    """Return the typed values of the partitions of some files, each combination once.

    Args:
        batches: The files, with the column `partitionValues`.
        fields: The partition columns, at least one.
        zone: The time zone of times that were written without one.
    """
    parts = [partition_columns_of(FILES_SCHEMA.empty_table(), fields, zone=zone)]
    for batch in batches:
        files = pa.Table.from_batches([batch])
        parts.append(_each_once(partition_columns_of(files, fields, zone=zone)))
    return _each_once(pa.concat_tables(parts))


def _each_once(values: pa.Table) -> pa.Table:
    names = values.column_names
    return values.group_by(names, use_threads=False).aggregate([]).select(names)


def _directory(table: pa.Table, row: int, fields: StructType) -> str:
    return partition_directory(
        {
            field.name: serialize_partition_value(
                value_for_text(table[field.name][row]), field.data_type
            )
            for field in fields
        }
    )
