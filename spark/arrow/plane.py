"""The arrow plane: Python data sources and `mapInArrow` move rows through pyarrow.

*Assumes* that this package, pandas and pyarrow are installed where Spark's Python workers run.
*Provides* reading and writing wherever pyarrow or an fsspec driver reaches the store, in classic
sessions and in Spark Connect. *Does not provide* push-down in Spark Connect: the server's optimizer
passes on no filters, columns and limits, so only those given to `scan` count.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.row_tracking import carried_columns
from optimist.core.data.table_ref import TableRef
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.arrow.frame import Needed, arrow_frame, arrow_frame_of_files
from optimist.spark.arrow.own_classes import ensure_own_classes
from optimist.spark.arrow.writer import write_by_arrow
from optimist.spark.rows.places import Places

__all__ = ["ArrowPlane"]


@dataclass(frozen=True, slots=True)
class ArrowPlane:
    """The rows of one table in a session of either kind (see `RowPlane`)."""

    spark: SparkSession
    table: TableRef

    def scan(
        self,
        snapshot: Snapshot,
        *,
        is_time_travel: bool = False,
        columns: Collection[tuple[str, ...]] | None = None,
        zone: str | None = None,
    ) -> DataFrame:
        """See `RowPlane.scan`."""
        return self.scan_needed(snapshot, Needed(columns), is_time_travel=is_time_travel, zone=zone)

    def scan_needed(
        self,
        snapshot: Snapshot,
        needed: Needed,
        *,
        is_time_travel: bool = False,
        zone: str | None = None,
    ) -> DataFrame:
        """Return the rows as `scan` does, and leave out what the caller does not need."""
        return arrow_frame(
            self.spark,
            self.table,
            snapshot,
            is_time_travel=is_time_travel,
            needed=needed,
            zone=zone,
        )

    def scan_files(
        self, view: FilesView, files: pa.Table, *, with_row_ids: bool = False
    ) -> DataFrame:
        """See `RowPlane.scan_files`."""
        carried = carried_columns(view.metadata, view.protocol) if with_row_ids else ()
        columns = StructType((*view.schema, *carried))
        return arrow_frame_of_files(self.spark, self.table, view, files, columns=columns)

    def placed_rows(
        self,
        view: FilesView,
        files: pa.Table,
        places: Places,
        columns: Collection[str],
        *,
        with_row_ids: bool = False,
    ) -> DataFrame:
        """See `RowPlane.placed_rows`.

        Only the needed columns are read.
        """
        carried = carried_columns(view.metadata, view.protocol) if with_row_ids else ()
        wanted = StructType((*_pick_columns(view.schema, columns), *carried))
        return arrow_frame_of_files(
            self.spark, self.table, view, files, columns=wanted, places=places
        )

    def find_paths(
        self,
        view: FilesView,  # noqa: ARG002 - here paths are those of the log
        files: pa.Table,
        paths: pa.Array,
    ) -> pa.Array:
        """See `RowPlane.find_paths`."""
        return pc.index_in(files["path"], value_set=paths).combine_chunks()

    def write(self, rows: DataFrame, spec: FileSpec, *, has_changes: bool = False) -> WrittenFiles:
        """See `RowPlane.write` and `write_by_arrow`."""
        ensure_own_classes(self.spark, self.table)
        return write_by_arrow(rows, spec, self.table.store, has_changes=has_changes)


def _pick_columns(schema: StructType, names: Collection[str]) -> StructType:
    """Return the named columns, or the first column if none is named: rows need a column."""
    folded = {name.lower() for name in names}
    found = tuple(item for item in schema if item.name.lower() in folded)
    return StructType(found or schema.fields[:1])
