"""The ways in which OPTIMIZE and REORG write files again (spec 10.14, 2.16).

- Compaction puts small files together. A purge rewrites files that have deletion vectors.
- Z-order arranges all rows of a partition by some columns.
- Clustering arranges the rows of a clustered table that are not arranged yet; see `cubes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.statistics.stats_columns import stats_columns
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.log.file_choice import ALL_FILES, FileChoice, Stage
from optimist.core.maintenance.optimize.bins import bins_of, worth_compacting
from optimist.core.maintenance.optimize.cubes import PROVIDER, Cubes, cube_tags
from optimist.core.maintenance.optimize.dropped_columns import ColumnsOf, with_dropped_columns
from optimist.core.maintenance.optimize.row_order import RowOrder
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import AddFile
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.schema_edits import path_text
from optimist.core.schema.stats_property import ColumnPath, leaf_columns
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.operations import json_text
from optimist.core.values.exact_sums import exact_sum

__all__ = [
    "Arrangement",
    "Candidates",
    "Clustering",
    "Compaction",
    "Purge",
    "Rearrangement",
    "ZOrdering",
]

_UNORDERED = ("variant", "void")


class Arrangement:
    """One way to write files again.

    Attributes:
        keeps_single: Whether a file that is alone in its bin is written again.
        order: How the rows of a bin are arranged; None to keep the order of the files.
        parameters: The operation parameters for the history, without the predicate.
    """

    keeps_single: ClassVar[bool] = True

    @property
    def order(self) -> RowOrder | None:
        """The order of the rows in a bin, or None."""
        return None

    @property
    def parameters(self) -> Mapping[str, object]:
        """The operation parameters for the history."""
        return {"zOrderBy": json_text([]), "clusterBy": json_text([]), "auto": False}

    def choice(self, options: EngineOptions) -> FileChoice:
        """Return which files `bins` needs of all files, if no predicate chooses any."""
        del options
        return ALL_FILES

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """Group the files that are to be written again into bins."""
        raise NotImplementedError

    def marked(self, add: AddFile, bin_id: str) -> AddFile:
        """Return a new file of a bin as the log records it."""
        del bin_id
        return add


@dataclass(frozen=True, slots=True)
class Compaction(Arrangement):
    """Many small files become few large ones."""

    keeps_single: ClassVar[bool] = False

    def choice(self, options: EngineOptions) -> FileChoice:
        """Leave out large files without a vector."""
        least = options.optimize_min_file_size

        def may_be_worth_it(files: pa.Table) -> pa.BooleanArray:
            mask = pc.or_(pc.less(files["size"], least), pc.is_valid(files["deletionVector"]))
            return mask.combine_chunks()

        return FileChoice((Stage(("size", "deletionVector"), may_be_worth_it),))

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """Group the small files and those with many deleted rows into bins."""
        wanted = worth_compacting(
            candidates,
            min_bytes=options.optimize_min_file_size,
            max_deleted_ratio=options.optimize_max_deleted_rows_ratio,
        )
        return bins_of(wanted, snapshot.partition_schema, max_bytes=options.optimize_max_file_size)


@dataclass(frozen=True, slots=True)
class Purge(Arrangement):
    """REORG ... APPLY (PURGE): deleted rows and dropped columns leave the files.

    It rewrites files with deletion vectors, and files that hold a dropped column.

    Attributes:
        columns_of: Returns the columns of a file, by its full path; None to look at vectors only.
    """

    columns_of: ColumnsOf | None = None

    @property
    def parameters(self) -> Mapping[str, object]:
        """The operation parameters for the history."""
        return {"applyPurge": True}

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """Group the files that have a vector or a dropped column into bins."""
        is_wanted = pc.is_valid(candidates["deletionVector"])
        if self.columns_of is not None:
            has_more = with_dropped_columns(candidates, snapshot, self.columns_of)
            is_wanted = pc.or_(is_wanted, has_more)
        wanted = candidates.filter(is_wanted)
        target = options.optimize_max_file_size
        return bins_of(wanted, snapshot.partition_schema, max_bytes=target, keeps_single=True)


@dataclass(frozen=True, slots=True)
class ZOrdering(Arrangement):
    """All rows of a partition, arranged by some columns.

    Attributes:
        columns: The logical paths of the columns.
        given: The same paths as the user wrote them, for the history.
    """

    columns: tuple[ColumnPath, ...]
    given: tuple[ColumnPath, ...]

    @property
    def order(self) -> RowOrder | None:
        """The order of the rows in a bin."""
        return RowOrder(self.columns)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The operation parameters for the history."""
        return {**Arrangement().parameters, "zOrderBy": json_text(_path_texts(self.given))}

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """Group all files of each partition into one bin."""
        del options
        size = exact_sum(candidates["size"]) if candidates.num_rows else 0
        schema = snapshot.partition_schema
        return bins_of(candidates, schema, max_bytes=size, keeps_single=True)


@dataclass(frozen=True, slots=True)
class Clustering(Arrangement):
    """The rows of a clustered table that are not arranged yet.

    Attributes:
        columns: The logical paths of the clustering columns.
        is_full: Whether rows that are arranged by other columns are arranged again, too.
    """

    columns: tuple[ColumnPath, ...]
    is_full: bool = False

    @property
    def order(self) -> RowOrder | None:
        """The order of the rows in a bin."""
        return RowOrder(self.columns, is_hilbert=True)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The operation parameters for the history."""
        parameters_of_cube = {
            "clusterBy": json_text(_path_texts(self.columns)),
            "isFull": self.is_full,
        }
        return {**Arrangement().parameters, **parameters_of_cube}

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """Group the files that `Cubes` chooses into bins of up to the size of a cube."""
        wanted = Cubes.of(candidates, self.columns).worth_clustering(
            stable_bytes=options.optimize_stable_cube_size, is_full=self.is_full
        )
        target = options.optimize_target_cube_size
        return bins_of(wanted, snapshot.partition_schema, max_bytes=target, keeps_single=True)

    def marked(self, add: AddFile, bin_id: str) -> AddFile:
        """Return the file with the tags of the cube that the bin becomes."""
        tags = {**(add.tags or {}), **cube_tags(bin_id, self.columns)}
        return replace(add, tags=tags, clustering_provider=PROVIDER)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files among which an arrangement chooses.

    Attributes:
        files: Rows of `Snapshot.files`, without files that it certainly leaves alone.
        num_files: The number of all of them.
    """

    files: pa.Table
    num_files: int


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """A request for an OPTIMIZE or a REORG.

    Attributes:
        chosen: Returns exactly the files of the partitions that the predicate chooses; None for all
            files.
        text: The predicate as SQL, for the history.
        purges: Whether it is REORG ... APPLY (PURGE); see `Purge`.
        columns_of: See `Purge`.
        z_order_by: The columns of ZORDER BY, in any case; empty for no Z-order.
        is_full: Whether it is OPTIMIZE FULL; see `Clustering`.
    """

    chosen: Callable[[Snapshot], pa.Table] | None = None
    text: str | None = None
    purges: bool = False
    z_order_by: tuple[ColumnPath, ...] = ()
    is_full: bool = False
    columns_of: ColumnsOf | None = None

    def candidates(self, snapshot: Snapshot, choice: FileChoice = ALL_FILES) -> Candidates:
        """Return the files of the chosen partitions.

        Args:
            snapshot: The version.
            choice: Which files are enough of all files, if no predicate chooses any.
        """
        if self.chosen is not None:
            files = self.chosen(snapshot)
            return Candidates(files, files.num_rows)
        return Candidates(snapshot.files_of(choice), snapshot.num_files)

    def arrangement(self, snapshot: Snapshot, options: EngineOptions) -> Arrangement:
        """Choose how a version of the table is arranged.

        Raises:
            UsageError: ZORDER BY was given for a clustered table (kind
                `DELTA_CLUSTERING_WITH_ZORDER_BY`); or FULL for a table that is not clustered
                (`DELTA_OPTIMIZE_FULL_NOT_SUPPORTED`); or a column of Z-order is a partition column
                (`DELTA_ZORDERING_ON_PARTITION_COLUMN`).
            SchemaError: A column of Z-order does not exist
                (`DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST`), or it has no statistics
                (`DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS`).
        """
        if self.purges:
            return Purge(self.columns_of)
        clustering = clustering_columns(snapshot.domain_metadata, snapshot.schema)
        if clustering:
            self._ensure_no_z_order()
            return Clustering(clustering, self.is_full)
        if self.is_full:
            raise UsageError(
                "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering "
                "columns. Nothing was written. Leave FULL out, or cluster the table first (ALTER "
                "TABLE ... CLUSTER BY).",
                kind="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
            )
        if self.z_order_by:
            return _z_ordering(self.z_order_by, snapshot, options)
        return Compaction()

    def _ensure_no_z_order(self) -> None:
        if self.z_order_by:
            names = listed(map(path_text, self.z_order_by))
            raise UsageError(
                "OPTIMIZE command for Delta table with clustering cannot specify ZORDER BY. Please "
                f"remove ZORDER BY ({shown(names)}). Nothing was written. The table's rows are "
                "arranged by its clustering columns.",
                kind="DELTA_CLUSTERING_WITH_ZORDER_BY",
                columns=names,
            )


def _path_texts(paths: Sequence[ColumnPath]) -> list[str]:
    return [path_text(path) for path in paths]


def _z_ordering(
    given: tuple[ColumnPath, ...], snapshot: Snapshot, options: EngineOptions
) -> ZOrdering:
    table = TableMetadata.of(snapshot.metadata)
    leaves = dict(leaf_columns(table.schema))
    columns: list[ColumnPath] = []
    for name in given:
        path = named_path(name, table.schema)
        if path is None:
            raise SchemaError(
                f"Z-Ordering column {shown(path_text(name))} does not exist in data schema. "
                "Nothing was written. Check its spelling.",
                kind="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
                column=path_text(name),
            )
        if path[0] in table.partition_columns:
            raise UsageError(
                f"{shown(path_text(path))} is a partition column. Z-Ordering can only be performed "
                "on data columns. Nothing was written. Leave it out: files of different partitions "
                "are apart already.",
                kind="DELTA_ZORDERING_ON_PARTITION_COLUMN",
                column=path_text(path),
            )
        columns.append(path)
    counted = stats_columns(table.schema, table.partition_columns, table.properties)
    bare = [path for path in columns if path not in counted]
    unordered = [path for path in columns if not _is_ordered(leaves, path)]
    if unordered or (bare and options.optimize_z_order_checks_stats):
        names = listed(map(path_text, unordered or bare))
        way_out = (
            "Their types have no order. Choose other columns."
            if unordered
            else "You can disable this check by setting "
            "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled to false."
        )
        raise SchemaError(
            f"Z-Ordering on [{shown(names)}] will be ineffective, because we currently do not "
            f"collect stats for these columns. Nothing was written. {way_out}",
            kind="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            columns=names,
        )
    return ZOrdering(tuple(dict.fromkeys(columns)), given)


def _is_ordered(leaves: Mapping[ColumnPath, object], path: ColumnPath) -> bool:
    data_type: DataType | None = getattr(leaves.get(path), "data_type", None)
    if isinstance(data_type, PrimitiveType):
        return data_type.name not in _UNORDERED
    return isinstance(data_type, DecimalType)
