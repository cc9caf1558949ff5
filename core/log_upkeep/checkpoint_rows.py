"""A version's state as the rows of a checkpoint, batch by batch (spec 5.8).

It makes no Python object per file of the table, and keeps no batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from optimist.core.log.file_sizes import ensure_possible
from optimist.core.log.file_table import FILES_SCHEMA, STRING_MAP_TYPE, TOMBSTONES_SCHEMA
from optimist.core.log_upkeep.struct_columns import StructColumns
from optimist.core.protocol.actions import Action, action_to_dict
from optimist.core.snapshot import Snapshot
from optimist.core.values.exact_sums import exact_sum

__all__ = ["CheckpointRows", "state_actions"]

_STATE_TYPES: Mapping[str, pa.DataType] = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            (
                "format",
                pa.struct([("provider", pa.string()), ("options", STRING_MAP_TYPE)]),
            ),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", STRING_MAP_TYPE),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}
_V2_TYPES: Mapping[str, pa.DataType] = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", STRING_MAP_TYPE)]),
    "sidecar": pa.struct(
        [
            ("path", pa.string()),
            ("sizeInBytes", pa.int64()),
            ("modificationTime", pa.int64()),
            ("tags", STRING_MAP_TYPE),
        ]
    ),
}


class CheckpointRows:
    """The layout of a snapshot's state in Parquet.

    Args:
        snapshot: The version.
        typed_partitions: Whether partition values are also written with their types, if the table
            wants struct columns.

    Attributes:
        file_schema: The columns of a sidecar: `add` and `remove`.
        classic_schema: The columns of a classic checkpoint.
        top_level_schema: The columns of a V2 checkpoint's top-level file.
        num_files: The number of live files in the batches so far.
        size_bytes: The sum of their sizes.
    """

    def __init__(self, snapshot: Snapshot, *, typed_partitions: bool = True) -> None:
        self._snapshot = snapshot
        properties = snapshot.properties
        self._structs = StructColumns()
        if properties.checkpoint_write_stats_as_struct:
            self._structs = StructColumns.of(snapshot, typed_partitions=typed_partitions)
        self._add_schema = FILES_SCHEMA
        if not properties.checkpoint_write_stats_as_json:
            self._add_schema = FILES_SCHEMA.remove(FILES_SCHEMA.get_field_index("stats"))
        add_type = pa.struct([*self._add_schema, *self._structs.fields])
        file_types = {"add": add_type, "remove": pa.struct(list(TOMBSTONES_SCHEMA))}
        self.file_schema = pa.schema(list(file_types.items()))
        types = {"txn": _STATE_TYPES["txn"], **file_types, **_STATE_TYPES}
        self.classic_schema = pa.schema(list(types.items()))
        self.top_level_schema = pa.schema(list({**types, **_V2_TYPES}.items()))
        self.num_files = 0
        self.size_bytes = 0

    def file_batches(self, schema: pa.Schema, max_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield live files, then tombstones, in the columns of `schema`.

        Other columns are null.

        Raises:
            TableError: A partition value does not fit its type, and the table wants typed ones
                (kind `OPTIMIST_MALFORMED_PARTITION_VALUE`).
        """
        for batch in self._snapshot.iter_files(max_rows):
            self.num_files += batch.num_rows
            self.size_bytes += exact_sum(batch.column("size"))
            ensure_possible(self.size_bytes)
            columns = [*batch.select(self._add_schema.names).columns, *self._structs.columns(batch)]
            fields = list(schema.field("add").type)
            yield _with_column(schema, "add", pa.StructArray.from_arrays(columns, fields=fields))
        for batch in self._snapshot.iter_tombstones(max_rows):
            columns = batch.select(TOMBSTONES_SCHEMA.names).columns
            fields = list(TOMBSTONES_SCHEMA)
            yield _with_column(schema, "remove", pa.StructArray.from_arrays(columns, fields=fields))


def state_actions(snapshot: Snapshot) -> tuple[dict[str, Any], ...]:
    """Return the live non-file actions of a version as JSON objects, without expired ones."""
    actions: Sequence[Action] = (
        snapshot.protocol,
        snapshot.metadata,
        *snapshot.set_transactions.values(),
        *snapshot.stored_domains.values(),
    )
    return tuple(action_to_dict(action) for action in actions)


def _with_column(schema: pa.Schema, name: str, values: pa.Array) -> pa.RecordBatch:
    columns = [
        values if field.name == name else pa.nulls(len(values), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
