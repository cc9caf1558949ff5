"""SET and UNSET TBLPROPERTIES (spec 7.1, 10.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optimist.core.commands.alter.alteration import Alteration
from optimist.core.errors import ArgumentTypeError, ConfigError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import (
    ENABLE_ROW_TRACKING,
    PROPERTIES,
    canonical_name,
    normalize_configuration,
)
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["set_properties", "unset_properties"]

_COMMENT = "comment"
_ROW_TRACKING_ONLY = "rowTrackingEnablementOnly"
_REFUSED = {
    "location": (
        "DELTA_CANNOT_CHANGE_LOCATION",
        "A table does not move; write its rows to another path.",
    ),
    "provider": ("DELTA_CANNOT_CHANGE_PROVIDER", "Write the rows with the other format."),
    "clusteringcolumns": (
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
        "Use ALTER TABLE ... CLUSTER BY.",
    ),
}


def set_properties(txn: OptimisticTransaction, properties: Mapping[str, str]) -> Alteration:
    """Set properties.

    `comment` is the table's description.

    Raises:
        ConfigError: A property can't be set, by its name or its value; see
            `normalize_configuration`. Or it is not a property but the table's path or format
            (`DELTA_CANNOT_CHANGE_LOCATION`, `DELTA_CANNOT_CHANGE_PROVIDER`).
    """
    for key, value in properties.items():
        _ensure_a_property(key, value)
    options = txn.table.options
    given = normalize_configuration(
        {key: value for key, value in properties.items() if key.lower() != _COMMENT},
        allow_arbitrary=options.allow_arbitrary_properties,
        current=txn.metadata.configuration,
        enforce_retention=options.enforce_retention_compatibility,
    )
    comments = {k.lower(): text for k, text in properties.items() if k.lower() == _COMMENT}
    metadata = replace(
        txn.metadata,
        description=comments.get(_COMMENT, txn.metadata.description),
        configuration={**txn.metadata.configuration, **given},
    )
    tracks_rows = given.get(ENABLE_ROW_TRACKING, "").lower() == "true"
    return Alteration(
        Operation("SET TBLPROPERTIES", {"properties": json_text({**given, **comments})}),
        metadata,
        # Writers that know the tag do not conflict with this commit (spec 2.4).
        tags={_ROW_TRACKING_ONLY: "true"} if tracks_rows and len(properties) == 1 else {},
    )


def unset_properties(
    txn: OptimisticTransaction, keys: Sequence[str], *, if_exists: bool
) -> Alteration:
    """Remove properties, so that their defaults apply.

    `comment` is the description.

    Raises:
        ConfigError: The table does not have a property (kind `DELTA_UNSET_NON_EXISTENT_PROPERTY`)
            and `if_exists` is not set, or the engine maintains the property itself
            (`DELTA_CANNOT_MODIFY_TABLE_PROPERTY`).
    """
    metadata = txn.metadata
    names = tuple(_name_in_log(key, metadata) for key in keys)
    for name in names:
        if not if_exists and not _is_set(name, metadata):
            raise ConfigError(
                f"The table {txn.table.table_path} does not have the property {shown(name)}. "
                "Nothing was written. Leave it out, or say IF EXISTS.",
                kind="DELTA_UNSET_NON_EXISTENT_PROPERTY",
                property=name,
            )
        if name in PROPERTIES and not PROPERTIES[name].user_settable:
            raise _cannot_change(name, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY", "The engine keeps it.")
    kept = {key: text for key, text in metadata.configuration.items() if key not in names}
    return Alteration(
        Operation("UNSET TBLPROPERTIES", {"properties": json_text(names), "ifExists": if_exists}),
        replace(
            metadata,
            description=None if _COMMENT in names else metadata.description,
            configuration=kept,
        ),
    )


def _ensure_a_property(key: str, value: object) -> None:
    if not isinstance(key, str) or not isinstance(value, str):
        raise ArgumentTypeError(
            f"The table property {quoted(key)} can't be {quoted(value)}: property names and values "
            "must be strings. Nothing was written. Write it in quotes.",
            kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
            argument="properties",
        )
    if key.lower() in _REFUSED:
        raise _cannot_change(key, *_REFUSED[key.lower()])


def _cannot_change(key: str, kind: str, way_out: str) -> ConfigError:
    return ConfigError(
        f"The table property {quoted(key)} can't be set or unset. Nothing was written. {way_out}",
        kind=kind,
        property=key,
    )


def _name_in_log(key: str, metadata: Metadata) -> str:
    """Return the property's name as the log spells it."""
    if key in metadata.configuration:
        return key
    return _COMMENT if key.lower() == _COMMENT else canonical_name(key)


def _is_set(name: str, metadata: Metadata) -> bool:
    described = name == _COMMENT and metadata.description is not None
    return described or name in metadata.configuration
