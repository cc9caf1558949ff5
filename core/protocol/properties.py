"""Table properties: the entries of `metaData.configuration` that start with `delta.` (spec 7.1).

`TableProperties` lists them: one field per property, each with its full name, its default and its
parser. Properties in a log are parsed leniently, because one odd value must not make a table
unreadable. Each row states the value that counts if the text does not parse, and whether writes go
on then. Properties that a user sets go through `normalize_configuration`, which is strict.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from optimist.core.errors import ConfigError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.errors.short_repr import short_repr
from optimist.core.protocol.property_values import (
    CODEC,
    COLUMN_LIST,
    FLAG,
    FORMAT_VERSION,
    INTERVAL,
    LONG,
    MAPPING_MODE,
    SIGNED_LONG,
    TEXT,
    ValueKind,
    one_of,
    whole,
)
from optimist.core.values.field_types import LARGEST_LONG

__all__ = [
    "CONSTRAINT_PREFIX",
    "FEATURE_PREFIX",
    "IN_COMMIT_TIMESTAMP_ENABLEMENT",
    "MATERIALIZED_ROW_COMMIT_VERSION",
    "MATERIALIZED_ROW_ID",
    "PROPERTIES",
    "UNKEPT_PROPERTIES",
    "IsolationLevel",
    "TableProperties",
    "TableProperty",
    "canonical_name",
    "constraint_keys",
    "ensure_retention_compatible",
    "known_properties",
    "normalize_configuration",
]

_PREFIX = "delta."
CONSTRAINT_PREFIX = "delta.constraints."
FEATURE_PREFIX = "delta.feature."
IN_COMMIT_TIMESTAMP_ENABLEMENT = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
"""The first version and time at which a table's commits carry timestamps (spec 1.11)."""
ENABLE_ROW_TRACKING = "delta.enableRowTracking"
MATERIALIZED_ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
MATERIALIZED_ROW_COMMIT_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
_FREE_PREFIXES = (FEATURE_PREFIX, "delta.universalformat.config.")
_DAY_MS = 24 * 60 * 60 * 1000
_FOREVER_MS = 100 * 365 * _DAY_MS


class IsolationLevel(enum.Enum):
    """How strictly concurrent commits are kept apart (spec 1.8), spelled as in logs."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"

    @classmethod
    def parse(cls, text: str) -> IsolationLevel:
        """Return the level of that name, in upper or lower case.

        Raises:
            ConfigError: The text names no level (kind `DELTA_INVALID_ISOLATION_LEVEL`).
        """
        for level in cls:
            if level.value.lower() == text.lower():
                return level
        names = ", ".join(level.value for level in cls)
        raise ConfigError(
            f"The table property delta.isolationLevel can't be {quoted(text)}. Nothing was "
            f"written. Set it to one of {names}.",
            kind="DELTA_INVALID_ISOLATION_LEVEL",
            value=text,
        )


def _parse_isolation_level(text: str) -> IsolationLevel:
    try:
        return IsolationLevel.parse(text)
    except ConfigError:
        raise ValueError("must be one of " + ", ".join(i.value for i in IsolationLevel)) from None


_ISOLATION = ValueKind(_parse_isolation_level)


@dataclass(frozen=True, slots=True)
class TableProperty:
    """One table property.

    Attributes:
        name: The full name in its canonical spelling.
        default: The parsed value that holds when the property is absent.
        kind: How its texts are read, and how users' texts are spelled.
        user_settable: Whether users may set it. The engine maintains the others itself.
        aliases: Older names, read when the property itself is absent.
        careful: The value that holds when the text in a log does not parse. It destroys nothing
            that the table may have been meant to keep. None stands for the default.
        is_binding: Whether a write that does not know the value could break a promise of the table
            to its readers. If so, no write goes on while the text does not parse.
    """

    name: str
    default: Any
    kind: ValueKind
    user_settable: bool = True
    aliases: tuple[str, ...] = ()
    careful: Any = None
    is_binding: bool = False


def _row(name: str, default: Any, kind: ValueKind, **rules: Any) -> Any:
    row = TableProperty(_PREFIX + name.removeprefix(_PREFIX), default, kind, **rules)
    return field(default=default, metadata={"row": row})


@dataclass(frozen=True, slots=True)
class TableProperties:
    """All properties of a table that this engine knows, typed; durations are in milliseconds."""

    append_only: bool = _row("appendOnly", False, FLAG, is_binding=True)
    auto_optimize: str | None = _row("autoOptimize", None, one_of("true", "false"))
    auto_compact: str | None = _row(
        "autoOptimize.autoCompact", None, one_of("true", "false", "auto")
    )
    optimize_write: str | None = _row("autoOptimize.optimizeWrite", None, one_of("true", "false"))
    checkpoint_interval: int = _row("checkpointInterval", 10, whole(1))
    checkpoint_policy: str = _row(
        "checkpointPolicy", "classic", one_of("classic", "v2", any_case=False)
    )
    checkpoint_retention_ms: int = _row("checkpointRetentionDuration", 2 * _DAY_MS, INTERVAL)
    sample_retention_ms: int = _row("sampleRetentionDuration", 7 * _DAY_MS, INTERVAL)
    checkpoint_write_stats_as_json: bool = _row("checkpoint.writeStatsAsJson", True, FLAG)
    checkpoint_write_stats_as_struct: bool | None = _row(
        "checkpoint.writeStatsAsStruct", None, FLAG
    )
    column_mapping_mode: str = _row("columnMapping.mode", "none", MAPPING_MODE, is_binding=True)
    max_column_id: int = _row(
        "columnMapping.maxColumnId", 0, LONG, user_settable=False, is_binding=True
    )
    symlink_format_manifest_enabled: bool = _row(
        "compatibility.symlinkFormatManifest.enabled", False, FLAG, is_binding=True
    )
    data_skipping_num_indexed_cols: int = _row("dataSkippingNumIndexedCols", 32, whole(-1))
    data_skipping_stats_columns: tuple[str, ...] | None = _row(
        "dataSkippingStatsColumns", None, COLUMN_LIST
    )
    data_skipping_string_prefix_length: int | None = _row(
        "dataSkippingStringPrefixLength", None, whole(1)
    )
    deleted_file_retention_ms: int = _row(
        "deletedFileRetentionDuration", 7 * _DAY_MS, INTERVAL, careful=_FOREVER_MS
    )
    enable_change_data_feed: bool = _row(
        "enableChangeDataFeed",
        False,
        FLAG,
        aliases=("delta.enableChangeDataCapture",),
        is_binding=True,
    )
    enable_deletion_vectors: bool = _row("enableDeletionVectors", False, FLAG)
    enable_expired_log_cleanup: bool = _row("enableExpiredLogCleanup", True, FLAG, careful=False)
    enable_full_retention_rollback: bool = _row("enableFullRetentionRollback", True, FLAG)
    enable_iceberg_compat_v1: bool = _row("enableIcebergCompatV1", False, FLAG, is_binding=True)
    enable_iceberg_compat_v2: bool = _row("enableIcebergCompatV2", False, FLAG, is_binding=True)
    enable_iceberg_compat_v3: bool = _row("enableIcebergCompatV3", False, FLAG, is_binding=True)
    enable_in_commit_timestamps: bool = _row(
        "enableInCommitTimestamps", False, FLAG, is_binding=True
    )
    in_commit_timestamp_enablement_version: int | None = _row(
        IN_COMMIT_TIMESTAMP_ENABLEMENT[0], None, LONG, user_settable=False, is_binding=True
    )
    in_commit_timestamp_enablement_timestamp: int | None = _row(
        IN_COMMIT_TIMESTAMP_ENABLEMENT[1], None, SIGNED_LONG, user_settable=False, is_binding=True
    )
    enable_row_tracking: bool = _row("enableRowTracking", False, FLAG, is_binding=True)
    row_tracking_suspended: bool = _row("rowTrackingSuspended", False, FLAG, is_binding=True)
    materialized_row_id_column: str | None = _row(
        MATERIALIZED_ROW_ID, None, TEXT, user_settable=False
    )
    materialized_row_commit_version_column: str | None = _row(
        MATERIALIZED_ROW_COMMIT_VERSION, None, TEXT, user_settable=False
    )
    enable_type_widening: bool = _row("enableTypeWidening", False, FLAG)
    enable_variant_shredding: bool = _row("enableVariantShredding", False, FLAG)
    ignore_protocol_defaults: bool = _row("ignoreProtocolDefaults", False, FLAG)
    isolation_level: IsolationLevel = _row(  # noqa: RUF009 - it makes a field
        "isolationLevel", IsolationLevel.SERIALIZABLE, _ISOLATION, is_binding=True
    )
    log_retention_ms: int = _row(
        "logRetentionDuration", 30 * _DAY_MS, INTERVAL, careful=_FOREVER_MS
    )
    truncate_history_retention_ms: int = _row(
        "dropFeatureTruncateHistory.retentionDuration", _DAY_MS, INTERVAL
    )
    min_reader_version: int | None = _row("minReaderVersion", None, whole(1, 3))
    min_writer_version: int | None = _row("minWriterVersion", None, whole(1, 7))
    parquet_compression_codec: str | None = _row("parquet.compression.codec", None, CODEC)
    parquet_format_version: str = _row(
        "parquet.format.version", "1.0.0", FORMAT_VERSION, is_binding=True
    )
    randomize_file_prefixes: bool = _row("randomizeFilePrefixes", False, FLAG)
    random_prefix_length: int = _row("randomPrefixLength", 2, whole(1))
    require_checkpoint_protection_before_version: int = _row(
        "requireCheckpointProtectionBeforeVersion",
        0,
        LONG,
        user_settable=False,
        careful=LARGEST_LONG,
    )
    set_transaction_retention_ms: int | None = _row(
        "setTransactionRetentionDuration", None, INTERVAL
    )
    universal_format_enabled_formats: tuple[str, ...] | None = _row(
        "universalFormat.enabledFormats", None, COLUMN_LIST
    )
    constraints: Mapping[str, str] = field(default_factory=dict)
    """CHECK constraints: name to SQL text (see `constraint_keys`)."""
    unparsed: Mapping[str, str] = field(default_factory=dict)
    """Properties in the log whose value does not parse, as texts (see `TableProperty.careful`)."""

    __repr__ = short_repr

    @property
    def unparsed_binding(self) -> Mapping[str, str]:
        """The properties in `unparsed` that stop every write (see `TableProperty.is_binding`)."""
        return {
            name: text
            for name, text in self.unparsed.items()
            if PROPERTIES[canonical_name(name)].is_binding
        }

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, str]) -> TableProperties:
        """Parse the properties in a log, and never raise (see `unparsed`).

        `TableMetadata.of` does this once per metadata. Use this for a configuration without
        metadata.
        """
        # A log may hold values that are not texts.
        return _parse_properties({key: str(text) for key, text in configuration.items()})


def _parse_properties(configuration: Mapping[str, str]) -> TableProperties:
    values: dict[str, Any] = {}
    unparsed: dict[str, str] = {}
    for item in _ROW_FIELDS:
        row: TableProperty = item.metadata["row"]
        name = next((key for key in (row.name, *row.aliases) if key in configuration), None)
        if name is None:
            continue
        try:
            values[item.name] = row.kind.parse(configuration[name])
        except ValueError:
            unparsed[name] = configuration[name]
            values[item.name] = row.default if row.careful is None else row.careful
    keys = constraint_keys(configuration)
    constraints = {name: configuration[key] for name, key in keys.items()}
    return TableProperties(**values, constraints=constraints, unparsed=unparsed)


def constraint_keys(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of a table's CHECK constraints (`delta.constraints.*`), by name.

    Names are as the log spells them: two that differ in case are two constraints, and rows must
    satisfy both. The prefix counts in any case. If two keys differ only in its case, the whole key
    names the later one.
    """
    keys: dict[str, str] = {}
    for key in configuration:
        if not key.lower().startswith(CONSTRAINT_PREFIX):
            continue
        prefix, name = key[: len(CONSTRAINT_PREFIX)], key[len(CONSTRAINT_PREFIX) :]
        while name in keys:
            name = prefix + name
        keys[name] = key
    return keys


_ROW_FIELDS: tuple[Field[Any], ...] = tuple(
    item for item in fields(TableProperties) if "row" in item.metadata
)

PROPERTIES: Mapping[str, TableProperty] = MappingProxyType(
    {item.metadata["row"].name: item.metadata["row"] for item in _ROW_FIELDS}
)
"""The rows by full name in canonical spelling."""

UNKEPT_PROPERTIES = frozenset(
    {"delta.minReaderVersion", "delta.minWriterVersion", "delta.ignoreProtocolDefaults"}
)
"""Requests about the protocol: the engine follows them once and never keeps them in the log (spec
1.4)."""

_CANONICAL: Mapping[str, str] = {
    **{name.lower(): name for name in PROPERTIES},
    **{alias.lower(): row.name for row in PROPERTIES.values() for alias in row.aliases},
}
_API_ISOLATION_LEVELS = (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE)


def canonical_name(name: str) -> str:
    """Return the canonical spelling of a property's name, and an unknown name unchanged."""
    return _CANONICAL.get(name.lower(), name)


def known_properties(defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the session's defaults that name a property, as Delta ignores all others."""
    return {key: text for key, text in defaults.items() if _is_known(key.lower())}


def _is_known(folded: str) -> bool:
    return folded in _CANONICAL or folded.startswith(_FREE_PREFIXES)


def normalize_configuration(
    user: Mapping[str, str],
    *,
    allow_arbitrary: bool,
    allow_constraints: bool = False,
    current: Mapping[str, str] | None = None,
    enforce_retention: bool = True,
) -> dict[str, str]:
    """Check the properties that a user sets, and spell them canonically (spec 7.1, 10.9).

    Users may set the isolation levels `Serializable` and `WriteSerializable`. Delta's own API takes
    only the former. Databricks and delta-rs take both, and tables written there carry the latter.
    `SnapshotIsolation` is refused: it would let two commits that contradict each other both land.

    Args:
        user: The user's properties, keys in any case.
        allow_arbitrary: Let unknown `delta.*` keys pass (option
            `allowArbitraryProperties.enabled`).
        allow_constraints: Let CHECK constraints pass, by the names that they have in the log. An
            existing table gets them only by ADD CONSTRAINT, which checks its rows.
        current: The table's configuration, for checks that need two properties.
        enforce_retention: Whether `deletedFileRetentionDuration` may not exceed
            `logRetentionDuration`.

    Raises:
        ConfigError: A property is unknown, may not be set by users, is given twice with different
            values, or has a value that does not parse. Or `deletedFileRetentionDuration` is too
            long.
    """
    result: dict[str, str] = {}
    for key, value in user.items():
        is_constraint = allow_constraints and key.lower().startswith(CONSTRAINT_PREFIX)
        name = key.lower() if is_constraint else _checked_name(key, allow_arbitrary)
        text = _checked_value(name, value)
        if result.get(name, text) != text:
            raise ConfigError(
                f"The table property {shown(name)} is given twice, as {quoted(result[name])} and "
                f"as {quoted(text)}. Nothing was written. Keep one of them.",
                kind="OPTIMIST_CONTRADICTING_OPTIONS",
                property=name,
            )
        result[name] = text
    if enforce_retention:
        ensure_retention_compatible(result, current or {})
    return result


def ensure_retention_compatible(changed: Mapping[str, str], current: Mapping[str, str]) -> None:
    """Refuse to keep deleted files longer than the log that names them.

    The check runs only when `changed` sets one of the two durations.

    Raises:
        ConfigError: The table would keep them longer (kind `OPTIMIST_RETENTION_CONFLICT`).
    """
    if not {"delta.deletedFileRetentionDuration", "delta.logRetentionDuration"} & set(changed):
        return
    merged = TableProperties.from_configuration({**current, **changed})
    if merged.deleted_file_retention_ms > merged.log_retention_ms:
        raise ConfigError(
            "The table property delta.deletedFileRetentionDuration is longer than "
            f"delta.logRetentionDuration ({merged.deleted_file_retention_ms} ms against "
            f"{merged.log_retention_ms} ms), so the log would forget deleted files before they "
            "expire. Nothing was written. Lengthen delta.logRetentionDuration or shorten "
            "delta.deletedFileRetentionDuration.",
            kind="OPTIMIST_RETENTION_CONFLICT",
            deleted_file_retention_ms=merged.deleted_file_retention_ms,
            log_retention_ms=merged.log_retention_ms,
        )


def _checked_name(key: str, allow_arbitrary: bool) -> str:
    folded = key.lower()
    if not folded.startswith("delta."):
        return key
    if folded.startswith(CONSTRAINT_PREFIX):
        raise ConfigError(
            f"The CHECK constraint {shown(key)} can't be set as a table property. Nothing was "
            "written. Add it with ALTER TABLE ... ADD CONSTRAINT, which also checks the existing "
            "rows.",
            kind="DELTA_ADD_CONSTRAINTS",
            property=key,
        )
    for prefix in _FREE_PREFIXES:
        if folded.startswith(prefix):
            return prefix + key[len(prefix) :]
    name = _CANONICAL.get(folded)
    if name is None:
        if allow_arbitrary:
            return key
        raise _unknown_property(key)
    if not PROPERTIES[name].user_settable:
        raise ConfigError(
            f"The table property {name} is maintained by the engine and can't be set. Nothing was "
            "written. Leave it out.",
            kind="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            property=name,
        )
    return name


def _unknown_property(key: str) -> ConfigError:
    return ConfigError(
        f"The table property {shown(key)} is unknown. Nothing was written. Check its spelling, "
        "drop the prefix 'delta.' if it is your own, or set "
        "spark.databricks.delta.allowArbitraryProperties.enabled to true.",
        kind="DELTA_UNKNOWN_CONFIGURATION",
        property=key,
    )


def _checked_value(name: str, value: str) -> str:
    if name == "delta.isolationLevel":
        return _settable_isolation_level(value)
    row = PROPERTIES.get(name)
    if row is None:
        return value
    try:
        row.kind.parse(value)
        return row.kind.spell(value)
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"The table property {name} can't be {quoted(value)}: it {shown(error)}. Nothing was "
            "written.",
            kind="OPTIMIST_INVALID_TABLE_PROPERTY",
            property=name,
            value=value,
        ) from None


def _settable_isolation_level(value: str) -> str:
    level = IsolationLevel.parse(value)
    if level not in _API_ISOLATION_LEVELS:
        names = " or ".join(item.value for item in _API_ISOLATION_LEVELS)
        raise ConfigError(
            f"The table property delta.isolationLevel can't be {level.value} on this table. "
            f"Nothing was written. Set it to {names}.",
            kind="DELTA_INVALID_ISOLATION_LEVEL",
            value=value,
        )
    return level.value
