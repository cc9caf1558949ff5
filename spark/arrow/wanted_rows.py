"""The columns that a query wants of a version, and how a task reads just them.

The columns are given as Spark has them: some of the table's columns, structs with some of their
fields, and perhaps `_metadata`, which says where a row comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import types as st

from optimist.core.data.file_parts import parts_of
from optimist.core.data.parquet.parquet_reader import RowLayout, read_located_batches
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.plugins.data_access import DataAccess
from optimist.core.schema.types import ArrayType, DataType, MapType, StructField, StructType
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.row_layout import row_layout
from optimist.spark.arrow.row_metadata import METADATA, RowMetadata
from optimist.spark.arrow.tasks import decode_group, spark_batch
from optimist.spark.session.pyspark_versions import spark_arrow_schema
from optimist.spark.spark_schema import VOID

__all__ = ["WantedRows", "cheapest_column", "narrowed"]

_BATCH_ROWS = 32_768
_CHEAP = ("", "boolean", "byte", "short", "integer", "date", "float", "long", "double", "timestamp")
"""Types whose values take few bytes, cheapest first."""
_FEWEST_BATCH_ROWS = 1_024  # so that many deleted rows do not make many empty batches


@dataclass(frozen=True, slots=True)
class WantedRows:
    """A small, picklable reader of groups of files in tasks.

    Attributes:
        layout: The columns to read.
        schema: The columns that come out, as Spark has them.
        metadata: How `_metadata` is made; None if it is not wanted.
        limit: How many rows of a group are enough; None for all.
    """

    layout: RowLayout
    schema: st.StructType
    metadata: RowMetadata | None = None
    limit: int | None = None

    @classmethod
    def of(
        cls,
        view: FilesView,
        schema: st.StructType,
        *,
        zone: str,
        access: DataAccess | None,
        data_paths: DataPaths,
        limit: int | None = None,
    ) -> WantedRows:
        """Return what to read for these columns.

        Args:
            view: The version.
            schema: The columns, as Spark has them; a part of the version's columns.
            zone: The session's time zone.
            access: How data files are reached.
            data_paths: Resolves the log's paths.
            limit: How many rows of a group are enough.
        """
        metadata = RowMetadata.of(view, schema)
        own = (field for field in schema.fields if metadata is None or field.name != METADATA)
        wanted = narrowed(view.schema, st.StructType(list(own)))
        tracked = () if metadata is None else metadata.tracked
        # Without any column nobody could tell how many rows there are.
        read = StructType((*wanted, *tracked) or (cheapest_column(view),))
        rows = _BATCH_ROWS if limit is None else max(_FEWEST_BATCH_ROWS, min(limit, _BATCH_ROWS))
        layout = row_layout(view, read, zone=zone, batch_rows=rows, access=access)
        return cls(replace(layout, data_paths=data_paths), schema, metadata, limit)

    def read(self, group: bytes) -> Iterator[pa.RecordBatch]:
        """Read the rows of a group of `encode_groups`, in batches of exactly Spark's schema."""
        missing = self.limit
        if missing is not None and missing <= 0:
            return
        for batch in self._batches(group):
            yield batch if missing is None else batch.slice(0, missing)
            if missing is not None:
                missing -= batch.num_rows
                if missing <= 0:
                    return

    def _batches(self, group: bytes) -> Iterator[pa.RecordBatch]:
        target = spark_arrow_schema(self.schema)
        for part in parts_of(decode_group(group)):
            for rows, positions in read_located_batches(part, self.layout):
                columns = rows.columns
                if self.metadata is not None:
                    columns = self.metadata.beside(columns, part, positions)
                yield spark_batch(columns, target)


def cheapest_column(view: FilesView) -> StructField:
    """Return the column that costs least to read, for queries that only count rows."""
    partitions = {name.lower() for name in view.partition_columns}

    def cost(item: StructField) -> int:
        if item.name.lower() in partitions:
            return 0  # the log has it
        name = str(item.data_type)
        return _CHEAP.index(name) if name in _CHEAP else len(_CHEAP)

    return min((item for item in view.schema if item.data_type != VOID), key=cost)


def narrowed(schema: StructType, wanted: st.StructType) -> StructType:
    """Return the fields of a schema that Spark asks for, at any depth, in Spark's order."""
    fields = []
    for asked in wanted.fields:
        own = schema.find(asked.name)
        if own is not None:
            fields.append(replace(own, data_type=_narrowed_type(own.data_type, asked.dataType)))
    return StructType(tuple(fields))


def _narrowed_type(own: DataType, asked: st.DataType) -> DataType:
    if isinstance(own, StructType) and isinstance(asked, st.StructType):
        return narrowed(own, asked)
    if isinstance(own, ArrayType) and isinstance(asked, st.ArrayType):
        return replace(own, element_type=_narrowed_type(own.element_type, asked.elementType))
    if isinstance(own, MapType) and isinstance(asked, st.MapType):
        key_type = _narrowed_type(own.key_type, asked.keyType)
        value_type = _narrowed_type(own.value_type, asked.valueType)
        return replace(own, key_type=key_type, value_type=value_type)
    return own
