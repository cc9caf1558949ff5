"""The gates before reading and writing, and the protocol that a table needs (spec 6.1, 6.4).

A protocol stands for a set of features: those that its legacy versions imply and those that it
lists (`implied_features`). Everything in this module works on that set. `normalize` turns a set
back into the weakest protocol that stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from optimist.core.errors import ConfigError, ProtocolError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.features import (
    FEATURES,
    Enablement,
    Feature,
    active_features,
    covers,
    with_requirements,
)
from optimist.core.protocol.mapping_gate import ensure_columns_can_be_found
from optimist.core.protocol.properties import FEATURE_PREFIX
from optimist.core.protocol.property_values import parse_flag
from optimist.core.protocol.requested_features import requested_features, requested_version
from optimist.core.protocol.table_metadata import TableMetadata

__all__ = [
    "DEFAULT_PROTOCOL",
    "SUPPORTED_READER_VERSIONS",
    "SUPPORTED_WRITER_VERSIONS",
    "ensure_features_listed",
    "ensure_readable",
    "ensure_upgrade_allowed",
    "ensure_well_formed",
    "ensure_writable",
    "implied_features",
    "is_active",
    "merge",
    "normalize",
    "protocol_for_existing",
    "protocol_for_new_table",
    "requested_protocol",
    "supports",
    "with_features",
    "without_feature",
]

SUPPORTED_READER_VERSIONS = (1, 2, 3)
SUPPORTED_WRITER_VERSIONS = (1, 2, 3, 4, 5, 6, 7)
DEFAULT_PROTOCOL = Protocol(1, 2)
"""The protocol of a new table whose metadata and creator ask for nothing else."""

_PARQUET = "parquet"
_CATALOG_FEATURES = ("catalogManaged", "catalogOwned")

# Weakest first, so that the first pair that implies a set of features is the weakest one.
_LEGACY_VERSIONS = ((1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6))


def supports(protocol: Protocol, name: str) -> bool:
    """Return whether the protocol has the feature, listed or implied by a legacy version."""
    return covers(implied_features(protocol), name)


def is_active(name: str, protocol: Protocol, metadata: Metadata) -> bool:
    """Return whether a feature counts: the protocol has it, and the metadata uses it.

    A property without its feature, as some writers leave it, means nothing.
    """
    return name in active_features(metadata) and supports(protocol, name)


def implied_features(protocol: Protocol) -> frozenset[str]:
    """Return all features of a protocol: those it lists, and those its legacy versions imply."""
    names = set(protocol.writer_features or ()) | set(protocol.reader_features or ())
    if protocol.min_writer_version < 7:
        names |= _legacy_features(protocol.min_reader_version, protocol.min_writer_version)
    elif protocol.min_reader_version == 2:
        names.add("columnMapping")
    return frozenset(names)


def ensure_well_formed(protocol: Protocol, *, table_path: str, version: int) -> None:
    """Refuse a protocol whose versions contradict its lists of features (spec 6.1).

    delta-spark leaves column mapping out of the list for readers when it raises reader version 2,
    which implies it, to 3. So a feature that a lower version implies need not be listed. Nobody
    knows yet what a future writer version has to list, so then only the readers' list counts.

    Raises:
        ProtocolError: Reader version 3 comes without writer version 7 (kind
            `DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE`). Or a version is below 1, a list is
            present or absent against its version, or a feature that concerns readers is in only one
            of the two lists (kind `DELTA_INVALID_PROTOCOL_VERSION`).
    """
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader >= 3 and writer < 7:
        raise _protocol_error(
            protocol,
            "is malformed: reader version 3 requires writer version 7. The last writer broke the "
            "protocol; repair the table with that engine",
            kind="DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
            table_path=table_path,
            version=version,
        )
    is_known = writer <= SUPPORTED_WRITER_VERSIONS[-1]
    lists_fit = (protocol.reader_features is not None) == (reader >= 3) and (
        not is_known or (protocol.writer_features is not None) == (writer >= 7)
    )
    if reader < 1 or writer < 1 or not lists_fit:
        raise _protocol_error(
            protocol,
            "is malformed: it must list reader features at reader version 3, writer features at "
            "writer version 7, and no features at lower versions. Repair the table with the engine "
            "that wrote it",
            kind="DELTA_INVALID_PROTOCOL_VERSION",
            table_path=table_path,
            version=version,
        )
    one_sided = _listed_on_one_side(protocol)
    if is_known and one_sided:
        raise _protocol_error(
            protocol,
            "is malformed: a feature for readers must be in both lists, the one for readers and "
            f"the one for writers, but these are in only one: {shown(', '.join(one_sided))}. "
            "Nothing was read or written. Repair the table with the engine that wrote it",
            kind="DELTA_INVALID_PROTOCOL_VERSION",
            table_path=table_path,
            version=version,
            features=one_sided,
        )


def _listed_on_one_side(protocol: Protocol) -> tuple[str, ...]:
    for_readers = frozenset(protocol.reader_features or ())
    for_writers = frozenset(protocol.writer_features or ())
    for_writers_only = {
        name
        for name in for_writers - for_readers
        if (row := FEATURES.get(name)) is not None
        and row.reader_writer
        and (row.legacy_reader is None or row.legacy_reader > protocol.min_reader_version)
    }
    return tuple(sorted(for_writers_only | (for_readers - for_writers)))


def ensure_readable(
    protocol: Protocol, metadata: Metadata | None, *, table_path: str, version: int
) -> None:
    """Refuse a table that this engine can't read: the read gate (spec 6.4).

    While the metadata is unknown (None), listed features count as used, and features that a legacy
    version merely implies count as unused. Call this again once the metadata is known.

    Raises:
        ProtocolError: The versions are unknown or malformed (`DELTA_INVALID_PROTOCOL_VERSION`,
            `DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE`), the files are not Parquet
            (`OPTIMIST_UNSUPPORTED_FILE_FORMAT`, field `format`), the table needs features that this
            engine can't read (`DELTA_UNSUPPORTED_FEATURES_FOR_READ`, field `unsupported`), or a
            column's type was changed in a way that the engine does not know
            (`DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA`, field `changes`). See also
            `ensure_columns_can_be_found`.
        TableError: See `ensure_columns_can_be_found`.
    """
    if protocol.min_reader_version > SUPPORTED_READER_VERSIONS[-1]:
        raise _version_error(protocol, table_path=table_path, version=version)
    ensure_well_formed(protocol, table_path=table_path, version=version)
    _ensure_of_parquet(protocol, metadata, table_path=table_path, version=version)
    names = _unsupported_features(
        protocol, metadata, protocol.reader_features, lambda row: row.can_read
    )
    if names:
        raise _protocol_error(
            protocol,
            f"needs reader features that this engine does not have: {shown(', '.join(names))}. "
            f"Nothing was read. {_remedy_for(names)}",
            kind="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            table_path=table_path,
            version=version,
            unsupported=names,
        )
    if metadata is None:
        return
    ensure_columns_can_be_found(protocol, metadata, table_path=table_path, version=version)
    changes = TableMetadata.of(metadata).unknown_type_changes
    if changes:
        raise _protocol_error(
            protocol,
            "has type changes of columns that this engine does not know: "
            f"{shown('; '.join(changes))}. Nothing was read. Read the table with the engine that "
            "changed them",
            kind="DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
            table_path=table_path,
            version=version,
            changes=changes,
        )


def ensure_writable(
    protocol: Protocol, metadata: Metadata | None, *, table_path: str, version: int
) -> None:
    """Refuse a table that this engine can't read or can't write to: the write gate (spec 6.4).

    Metadata may be None, as in `ensure_readable`.

    Raises:
        ProtocolError: As `ensure_readable`, or the table needs features that this engine can't
            write (`DELTA_UNSUPPORTED_FEATURES_FOR_WRITE`, field `unsupported`), uses features that
            it does not list (`DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH`, field `missing`), or is
            also kept in another format (`DELTA_UNIVERSAL_FORMAT_VIOLATION`, field `formats`).
    """
    ensure_readable(protocol, metadata, table_path=table_path, version=version)
    if protocol.min_writer_version > SUPPORTED_WRITER_VERSIONS[-1]:
        raise _version_error(protocol, table_path=table_path, version=version)
    names = _unsupported_features(
        protocol, metadata, protocol.writer_features, lambda row: row.can_write
    )
    if names:
        raise _protocol_error(
            protocol,
            f"needs writer features that this engine does not have: {shown(', '.join(names))}. "
            "Nothing was written. Write to the table with an engine that has them, or drop the "
            "features there",
            kind="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            table_path=table_path,
            version=version,
            unsupported=names,
        )
    if metadata is not None:
        ensure_features_listed(
            protocol, metadata, table_path=table_path, version=version, to_write=True
        )
        _ensure_only_delta(protocol, metadata, table_path=table_path, version=version)


def ensure_features_listed(
    protocol: Protocol, metadata: Metadata, *, table_path: str, version: int, to_write: bool = False
) -> None:
    """Refuse a protocol that lists features, but not all that the metadata uses.

    Some writers leave out features that concern only writers, as delta-rs does if a column is NOT
    NULL. The engine still reads such a table, but does not write to it (`to_write`).

    Raises:
        ProtocolError: Features are not listed (kind `DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH`,
            field `missing`).
    """
    is_legacy = protocol.min_writer_version < 7
    if is_legacy and not to_write:
        return
    listed = implied_features(protocol)
    needed: Iterable[str] = _needed_features(metadata)
    if is_legacy:
        # Readers that use only the versions would look for mapped columns under their names.
        needed = (name for name in needed if FEATURES[name].legacy_reader is not None)
    elif not to_write:
        needed = (name for name in needed if FEATURES[name].reader_writer)
    missing = tuple(sorted(name for name in needed if not covers(listed, name)))
    if missing:
        raise _protocol_error(
            protocol,
            "has metadata that uses table features which the protocol does not list: "
            f"{shown(', '.join(missing))}. Nothing was {'written' if to_write else 'read'}. Add "
            "them with the engine that left them out (with delta-rs by alter.add_feature)",
            kind="DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
            table_path=table_path,
            version=version,
            missing=missing,
        )


def protocol_for_new_table(
    metadata_configuration: Mapping[str, str], metadata: Metadata, options: EngineOptions
) -> Protocol:
    """Return the weakest protocol that has all that a new table asks for and needs.

    Args:
        metadata_configuration: The user's properties, including requests such as
            `delta.minReaderVersion` and `delta.feature.*`.
        metadata: The metadata whose schema and properties decide which features are needed.
        options: The engine's options. Their `property_defaults` may ask for more, unless
            `delta.ignoreProtocolDefaults` is true.

    Raises:
        ConfigError: See `requested_protocol`.
    """
    requested = requested_protocol(metadata_configuration)
    if not _parse_flag_of(metadata_configuration, "delta.ignoreProtocolDefaults"):
        defaults = requested_protocol(options.property_defaults)
        requested = merge(merge(DEFAULT_PROTOCOL, defaults), requested)
    return merge(requested, normalize(with_requirements(_needed_features(metadata))))


def protocol_for_existing(current: Protocol, metadata: Metadata) -> Protocol:
    """Return the protocol after a change of metadata, with the automatic features it needs.

    It equals `current` if no feature is missing.

    Raises:
        ProtocolError: The change needs a feature that only the user may add (kind
            `DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT`, field `features`).
    """
    present = implied_features(current)
    missing = frozenset(name for name in _needed_features(metadata) if not covers(present, name))
    manual = tuple(sorted(n for n in missing if FEATURES[n].enablement is not Enablement.AUTOMATIC))
    if manual:
        how = ", ".join(f"{FEATURE_PREFIX}{name} = 'supported'" for name in manual)
        raise ProtocolError(
            "The change needs table features that an existing table gets only on request, because "
            f"older engines can't use the table afterwards: {', '.join(manual)}. Nothing was "
            f"written. To add them, set the table properties {how}.",
            kind="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
            features=manual,
        )
    return merge(current, normalize(with_requirements(missing)))


def requested_protocol(configuration: Mapping[str, str], *, is_new_table: bool = True) -> Protocol:
    """Return the protocol that a configuration asks for.

    The keys are `delta.minReaderVersion`, `delta.minWriterVersion` and `delta.feature.*`, in any
    case. Reader version 3 and writer version 7 only allow lists of features, so alone they ask for
    nothing.

    Args:
        configuration: The user's properties.
        is_new_table: Whether the properties are for a new table. It decides the error for
            clustering.

    Raises:
        ConfigError: A feature is unknown (kind `DELTA_UNSUPPORTED_FEATURES_IN_CONFIG`), its status
            is neither `supported` nor `enabled` (`DELTA_UNSUPPORTED_FEATURE_STATUS`), or a version
            does not parse or is out of range (`OPTIMIST_INVALID_TABLE_PROPERTY`). Or the feature is
            `clustering`, which only the command that names the columns brings (spec 10.9;
            `DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED`, for an existing table
            `DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED`).
    """
    reader = requested_version(configuration, "delta.minReaderVersion")
    writer = requested_version(configuration, "delta.minWriterVersion")
    names = requested_features(configuration, is_new_table=is_new_table)
    legacy = _legacy_features(reader, writer) if writer < 7 else frozenset[str]()
    return normalize(with_requirements(names | legacy))


def merge(first: Protocol, *others: Protocol) -> Protocol:
    """Return the weakest protocol with the features of all these, or `first` if it has all."""
    features = implied_features(first)
    union = features.union(*(implied_features(other) for other in others))
    return first if union == features else normalize(union)


def with_features(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """Return the weakest protocol that also has these features and those that they require."""
    return merge(protocol, normalize(with_requirements(frozenset(names))))


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """Return the weakest protocol that has all features of this one except the named one."""
    return normalize(implied_features(protocol) - {name})


def normalize(features: Iterable[str]) -> Protocol:
    """Return the weakest protocol that has exactly these features (spec 6.4).

    It has legacy versions if a pair of them implies just these features. Else it has writer version
    7, with the lowest reader version that the reader-writer features among them allow. Unknown
    features count as reader-writer.
    """
    wanted = frozenset(features)
    for reader, writer in _LEGACY_VERSIONS:
        if _legacy_features(reader, writer) == wanted:
            return Protocol(reader, writer)
    for_readers = {name for name in wanted if name not in FEATURES or FEATURES[name].reader_writer}
    if not for_readers:
        return Protocol(1, 7, None, tuple(sorted(wanted)))
    if for_readers == {"columnMapping"}:
        return Protocol(2, 7, None, tuple(sorted(wanted)))
    return Protocol(3, 7, tuple(sorted(for_readers)), tuple(sorted(wanted)))


def ensure_upgrade_allowed(
    old: Protocol, new: Protocol, *, dropped: frozenset[str] = frozenset()
) -> None:
    """Refuse a change of protocol that removes features.

    Args:
        old: The old protocol.
        new: The new protocol.
        dropped: The feature that a DROP FEATURE removes. Only it may go.

    Raises:
        ProtocolError: The table would lose features, or a version is below 1 (kind
            `DELTA_INVALID_PROTOCOL_DOWNGRADE`, field `lost`).
    """
    lost = tuple(sorted(implied_features(old) - implied_features(new) - dropped))
    if lost or new.min_reader_version < 1 or new.min_writer_version < 1:
        raise ProtocolError(
            f"The protocol can't go from {_describe_versions(old)} to {_describe_versions(new)}: "
            f"the table would lose {', '.join(lost) or 'its versions'}. Nothing was written. Drop "
            "the feature first.",
            kind="DELTA_INVALID_PROTOCOL_DOWNGRADE",
            lost=lost,
            old_versions=(old.min_reader_version, old.min_writer_version),
            new_versions=(new.min_reader_version, new.min_writer_version),
        )


def _ensure_of_parquet(
    protocol: Protocol, metadata: Metadata | None, *, table_path: str, version: int
) -> None:
    """Refuse a table whose files are not Parquet, since its readers could not read our files."""
    provider = metadata.format.get("provider") if metadata is not None else None
    if not provider or str(provider).lower() == _PARQUET:
        return
    raise _protocol_error(
        protocol,
        f"has files of the format {quoted(provider)}, and this engine knows only Parquet. Nothing "
        "was read or written. Use the engine that made the table, or copy its rows to a new one",
        kind="OPTIMIST_UNSUPPORTED_FILE_FORMAT",
        table_path=table_path,
        version=version,
        format=provider,
    )


def _ensure_only_delta(
    protocol: Protocol, metadata: Metadata, *, table_path: str, version: int
) -> None:
    """Refuse a table whose commits must be converted to another format (no feature says so)."""
    formats = TableMetadata.of(metadata).properties.universal_format_enabled_formats
    if not formats:
        return
    raise _protocol_error(
        protocol,
        f"should also be kept in other formats (delta.universalFormat.enabledFormats is "
        f"{shown(', '.join(formats))}), but this engine can't convert to them. Nothing was "
        "written: readers of those formats would not see the commit. Write with an engine that "
        "converts, or unset the property",
        kind="DELTA_UNIVERSAL_FORMAT_VIOLATION",
        table_path=table_path,
        version=version,
        formats=formats,
    )


@lru_cache(maxsize=64)
def _legacy_features(reader: int, writer: int) -> frozenset[str]:
    return frozenset(
        feature.name
        for feature in FEATURES.values()
        if feature.legacy_writer is not None
        and feature.legacy_writer <= writer
        and (feature.legacy_reader or 1) <= reader
    )


def _unsupported_features(
    protocol: Protocol,
    metadata: Metadata | None,
    listed: tuple[str, ...] | None,
    can_do: Callable[[Feature], bool],
) -> tuple[str, ...]:
    unknown = {name for name in listed or () if name not in FEATURES}
    if unknown:
        # Only unknown features may explain the schema, so do not read it.
        rows = [FEATURES[name] for name in set(listed or ()) - unknown]
        named = {row.name for row in rows if not can_do(row) and not row.harmless_when_inactive}
        return tuple(sorted(unknown | named))
    in_use = _features_in_use(protocol, metadata)
    return tuple(sorted(feature.name for feature in in_use if not can_do(feature)))


def _features_in_use(protocol: Protocol, metadata: Metadata | None) -> Iterator[Feature]:
    """Yield the known features that an engine must honour for this table.

    Features that the metadata uses count even if the protocol lacks them: an engine that did not
    honour them would misread the table.
    """
    active = active_features(metadata) if metadata is not None else frozenset[str]()
    listed = set(protocol.reader_features or ()) | set(protocol.writer_features or ())
    for name in sorted(implied_features(protocol) | active):
        feature = FEATURES.get(name)
        if feature is None:
            continue
        idle = feature.harmless_when_inactive if metadata is not None else name not in listed
        if name in active or not idle:
            yield feature


def _needed_features(metadata: Metadata) -> frozenset[str]:
    """Return the active features that the metadata requires the protocol to have.

    Features that are only added explicitly are left out: they have errors of their own (spec 1.7,
    step 13).
    """
    return frozenset(
        name
        for name in active_features(metadata)
        if FEATURES[name].enablement is not Enablement.EXPLICIT
    )


def _parse_flag_of(configuration: Mapping[str, str], name: str) -> bool:
    for key, value in configuration.items():
        if key.lower() == name.lower():
            try:
                return parse_flag(value)
            except ValueError:
                raise ConfigError(
                    f"The table property {name} can't be {quoted(value)}: it must be true or "
                    "false. Nothing was written.",
                    kind="OPTIMIST_INVALID_TABLE_PROPERTY",
                    property=name,
                    value=value,
                ) from None
    return False


def _remedy_for(names: tuple[str, ...]) -> str:
    if any(name.startswith(_CATALOG_FEATURES) for name in names):
        return (
            "A catalog holds its newest commits, and the path alone does not show them. Read the "
            "table through its catalog, with an engine that knows it"
        )
    return "Read the table with an engine that has them, or drop the features there"


def _describe_versions(protocol: Protocol) -> str:
    listed = protocol.writer_features
    names = f", features {shown(', '.join(listed) or 'none')}" if listed is not None else ""
    return (
        f"reader version {protocol.min_reader_version}, writer version "
        f"{protocol.min_writer_version}{names}"
    )


def _version_error(protocol: Protocol, *, table_path: str, version: int) -> ProtocolError:
    return _protocol_error(
        protocol,
        f"needs a newer engine: this one knows reader versions {SUPPORTED_READER_VERSIONS[0]} to "
        f"{SUPPORTED_READER_VERSIONS[-1]} and writer versions {SUPPORTED_WRITER_VERSIONS[0]} to "
        f"{SUPPORTED_WRITER_VERSIONS[-1]}. Nothing was read or written. Upgrade the engine",
        kind="DELTA_INVALID_PROTOCOL_VERSION",
        table_path=table_path,
        version=version,
        supported_reader_versions=SUPPORTED_READER_VERSIONS,
        supported_writer_versions=SUPPORTED_WRITER_VERSIONS,
    )


def _protocol_error(
    protocol: Protocol, problem: str, *, kind: str, **fields: object
) -> ProtocolError:
    return ProtocolError(
        f"The table {fields['table_path']} at version {fields['version']} "
        f"({_describe_versions(protocol)}) {problem}.",
        kind=kind,
        reader_version=protocol.min_reader_version,
        writer_version=protocol.min_writer_version,
        **fields,
    )
