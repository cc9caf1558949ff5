"""The arrow plane: Python data sources and `mapInArrow` move rows through pyarrow.

*Assumes* that this package, pandas and pyarrow are installed where Spark's Python workers run.
*Provides* reading and writing wherever pyarrow or an fsspec driver reaches the store, in classic
sessions and in Spark Connect. *Does not provide* column pruning of reads.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet_writer import FileSpec
from optimist.core.snapshot.snapshot import Snapshot
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.arrow.frame import FILE_COLUMN, arrow_frame, arrow_frame_of_files
from optimist.spark.arrow.writer import write_by_arrow
from optimist.spark.condition import Condition
from optimist.spark.rows.touched_files import TouchedFiles, aliased

__all__ = ["ArrowPlane"]


@dataclass(frozen=True, slots=True)
class ArrowPlane:
    """Rows of one table, in a session of either kind; see `RowPlane`."""

    spark: SparkSession
    log: DeltaLog

    def scan(
        self,
        snapshot: Snapshot,
        files: pa.Table | None = None,
        *,
        is_time_travel: bool = False,
    ) -> DataFrame:
        """See `RowPlane.scan`; without `files`, filters of the query prune by the log."""
        if files is None:
            return arrow_frame(self.spark, self.log, snapshot, is_time_travel=is_time_travel)
        return arrow_frame_of_files(self.spark, self.log, snapshot, files)

    def touched_files(
        self,
        snapshot: Snapshot,
        candidates: pa.Table,
        condition: Condition,
        *,
        alias: str | None,
    ) -> TouchedFiles:
        """See `RowPlane.touched_files`; reads the columns that the condition names."""
        frame = arrow_frame_of_files(
            self.spark, self.log, snapshot, candidates, columns=condition.columns, with_file=True
        )
        counts = (
            aliased(frame, alias)
            .where(condition.column)
            .groupBy(sf.col(FILE_COLUMN).alias("path"))
            .agg(sf.count(sf.lit(1)).alias("rows"))
            .toArrow()
        )
        found = counts["path"].cast(pa.string()).combine_chunks()
        touched = candidates.filter(pc.is_in(candidates["path"], value_set=found))
        return TouchedFiles(touched, pc.sum(counts["rows"], min_count=0).as_py())

    def write(self, rows: DataFrame, spec: FileSpec) -> WrittenFiles:
        """See `RowPlane.write` and `write_by_arrow`."""
        return write_by_arrow(rows, spec, self.log.store)
