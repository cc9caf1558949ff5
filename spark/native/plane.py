"""The native plane: Catalyst plans from our log; Spark's Parquet reader and writer do the rest."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

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
from optimist.spark.rows.touched_files import TouchedFiles, aliased, matches_of

__all__ = ["NativePlane"]

_PATH, _POSITION = "__optimist_path", "__optimist_position"


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
        with_rows: bool = False,
    ) -> TouchedFiles:
        """See `RowPlane.touched_files`.

        Raises:
            TableError: Spark names a file differently from the log (kind
                `OPTIMIST_UNKNOWN_FILE_PATHS`).
        """
        scan = self.scan_files(snapshot, candidates)
        # As plain columns: before Spark 4.2, hidden columns can't be named behind an alias.
        metadata, taken = scan.metadataColumn("_metadata"), snapshot.schema.names
        path = free_name(_PATH, taken)
        columns = [metadata.getField("file_path").alias(path)]
        position = None
        if with_rows:
            position = free_name(_POSITION, taken)
            columns.append(metadata.getField("row_index").alias(position))
        frame = aliased(scan.select("*", *columns), alias)
        matches = matches_of(frame.where(condition.column), path, position)
        full_paths = listing_of(self.spark, snapshot, candidates).paths
        # Hadoop spells local URIs with one slash or with three.
        paths = pc.replace_substring_regex(full_paths, "^file:/+", "/")
        touched = matches.files(candidates, paths, known_as=canonical_paths(matches.paths))
        if touched.table.num_rows != len(matches.paths):
            raise TableError(
                f"Spark found matching rows in {len(matches.paths)} files, but the log lists only "
                f"{touched.table.num_rows} of them. Probably the two spell paths differently. "
                "Nothing was written. Give the table's path in its plain form.",
                kind="OPTIMIST_UNKNOWN_FILE_PATHS",
                path=snapshot.table_path,
            )
        return touched

    def write(self, rows: DataFrame, spec: FileSpec) -> WrittenFiles:
        """See `RowPlane.write` and `write_natively`."""
        return write_natively(rows, spec)

    def _access(self) -> DataAccess | None:
        return self.table.data_access()
