"""Moves a pending commit past a winner that it does not conflict with (spec 2.3 to 2.11).

Pure functions `(ours, theirs) -> ours`; the rows of `table.py` name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimist.core.log.file_table import canonical_path
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    Metadata,
    RemoveFile,
)
from optimist.core.protocol.gates import ensure_writable, is_active, supports
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import StructField, schema_to_json
from optimist.core.transaction.conflicts.in_commit_timestamp import (
    is_newly_enabled,
    with_enablement,
)
from optimist.core.transaction.conflicts.operations import ROW_TRACKING_BACKFILL
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.conflicts.row_ids import (
    ROWS_PRESERVED,
    assign_row_ids,
    high_water_mark,
    is_row_tracking_on,
)

__all__ = [
    "adopt_metadata",
    "adopt_protocol",
    "advance_in_commit_timestamp",
    "bump_type_change_versions",
    "reassign_row_ids",
    "reconcile_backfill",
]


def adopt_protocol(ours: Ours, theirs: Theirs) -> Ours:
    """Take over the winner's protocol, which the protocol check has let pass."""
    return ours if theirs.protocol is None else replace(ours, protocol=theirs.protocol)


def adopt_metadata(ours: Ours, theirs: Theirs) -> Ours:
    """Take over the winner's metadata, which the metadata check has let pass.

    Raises:
        ProtocolError: The winner uses a feature that this engine does not write.
    """
    winner = theirs.metadata
    if winner is None or theirs.is_identity_only:
        return ours
    ensure_writable(ours.protocol, winner, table_path=ours.table_path, version=theirs.version)
    # Our files were written while rows were not tracked yet: readers must not believe that the rows
    # in them kept their ids.
    before = TableMetadata.of(ours.metadata).properties
    after = TableMetadata.of(winner).properties
    ours = replace(ours, metadata=winner)
    if after.enable_row_tracking and not before.enable_row_tracking:
        return ours.with_tag(ROWS_PRESERVED, "false")
    return ours


def reconcile_backfill(ours: Ours, theirs: Theirs) -> Ours:
    """Keep the row ids that a concurrent backfill gave to files we touch (spec 2.7)."""
    if ours.operation == ROW_TRACKING_BACKFILL:
        # Otherwise we would add such a file as it was before the winner, and undo its change. One
        # that is gone needs no ids, and one that the winner added has them.
        added = {canonical_path(item.path) for item in theirs.adds}
        touched = added | {canonical_path(item.path) for item in theirs.removes}
        kept = tuple(a for a in ours.actions if _path_of(a) not in touched)
        return replace(ours, actions=kept, reads=ours.reads.without(touched))
    given = _backfilled_files(theirs)

    def with_ids(action: Action) -> Action:
        source = given.get(_path_of(action) or "")
        if source is None or not isinstance(action, AddFile | RemoveFile):
            return action
        return replace(
            action,
            base_row_id=source.base_row_id,
            default_row_commit_version=source.default_row_commit_version,
        )

    return replace(ours, actions=tuple(map(with_ids, ours.actions)))


def _backfilled_files(theirs: Theirs) -> Mapping[str, AddFile]:
    """Return the files that got ids from the winner, if it is a backfill, by canonical path."""
    if theirs.operation != ROW_TRACKING_BACKFILL:
        return {}
    return {canonical_path(item.path): item for item in theirs.adds}


def reassign_row_ids(ours: Ours, theirs: Theirs) -> Ours:
    """Give our files row ids above the winner's high-water mark, and the next commit version.

    Ids that `reconcile_backfill` copied from the winner stay, although they are above the mark that
    we know. The winner gave them out, and not an attempt of ours that lost.
    """
    if not is_row_tracking_on(ours.protocol, ours.metadata):
        return ours
    known = ours.row_id_high_water_mark
    mark = high_water_mark(theirs.domain_metadata, default=known)
    # Without a file to number we record no mark, but the next rebase starts from this one.
    if not any(isinstance(action, AddFile) for action in ours.actions):
        return replace(ours, row_id_high_water_mark=mark)
    settled = _backfilled_files(theirs)
    actions = assign_row_ids(ours.actions, known_mark=known, next_mark=mark, settled=settled)

    def with_version(action: Action) -> Action:
        if not isinstance(action, AddFile) or _path_of(action) in settled:
            return action
        # The winner's version was ours when we last tried; any other was copied from older files.
        if action.default_row_commit_version in (None, theirs.version):
            return replace(action, default_row_commit_version=theirs.version + 1)
        return action

    moved = tuple(map(with_version, actions))
    return replace(ours, actions=moved, row_id_high_water_mark=mark)


def bump_type_change_versions(ours: Ours, theirs: Theirs) -> Ours:
    """Make recorded type changes name the version that we try next (spec 2.7, type widening)."""
    # The stable feature does not record the version, so there is nothing to move.
    if not supports(ours.protocol, "typeWidening-preview"):
        return ours

    def bump(item: StructField) -> StructField:
        changes = item.metadata.get("delta.typeChanges")
        if not isinstance(changes, list):
            return item
        moved = [
            {**change, "tableVersion": theirs.version + 1}
            if change.get("tableVersion") == theirs.version
            else change
            for change in changes
        ]
        return replace(item, metadata={**item.metadata, "delta.typeChanges": moved})

    def bump_metadata(action: Action) -> Action:
        if not isinstance(action, Metadata):
            return action
        schema = TableMetadata.of(action).declared_schema
        bumped = schema.map_fields(bump)
        return action if bumped == schema else replace(action, schema_string=schema_to_json(bumped))

    return replace(ours, actions=tuple(map(bump_metadata, ours.actions)))


def advance_in_commit_timestamp(ours: Ours, theirs: Theirs) -> Ours:
    """Move our in-commit timestamp past the winner's, whatever the clocks say (spec 2.11).

    A table's timestamps grow strictly with its versions.
    """
    if not is_active("inCommitTimestamp", ours.protocol, ours.metadata):
        return ours
    # Where the winner has just switched timestamps on, we were prepared without one.
    own = ours.commit_info.in_commit_timestamp or ours.commit_info.timestamp or 0
    winner = theirs.in_commit_timestamp
    timestamp = max(own, (theirs.modified_ms if winner is None else winner) + 1)
    actions = ours.actions
    # If we switch them on ourselves, the enablement names the version that we tried last.
    if any(isinstance(a, Metadata) and is_newly_enabled(a, theirs.version) for a in actions):
        actions = tuple(
            with_enablement(a, version=theirs.version + 1, timestamp_ms=timestamp)
            if isinstance(a, Metadata)
            else a
            for a in actions
        )
    info = replace(ours.commit_info, in_commit_timestamp=timestamp)
    return replace(ours, actions=actions, commit_info=info)


def _path_of(action: Action) -> str | None:
    return canonical_path(action.path) if isinstance(action, AddFile | RemoveFile) else None
