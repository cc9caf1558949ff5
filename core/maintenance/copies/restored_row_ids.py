"""The row ids of restored files, chosen so that no two rows share one (spec 6.5).

DROP FEATURE removes the high-water mark of row ids from the log. If the table is tracked again
afterwards, the ids begin at 0 again. So ids of older versions may belong to other rows now.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import canonical_paths, table_keys, with_column
from optimist.core.protocol.actions import DomainMetadata
from optimist.core.protocol.domains import ROW_TRACKING_DOMAIN
from optimist.core.schema.types import StructType
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.row_ids import NO_ROW_IDS, high_water_mark

__all__ = ["restored_mark", "with_restored_ids"]

_BASE = "baseRowId"
_ROW_IDS = (_BASE, "defaultRowCommitVersion")


def restored_mark(target: Snapshot, current: Snapshot) -> tuple[DomainMetadata, ...]:
    """Return the restored version's high-water mark if it is higher than the table's own.

    Raises:
        TableError: See `high_water_mark`.
    """
    # Without the feature, the count begins again when the feature returns.
    known = high_water_mark(current.stored_domains.values(), default=NO_ROW_IDS)
    if high_water_mark(target.domain_metadata.values(), default=NO_ROW_IDS) <= known:
        return ()
    return (target.domain_metadata[ROW_TRACKING_DOMAIN],)


def with_restored_ids(
    to_add: pa.Table, to_remove: pa.Table, target: Snapshot, current: Snapshot
) -> pa.Table:
    """Return the files to add with their row ids, or null ids if they need new ones.

    A file gets the ids that it had in the older version. A file without ids there keeps those that
    its path has got since, so that no row in the history has two ids.

    Args:
        to_add: Files of the older version that are added again.
        to_remove: Files of the newest version that are removed.
        target: The older version.
        current: The newest version.
    """
    if not target.has_active("rowTracking") and to_add[_BASE].null_count < to_add.num_rows:
        # Files that stay keep their current ids, which the older version did not assign.
        gone = [chunk for files in (to_add, to_remove) for chunk in table_keys(files).chunks]
        leaves = pa.chunked_array(gone, pa.string()).combine_chunks()
        is_gone = pc.is_in(table_keys(current.files), value_set=leaves)
        stays = current.files.filter(pc.invert(is_gone))
        to_add = _without_shared(to_add, _paths_that_share(to_add, stays))
    is_unnumbered = pc.is_null(to_add[_BASE])
    if not pc.any(is_unnumbered, min_count=0).as_py():
        return to_add
    found = _with_ids_since(to_add, current)
    shared = _paths_that_share(found, target.files, current.files, current.tombstones)
    return _without_shared(found, shared, is_unnumbered)


def _with_ids_since(files: pa.Table, current: Snapshot) -> pa.Table:
    """Fill missing row ids of files with those that their paths have got since."""
    numbered = [
        found.select(["path", *_ROW_IDS]).filter(pc.is_valid(found[_BASE]))
        for found in (current.files, current.tombstones)
    ]
    known = pa.concat_tables(numbered)
    paths = canonical_paths(known["path"]).combine_chunks()
    indices = pc.index_in(canonical_paths(files["path"]), value_set=paths)
    for name in _ROW_IDS:
        files = with_column(files, name, pc.coalesce(files[name], known[name].take(indices)))
    return files


def _paths_that_share(*tables: pa.Table) -> pa.Array:
    """Return the canonical paths of files that may share a row id with another path."""
    ranges = pa.concat_tables(map(_id_ranges, tables))
    # A tombstone has no row count; the live file of its path may have one.
    ranges = ranges.group_by(["path", "begin"]).aggregate([("end", "max")]).sort_by("begin")
    if ranges.num_rows < 2:
        return pa.array([], pa.string())
    begins, ends = (ranges[name].combine_chunks() for name in ("begin", "end_max"))
    reached = pc.cumulative_max(ends)
    overlaps = pc.less(begins[1:], reached[:-1])  # the next file begins within an earlier one
    within = pc.less(begins[1:], ends[:-1])
    no = pa.array([False])
    is_shared = pc.or_(pa.concat_arrays([no, overlaps]), pa.concat_arrays([within, no]))
    return ranges["path"].filter(is_shared).combine_chunks()


def _id_ranges(files: pa.Table) -> pa.Table:
    """Return canonical path, first row id and end of the id range, for files that have ids."""
    files = files.filter(pc.is_valid(files[_BASE]))
    counts = pa.nulls(files.num_rows, pa.int64())
    if "stats" in files.schema.names:
        counts = FileStatistics(files, StructType(())).num_records
    # At least one, so that two files that begin at the same id are seen to share it.
    counts = pc.max_element_wise(counts, 1)
    columns = [canonical_paths(files["path"]), files[_BASE], pc.add(files[_BASE], counts)]
    return pa.table(columns, names=["path", "begin", "end"])


def _without_shared(
    files: pa.Table, shared: pa.Array, among: pa.ChunkedArray | None = None
) -> pa.Table:
    """Clear the ids of files whose paths are in `shared`, so that they get new ones."""
    loses = pc.is_in(canonical_paths(files["path"]), value_set=shared)
    loses = loses if among is None else pc.and_(loses, among)
    for name in _ROW_IDS:
        nulls = pa.scalar(None, files.schema.field(name).type)
        files = with_column(files, name, pc.if_else(loses, nulls, files[name]))
    return files
