"""The planes that move a table's rows: Spark's readers and writers, or pyarrow (docs/planes.md).

Both planes do the same behind `RowPlane`; commands and transactions do not know which of them
works.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.table_ref import TableRef
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.arrow.plane import ArrowPlane
from optimist.spark.native.plane import NativePlane
from optimist.spark.planes.plane_choice import is_native
from optimist.spark.rows.places import Places

__all__ = ["RowPlane", "plane_of"]


class RowPlane(Protocol):
    """Moves rows between Spark and the data files of one table."""

    def scan(
        self,
        snapshot: Snapshot,
        *,
        is_time_travel: bool = False,
        columns: Collection[tuple[str, ...]] | None = None,
        zone: str | None = None,
    ) -> DataFrame:
        """Return the rows of a version, without reading a file before a query runs.

        Args:
            snapshot: The version.
            is_time_travel: The user chose this version, so a write of its rows is meant to bring
                old rows back.
            columns: The paths of the needed columns and fields of structs, perhaps of `_metadata`;
                the frame may have others, too. None for all columns of the table.
            zone: The time zone of partition values that name none; None for the session's zone.

        Raises:
            ProtocolError: The files need a feature that the reader does not have.
        """
        ...

    def scan_files(
        self, view: FilesView, files: pa.Table, *, with_row_ids: bool = False
    ) -> DataFrame:
        """Return the rows of some files, given as rows of `view.files`, as `scan` does.

        Args:
            view: The version.
            files: Rows of `view.files`.
            with_row_ids: Add `carried_columns`, where the table tracks its rows.
        """
        ...

    def placed_rows(
        self,
        view: FilesView,
        files: pa.Table,
        places: Places,
        columns: Collection[str],
        *,
        with_row_ids: bool = False,
    ) -> DataFrame:
        """Return the rows of some files, and the location of each: its file and position.

        Args:
            view: The version.
            files: Rows of `view.files`.
            places: The names of the columns that hold the locations.
            columns: The needed columns; the frame may have others, too.
            with_row_ids: As for `scan_files`.
        """
        ...

    def find_paths(self, view: FilesView, files: pa.Table, paths: pa.Array) -> pa.Array:
        """Return the index of each file's path among the paths, or null if it is not there.

        Args:
            view: The version.
            files: Rows of `view.files`.
            paths: Distinct paths of these files, spelled as in `placed_rows`.
        """
        ...

    def write(self, rows: DataFrame, spec: FileSpec, *, has_changes: bool = False) -> WrittenFiles:
        """Write rows to files below the new directory `spec.directory`.

        No version names the files yet.

        Args:
            rows: Exactly the stored columns of the table, in its types, and then the carried
                columns.
            spec: What the files have in common.
            has_changes: The last column is `_change_type`: rows for which it is not null go to
                change files, see `optimist.core.data.change_files`.
        """
        ...


def plane_of(spark: SparkSession, table: TableRef) -> RowPlane:
    """Return the plane that `plane_choice` chooses for a table in a session.

    Raises:
        ConfigError: The native plane is forced on Spark Connect.
    """
    if is_native(spark, table.table_path, table.options, table.store.options):
        return NativePlane(spark, table)
    return ArrowPlane(spark, table)
