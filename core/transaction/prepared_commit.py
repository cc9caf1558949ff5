"""A transaction's first attempt: the prepared actions, isolation level, row ids and timestamp.

Spec 1.7 to 1.11. `conflicts.rebase` does the last two again for every version that another writer
takes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optimist.core.protocol.actions import Action, AddFile, Metadata
from optimist.core.protocol.domains import domains_that_count
from optimist.core.protocol.gates import is_active
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.protocol.schema_checks import ensure_no_cdc_columns
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.commit_info import build_commit_info
from optimist.core.transaction.conflicts.in_commit_timestamp import first_timestamp, with_enablement
from optimist.core.transaction.conflicts.isolation import is_append_only, isolation_level_for
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.conflicts.reads import Reads
from optimist.core.transaction.conflicts.row_ids import (
    NO_ROW_IDS,
    ROWS_PRESERVED,
    assign_row_ids,
    high_water_mark,
    is_row_tracking_on,
    with_numbered_files,
    without_row_ids_if_suspended,
)
from optimist.core.transaction.prepare import Draft, prepare_commit

__all__ = ["get_isolation_level_to_use", "is_blind_append", "prepared_commit"]


def prepared_commit(
    draft: Draft, reads: Reads, *, txn_id: str, tags: Mapping[str, str] | None = None
) -> Ours:
    """Prepare the commit as it is first tried, at the version after the one read.

    Args:
        draft: What the transaction wants to do.
        reads: What it has read.
        txn_id: Its id.
        tags: For commitInfo.

    Raises:
        UsageError, SchemaError, ProtocolError, TableError: It is not valid; nothing is written.
    """
    prepared = prepare_commit(draft)
    perform_cdc_metadata_check(draft)
    snapshot, options = draft.snapshot, draft.options
    now_ms = draft.table.clock.now_ms()
    level = get_isolation_level_to_use(draft, prepared)
    appends_blindly = not draft.files and is_blind_append(prepared, reads)
    info = build_commit_info(
        draft.operation,
        prepared,
        txn_id=txn_id,
        timestamp_ms=now_ms,
        read_version=draft.read_version,
        isolation_level=level,
        is_blind_append=appends_blindly,
        tags=_with_preserved_rows(tags, snapshot),
        options=options,
    )
    if draft.files:
        info = replace(info, data_change=True)
    domains = domains_that_count(snapshot.stored_domains, draft.protocol).values()
    ours = Ours(
        table_path=draft.table_path,
        read_version=draft.read_version,
        attempt_version=draft.read_version + 1,
        actions=prepared,
        commit_info=info,
        reads=reads,
        isolation_level=level,
        is_blind_append=appends_blindly,
        metadata=draft.metadata or snapshot.metadata,
        protocol=draft.protocol,
        read_schema=snapshot.schema,
        read_partition_columns=snapshot.partition_columns,
        row_id_high_water_mark=high_water_mark(domains, default=NO_ROW_IDS),
        options=options,
        known_log=snapshot.known_log,
        last_seen=snapshot.segment.last_seen if snapshot.segment else None,
        files=draft.files,
    )
    return _with_timestamp(_with_row_ids(ours), snapshot, now_ms)


def get_isolation_level_to_use(draft: Draft, prepared: Sequence[Action]) -> IsolationLevel:
    """Return the table's level, or snapshot isolation for a commit without new data (spec 1.8)."""
    level = draft.properties.isolation_level
    if draft.files:  # which change data
        return level
    return isolation_level_for(prepared, draft.operation, level)


def is_blind_append(prepared: Sequence[Action], reads: Reads) -> bool:
    """Return whether the commit only adds files and depends on nothing it read (spec 1.9)."""
    return is_append_only(prepared) and not reads.has_read_files


def perform_cdc_metadata_check(draft: Draft) -> None:
    """Refuse new metadata that uses the change data feed's column names while the feed is on.

    See spec 1.4, step 10.
    """
    for action in draft.actions:
        if isinstance(action, Metadata):
            ensure_no_cdc_columns(action, previous=draft.read_metadata)


def _with_preserved_rows(
    tags: Mapping[str, str] | None, snapshot: Snapshot
) -> Mapping[str, str] | None:
    """Add the tag that rows keep their ids, where the table tracks them (spec 6.5)."""
    if not snapshot.has_active("rowTracking"):
        return tags
    return {ROWS_PRESERVED: "true", **(tags or {})}


def _with_row_ids(ours: Ours) -> Ours:
    if ours.files is not None:
        ours = with_numbered_files(ours, ours.files)
    given = without_row_ids_if_suspended(ours.actions, ours.metadata)
    has_adds = any(isinstance(a, AddFile) for a in given)
    if not has_adds or not is_row_tracking_on(ours.protocol, ours.metadata):
        return replace(ours, actions=given)
    mark = ours.row_id_high_water_mark
    actions = assign_row_ids(given, known_mark=mark, next_mark=mark)

    def with_version(action: Action) -> Action:
        if isinstance(action, AddFile) and action.default_row_commit_version is None:
            return replace(action, default_row_commit_version=ours.attempt_version)
        return action

    return replace(ours, actions=tuple(map(with_version, actions)))


def _with_timestamp(ours: Ours, snapshot: Snapshot, now_ms: int) -> Ours:
    if not is_active("inCommitTimestamp", ours.protocol, ours.metadata):
        return ours
    exists = snapshot.version >= 0
    timestamp = first_timestamp(now_ms, snapshot.timestamp_ms if exists else None)
    ours = replace(ours, commit_info=replace(ours.commit_info, in_commit_timestamp=timestamp))
    if not exists or snapshot.has_active("inCommitTimestamp"):
        return ours
    metadata = with_enablement(ours.metadata, version=ours.attempt_version, timestamp_ms=timestamp)
    # A commit that only adds the feature, to a table that has the property, brings no metadata.
    rest = (action for action in ours.actions if not isinstance(action, Metadata))
    return replace(ours, actions=(metadata, *rest), metadata=metadata)
