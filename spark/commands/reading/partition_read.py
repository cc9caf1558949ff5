"""A path that names partitions of a table, as `table/p=1`, which Delta reads with a filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from optimist.core.data.partition_values import canonical_partition_value
from optimist.core.errors import SchemaError, TableError, TableNotFoundError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.schema.types import StructField
from optimist.core.skipping.partition_predicate import partition_predicate
from optimist.core.snapshot import Snapshot
from optimist.core.table.partition_paths import PartitionPath
from optimist.spark.rows.row_shape import column_of
from optimist.spark.spark_schema import to_spark_type

__all__ = ["ChosenPartition"]


@dataclass(frozen=True, slots=True)
class ChosenPartition:
    """The partitions of a table that a path names.

    Attributes:
        path: The path.
        values: Their columns, each with the text of its one value; None for null.
    """

    path: str
    values: Mapping[str, str | None]

    @classmethod
    def of(cls, path: str, named: PartitionPath, snapshot: Snapshot) -> ChosenPartition:
        """Return the partitions that a path below a table names.

        Args:
            path: The path, for messages.
            named: The table, and the partitions that the path names in it.
            snapshot: The version to read.

        Raises:
            SchemaError: The path names a column that is not a partition column (kind
                `DELTA_NON_PARTITION_COLUMN_SPECIFIED`).
            TableNotFoundError: No rows have these values (kind `DELTA_PATH_DOES_NOT_EXIST`).
        """
        values = dict(named.values)
        fields = {item.name: item for item in snapshot.partition_schema}
        others = [name for name in values if name not in fields]
        if others:
            raise SchemaError(
                f"The path {shown(path)} names {listed(others)}, but the partition columns of "
                f"{shown(named.table_path)} are: {listed(list(fields))}. Nothing was read. Read "
                "the table, and filter its rows.",
                kind="DELTA_NON_PARTITION_COLUMN_SPECIFIED",
                path=path,
            )
        found = _canonical_values(values, fields, snapshot)
        if found is None:
            raise TableNotFoundError(
                f"The path {shown(path)} does not exist: the table {shown(named.table_path)} has "
                "no rows of that partition. Nothing was read. Read the table, and filter its rows.",
                kind="DELTA_PATH_DOES_NOT_EXIST",
                path=path,
            )
        return cls(path, found)

    def rows(self, frame: DataFrame, snapshot: Snapshot) -> DataFrame:
        """Return the rows of these partitions in a frame that has their columns."""
        types = {item.name: to_spark_type(item.data_type) for item in snapshot.partition_schema}
        for name, text in self.values.items():
            value = sf.lit(text).cast(types[name])
            frame = frame.where(column_of(name).eqNullSafe(value))
        return frame


def _canonical_values(
    values: Mapping[str, str | None], fields: Mapping[str, StructField], snapshot: Snapshot
) -> dict[str, str | None] | None:
    """Return the values in Spark's canonical text, or None if no file has them."""
    named = [fields[name] for name in values]
    try:
        texts = [
            canonical_partition_value(text, item.data_type)
            for item, text in zip(named, values.values(), strict=True)
        ]
    except TableError:
        return None
    # Each batch is true if it has a file.
    if not snapshot.read_columns((), any, partition_predicate(named, texts)):
        return None
    return dict(zip(values, texts, strict=True))
