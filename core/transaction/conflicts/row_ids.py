"""Row tracking: row ids for added files, above the table's high-water mark (spec 6.5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from optimist.core.errors import SchemaError
from optimist.core.protocol.actions import Action, AddFile, DomainMetadata, Metadata, Protocol
from optimist.core.protocol.gates import supports
from optimist.core.protocol.properties import TableProperties
from optimist.core.transaction.conflicts.isolation import ROW_TRACKING_DOMAIN

__all__ = ["NO_ROW_IDS", "assign_row_ids", "high_water_mark", "is_row_tracking_on"]

NO_ROW_IDS = -1
"""The high-water mark of a table that has handed out no row id."""


def is_row_tracking_on(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether every added file must get row ids: the feature is supported and not suspended."""
    properties = TableProperties.from_configuration(metadata.configuration)
    return supports(protocol, "rowTracking") and not properties.row_tracking_suspended


def high_water_mark(domains: Iterable[DomainMetadata], *, default: int) -> int:
    """The largest row id handed out, as the domain `delta.rowTracking` records it."""
    for item in domains:
        if item.domain == ROW_TRACKING_DOMAIN and not item.removed:
            return int(json.loads(item.configuration)["rowIdHighWaterMark"])
    return default


def assign_row_ids(
    actions: Sequence[Action], *, known_mark: int, next_mark: int
) -> tuple[tuple[Action, ...], int]:
    """Give row ids to the added files that have none yet, or only ones given above `known_mark`.

    Args:
        actions: The pending actions; a domain action of row tracking among them is replaced.
        known_mark: Ids up to here are settled and stay (copied from older files).
        next_mark: The next file starts right above this.

    Returns:
        The actions with the new high-water mark's domain action in front, and that mark.

    Raises:
        SchemaError: A file has no `numRecords`, so its rows can't be numbered
            (`DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS`).
    """
    mark = next_mark
    out: list[Action] = []
    for action in actions:
        if isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN:
            continue
        if isinstance(action, AddFile) and _is_fresh(action, known_mark):
            action = replace(action, base_row_id=mark + 1)
            mark += _num_records(action)
        out.append(action)
    configuration = json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":"))
    return (DomainMetadata(ROW_TRACKING_DOMAIN, configuration), *out), mark


def _is_fresh(action: AddFile, known_mark: int) -> bool:
    return action.base_row_id is None or action.base_row_id > known_mark


def _num_records(action: AddFile) -> int:
    value = json.loads(action.stats).get("numRecords") if action.stats else None
    if not isinstance(value, int):
        raise SchemaError(
            f"The table tracks rows, but the file {action.path} comes without a row count "
            "(numRecords in its statistics). Nothing was committed; add the statistics.",
            kind="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
            path=action.path,
        )
    return value
