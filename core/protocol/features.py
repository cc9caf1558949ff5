"""Table features: one row per feature of the protocol (spec 6.2).

A row states the demands of a feature, the test whether a table's metadata needs it, and whether
this engine can read and write tables that have it. To teach the engine a feature, build it and
change its row; the checks in `gates.py` follow.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType

from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import TableProperties
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
    walk_fields,
)

__all__ = [
    "FEATURES",
    "Enablement",
    "Feature",
    "active_features",
    "covers",
    "feature_by_any_case",
    "with_requirements",
]


class Enablement(enum.Enum):
    """The way in which a feature that the metadata needs gets into a table's protocol."""

    AUTOMATIC = "automatic"
    """The engine adds it to new and existing tables alike."""
    NEW_TABLES = "new tables"
    """The engine adds it to new tables. On an existing table the user must ask for it."""
    EXPLICIT = "explicit"
    """Only `delta.feature.<name>`, a command, or another feature that requires it adds it."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One table feature.

    Attributes:
        name: The name in `readerFeatures` and `writerFeatures`, compared exactly.
        reader_writer: Whether readers must know it, not just writers.
        can_read: Whether this engine reads tables that have it. True for writer-only features.
        can_write: Whether this engine writes to tables that have it.
        legacy_reader: The reader version that implies it, or None.
        legacy_writer: The writer version that implies it, or None.
        requires: Other features that the protocol must have then.
        is_active: The test whether the metadata uses it. None if the metadata can't tell.
        enablement: The way it gets into the protocol when it is active.
        harmless_when_inactive: Whether an engine without it may still read and write a table that
            lists it but does not use it.
    """

    name: str
    reader_writer: bool
    can_read: bool
    can_write: bool
    legacy_reader: int | None = None
    legacy_writer: int | None = None
    requires: tuple[str, ...] = ()
    is_active: Callable[[TableMetadata], bool] | None = None
    enablement: Enablement = Enablement.AUTOMATIC
    harmless_when_inactive: bool = False


def active_features(metadata: Metadata) -> frozenset[str]:
    """Return the features that schema and properties use, whether a protocol lists them or not.

    Raises:
        SchemaError: `schemaString` is not a schema.
    """
    return _active_features(TableMetadata.of(metadata))


def covers(listed: frozenset[str], name: str) -> bool:
    """Return whether these features include the named one, perhaps under its preview name."""
    return name in listed or f"{name}-preview" in listed


def with_requirements(names: frozenset[str]) -> frozenset[str]:
    """Return the features and all features that they require, directly or indirectly."""
    result: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in result:
            continue
        result.add(name)
        waiting.extend(FEATURES[name].requires if name in FEATURES else ())
    return frozenset(result)


def feature_by_any_case(name: str) -> Feature | None:
    """Return the feature of a name in any case, as in `delta.feature.deletionvectors`, or None."""
    return _BY_FOLDED_NAME.get(name.lower())


@lru_cache(maxsize=64)  # the gates ask several times per commit, mostly about the same metadata
def _active_features(table: TableMetadata) -> frozenset[str]:
    return frozenset(
        feature.name
        for feature in FEATURES.values()
        if feature.is_active is not None and feature.is_active(table)
    )


def _contains_primitive(data_type: DataType, name: str) -> bool:
    if isinstance(data_type, PrimitiveType):
        return data_type.name == name
    if isinstance(data_type, ArrayType):
        return _contains_primitive(data_type.element_type, name)
    if isinstance(data_type, MapType):
        return _contains_primitive(data_type.key_type, name) or _contains_primitive(
            data_type.value_type, name
        )
    if isinstance(data_type, StructType):
        return any(_contains_primitive(item.data_type, name) for item in data_type)
    return False


def _has_type(name: str) -> Callable[[TableMetadata], bool]:
    return lambda table: _contains_primitive(table.declared_schema, name)


def _has_field_key(prefix: str) -> Callable[[TableMetadata], bool]:
    return lambda table: any(
        key.startswith(prefix)
        for _, item in walk_fields(table.declared_schema)
        for key in item.metadata
    )


def _has_property(test: Callable[[TableProperties], bool]) -> Callable[[TableMetadata], bool]:
    return lambda table: test(table.properties)


def _has_invariants(table: TableMetadata) -> bool:
    return _struct_has_invariants(table.declared_schema)


def _struct_has_invariants(struct: StructType) -> bool:
    # No invariant can be enforced inside arrays and maps, so none there needs the feature.
    return any(
        not item.nullable
        or "delta.invariants" in item.metadata
        or (isinstance(item.data_type, StructType) and _struct_has_invariants(item.data_type))
        for item in struct
    )


_writer = partial(Feature, reader_writer=False, can_read=True)
_reader_writer = partial(Feature, reader_writer=True)
_type_widening = _has_property(lambda properties: properties.enable_type_widening)
_shredding = _has_property(lambda properties: properties.enable_variant_shredding)

_ROWS = (
    _writer(
        "appendOnly",
        can_write=True,
        legacy_writer=2,
        is_active=_has_property(lambda properties: properties.append_only),
    ),
    _writer("invariants", can_write=True, legacy_writer=2, is_active=_has_invariants),
    _writer(
        "checkConstraints",
        can_write=True,
        legacy_writer=3,
        is_active=_has_property(lambda properties: bool(properties.constraints)),
    ),
    _writer(
        "changeDataFeed",
        can_write=True,
        legacy_writer=4,
        is_active=_has_property(lambda properties: properties.enable_change_data_feed),
    ),
    _writer(
        "generatedColumns",
        can_write=True,
        legacy_writer=4,
        is_active=_has_field_key("delta.generationExpression"),
    ),
    _reader_writer(
        "columnMapping",
        can_read=True,
        can_write=True,
        legacy_reader=2,
        legacy_writer=5,
        is_active=_has_property(lambda properties: properties.column_mapping_mode != "none"),
        harmless_when_inactive=True,
    ),
    _writer(
        "identityColumns",
        can_write=True,
        legacy_writer=6,
        is_active=_has_field_key("delta.identity."),
        harmless_when_inactive=True,
    ),
    _writer(
        "allowColumnDefaults",
        can_write=True,
        is_active=_has_field_key("CURRENT_DEFAULT"),
        enablement=Enablement.EXPLICIT,
    ),
    _writer("domainMetadata", can_write=True, enablement=Enablement.EXPLICIT),
    _writer(
        "rowTracking",
        can_write=True,
        requires=("domainMetadata",),
        is_active=_has_property(lambda properties: properties.enable_row_tracking),
    ),
    _writer(
        "clustering",
        can_write=True,
        requires=("domainMetadata",),
        enablement=Enablement.EXPLICIT,
    ),
    _writer(
        "icebergCompatV1",
        can_write=False,
        requires=("columnMapping",),
        is_active=_has_property(lambda properties: properties.enable_iceberg_compat_v1),
    ),
    _writer(
        "icebergCompatV2",
        can_write=False,
        requires=("columnMapping",),
        is_active=_has_property(lambda properties: properties.enable_iceberg_compat_v2),
    ),
    _writer(
        "icebergCompatV3",
        can_write=False,
        requires=("columnMapping", "rowTracking"),
        is_active=_has_property(lambda properties: properties.enable_iceberg_compat_v3),
    ),
    _writer(
        "inCommitTimestamp",
        can_write=True,
        is_active=_has_property(lambda properties: properties.enable_in_commit_timestamps),
    ),
    _reader_writer(
        "deletionVectors",
        can_read=True,
        can_write=True,
        is_active=_has_property(lambda properties: properties.enable_deletion_vectors),
    ),
    _reader_writer(
        "timestampNtz",
        can_read=True,
        can_write=True,
        is_active=_has_type("timestamp_ntz"),
        enablement=Enablement.NEW_TABLES,
    ),
    _reader_writer(
        "v2Checkpoint",
        can_read=True,
        can_write=True,
        is_active=_has_property(lambda properties: properties.checkpoint_policy == "v2"),
    ),
    _reader_writer(
        "vacuumProtocolCheck", can_read=True, can_write=True, enablement=Enablement.EXPLICIT
    ),
    _reader_writer("typeWidening", can_read=True, can_write=True, is_active=_type_widening),
    _reader_writer(
        "typeWidening-preview", can_read=True, can_write=True, enablement=Enablement.EXPLICIT
    ),
    _reader_writer("variantType", can_read=True, can_write=True, is_active=_has_type("variant")),
    _reader_writer(
        "variantType-preview", can_read=True, can_write=True, enablement=Enablement.EXPLICIT
    ),
    _reader_writer("variantShredding", can_read=True, can_write=True, is_active=_shredding),
    _reader_writer(
        "variantShredding-preview", can_read=True, can_write=True, enablement=Enablement.EXPLICIT
    ),
    _reader_writer(
        "catalogManaged",
        can_read=False,
        can_write=False,
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
        enablement=Enablement.EXPLICIT,
    ),
    _writer("checkpointProtection", can_write=True, enablement=Enablement.EXPLICIT),
)

FEATURES: Mapping[str, Feature] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows by name. Any other name is an unknown feature."""

_BY_FOLDED_NAME: Mapping[str, Feature] = {row.name.lower(): row for row in _ROWS}
