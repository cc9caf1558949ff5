"""`stats_parsed` and `partitionValues_parsed` of a checkpoint's adds (spec 5.8.3, 5.8.4).

Readers prune by them without parsing text. The names are physical, the types the table's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import arrow_type_of, partition_column_of
from optimist.core.data.statistics.stats_columns import stats_columns
from optimist.core.predicates.resolution import ResolvedColumn, resolve_column
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.schema.stats_property import has_bounds
from optimist.core.schema.types import StructField, StructType
from optimist.core.skipping.statistics import stats_table
from optimist.core.snapshot import Snapshot

__all__ = ["StructColumns"]

_NO_COLUMNS = StructType(())
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StructColumns:
    """The struct columns of a checkpoint with their types, by default none.

    Attributes:
        statistics: The leaf columns that have statistics; None for no `stats_parsed`. With an empty
            tuple, `stats_parsed` still has the number of rows.
        partitions: The fields of the partition columns; empty for no `partitionValues_parsed`.
        schema: The table's schema, which has all these columns.
    """

    statistics: tuple[ResolvedColumn, ...] | None = None
    partitions: tuple[StructField, ...] = ()
    schema: StructType = _NO_COLUMNS

    @classmethod
    def of(
        cls, snapshot: Snapshot, *, typed_partitions: bool = True, in_any_zone: bool = False
    ) -> StructColumns:
        """Choose a snapshot's struct columns.

        Properties name leaves with statistics (spec 9.2).

        Args:
            snapshot: The version.
            typed_partitions: Whether there are partition columns.
            in_any_zone: Whether to leave out partition columns of timestamps, whose texts may have
                no zone and so mean another time in another session.
        """
        paths = stats_columns(
            snapshot.schema,
            snapshot.partition_columns,
            snapshot.properties,
            clustering_columns(snapshot.domain_metadata, snapshot.schema),
        )
        found = [resolve_column(path, snapshot.schema) for path in paths]
        typed = [
            field
            for field in snapshot.partition_schema
            if typed_partitions
            and arrow_type_of(field.data_type) is not None
            and not (in_any_zone and str(field.data_type) == "timestamp")
        ]
        return cls(tuple(item for item in found if item is not None), tuple(typed), snapshot.schema)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The fields of the `add` struct, in the order of `columns`."""
        found = []
        if self.partitions:
            types = [(f.physical_name, arrow_type_of(f.data_type)) for f in self.partitions]
            found.append(pa.field("partitionValues_parsed", pa.struct(types)))
        if self.statistics is not None:
            found.append(pa.field("stats_parsed", _statistics_type(self.statistics)))
        return tuple(found)

    def columns(self, files: pa.RecordBatch) -> tuple[pa.Array, ...]:
        """Compute the columns for a batch of files.

        A file without statistics has null.

        Raises:
            TableError: A partition value does not fit its type (kind
                `OPTIMIST_MALFORMED_PARTITION_VALUE`).
        """
        table = pa.Table.from_batches([files])
        found = []
        if self.partitions:
            values = [
                _combine_chunks(partition_column_of(table, field)) for field in self.partitions
            ]
            names = [field.physical_name for field in self.partitions]
            found.append(pa.StructArray.from_arrays(values, names=names))
        if self.statistics is not None:
            found.append(_statistics_of(table, self.statistics, self.schema))
        return tuple(found)


def _statistics_type(columns: Sequence[ResolvedColumn]) -> pa.DataType:
    bounds = [
        (item.physical_path, arrow_type_of(item.data_type))
        for item in columns
        if has_bounds(item.data_type)
    ]
    counts = [(item.physical_path, pa.int64()) for item in columns]
    parts = [("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
    nested = [pa.field(name, _nested_type(leaves)) for name, leaves in parts if leaves]
    return pa.struct(
        [pa.field("numRecords", pa.int64()), *nested, pa.field("tightBounds", pa.bool_())]
    )


def _statistics_of(
    table: pa.Table, columns: Sequence[ResolvedColumn], schema: StructType
) -> pa.Array:
    flat = stats_table(table, [item.path for item in columns], schema)
    kind = _statistics_type(columns)
    arrays = []
    for field in kind:
        if field.name in ("numRecords", "tightBounds"):
            arrays.append(_combine_chunks(flat.column(field.name)))
            continue
        prefix = {"minValues": "min", "maxValues": "max"}.get(field.name, "nullCount")
        leaves = [
            (item.physical_path, _without_nan(_combine_chunks(flat.column(f"{prefix}.{position}"))))
            for position, item in enumerate(columns)
            if f"{prefix}.{position}" in flat.column_names
        ]
        arrays.append(_nested_array(leaves))
    is_absent = _combine_chunks(table.column("stats")).is_null()
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=is_absent)


def _without_nan(bounds: pa.Array) -> pa.Array:
    """Make bounds that are NaN unknown: Parquet's own statistics of a column leave NaN out.

    A reader that skips by those would otherwise skip a file that has such a bound.
    """
    if not pa.types.is_floating(bounds.type) or not pc.any(pc.is_nan(bounds), min_count=0).as_py():
        return bounds
    return pc.if_else(pc.is_nan(bounds), pa.scalar(None, bounds.type), bounds)


def _nested_type(leaves: Sequence[tuple[_Path, pa.DataType]]) -> pa.DataType:
    return pa.struct(
        [
            (name, below[0][1] if not below[0][0] else _nested_type(below))
            for name, below in _group_by_first(leaves)
        ]
    )


def _nested_array(leaves: Sequence[tuple[_Path, pa.Array]]) -> pa.Array:
    names, arrays = [], []
    for name, below in _group_by_first(leaves):
        names.append(name)
        arrays.append(below[0][1] if not below[0][0] else _nested_array(below))
    return pa.StructArray.from_arrays(arrays, names=names)


def _group_by_first(
    leaves: Iterable[tuple[_Path, pa.DataType | pa.Array]],
) -> list[tuple[str, list[tuple[_Path, pa.DataType | pa.Array]]]]:
    grouped: dict[str, list[tuple[_Path, pa.DataType | pa.Array]]] = {}
    for path, item in leaves:
        grouped.setdefault(path[0], []).append((path[1:], item))
    return list(grouped.items())


def _combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
