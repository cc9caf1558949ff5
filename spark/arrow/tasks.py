"""What a reading task receives (small picklable values only), and how it reads by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType as SparkStruct

from optimist.core.data.file_parts import balanced_groups, file_parts, parts_of
from optimist.core.data.parquet.parquet_reader import RowLayout, read_located_batches
from optimist.core.data.storage.data_paths import DataPaths
from optimist.spark.rows.places import Places
from optimist.spark.session.pyspark_versions import spark_arrow_schema

__all__ = ["Grouping", "decode_group", "encode_groups", "read_group", "spark_batch"]

_DEFAULT_GROUPS = 16
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, slots=True)
class Grouping:
    """How files become tasks.

    Attributes:
        max_bytes: How many bytes a task should read at most.
        num_groups: How many tasks there should be at least, if there are enough bytes.
        open_cost: What opening one more file costs, in bytes.
    """

    max_bytes: int
    num_groups: int
    open_cost: int

    @classmethod
    def of(cls, spark: SparkSession, *, is_connect: bool) -> Grouping:
        """Return the grouping by the settings of Spark's own file sources."""
        wanted = (
            spark.conf.get("spark.sql.files.minPartitionNum", None)
            or spark.conf.get("spark.sql.leafNodeDefaultParallelism", None)
            or (_DEFAULT_GROUPS if is_connect else spark.sparkContext.defaultParallelism)
        )
        return cls(
            max_bytes=_bytes_of_conf(spark, "spark.sql.files.maxPartitionBytes", 128 << 20),
            num_groups=int(wanted),
            open_cost=_bytes_of_conf(spark, "spark.sql.files.openCostInBytes", 4 << 20),
        )


def encode_groups(data_paths: DataPaths, files: pa.Table, grouping: Grouping) -> Iterator[bytes]:
    """Divide the files into balanced groups, and encode each as Arrow's bytes."""
    groups = balanced_groups(
        file_parts(data_paths, files),
        max_bytes=grouping.max_bytes,
        num_groups=grouping.num_groups,
        open_cost=grouping.open_cost,
    )
    for group in groups:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, group.schema, options=_COMPRESSED) as writer:
            writer.write_table(group)
        yield sink.getvalue().to_pybytes()


def decode_group(data: bytes) -> pa.Table:
    """Decode a group of `encode_groups`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def read_group(
    data: bytes, layout: RowLayout, schema: SparkStruct, *, places: Places | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the rows of one group as Spark takes them.

    Args:
        data: A group of `encode_groups`.
        layout: The columns to read.
        schema: The same columns as Spark has them, and then those of `places`.
        places: Add these columns.
    """
    target = spark_arrow_schema(schema)
    for part in parts_of(decode_group(data)):
        for rows, positions in read_located_batches(part, layout):
            columns = rows.columns
            if places is not None:
                columns.append(pa.repeat(pa.scalar(part.reference), rows.num_rows))
                columns += [positions()] if places.position else []
            yield spark_batch(columns, target)


def spark_batch(columns: list[pa.Array], target: pa.Schema) -> pa.RecordBatch:
    """Return the columns under Spark's schema, whose nested names and nullability differ."""
    fitted = [
        column if column.type.equals(field.type, check_metadata=True) else _rename_to(column, field)
        for column, field in zip(columns, target, strict=True)
    ]
    return pa.RecordBatch.from_arrays(fitted, schema=target)


def _rename_to(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return the same memory under another type: names and flags differ, never the layout."""
    if pa.types.is_nested(column.type):
        return _rename_parts(column, field.type)
    return column.cast(field.type)


def _rename_parts(column: pa.Array, target: pa.DataType) -> pa.Array:
    if not pa.types.is_nested(target):
        return column.cast(target)
    whole = pa.concat_arrays([column]) if column.offset else column
    mask = whole.is_null()
    if pa.types.is_struct(target):
        parts = [
            _rename_parts(child, field.type)
            for child, field in zip(whole.flatten(), target, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=mask)
    if pa.types.is_map(target):
        keys, items = (
            _rename_parts(whole.keys, target.key_type),
            _rename_parts(whole.items, target.item_type),
        )
        return pa.MapArray.from_arrays(whole.offsets, keys, items, target, mask=mask)
    values = _rename_parts(whole.values, target.value_type)
    return pa.ListArray.from_arrays(whole.offsets, values, type=target, mask=mask)


def _bytes_of_conf(spark: SparkSession, key: str, default: int) -> int:
    text = (spark.conf.get(key, None) or str(default)).strip().lower().removesuffix("b")
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    shift = units.get(text[-1:], 0)
    number = text[:-1] if shift else text
    return int(number) << shift if number.isdecimal() else default
