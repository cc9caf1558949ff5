"""Row tracking: row ids for added files, above the table's high-water mark (spec 6.5)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.errors import ProtocolError, SchemaError, TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.log.file_table import canonical_path, with_column
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import Action, AddFile, DomainMetadata, Metadata, Protocol
from optimist.core.protocol.domains import ROW_TRACKING_DOMAIN
from optimist.core.protocol.gates import supports
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import StructType
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.values.exact_sums import exact_sum
from optimist.core.values.field_types import LARGEST_LONG
from optimist.core.values.foreign_json import parse_json

__all__ = [
    "NO_ROW_IDS",
    "ROWS_PRESERVED",
    "assign_row_ids",
    "ensure_rows_are_numbered",
    "high_water_mark",
    "is_row_tracking_on",
    "unnumbered",
    "with_numbered_files",
    "without_row_ids_if_suspended",
]

_COMMIT_VERSION = "defaultRowCommitVersion"
NO_ROW_IDS = -1
"""The high-water mark of a table that has handed out no row id."""
ROWS_PRESERVED = "delta.rowTracking.preserved"
"""The tag of a commit that says whether rows which it moved have kept their ids and versions."""


def is_row_tracking_on(protocol: Protocol, metadata: Metadata) -> bool:
    """Return whether added files must get row ids: the feature is there and not suspended."""
    properties = TableMetadata.of(metadata).properties
    return supports(protocol, "rowTracking") and not properties.row_tracking_suspended


def ensure_rows_are_numbered(metadata: Metadata, snapshot: Snapshot) -> None:
    """Refuse to enable row tracking unless every row has an id and new rows get one.

    A file that another commit adds meanwhile gets ids only if the table has the feature already.

    Raises:
        ProtocolError: A row would have no id (kind `OPTIMIST_ROW_TRACKING_NEEDS_BACKFILL`).
    """
    wanted = TableMetadata.of(metadata).properties.enable_row_tracking
    if not wanted or snapshot.has_active("rowTracking"):
        return
    is_on = is_row_tracking_on(snapshot.protocol, snapshot.metadata)
    if is_on and unnumbered(snapshot).num_rows == 0:
        return
    reason = "some of its files hold rows without ids" if is_on else "its rows have no ids yet"
    raise ProtocolError(
        f"This change can't enable row tracking on {snapshot.table_path}: {reason}. It was not "
        "written. ALTER TABLE ... SET TBLPROPERTIES ('delta.enableRowTracking' = 'true'), or "
        "DeltaLog.alter.set_properties with it, gives all rows ids first, and goes on where it was "
        "stopped; or unset the property.",
        kind="OPTIMIST_ROW_TRACKING_NEEDS_BACKFILL",
        path=snapshot.table_path,
    )


def unnumbered(snapshot: Snapshot) -> pa.Table:
    """Return the files whose rows have no ids, as rows of `Snapshot.files`."""
    return snapshot.files_where("baseRowId", pc.is_null)


def without_row_ids_if_suspended(
    actions: Sequence[Action], metadata: Metadata
) -> tuple[Action, ...]:
    """Strip added files of their ids, even copied ones, if `delta.rowTrackingSuspended` is true."""
    if not TableMetadata.of(metadata).properties.row_tracking_suspended:
        return tuple(actions)
    return tuple(
        replace(action, base_row_id=None, default_row_commit_version=None)
        if isinstance(action, AddFile)
        else action
        for action in actions
    )


def high_water_mark(domains: Iterable[DomainMetadata], *, default: int) -> int:
    """Return the largest row id in the domain `delta.rowTracking`, or `default`.

    Raises:
        TableError: The domain records something that is not a row id (kind
            `OPTIMIST_MALFORMED_ROW_TRACKING`).
    """
    for item in domains:
        if item.domain == ROW_TRACKING_DOMAIN and not item.removed:
            return _recorded_mark(item.configuration)
    return default


def _recorded_mark(configuration: str) -> int:
    try:
        mark = parse_json(configuration)["rowIdHighWaterMark"]
    except (ValueError, LookupError, TypeError):
        mark = None
    if type(mark) is not int or not NO_ROW_IDS <= mark <= LARGEST_LONG:
        raise TableError(
            f"The metadata domain {ROW_TRACKING_DOMAIN} should hold the highest row id in use, but "
            f"holds {quoted(configuration)}. Nothing was written. Restore an older version of the "
            "table.",
            kind="OPTIMIST_MALFORMED_ROW_TRACKING",
        )
    return mark


def assign_row_ids(
    actions: Sequence[Action],
    *,
    known_mark: int,
    next_mark: int,
    settled: Collection[str] = (),
) -> tuple[Action, ...]:
    """Give row ids to the added files that have none, and new ones where ids pass `known_mark`.

    Args:
        actions: The pending actions; a domain action of row tracking among them is replaced.
        known_mark: Ids up to this one were copied from older files, and stay. Ids above it are from
            an attempt that lost.
        next_mark: The ids of the next file start right above this.
        settled: The canonical paths of files whose ids stay, whatever they are.

    Returns:
        The actions; if the high-water mark grows, preceded by the domain action that records it.

    Raises:
        SchemaError: A file has no `numRecords`, so its rows can't be numbered
            (`DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS`).
        TableError: The mark would not fit in 64 bits (`OPTIMIST_MALFORMED_ROW_TRACKING`).
    """
    mark = next_mark
    out: list[Action] = []
    for action in actions:
        if _is_mark(action):
            continue
        if isinstance(action, AddFile) and _is_fresh(action, known_mark, settled):
            action = replace(action, base_row_id=mark + 1)
            mark += _num_records(action)
        out.append(action)
    _ensure_fits(mark)
    return tuple(out) if mark == next_mark else (_mark_domain(mark), *out)


def _is_mark(action: Action) -> bool:
    return isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN


def _ensure_fits(mark: int) -> None:
    if mark > LARGEST_LONG:
        raise TableError(
            f"The table's row ids are used up: the next one would be {mark}, which does not fit in "
            f"64 bits. Nothing was written. A file or the metadata domain {ROW_TRACKING_DOMAIN} "
            "claims far too many rows; restore an older version of the table.",
            kind="OPTIMIST_MALFORMED_ROW_TRACKING",
        )


def _mark_domain(mark: int) -> DomainMetadata:
    configuration = json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":"))
    return DomainMetadata(ROW_TRACKING_DOMAIN, configuration)


def with_numbered_files(ours: Ours, files: ManyFiles) -> Ours:
    """Give row ids to files that are columns, or take them away if that is suspended.

    Raises:
        SchemaError, TableError: As `assign_row_ids`.
    """
    added, known = files.added, ours.row_id_high_water_mark
    if TableMetadata.of(ours.metadata).properties.row_tracking_suspended:
        for name in ("baseRowId", _COMMIT_VERSION):
            added = with_column(added, name, pa.nulls(added.num_rows, pa.int64()))
        files = replace(files, added=added)
    if not added.num_rows or not is_row_tracking_on(ours.protocol, ours.metadata):
        return replace(ours, files=files)  # the same value, which knows whether paths repeat
    # A RESTORE brings back ids that are above a mark which began anew.
    given = [each for each in ours.actions if isinstance(each, DomainMetadata)]
    mark = max(known, high_water_mark(given, default=known))
    ids = added["baseRowId"]
    is_fresh = pc.or_kleene(pc.is_null(ids), pc.greater(ids, mark))
    counts = _count_rows(added.filter(is_fresh))
    end = mark + exact_sum(counts)
    _ensure_fits(end + 1)
    before = pc.subtract(pc.cumulative_sum(counts), counts)
    fresh = pc.add(before, mark + 1).combine_chunks().cast(pa.int64())
    numbered = pc.replace_with_mask(ids.combine_chunks(), is_fresh.combine_chunks(), fresh)
    versions = pc.fill_null(added["defaultRowCommitVersion"], ours.attempt_version)
    added = with_column(with_column(added, "baseRowId", numbered), _COMMIT_VERSION, versions)
    rest = (each for each in ours.actions if not _is_mark(each))
    domains = () if end == known else (_mark_domain(end),)
    return replace(ours, actions=(*domains, *rest), files=replace(files, added=added))


def _count_rows(files: pa.Table) -> pa.ChunkedArray:
    """Count the rows of the files, deleted ones included."""
    counts = FileStatistics(files, StructType(())).num_records
    for path in files["path"].filter(pc.is_null(counts)).slice(0, 1).to_pylist():
        raise _not_numbered(path)
    return counts


def _is_fresh(action: AddFile, known_mark: int, settled: Collection[str]) -> bool:
    if action.base_row_id is None:
        return True
    return action.base_row_id > known_mark and canonical_path(action.path) not in settled


def _num_records(action: AddFile) -> int:
    value = num_rows(action.stats)
    if value is None:
        raise _not_numbered(action.path)
    return value


def _not_numbered(path: str) -> SchemaError:
    return SchemaError(
        f"The file {shown(path)} has no row count (numRecords in its statistics), but the table "
        "tracks rows and needs one. Nothing was committed. Add the statistics.",
        kind="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
        path=path,
    )
