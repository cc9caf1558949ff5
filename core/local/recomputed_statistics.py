"""New statistics for existing files (spec 9, and COMPUTE STATS in spec 8 and 2.13).

A file has the statistics that its writer gave it. Another engine may have written none. After a
change of `dataSkippingStatsColumns`, the files still have statistics of the old columns. Here the
statistics come from the footer of each file. If a footer can't tell whether a column holds NaN,
that column is read. Files with new statistics are added again, in one commit that changes no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.new_files import new_files
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.column_shape import find_field
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.footer_statistics import (
    ColumnPath,
    nan_free_columns,
    stats_from_footer,
)
from optimist.core.data.parquet.parquet_reader import read_batches
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.unreadable_files import UNREADABLE, read_surely
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.html_repr import field_html
from optimist.core.errors.short_repr import short_repr
from optimist.core.local.target import LocalTarget
from optimist.core.log.file_table import add_files
from optimist.core.predicates import Predicate, ensure_columns
from optimist.core.protocol.actions import AddFile
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.column_paths import physical_path
from optimist.core.schema.types import DataType, StructType
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.row_filter import ensure_exact
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.conflicts.row_ids import is_row_tracking_on
from optimist.core.transaction.result import CommitResult, MaybeNone

__all__ = ["Recomputed", "recompute_statistics"]

_FLOATS = ("float", "double")


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The result of a COMPUTE STATS.

    Attributes:
        commit: The commit; None if all statistics were already right.
        num_files: The number of files that were read.
        num_changed: The number of files with new statistics.
    """

    commit: CommitResult | MaybeNone
    num_files: int
    num_changed: int

    __repr__ = short_repr
    _repr_html_ = field_html


def recompute_statistics(
    target: LocalTarget, predicate: str | Predicate | None, *, only: pa.Array | None = None
) -> Recomputed:
    """Compute the statistics of files again.

    Args:
        target: The table, in a transaction that has just begun.
        predicate: The files that may hold matching rows are chosen; None for all files.
        only: The full paths of the files that may be chosen; None for all files.

    Raises:
        UsageError: The predicate can't be parsed, names an unknown column, or can be evaluated only
            by Spark (kind `OPTIMIST_NEEDS_SPARK`).
        TableError: A file is gone or damaged; or its number of rows differs from the log's (kind
            `DELTA_NUM_RECORDS_MISMATCH`), and the table tracks its rows.
        DeltaConcurrentModificationException: Another commit removed one of the files meanwhile.
        StorageError: The store failed.
    """
    txn = target.txn
    files = _choose_files(target.snapshot, predicate)
    if only is not None:
        paths = txn.table.data_paths
        full = map(paths.full_paths, files.column("path").chunks)
        files = files.filter(pc.is_in(pa.chunked_array(full, pa.string()), value_set=only))
    statistics = _Statistics(target, new_files(txn))
    text = None if predicate is None else str(predicate)
    operation = Operation("COMPUTE STATS", {"predicate": json_text([] if text is None else [text])})
    changed: list[AddFile] = []

    def work(_: UncommittedFiles) -> Changes:
        txn.depend_on(files)
        changed.extend(statistics.changed(files))
        metrics = {"numFilesScanned": files.num_rows, "numFilesChanged": len(changed)}
        described = operation.with_metrics(metrics)
        return Changes(tuple(changed), described, is_progress=False)

    done = run_command(txn, work)
    return Recomputed(done.commit, files.num_rows, len(changed))


def _choose_files(snapshot: Snapshot, predicate: str | Predicate | None) -> pa.Table:
    """Return the files that current statistics can't exclude, for an exact predicate."""
    if predicate is None:
        return snapshot.files
    parsed = Predicate.parse(predicate) if isinstance(predicate, str) else predicate
    resolved = ensure_columns(parsed, snapshot.schema)
    ensure_exact(resolved, snapshot.schema, remedy="Nothing was written. Leave the part out.")
    return snapshot.scan(resolved).files


@dataclass(frozen=True, slots=True)
class _Statistics:
    """Computes statistics by the table's current properties."""

    target: LocalTarget
    spec: FileSpec

    def changed(self, files: pa.Table) -> Iterator[AddFile]:
        """Yield the files that get new statistics, with these."""
        snapshot, spec = self.target.snapshot, self.spec
        is_tracked = is_row_tracking_on(snapshot.protocol, snapshot.metadata)
        found = self.target.read_each("search", files, self._statistics_of)
        for at, stats in enumerate(found):
            (add,) = add_files(files.slice(at, 1))
            if add.stats == stats:
                continue
            before, after = num_rows(add.stats), num_rows(stats)
            if is_tracked and before != after:
                raise TableError(
                    f"The file {shown(add.path)} of {spec.table_path} has {after} rows, but the "
                    f"log says {before}. Nothing was written. Row ids depend on that number: "
                    "write the file's rows into a new table.",
                    kind="DELTA_NUM_RECORDS_MISMATCH",
                    path=add.path,
                )
            yield replace(add, stats=stats, data_change=False)

    def _statistics_of(self, part: FilePart) -> str:
        with storage_errors("read", part.path):
            try:
                footer = read_surely(part.path, self.spec.access, pq.read_metadata)
            except FileNotFoundError:
                raise
            except UNREADABLE as error:
                raise TableError(
                    f"The file {shown(part.path)} can't be read as Parquet: {shown(str(error))}. "
                    "Nothing was written. Restore it, or take its rows out of the table.",
                    kind="OPTIMIST_UNREADABLE_DATA_FILE",
                    path=part.path,
                ) from None
        schema, wanted = self.spec.schema, self.spec.stats_columns or ()
        is_tight = None if self.spec.tight_bounds is None else part.deletion_vector is None
        return stats_from_footer(
            footer,
            schema,
            [path for path in wanted if self._is_plain(path, footer.schema.to_arrow_schema())],
            string_prefix_length=self.spec.string_prefix_length,
            tight_bounds=is_tight,
            nan_free=self._nan_free(part),
        )

    def _is_plain(self, path: ColumnPath, file: pa.Schema) -> bool:
        """Tell whether a footer's statistics of a column are about the values that readers see.

        They are not if readers find the column by another name, or widen its values.
        """
        by_id = self.target.snapshot.properties.column_mapping_mode == "id"
        fields: Sequence[pa.Field] = list(file)
        level: DataType = self.spec.schema
        for name in path:
            item = level.find(name) if isinstance(level, StructType) else None
            index = None if item is None else find_field(fields, item, by_id=by_id)
            if item is None or index is None:
                # It is all null if the file has no column of its physical name either.
                return item is not None and item.physical_name not in [each.name for each in fields]
            found, level = fields[index], item.data_type
            if found.name != item.physical_name:
                return False
            fields = list(found.type) if pa.types.is_struct(found.type) else []
        return not isinstance(level, StructType) and _is_alike(found.type, to_arrow_type(level))

    def _nan_free(self, part: FilePart) -> frozenset[ColumnPath]:
        """Return a file's float columns in which no row, deleted or not, has NaN."""
        schema = self.target.snapshot.schema
        wanted = {path[0] for path in self.spec.stats_columns or () if _is_float(schema, path)}
        if not wanted:
            return frozenset()
        columns = StructType(tuple(item for item in schema if item.name in wanted))
        batches = read_batches(replace(part, deletion_vector=None), self.target.layout(columns))
        found = [nan_free_columns(pa.Table.from_batches([batch])) for batch in batches]
        free = reduce(frozenset.intersection, found) if found else frozenset()
        return frozenset(physical_path(path, schema) for path in free)


def _is_float(schema: StructType, path: ColumnPath) -> bool:
    item = schema.find(path[0])
    for name in path[1:]:
        inner = None if item is None else item.data_type
        item = inner.find(name) if isinstance(inner, StructType) else None
    return item is not None and str(item.data_type) in _FLOATS


def _is_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether values of a file have the table's type.

    Timestamps may differ in unit.
    """
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted):
        return bool(stored.tz) == bool(wanted.tz)
    return bool(stored == wanted) or pa.types.is_nested(wanted)
