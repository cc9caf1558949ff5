"""Rows to data files by Spark's own Parquet writer; `add` actions from the footers (spec 10.2).

Each write has a directory of its own below the table, so nothing it does can touch files of the
table, and what an aborted write leaves can be told by its place. Its name starts with neither `_`
nor `.`: vacuum must see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.actions import AddFile
from optimist.core.data.filesystem import filesystem_for, make_durable
from optimist.core.data.footer_statistics import stats_from_footer
from optimist.core.data.partition_values import (
    canonical_partition_value,
    partition_schema,
    unescape_hive,
    uri_reference,
)
from optimist.core.data.stats_columns import stats_columns
from optimist.core.delta_log import DeltaLog
from optimist.core.errors import ConfigError, SchemaError
from optimist.core.paths import join, name_of
from optimist.core.protocol import supports
from optimist.core.schema import StructField, StructType, schema_from_json
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.checks import violation_of
from optimist.spark.jvm import Jvm
from optimist.spark.row_shape import column_of
from optimist.spark.scan.listing import hadoop_path
from optimist.spark.uncommitted import UncommittedFiles, remove_directory

__all__ = ["DataWriter", "WrittenFiles"]

_FOOTER_THREADS = 8
_SESSION_CONFS: Mapping[str, str] = {
    # What makes the files Delta's, whatever the user's session says; set on a clone of it.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
}
_NO_MARKER_FILE = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
_EPOCH = "timestamp_ntz'1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What one write has made.

    Attributes:
        adds: The files' actions; files without rows are gone already.
        num_rows: Rows in all of them.
    """

    adds: tuple[AddFile, ...] = ()
    num_rows: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(add.size for add in self.adds)


@dataclass(frozen=True, slots=True)
class DataWriter:
    """Writes data files for one transaction, by its metadata as changed so far.

    Attributes:
        log: The table.
        txn: The transaction.
        compression: Parquet's codec; None leaves it to the session.
        max_records_per_file: Split files that would hold more rows.
        data_change: What the `add` actions say.
    """

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
        """
        directory = join(self.log.table_path, f"data-{self.log.clock.new_uuid()}")
        pending.register(directory)
        try:
            self._write(rows, directory)
        except Exception as error:
            violation = violation_of(error)
            if violation is None:
                raise
            raise violation from None
        return self._collect(directory)

    @property
    def schema(self) -> StructType:
        """The table's schema, as changed in the transaction."""
        return schema_from_json(self.txn.metadata.schema_string)

    def _write(self, rows: DataFrame, directory: str) -> None:
        columns = self.txn.metadata.partition_columns
        if len(columns) == len(rows.columns):
            raise SchemaError(
                "All columns are partition columns, so nothing is left for the data files. "
                "Partition by fewer. "
                "Nothing was written.",
                kind="DELTA_NON_PARTITION_COLUMN_ABSENT",
            )
        fields = partition_schema(self.schema, columns)
        texts = {field.name: self._partition_text(field) for field in fields}
        jvm = Jvm.of(rows.sparkSession)
        isolated = jvm.isolated(rows.withColumns(texts) if texts else rows, _SESSION_CONFS)
        writer = isolated.write.mode("errorifexists").options(**_NO_MARKER_FILE)
        if self.compression is not None:
            writer = writer.option("compression", self.compression)
        if self.max_records_per_file is not None:
            writer = writer.option("maxRecordsPerFile", self.max_records_per_file)
        if columns:
            writer = writer.partitionBy(*(field.name for field in fields))
        writer.parquet(hadoop_path(directory))

    def _partition_text(self, field: StructField) -> Column:
        """The value as text that no session setting changes; the directory's name carries it."""
        value = column_of(field.name)
        if str(field.data_type) == "string":
            return sf.when(value != "", value)  # an empty string is null in a partition
        if str(field.data_type) != "timestamp":
            return value.cast("string")
        if not self.log.options.utc_timestamp_partition_values:
            raise ConfigError(
                "spark.databricks.delta.write.utcTimestampPartitionValues=false is not supported: "
                "in a zone with "
                "summer time two instants would become one partition. Nothing was written.",
                kind="OPTIMIST_UNSUPPORTED_OPTION",
                key="spark.databricks.delta.write.utcTimestampPartitionValues",
            )
        # Spelled in the session's zone, the two hours of a clock change would fall together.
        quoted = field.name.replace("`", "``")
        micros = f"timestampadd(MICROSECOND, unix_micros(`{quoted}`), {_EPOCH})"
        return sf.expr(f"CAST({micros} AS STRING)")

    def _collect(self, directory: str) -> WrittenFiles:
        filesystem, inner = filesystem_for(directory)
        selector = fs.FileSelector(inner, recursive=True)
        found = [info for info in filesystem.get_file_info(selector) if _is_data_file(info)]
        with ThreadPoolExecutor(max_workers=_FOOTER_THREADS) as pool:
            footers = list(
                pool.map(lambda info: pq.read_metadata(info.path, filesystem=filesystem), found)
            )
        adds, num_rows = [], 0
        for info, footer in zip(found, footers, strict=True):
            if footer.num_rows == 0:
                filesystem.delete_file(info.path)
                continue
            num_rows += footer.num_rows
            relative = info.path[len(inner.rstrip("/")) + 1 :]
            adds.append(self._add(join(name_of(directory), relative), info, footer))
        if not adds:
            remove_directory(directory)
        kept = [info.path for info, footer in zip(found, footers, strict=True) if footer.num_rows]
        make_durable(filesystem, filesystem_for(self.log.table_path)[1], kept)
        return WrittenFiles(tuple(adds), num_rows)

    def _add(self, relative: str, info: fs.FileInfo, footer: pq.FileMetaData) -> AddFile:
        return AddFile(
            path=uri_reference(relative),
            partition_values=self._partition_values(relative.split("/")[1:-1]),
            size=info.size,
            modification_time=info.mtime_ns // 1_000_000,
            data_change=self.data_change,
            stats=self._stats(footer),
        )

    def _partition_values(self, directories: Sequence[str]) -> dict[str, str | None]:
        by_name: dict[str, str | None] = {}
        for segment in directories:
            name, _, value = segment.partition("=")
            by_name[unescape_hive(name) or name] = unescape_hive(value)
        fields = partition_schema(self.schema, self.txn.metadata.partition_columns)
        return {
            field.physical_name: canonical_partition_value(
                by_name[field.name], field.data_type, zone="UTC"
            )
            for field in fields
        }

    def _stats(self, footer: pq.FileMetaData) -> str | None:
        if not self.log.options.stats_collect:
            return None
        metadata = self.txn.metadata
        return stats_from_footer(
            footer,
            self.schema,
            stats_columns(self.schema, metadata.partition_columns, metadata.configuration),
            string_prefix_length=self.log.options.string_prefix_length,
            tight_bounds=True if supports(self.txn.protocol, "deletionVectors") else None,
        )


def _is_data_file(info: fs.FileInfo) -> bool:
    is_hidden = info.base_name.startswith(("_", "."))
    return info.type == fs.FileType.File and not is_hidden and "/_temporary/" not in info.path
