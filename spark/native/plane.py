"""The native plane: Catalyst plans from our log; Spark's Parquet reader and writer do the rest."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet_writer import FileSpec
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError
from optimist.core.log.file_table import canonical_paths
from optimist.core.plugins.data_access import DataAccess
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.conditions.condition import Condition
from optimist.spark.native.frame import listing_of, scan_frame
from optimist.spark.native.writer import write_natively
from optimist.spark.rows.row_shape import free_name
from optimist.spark.rows.touched_files import TouchedFiles, aliased

__all__ = ["NativePlane"]

_PATH = "__optimist_path"


@dataclass(frozen=True, slots=True)
class NativePlane:
    """Rows of tables whose scheme Spark's Hadoop opens, in a classic session; see `RowPlane`."""

    spark: SparkSession
    table: TableRef

    def scan(
        self,
        snapshot: Snapshot,
        *,
        is_time_travel: bool = False,
    ) -> DataFrame:
        """See `RowPlane.scan` and `scan_frame`."""
        return scan_frame(self.spark, snapshot, is_time_travel=is_time_travel, access=self._access)

    def scan_files(self, view: FilesView, files: pa.Table) -> DataFrame:
        """See `RowPlane.scan_files`."""
        return scan_frame(self.spark, view, files, access=self._access)

    def touched_files(
        self,
        snapshot: Snapshot,
        candidates: pa.Table,
        condition: Condition,
        *,
        alias: str | None,
    ) -> TouchedFiles:
        """See `RowPlane.touched_files`.

        Raises:
            TableError: Spark names a file differently from the log (kind
                `OPTIMIST_UNKNOWN_FILE_PATHS`).
        """
        scan = self.scan_files(snapshot, candidates)
        # As a plain column: before Spark 4.2, hidden columns can't be named behind an alias.
        name = free_name(_PATH, snapshot.schema.names)
        path = scan.metadataColumn("_metadata").getField("file_path").alias(name)
        counts = (
            aliased(scan.select("*", path), alias)
            .where(condition.column)
            .groupBy(sf.col(name).alias("path"))
            .agg(sf.count(sf.lit(1)).alias("rows"))
            .toArrow()
        )
        found = canonical_paths(counts["path"].cast(pa.string())).combine_chunks()
        full_paths = listing_of(self.spark, snapshot, candidates).paths
        # Hadoop spells local URIs with one slash or with three.
        paths = pc.replace_substring_regex(full_paths, "^file:/+", "/")
        touched = candidates.filter(pc.is_in(paths, value_set=found))
        if touched.num_rows != counts.num_rows:
            raise TableError(
                f"Spark found matching rows in {counts.num_rows} files, but the log lists only "
                f"{touched.num_rows} of them. Probably the two spell paths differently. Nothing "
                "was written. Give the table's path in its plain form.",
                kind="OPTIMIST_UNKNOWN_FILE_PATHS",
                path=snapshot.table_path,
            )
        return TouchedFiles(touched, pc.sum(counts["rows"], min_count=0).as_py())

    def write(self, rows: DataFrame, spec: FileSpec) -> WrittenFiles:
        """See `RowPlane.write` and `write_natively`."""
        return write_natively(rows, spec)

    def _access(self) -> DataAccess | None:
        return self.table.data_access()
