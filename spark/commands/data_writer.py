"""Rows to data files for one transaction, on whichever plane serves the table (design 5).

Each write has a directory of its own below the table, so nothing it does can touch files of the
table, and what an aborted write leaves can be told by its place. Its name starts with neither `_`
nor `.`: vacuum must see it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet_writer import DEFAULT_CODEC, FileSpec
from optimist.core.data.partition_values import partition_schema
from optimist.core.errors import ConfigError, SchemaError
from optimist.core.paths import join
from optimist.core.protocol.gates import supports
from optimist.core.schema.types import StructType
from optimist.core.table.delta_log import DeltaLog
from optimist.core.table_schema import table_schema
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.checks import violation_of
from optimist.spark.planes.planes import RowPlane

__all__ = ["DataWriter"]

_CODEC = "spark.sql.parquet.compression.codec"


@dataclass(frozen=True, slots=True)
class DataWriter:
    """Writes data files for one transaction, by its metadata as changed so far.

    Attributes:
        plane: Who moves the rows.
        log: The table.
        txn: The transaction.
        compression: Parquet's codec; None leaves it to the table, and then to the session.
        max_records_per_file: Split files that would hold more rows.
        data_change: What the `add` actions say.
    """

    plane: RowPlane
    log: DeltaLog
    txn: OptimisticTransaction
    compression: str | None = None
    max_records_per_file: int | None = None
    data_change: bool = True

    def write(self, rows: DataFrame, pending: UncommittedFiles) -> WrittenFiles:
        """Write the rows into a directory of their own, which `pending` looks after.

        Args:
            rows: Exactly the stored columns of the table, in its types.
            pending: The files of the transaction so far.

        Raises:
            SchemaError: A row violates a constraint, or no column is left for the files.
            ConfigError: An option asks for files that can't be written so.
        """
        self._ensure_writable(rows)
        spec = self._spec(rows.sparkSession)
        pending.register(join(spec.table_path, spec.directory))
        try:
            return self.plane.write(rows, spec)
        except Exception as error:
            violation = violation_of(error)
            if violation is None:
                raise
            raise violation from None

    @property
    def schema(self) -> StructType:
        """The table's schema, as changed in the transaction."""
        return table_schema(self.txn.metadata)

    def _spec(self, spark: SparkSession) -> FileSpec:
        log = self.log
        codec = spark.conf.get(_CODEC) or DEFAULT_CODEC
        spec = FileSpec.of(log.table_path, self.txn.metadata, log.options, codec=codec)
        return replace(
            spec,
            tight_bounds=True if supports(self.txn.protocol, "deletionVectors") else None,
            directory=f"data-{log.clock.new_uuid()}",
            compression=self.compression or spec.compression,
            max_rows_per_file=self.max_records_per_file or None,
            data_change=self.data_change,
            access=log.store.data_access(log.table_path),
        )

    def _ensure_writable(self, rows: DataFrame) -> None:
        columns = self.txn.metadata.partition_columns
        if len(columns) == len(rows.columns):
            raise SchemaError(
                "All columns are partition columns, so nothing is left for the data files. "
                "Partition by fewer. Nothing was written.",
                kind="DELTA_NON_PARTITION_COLUMN_ABSENT",
            )
        fields = partition_schema(self.schema, columns)
        has_time = any(str(field.data_type) == "timestamp" for field in fields)
        if has_time and not self.log.options.utc_timestamp_partition_values:
            raise ConfigError(
                "spark.databricks.delta.write.utcTimestampPartitionValues=false is not supported: "
                "in a zone with summer time two instants would become one partition. Nothing was "
                "written.",
                kind="OPTIMIST_UNSUPPORTED_OPTION",
                key="spark.databricks.delta.write.utcTimestampPartitionValues",
            )
