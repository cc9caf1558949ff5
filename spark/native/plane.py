"""The native plane: Catalyst plans from our log, and Spark reads and writes the Parquet files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.row_tracking import carried_columns
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError
from optimist.core.log.file_table import canonical_paths
from optimist.core.plugins.data_access import DataAccess
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.native.frame import listing_of, scan_frame
from optimist.spark.native.writer import write_natively
from optimist.spark.rows.places import Places

__all__ = ["NativePlane"]


@dataclass(frozen=True, slots=True)
class NativePlane:
    """Rows of tables that Spark's Hadoop can open, in a classic session (see `RowPlane`)."""

    spark: SparkSession
    table: TableRef

    def scan(
        self,
        snapshot: Snapshot,
        *,
        is_time_travel: bool = False,
        columns: Collection[tuple[str, ...]] | None = None,  # noqa: ARG002 - Spark prunes columns by itself
        zone: str | None = None,
    ) -> DataFrame:
        """See `RowPlane.scan` and `scan_frame`."""
        return scan_frame(
            self.spark, snapshot, is_time_travel=is_time_travel, access=self._access, zone=zone
        )

    def scan_files(
        self, view: FilesView, files: pa.Table, *, with_row_ids: bool = False
    ) -> DataFrame:
        """See `RowPlane.scan_files`."""
        return self._rows(view, files, {}, with_row_ids=with_row_ids)

    def placed_rows(
        self,
        view: FilesView,
        files: pa.Table,
        places: Places,
        columns: Collection[str],  # noqa: ARG002 - Spark prunes columns by itself
        *,
        with_row_ids: bool = False,
    ) -> DataFrame:
        """See `RowPlane.placed_rows`."""
        fields = {places.path: "file_path"}
        if places.position is not None:
            fields[places.position] = "row_index"
        return self._rows(view, files, fields, with_row_ids=with_row_ids)

    def _rows(
        self, view: FilesView, files: pa.Table, fields: dict[str, str], *, with_row_ids: bool
    ) -> DataFrame:
        """Return the rows of some files, with fields of `_metadata` under the given names."""
        rows = scan_frame(self.spark, view, files, access=self._access)
        carried = carried_columns(view.metadata, view.protocol).names if with_row_ids else ()
        if carried:
            fields |= dict(zip(carried, ("row_id", "row_commit_version"), strict=True))
        if not fields:
            return rows
        # PySpark's own methods would take a dozen round trips each.
        metadata: Any = rows.metadataColumn("_metadata")._jc
        # As plain columns: before Spark 4.2, hidden columns can't be named behind an alias.
        found = (metadata.getField(field).alias(name) for name, field in fields.items())
        return rows.select("*", *map(Column, found))

    def find_paths(self, view: FilesView, files: pa.Table, paths: pa.Array) -> pa.Array:
        """See `RowPlane.find_paths`.

        Raises:
            TableError: Spark names a file differently from the log (kind
                `OPTIMIST_UNKNOWN_FILE_PATHS`).
        """
        full_paths = listing_of(self.spark, view, files).paths
        # Hadoop spells local URIs with one slash or with three.
        plain = pc.replace_substring_regex(full_paths, "^file:/+", "/")
        known = pc.index_in(plain, value_set=canonical_paths(paths))
        num_known = len(known) - known.null_count
        if num_known != len(paths):
            raise TableError(
                f"Spark found matching rows in {len(paths)} files, but the log lists only "
                f"{num_known} of them. Probably the two spell paths differently. Nothing was "
                "written. Give the table's path in its plain form.",
                kind="OPTIMIST_UNKNOWN_FILE_PATHS",
                path=view.table_path,
            )
        return known

    def write(self, rows: DataFrame, spec: FileSpec, *, has_changes: bool = False) -> WrittenFiles:
        """See `RowPlane.write` and `write_natively`."""
        return write_natively(rows, spec, has_changes=has_changes)

    def _access(self) -> DataAccess | None:
        return self.table.data_access()
