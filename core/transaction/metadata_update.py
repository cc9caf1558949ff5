"""Making new metadata ready for its commit, with the protocol that it needs (spec 1.4).

Pure functions from values to values; `OptimisticTransaction` calls them in this order:

1. `new_table_metadata` for a table that is created: an id, a time, the defaults of the session;
2. `derive_metadata_and_protocol`: the metadata as it will stand in the log, and the protocol it
   needs;
3. `schema_checks.verify_new_metadata`: whether the result may be committed.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace

from optimist.core.data.declared_text import with_declarations_of
from optimist.core.errors import ProtocolError, SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.field_keys import metadata_that_counts
from optimist.core.protocol.gates import (
    ensure_upgrade_allowed,
    implied_features,
    merge,
    protocol_for_existing,
    protocol_for_new_table,
    requested_protocol,
    supports,
)
from optimist.core.protocol.properties import (
    FEATURE_PREFIX,
    IN_COMMIT_TIMESTAMP_ENABLEMENT,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    UNKEPT_PROPERTIES,
    canonical_name,
    known_properties,
    normalize_configuration,
)
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.schema.char_types import replace_char_varchar
from optimist.core.schema.column_mapping import without_mapping
from optimist.core.schema.type_widening import with_type_changes
from optimist.core.schema.types import (
    COLUMN_MAPPING_PREFIX,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    schema_from_json,
    schema_to_json,
)
from optimist.core.transaction.mapped_metadata import with_column_mapping

__all__ = [
    "MetadataChange",
    "derive_metadata_and_protocol",
    "new_table_metadata",
    "with_global_config_defaults",
    "with_protected_history",
]

_PROTECTION = "delta.requireCheckpointProtectionBeforeVersion"
_ROW_TRACKING_COLUMNS = (
    (MATERIALIZED_ROW_ID, "_row-id-col-"),
    (MATERIALIZED_ROW_COMMIT_VERSION, "_row-commit-version-col-"),
)


class MetadataChange(enum.Enum):
    """What a commit does to the table whose metadata it sets."""

    ALTER = "alter"
    """Its files stay, so what they hold must remain readable."""
    OVERWRITE = "overwrite"
    """It removes all files; schema and partitioning are new, the table stays the same one."""
    REPLACE = "replace"
    """It removes all files, and everything is new: schema, properties, mode of column mapping."""
    RESTORE = "restore"
    """Metadata and files are those of an older version; nothing of what they say is changed."""


def new_table_metadata(metadata: Metadata, options: EngineOptions, clock: Clock) -> Metadata:
    """Complete the metadata of a table that is created, and merge the defaults.

    An empty `id` becomes a random UUID. A missing `created_time` becomes the time of the clock.

    Raises:
        ConfigError: A default of the session is not a valid table property.
    """
    return replace(
        with_global_config_defaults(metadata, options),
        id=metadata.id or clock.new_uuid(),
        created_time=clock.now_ms() if metadata.created_time is None else metadata.created_time,
    )


def with_global_config_defaults(metadata: Metadata, options: EngineOptions) -> Metadata:
    """Add the session's defaults for the properties that the metadata does not set itself.

    The defaults come from `spark.databricks.delta.properties.defaults.*`. As in Delta, defaults
    that name no property are ignored. Defaults that request a protocol are left to
    `protocol_for_new_table`.

    Raises:
        ConfigError: A default is not a valid table property.
    """
    defaults = normalize_configuration(
        known_properties(options.property_defaults),
        allow_arbitrary=options.allow_arbitrary_properties,
        current=metadata.configuration,
        enforce_retention=False,
    )
    wanted = {key: value for key, value in defaults.items() if not _is_protocol_request(key)}
    return replace(metadata, configuration={**wanted, **metadata.configuration})


def derive_metadata_and_protocol(
    new: Metadata,
    *,
    current: Metadata | None,
    protocol: Protocol | None,
    options: EngineOptions,
    clock: Clock | None = None,
    how: MetadataChange = MetadataChange.ALTER,
) -> tuple[Metadata, Protocol | None]:
    """Derive the metadata as the log will have it, and the protocol that it needs.

    Args:
        new: The metadata wanted, with requests such as `delta.feature.*` in its configuration.
        current: The table's metadata now, or None for a table that is created.
        protocol: The table's protocol now, or None for a table that is created.
        options: The engine's options.
        clock: Gives the UUIDs in names that are made up: of mapped columns, and of those of row
            tracking.
        how: What the commit does to the table.

    Returns:
        The metadata, and the new protocol, or None if the protocol stays as it is.

    Raises:
        ConfigError: A request about the protocol is wrong.
        ProtocolError: The metadata needs features that are not added automatically.
        SchemaError: The schema can't be stored as requested.
    """
    if how is MetadataChange.RESTORE and protocol is not None:
        derived = protocol_for_existing(protocol, new)
        return new, None if derived == protocol else derived
    requests = new.configuration
    clock = clock or SystemClock()
    metadata = _with_storable_schema(new, current, options, how)
    configuration = _storable_configuration(metadata, current)
    if current is not None and how is MetadataChange.REPLACE:
        configuration = with_protected_history(configuration, current)
    metadata = replace(metadata, configuration=configuration)
    metadata = with_column_mapping(
        metadata,
        current,
        clock,
        is_overwrite=how is not MetadataChange.ALTER,
        may_change_mode=how is MetadataChange.REPLACE,
    )
    if protocol is None:
        derived = protocol_for_new_table(requests, metadata, options)
        return _with_row_tracking_columns(metadata, current, clock), derived
    asked = _asked_of_existing(protocol, requests)
    if how is not MetadataChange.REPLACE:
        metadata = _without_stray_keys(metadata, current, protocol, asked)
    derived = protocol_for_existing(asked, metadata)
    ensure_upgrade_allowed(protocol, derived)
    if current is not None and how is MetadataChange.ALTER:
        metadata = _with_type_changes(metadata, current, derived)
    metadata = _with_row_tracking_columns(metadata, current, clock)
    return metadata, None if derived == protocol else derived


def with_protected_history(configuration: Mapping[str, str], current: Metadata) -> dict[str, str]:
    """Keep the properties that protect the checkpoints of versions.

    Features were dropped from the table, and the log of those versions stays even if the table is
    replaced. Only DROP FEATURE checkpointProtection removes the property.

    Args:
        configuration: What the table is to have in place of all that it has.
        current: What it has.
    """
    before = _protected_before(current)
    if before <= _protected_before(replace(current, configuration=configuration)):
        return dict(configuration)
    return {**configuration, _PROTECTION: current.configuration.get(_PROTECTION, str(before))}


def _protected_before(metadata: Metadata) -> int:
    return TableMetadata.of(metadata).properties.require_checkpoint_protection_before_version


def _with_storable_schema(
    new: Metadata, current: Metadata | None, options: EngineOptions, how: MetadataChange
) -> Metadata:
    text = replace_char_varchar(new.schema_string)
    if current is not None and text == current.schema_string:
        return replace(new, schema_string=text)
    if current is not None and how is MetadataChange.ALTER:
        text = _with_declarations_kept(text, current)
    stored = replace(new, schema_string=text)
    declared = TableMetadata.of(stored).declared_schema
    schema = _without_unenforceable_not_null(declared, allow=options.allow_unenforced_not_null)
    keeps_mapping = how is not MetadataChange.REPLACE and _has_mapping(current)
    if not TableMetadata.of(stored).is_mapped and not keeps_mapping:
        # Keys of column mapping came along with data read from another table; on a table that is
        # not mapped they mean nothing.
        schema = without_mapping(schema)
    if schema == declared:
        return stored
    return replace(new, schema_string=schema_to_json(schema))


def _with_declarations_kept(text: str, current: Metadata) -> str:
    """Return a schema whose declared lengths of texts fit the columns' types again."""
    schema = schema_from_json(text)
    kept = with_declarations_of(schema, TableMetadata.of(current).declared_schema)
    return text if kept == schema else replace_char_varchar(schema_to_json(kept))


def _has_mapping(metadata: Metadata | None) -> bool:
    return metadata is not None and COLUMN_MAPPING_PREFIX in metadata.schema_string


def _storable_configuration(metadata: Metadata, current: Metadata | None) -> dict[str, str]:
    kept = {
        key: value for key, value in metadata.configuration.items() if not _is_protocol_request(key)
    }
    since, before = IN_COMMIT_TIMESTAMP_ENABLEMENT, current.configuration if current else {}
    stored = TableMetadata.of(replace(metadata, configuration=kept))
    if not stored.properties.enable_in_commit_timestamps:
        return {key: value for key, value in kept.items() if key not in since}
    if current and TableMetadata.of(current).properties.enable_in_commit_timestamps:
        # A caller that rewrites the configuration need not know these two keys (spec 1.11).
        return {**{key: before[key] for key in since if key in before}, **kept}
    return kept


def _is_protocol_request(key: str) -> bool:
    return key.lower().startswith(FEATURE_PREFIX) or canonical_name(key) in UNKEPT_PROPERTIES


def _asked_of_existing(protocol: Protocol, requests: Mapping[str, str]) -> Protocol:
    asked = merge(protocol, requested_protocol(requests, is_new_table=False))
    if supports(asked, "catalogManaged") and not supports(protocol, "catalogManaged"):
        raise ProtocolError(
            "The feature catalogManaged can't be added to an existing table: its catalog would "
            "not know the commits made so far. Nothing was written. Create a new table with it.",
            kind="OPTIMIST_CATALOG_MANAGED_ON_EXISTING_TABLE",
            feature="catalogManaged",
        )
    return asked


def _with_type_changes(metadata: Metadata, current: Metadata, protocol: Protocol) -> Metadata:
    # The preview's records name a version of the table, which is not known before the commit.
    if "typeWidening" not in implied_features(protocol):
        return metadata
    schema = TableMetadata.of(metadata).declared_schema
    recorded = with_type_changes(schema, TableMetadata.of(current).declared_schema)
    if recorded == schema:
        return metadata
    return replace(metadata, schema_string=schema_to_json(recorded))


def _without_stray_keys(
    metadata: Metadata, current: Metadata | None, protocol: Protocol, asked: Protocol
) -> Metadata:
    """Drop keys of columns that mean nothing, or meant nothing until this change.

    Keys that the table had must not take effect through a feature that is asked for now.
    """
    had_stray = current is not None and metadata_that_counts(current, protocol) is not current
    return metadata_that_counts(metadata, protocol if had_stray else asked)


def _with_row_tracking_columns(
    metadata: Metadata, current: Metadata | None, clock: Clock
) -> Metadata:
    if not TableMetadata.of(metadata).properties.enable_row_tracking:
        return metadata
    before = current.configuration if current is not None else {}
    configuration = dict(metadata.configuration)
    for key, prefix in _ROW_TRACKING_COLUMNS:
        if key not in configuration:
            configuration[key] = before.get(key) or prefix + clock.new_uuid()
    return replace(metadata, configuration=configuration)


def _without_unenforceable_not_null(schema: StructType, *, allow: bool) -> StructType:
    """Refuse NOT NULL inside arrays and maps, which can't be enforced, or drop it if `allow`."""

    def part(data_type: DataType, name: str, column: str) -> DataType:
        nullable = _as_nullable(data_type)
        if nullable != data_type and not allow:
            raise SchemaError(
                f"The column {shown(column)} has a NOT NULL constraint in its {shown(name)} type, "
                f"{shown(data_type)}; NOT NULL can't be enforced inside arrays and maps. Nothing "
                "was written. Make the type nullable, or set "
                "spark.databricks.delta.constraints.allowUnenforcedNotNull.enabled to true to drop "
                "the constraint.",
                kind="DELTA_NESTED_NOT_NULL_CONSTRAINT",
                column=column,
                part=name,
            )
        return nullable

    def check(item: StructField) -> StructField:
        if isinstance(item.data_type, ArrayType):
            element = part(item.data_type.element_type, "element", item.name)
            return replace(item, data_type=replace(item.data_type, element_type=element))
        if isinstance(item.data_type, MapType):
            mapped = replace(
                item.data_type,
                key_type=part(item.data_type.key_type, "key", item.name),
                value_type=part(item.data_type.value_type, "value", item.name),
            )
            return replace(item, data_type=mapped)
        if isinstance(item.data_type, StructType):
            return replace(item, data_type=StructType(tuple(map(check, item.data_type))))
        return item

    return StructType(tuple(map(check, schema)))


def _as_nullable(data_type: DataType) -> DataType:
    return StructType((StructField("part", data_type),)).as_nullable().fields[0].data_type
