"""Who moves the rows of a table: Spark's own readers and writers, or pyarrow (docs/planes.md).

Both planes do the same things behind `RowPlane`; commands and transactions know no other difference
between them.
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
        """The rows of a version; no file is read before a query runs.

        Args:
            snapshot: The version.
            is_time_travel: The user chose this version, so a write made from its rows means to
                bring old rows back.
            columns: The ways to the columns or fields of structs that are needed, perhaps to
                `_metadata`; there may be others. None for all of the table's.
            zone: Where the clocks stood that partition values without a zone were read from; None
                for the session's zone.

        Raises:
            ProtocolError: The files need a feature that the reader does not have.
        """
        ...

    def scan_files(
        self, view: FilesView, files: pa.Table, *, with_row_ids: bool = False
    ) -> DataFrame:
        """The rows of some files, given as rows of `view.files`; otherwise as `scan`.

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
        """The rows of some files, and where each stands.

        Args:
            view: The version.
            files: Rows of `view.files`.
            places: The names of the columns that tell.
            columns: The columns that are needed; there may be others.
            with_row_ids: As for `scan_files`.
        """
        ...

    def find_paths(self, view: FilesView, files: pa.Table, paths: pa.Array) -> pa.Array:
        """For each file the place of its path among the paths; null if it is not there.

        Args:
            view: The version.
            files: Rows of `view.files`.
            paths: Paths as `placed_rows` spells them, all of them of these files, and distinct.
        """
        ...

    def write(self, rows: DataFrame, spec: FileSpec, *, has_changes: bool = False) -> WrittenFiles:
        """Write rows to files below `spec.directory`, which is new; no version names them yet.

        Args:
            rows: Exactly the stored columns of the table, in its types, and then those that are
                carried.
            spec: What the files have in common.
            has_changes: The last column is `_change_type`: rows for which it is not null go to
                change files, see `optimist.core.data.change_files`.
        """
        ...


def plane_of(spark: SparkSession, table: TableRef) -> RowPlane:
    """The plane that serves a table in a session; see `plane_choice` for how it is chosen.

    Raises:
        ConfigError: The native plane is forced on Spark Connect.
    """
    if is_native(spark, table.table_path, table.options, table.store.options):
        return NativePlane(spark, table)
    return ArrowPlane(spark, table)
