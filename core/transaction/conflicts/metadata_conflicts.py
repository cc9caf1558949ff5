"""Which metadata changes of a winner a running transaction can adopt (spec 2.4).

Switching on certain features does not invalidate what a transaction is about to write; any other
change does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.gates import supports
from optimist.core.protocol.properties import (
    ENABLE_ROW_TRACKING,
    IN_COMMIT_TIMESTAMP_ENABLEMENT,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import COLUMN_ID, PHYSICAL_NAME, StructField

__all__ = ["metadata_difference"]

_MAPPING_MODE = "delta.columnMapping.mode"
_MAPPING_KEYS = (COLUMN_ID, PHYSICAL_NAME)

_SWITCHED_ON = {
    ENABLE_ROW_TRACKING: "rowTracking",
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
}


def metadata_difference(current: Metadata, winner: Metadata, protocol: Protocol) -> str | None:
    """Describe the change in the winner's metadata that we can't adopt, if there is one.

    Args:
        current: The metadata as our transaction sees it.
        winner: The metadata the winner set.
        protocol: The table's protocol after the winner.
    """
    for item in fields(Metadata):
        if item.name in ("configuration", "schema_string"):
            continue
        if getattr(current, item.name) != getattr(winner, item.name):
            return f"it changed the table's {item.name}"
    reason = _configuration_difference(current.configuration, winner.configuration, protocol)
    if reason is not None or current.schema_string == winner.schema_string:
        return reason
    if _is_name_mapping_enablement(current, winner) and _same_but_for_mapping(current, winner):
        return None
    return "it changed the table's schema"


def _configuration_difference(
    current: Mapping[str, str], winner: Mapping[str, str], protocol: Protocol
) -> str | None:
    for key in current:
        if key not in winner:
            return f"it removed the table property {shown(key)}"
    for key, value in winner.items():
        if current.get(key) == value:
            continue
        if not _may_adopt(key, value, current, winner, protocol):
            return f"it set the table property {shown(key)}"
    return None


def _may_adopt(
    key: str,
    value: str,
    current: Mapping[str, str],
    winner: Mapping[str, str],
    protocol: Protocol,
) -> bool:
    if key in _SWITCHED_ON:
        return value.lower() == "true" and supports(protocol, _SWITCHED_ON[key])
    if key in (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION):
        return winner.get(ENABLE_ROW_TRACKING, "").lower() == "true"
    if key == _MAPPING_MODE:
        was_none = current.get(key, "none") == "none"
        return was_none and value == "name" and supports(protocol, "columnMapping")
    if key == "delta.columnMapping.maxColumnId":
        return True
    if key == "delta.checkpointPolicy":
        return value == "v2" and supports(protocol, "v2Checkpoint")
    if key in IN_COMMIT_TIMESTAMP_ENABLEMENT:
        return key not in current
    if key == "io.unitycatalog.tableId":
        return key not in current and supports(protocol, "catalogManaged")
    return False


def _is_name_mapping_enablement(current: Metadata, winner: Metadata) -> bool:
    before = current.configuration.get(_MAPPING_MODE, "none")
    return before == "none" and winner.configuration.get(_MAPPING_MODE) == "name"


def _same_but_for_mapping(current: Metadata, winner: Metadata) -> bool:
    mine = TableMetadata.of(current).declared_schema.fields
    other = TableMetadata.of(winner).declared_schema.fields
    return len(mine) == len(other) and all(
        _without_mapping(left) == _without_mapping(right) and right.physical_name == left.name
        for left, right in zip(mine, other, strict=True)
    )


def _without_mapping(item: StructField) -> tuple[object, ...]:
    metadata = {key: value for key, value in item.metadata.items() if key not in _MAPPING_KEYS}
    return item.name, item.data_type, item.nullable, metadata
