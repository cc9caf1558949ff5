"""A path that names partitions of a table, as `table/p=1`: Delta reads the table with a filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.replaced_partitions import partition_predicate
from optimist.core.data.partition_values import canonical_partition_value
from optimist.core.errors import SchemaError, TableError, TableNotFoundError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.schema.types import StructField
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
        values: Their columns and the text of the one value of each; None for null.
    """

    path: str
    values: Mapping[str, str | None]

    @classmethod
    def of(cls, path: str, place: PartitionPath, snapshot: Snapshot) -> ChosenPartition:
        """What a path below a table means.

        Args:
            path: The path, for messages.
            place: The table, and what the path names in it.
            snapshot: The version that is to be read.

        Raises:
            SchemaError: The path names a column that is no partition column (kind
                `DELTA_NON_PARTITION_COLUMN_SPECIFIED`).
            TableNotFoundError: There are no rows of these values (kind
                `DELTA_PATH_DOES_NOT_EXIST`).
        """
        values = dict(place.values)
        fields = {item.name: item for item in snapshot.partition_schema}
        others = [name for name in values if name not in fields]
        if others:
            raise SchemaError(
                f"The path {shown(path)} names {listed(others)}, but the partition columns of "
                f"{shown(place.table_path)} are: {listed(list(fields))}. Nothing was read. Read "
                "the table, and filter its rows.",
                kind="DELTA_NON_PARTITION_COLUMN_SPECIFIED",
                path=path,
            )
        found = _canonical(values, fields, snapshot)
        if found is None:
            raise TableNotFoundError(
                f"The path {shown(path)} does not exist: the table {shown(place.table_path)} has "
                "no rows of that partition. Nothing was read. Read the table, and filter its rows.",
                kind="DELTA_PATH_DOES_NOT_EXIST",
                path=path,
            )
        return cls(path, found)

    def rows(self, frame: DataFrame, snapshot: Snapshot) -> DataFrame:
        """The rows of these partitions in a frame that has their columns."""
        types = {item.name: to_spark_type(item.data_type) for item in snapshot.partition_schema}
        for name, text in self.values.items():
            value = sf.lit(text).cast(types[name])
            frame = frame.where(column_of(name).eqNullSafe(value))
        return frame


def _canonical(
    values: Mapping[str, str | None], fields: Mapping[str, StructField], snapshot: Snapshot
) -> dict[str, str | None] | None:
    """The values as text that Spark reads in one way; None where no file has them."""
    named = [fields[name] for name in values]
    try:
        texts = [
            canonical_partition_value(text, item.data_type)
            for item, text in zip(named, values.values(), strict=True)
        ]
    except TableError:
        return None
    if not snapshot.scan(partition_predicate(named, texts)).files.num_rows:
        return None
    return dict(zip(values, texts, strict=True))
