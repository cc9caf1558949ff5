"""How a pending commit is moved past a winner it does not conflict with (spec 2.3, 2.4, 2.7, 2.11).

Pure functions `(ours, theirs) -> ours`; the rows of `conflict_table.py` name them.
"""

from __future__ import annotations

from dataclasses import replace

from optimist.core.log.file_table import canonical_path
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    Metadata,
    RemoveFile,
)
from optimist.core.protocol.gates import ensure_writable, supports
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.types import StructField, schema_from_json, schema_to_json
from optimist.core.transaction.conflicts.in_commit_timestamp import (
    is_newly_enabled,
    with_enablement,
)
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.conflicts.row_ids import (
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

_BACKFILL = "ROW TRACKING BACKFILL"
_PRESERVED_TAG = "delta.rowTracking.preserved"


def adopt_protocol(ours: Ours, theirs: Theirs) -> Ours:
    """From here on the winner's protocol counts; this engine must be able to work with it.

    Raises:
        ProtocolError: The winner upgraded the table beyond this engine.
    """
    if theirs.protocol is None:
        return ours
    ensure_writable(
        theirs.protocol,
        theirs.metadata or ours.metadata,
        table_path=ours.table_path,
        version=theirs.version,
    )
    return replace(ours, protocol=theirs.protocol)


def adopt_metadata(ours: Ours, theirs: Theirs) -> Ours:
    """The winner's metadata, which the metadata check has let pass, becomes our view."""
    winner = theirs.metadata
    if winner is None or theirs.is_identity_only:
        return ours
    before = TableProperties.from_configuration(ours.metadata.configuration)
    after = TableProperties.from_configuration(winner.configuration)
    ours = replace(ours, metadata=winner)
    if after.enable_row_tracking and not before.enable_row_tracking:
        return ours.with_tag(_PRESERVED_TAG, "false")
    return ours


def reconcile_backfill(ours: Ours, theirs: Theirs) -> Ours:
    """Row ids that a concurrent backfill gave to files we touch are kept (spec 2.7)."""
    if ours.operation == _BACKFILL:
        added = {canonical_path(item.path) for item in theirs.adds}
        touched = added | {canonical_path(item.path) for item in theirs.removes}
        kept = tuple(a for a in ours.actions if _path_of(a) not in touched)
        return replace(ours, actions=kept)
    if theirs.operation != _BACKFILL:
        return ours
    given = {canonical_path(item.path): item for item in theirs.adds}

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


def reassign_row_ids(ours: Ours, theirs: Theirs) -> Ours:
    """Row ids above the winner's high-water mark, and the next attempt's row commit version."""
    if not is_row_tracking_on(ours.protocol, ours.metadata):
        return ours
    known = ours.row_id_high_water_mark
    mark = high_water_mark(theirs.domain_metadata, default=known)
    actions, _ = assign_row_ids(ours.actions, known_mark=known, next_mark=mark)

    def with_version(action: Action) -> Action:
        if not isinstance(action, AddFile):
            return action
        if action.default_row_commit_version in (None, theirs.version):
            return replace(action, default_row_commit_version=theirs.version + 1)
        return action

    moved = tuple(map(with_version, actions))
    return replace(ours, actions=moved, row_id_high_water_mark=mark)


def bump_type_change_versions(ours: Ours, theirs: Theirs) -> Ours:
    """Recorded type changes name the version that will carry them (spec 2.7, type widening)."""
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
        schema = schema_from_json(action.schema_string)
        bumped = schema.map_fields(bump)
        return action if bumped == schema else replace(action, schema_string=schema_to_json(bumped))

    return replace(ours, actions=tuple(map(bump_metadata, ours.actions)))


def advance_in_commit_timestamp(ours: Ours, theirs: Theirs) -> Ours:
    """Timestamps grow strictly with versions, whatever the writers' clocks say (spec 2.11)."""
    properties = TableProperties.from_configuration(ours.metadata.configuration)
    if not properties.enable_in_commit_timestamps:
        return ours
    own = ours.commit_info.in_commit_timestamp or ours.commit_info.timestamp or 0
    winner = theirs.in_commit_timestamp
    timestamp = max(own, (theirs.modified_ms if winner is None else winner) + 1)
    actions = ours.actions
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
