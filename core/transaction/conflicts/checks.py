"""The checks that can refuse a commit, as pure functions of the two sides (spec 2.3 to 2.10).

Each is `(ours, theirs) -> Conflict | None`. `table.py` puts them in order, with the isolation
levels and error classes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import Conflict
from optimist.core.log.file_table import canonical_path, files_table
from optimist.core.predicates import SplitPredicate
from optimist.core.protocol.actions import AddFile, DomainMetadata, Metadata, Protocol, RemoveFile
from optimist.core.protocol.domains import ROW_TRACKING_DOMAIN
from optimist.core.protocol.field_keys import schema_that_counts
from optimist.core.protocol.gates import ensure_writable, implied_features, supports
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.skipping.pruner import may_match
from optimist.core.transaction.conflicts.metadata_conflicts import metadata_difference
from optimist.core.transaction.conflicts.operations import (
    BACKFILLS,
    ROW_TRACKING_BACKFILL,
    ROW_TRACKING_UNBACKFILL,
)
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs

__all__ = [
    "app_transaction_conflict",
    "backfill_conflict",
    "concurrent_append_conflict",
    "concurrent_delete_delete_conflict",
    "concurrent_delete_read_conflict",
    "concurrent_row_conflict",
    "domain_metadata_conflict",
    "metadata_conflict",
    "partition_text",
    "protocol_conflict",
    "suspicious_adds",
]

_MAX_PATHS_SHOWN = 10
_MOVED = "it only rearranged their rows, but where these stand now can't be told"


def protocol_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find a conflict of protocols: both set one, or the winner dropped a feature (spec 2.3).

    A feature that an earlier winner added counts: by then our actions follow its rules.

    Raises:
        ProtocolError: The winner upgraded the table beyond this engine.
    """
    winner = theirs.protocol
    if winner is None:
        return None
    metadata = theirs.metadata or ours.metadata
    ensure_writable(winner, metadata, table_path=ours.table_path, version=theirs.version)
    dropped = implied_features(ours.protocol) - implied_features(winner)
    if ours.of_type(Protocol):
        subject = "both commits set the table's protocol"
        if theirs.version == 0:
            subject += "; several writers are creating this table at the same time"
    elif dropped and ours.read_version >= 0:
        subject = f"it dropped {', '.join(sorted(dropped))}"
    else:
        return None
    return _conflict_with("protocol", theirs, subject=subject)


def metadata_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find a change of metadata that a running transaction can't adopt (spec 2.4)."""
    winner = theirs.metadata
    if winner is None:
        return None
    if ours.of_type(Metadata):
        return _conflict_with("metadata", theirs, subject="both commits set the table's metadata")
    if theirs.is_identity_only:
        return None
    if not ours.options.feature_enablement_resolution_enabled:
        return _conflict_with("metadata", theirs, subject="it set the table's metadata")
    difference = metadata_difference(ours.metadata, winner, ours.protocol)
    return None if difference is None else _conflict_with("metadata", theirs, subject=difference)


def domain_metadata_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find a domain that both sides set (spec 2.5). That of row tracking is rebased instead."""
    if not supports(ours.protocol, "domainMetadata"):
        return None
    taken = {item.domain for item in theirs.domain_metadata} - {ROW_TRACKING_DOMAIN}
    for item in ours.of_type(DomainMetadata):
        if item.domain in taken:
            return _conflict_with(
                "domain metadata", theirs, subject=f"metadata domain {item.domain}"
            )
    return None


def app_transaction_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find an application that the winner advanced and that we looked up (spec 2.6)."""
    for item in theirs.set_transactions:
        if item.app_id in ours.reads.app_ids:
            return _conflict_with(
                "application transaction",
                theirs,
                subject=f"application {item.app_id}",
                remedy="Nothing of this transaction was committed. Another run of the same job has "
                "written already; stop one of the two runs.",
            )
    return None


def backfill_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find row ids that the winner gave out while we take them back (spec 2.7)."""
    if ours.operation == ROW_TRACKING_UNBACKFILL and theirs.operation == ROW_TRACKING_BACKFILL:
        return _conflict_with("row tracking backfill", theirs)
    return None


def concurrent_append_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find a file that the winner added and one of our reads might have returned (spec 2.8).

    By Delta's rule, a file counts when it is in a partition that was read; on an unpartitioned
    table every file counts. Unless `conflict.granularity` is `partition`, a file does not count if
    its statistics prove that no read predicate matches any of its rows. If it is `row`, a file also
    does not count if a closer look has shown that none of its rows is both new and matching.
    """
    hits, predicate = suspicious_adds(ours, theirs)
    if not hits:
        return None
    return _file_conflict("concurrent append", ours, theirs, hits, predicate=predicate)


def suspicious_adds(ours: Ours, theirs: Theirs) -> tuple[Sequence[AddFile], str | None]:
    """Find the winner's files that one of our reads might have returned, and name that read."""
    # A blind append has read nothing, and a backfill only adds files again that were there before.
    if ours.is_blind_append or {ours.operation, theirs.operation} & BACKFILLS:
        return (), None
    adds = _considered_adds(ours, theirs)
    # A transaction that depends on the whole table conflicts with any file, whatever it holds.
    if not adds or ours.reads.whole_table:
        return adds, None
    if _is_by_row(ours):
        # None of its rows is new. Whether we need a file that it removed, the next check tells.
        if theirs.only_rearranges:
            return (), None
        adds = [item for item in adds if canonical_path(item.path) not in theirs.harmless]
    return _matching_adds(ours, adds)


def concurrent_delete_read_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find a file that we read and the winner removed, even to rearrange its rows (spec 2.9).

    Where `conflict.granularity` is `row`, a file counts only if we need rows of it. If its rows
    were looked at, the next check decides. Rows that were only moved are followed to their new
    positions where possible.
    """
    if not theirs.removes:
        return None
    if ours.reads.whole_table:
        return _file_conflict("concurrent delete of read files", ours, theirs, theirs.removes)
    # By path alone: a file that a compaction removed (`dataChange` false) is gone all the same, and
    # our remove of it, or our deletion vector for it, would name a file that is no longer there.
    read = ours.reads.paths_among(theirs.removed_paths(), only_needed=_is_by_row(ours))
    hits = _removes_at(theirs, read - theirs.shared.keys() - theirs.moved.left)
    if not hits:
        return None
    reason = None
    if theirs.only_rearranges:
        reason = ": ".join(filter(None, (_MOVED, theirs.moved.reason)))
    return _file_conflict("concurrent delete of read files", ours, theirs, hits, subject=reason)


def concurrent_row_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find a row that we read and the winner deleted or changed by a vector (spec 2.12)."""
    lost = {path: item.lost for path, item in theirs.shared.items() if item.lost}
    if not lost:
        return None
    num_rows = sum(map(len, lost.values()))
    return _file_conflict(
        "concurrent change of the same rows",
        ours,
        theirs,
        _removes_at(theirs, lost.keys()),
        subject=f"{num_rows} rows of {len(lost)} files",
    )


def concurrent_delete_delete_conflict(ours: Ours, theirs: Theirs) -> Conflict | None:
    """Find a file that both sides remove (spec 2.10)."""
    # Only files that we never read get this far; the checks before this one found the others.
    mine = {canonical_path(item.path) for item in ours.of_type(RemoveFile)}
    hits = _removes_at(theirs, mine - theirs.shared.keys() - theirs.moved.left)
    if not hits:
        return None
    return _file_conflict("concurrent delete of the same files", ours, theirs, hits)


def partition_text(partition_columns: Sequence[str], partition_values: object) -> str | None:
    """Format the partition of a file as `[a=1, b=2]`, or return None if it has none.

    `partition_values` is the file's mapping; the hint is given only for a partitioned table whose
    file has values (spec 2.2).
    """
    if not partition_columns or not isinstance(partition_values, dict) or not partition_values:
        return None
    return f"[{', '.join(f'{name}={value}' for name, value in partition_values.items())}]"


def _is_by_row(ours: Ours) -> bool:
    return ours.options.conflict_granularity == "row"


def _removes_at(theirs: Theirs, paths: Collection[str]) -> Sequence[RemoveFile]:
    return [item for item in theirs.removes if canonical_path(item.path) in paths]


def _considered_adds(ours: Ours, theirs: Theirs) -> Sequence[AddFile]:
    """Return the winner's added files that count at our isolation level (spec 2.8)."""
    if ours.isolation_level is IsolationLevel.SNAPSHOT_ISOLATION:
        return ()
    # Under WriteSerializable a blind append may count as made after us, though it stands before us
    # in the history, because it depends on nothing that we change. This does not hold where we
    # change the metadata by which it was written.
    if ours.isolation_level is IsolationLevel.WRITE_SERIALIZABLE and not ours.of_type(Metadata):
        return () if theirs.is_blind_append else theirs.adds
    return theirs.adds


def _matching_adds(ours: Ours, adds: Sequence[AddFile]) -> tuple[Sequence[AddFile], str | None]:
    """Find the added files that a read might have returned, and the first such read as text."""
    by_file = ours.options.conflict_granularity != "partition"
    # Delta's rule for an unpartitioned table: every file counts. Statistics may refine it, but only
    # where there is a predicate to be refined by.
    if not ours.read_partition_columns and not (by_file and ours.reads.predicates):
        return adds, None
    table = files_table(adds)
    for split in ours.reads.predicates:
        mask = _may_match(ours, split, table, by_statistics=by_file)
        hits = [add for add, hit in zip(adds, mask.to_pylist(), strict=True) if hit]
        if hits:
            return hits, " AND ".join(map(str, split.partition + split.data)) or None
    return (), None


def _may_match(
    ours: Ours, split: SplitPredicate, table: pa.Table, *, by_statistics: bool
) -> pa.Array:
    deterministic = all(part.is_deterministic for part in split.partition + split.data)
    schema = schema_that_counts(ours.read_schema, ours.protocol)
    columns, zone = ours.read_partition_columns, ours.options.zone
    by_partition = SplitPredicate(split.partition, ())
    mask = may_match(table, by_partition, schema, columns, use_statistics=False, zone=zone)
    # A predicate like rand() < 0.5 answers differently each time: that it matches no row of a file
    # now does not tell what it would have matched when the transaction read.
    if not by_statistics or not deterministic:
        return mask
    closer = may_match(table, split, schema, columns, use_statistics=True, zone=zone)
    return pc.and_(mask, closer)


def _file_conflict(
    check: str,
    ours: Ours,
    theirs: Theirs,
    files: Sequence[AddFile | RemoveFile],
    *,
    predicate: str | None = None,
    subject: str | None = None,
) -> Conflict:
    values = files[0].partition_values
    return _conflict_with(
        check,
        theirs,
        paths=tuple(item.path for item in files[:_MAX_PATHS_SHOWN]),
        num_paths=len(files),
        partition=partition_text(ours.read_partition_columns, values),
        predicate=predicate,
        subject=subject,
    )


def _conflict_with(check: str, theirs: Theirs, **details: object) -> Conflict:
    info = theirs.commit_info
    return Conflict(
        check=check,
        winning_version=theirs.version,
        winning_operation=theirs.operation,
        winning_engine=info.engine_info if info else None,
        winning_timestamp_ms=info.timestamp if info else None,
        **details,  # type: ignore[arg-type]  # the callers above name fields of Conflict
    )
