"""Rows that the log alone knows: their number, and the values of partition columns.

The tasks of a query that needs nothing else make these rows, and open no file (spec 9.6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import partition_columns_of
from optimist.core.skipping.aggregates import CountedFiles, Wanted, aggregated
from optimist.core.skipping.statistics import FileStatistics
from optimist.spark.arrow.tasks import spark_batch
from optimist.spark.arrow.version_to_scan import VersionToScan
from optimist.spark.arrow.wanted_rows import WantedRows
from optimist.spark.session.pyspark_versions import spark_arrow_schema

__all__ = ["KnownRows", "known_rows"]

_FEWEST_ROWS = 1 << 20
"""Rows that are too few for tasks of their own."""
_BATCH_ROWS = 1 << 16
_MOST_ROWS = 1 << 26
"""Rows that are made in a moment. For more, the word of the log is not enough: the files are read,
so that a query costs what they hold and not what a number in the log claims.
"""


@dataclass(frozen=True, slots=True)
class KnownRows:
    """The share of one task.

    Attributes:
        data: Combinations of values and their numbers of rows, as Arrow's bytes.
        start: The first row of the share among all rows.
        end: The row after its last one.
    """

    data: bytes
    start: int
    end: int

    def batches(self, wanted: WantedRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows with exactly the columns that are wanted."""
        target = spark_arrow_schema(wanted.schema)
        with pa.ipc.open_stream(self.data) as reader:
            table = reader.read_all()
        ends = pc.cumulative_sum(table["rows"])
        starts = pc.max_element_wise(pc.subtract(ends, table["rows"]), self.start)
        counts = pc.subtract(pc.min_element_wise(ends, self.end), starts)
        values = table.append_column("count", counts).filter(pc.greater(counts, 0))
        for at, count in enumerate(values["count"].to_pylist()):
            scalars = [values[name][at] for name in values.column_names[:-2]]
            for begin in range(0, count, _BATCH_ROWS):
                num_rows = min(_BATCH_ROWS, count - begin)
                columns = [pa.repeat(scalar, num_rows) for scalar in scalars]
                # A column that is there only to be counted.
                columns = columns or [pa.nulls(num_rows, field.type) for field in target]
                yield spark_batch(columns, target)


def known_rows(
    version: VersionToScan, files: pa.Table, wanted: WantedRows, *, counts_only: bool
) -> list[KnownRows] | None:
    """Return the rows of some files, in shares, or None if files have to be read for them.

    Args:
        version: The version.
        files: The files.
        wanted: The columns.
        counts_only: Nobody looks at the values of the columns.
    """
    snapshot = version.snapshot
    if not snapshot.answers_from_log or wanted.metadata is not None or wanted.limit is not None:
        return None
    names = [] if counts_only else [field.name for field in wanted.layout.schema]
    partitions = snapshot.partition_schema
    if any(partitions.find(name) is None for name in names):
        return None
    values = partition_columns_of(files, partitions, zone=version.zone)
    counted = CountedFiles(FileStatistics(files, snapshot.schema), values)
    groups = [Wanted("group", name) for name in names]
    found = aggregated([counted], [[*groups, Wanted("rows")]])
    if found is None:
        return None
    found = found.rename_columns([*found.column_names[:-1], "rows"])
    num_rows = pc.sum(found["rows"], min_count=0).as_py()
    if num_rows > _MOST_ROWS:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found.schema) as writer:
        writer.write_table(found)
    data = sink.getvalue().to_pybytes()
    share = max(_FEWEST_ROWS, -(-num_rows // version.grouping.num_groups))
    return [KnownRows(data, at, min(at + share, num_rows)) for at in range(0, num_rows, share)]
