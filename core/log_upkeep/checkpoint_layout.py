"""The columns of a checkpoint's rows, and the order of its adds (spec 5.8).

A checkpoint of one row group has the text forms of partition values and statistics only, unless the
table says otherwise, or wants no texts of statistics: nothing in it can be skipped. A larger one
also has them as typed columns, and its adds are sorted: by partition, then by the least values of
the clustering columns, or of the first columns with statistics. The statistics of its row groups
then tell a reader which to skip.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import FILES_SCHEMA, STRING_MAP_TYPE, TOMBSTONES_SCHEMA
from optimist.core.log_upkeep.struct_columns import StructColumns
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.schema.stats_property import has_bounds
from optimist.core.snapshot import Snapshot
from optimist.core.values.map_texts import values_of_key

__all__ = ["LAYOUT_KEY", "Layout"]

LAYOUT_KEY = "optimist.layout"
"""The key under which a file, or the tags of a sidecar, say how its adds were made and sorted."""

_RULES = "1"  # change it when the same columns are made or sorted in another way
_MOST_ORDER_COLUMNS = 4
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


@dataclass(frozen=True)
class Layout:
    """The columns of a checkpoint, and the order of its adds.

    Attributes:
        structs: The typed columns.
        plain_schema: The columns of adds as in commits.
        order: The typed columns by which adds are sorted, as paths within an add.
        partitions: The physical names of the partition columns, whose texts are sorted by if there
            are no typed columns.
    """

    structs: StructColumns
    plain_schema: pa.Schema
    order: tuple[tuple[str, ...], ...]
    partitions: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, *, is_large: bool, typed_partitions: bool = True) -> Layout:
        """Choose the layout of a version.

        Args:
            snapshot: The version.
            is_large: Whether its files fill more than one row group.
            typed_partitions: Whether the partition values fit their types.
        """
        properties = snapshot.properties
        is_wanted = properties.checkpoint_write_stats_as_struct
        by_default = is_large or not properties.checkpoint_write_stats_as_json
        structs = StructColumns()
        if by_default if is_wanted is None else is_wanted:
            structs = StructColumns.of(
                snapshot, typed_partitions=typed_partitions, in_any_zone=is_wanted is None
            )
        schema = FILES_SCHEMA
        if not properties.checkpoint_write_stats_as_json:
            schema = schema.remove(schema.get_field_index("stats"))
        partitions = tuple(field.physical_name for field in snapshot.partition_schema)
        return cls(structs, schema, _order_of(snapshot, structs), partitions)

    @cached_property
    def add_schema(self) -> pa.Schema:
        """The columns of an add."""
        return pa.schema([*self.plain_schema, *self.structs.fields])

    @cached_property
    def file_schema(self) -> pa.Schema:
        """The columns of a sidecar: `add` and `remove`."""
        return pa.schema(
            {"add": pa.struct(list(self.add_schema)), "remove": pa.struct(list(TOMBSTONES_SCHEMA))}
        )

    @cached_property
    def classic_schema(self) -> pa.Schema:
        """The columns of a classic checkpoint."""
        files = {field.name: field.type for field in self.file_schema}
        return pa.schema({"txn": _STATE_TYPES["txn"], **files, **_STATE_TYPES})

    @cached_property
    def top_level_schema(self) -> pa.Schema:
        """The columns of a V2 checkpoint's top-level file."""
        types = {field.name: field.type for field in self.classic_schema}
        return pa.schema({**types, **_V2_TYPES})

    @cached_property
    def digest(self) -> str:
        """A text that two layouts share if a file of one may be read as a file of the other."""
        statistics = self.structs.statistics or ()
        were_floats = [item.physical_path for item in statistics if item.was_float]
        described = (_RULES, str(self.add_schema), were_floats, self.order, self.partitions)
        return f"{_RULES}-{hashlib.sha256(repr(described).encode()).hexdigest()[:32]}"

    def rows(self, files: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of `FILES_SCHEMA` as rows of `add_schema`.

        Raises:
            TableError: A partition value does not fit its type (kind
                `OPTIMIST_MALFORMED_PARTITION_VALUE`).
        """
        columns = [*files.select(self.plain_schema.names).columns, *self.structs.columns(files)]
        return pa.RecordBatch.from_arrays(columns, schema=self.add_schema)

    def keys(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns by which rows of `add_schema` are sorted."""
        typed = {field.physical_name for field in self.structs.partitions}
        values = rows.column("partitionValues")
        texts = [values_of_key(values, name) for name in self.partitions if name not in typed]
        return [*texts, *(_leaf_of(rows, path) for path in self.order)]


def _order_of(snapshot: Snapshot, structs: StructColumns) -> tuple[tuple[str, ...], ...]:
    partitions = [("partitionValues_parsed", field.physical_name) for field in structs.partitions]
    bounded = {
        item.path: ("stats_parsed", "minValues", *item.physical_path)
        for item in structs.statistics or ()
        if has_bounds(item.data_type)
    }
    clustered = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    wanted = [path for path in clustered if path in bounded] or list(bounded)[:1]
    return (*partitions, *(bounded[path] for path in wanted[:_MOST_ORDER_COLUMNS]))


def _leaf_of(rows: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    column = rows.column(path[0])
    # `struct_field` looks at the parents' nulls, too: a file without statistics has a null bound.
    return column if len(path) == 1 else pc.struct_field(column, list(path[1:]))
