"""The keys of columns' metadata that count because the protocol has their feature (spec 6.3, 10.4).

A column may be declared as generated, or as an identity column. Without the feature no writer must
follow that, so its rows may hold any values, and new rows may bring any. All rooms ask this module.
Defaults are kept: delta-spark uses them with and without `allowColumnDefaults`.
"""

from __future__ import annotations

from dataclasses import replace

from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.gates import supports
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.identity_columns import IDENTITY_PREFIX
from optimist.core.schema.types import (
    GENERATION_EXPRESSION,
    StructType,
    schema_to_json,
    walk_fields,
)

__all__ = ["metadata_that_counts", "schema_that_counts"]

_KEYS_BY_FEATURE = (
    ("generatedColumns", GENERATION_EXPRESSION),
    ("identityColumns", IDENTITY_PREFIX),
)
"""Features, and the prefixes of the columns' keys that mean nothing without them."""


def schema_that_counts(schema: StructType, protocol: Protocol) -> StructType:
    """Return the schema without the keys of columns whose feature the protocol lacks."""
    prefixes = _stray_prefixes(protocol)
    if not any(
        key.startswith(prefixes) for _, item in walk_fields(schema) for key in item.metadata
    ):
        return schema
    return schema.without_field_keys(lambda key: key.startswith(prefixes))


def metadata_that_counts(metadata: Metadata, protocol: Protocol) -> Metadata:
    """Return the metadata without the keys of columns whose feature the protocol lacks.

    Commits are made from this metadata. A key must not begin to count when the feature comes, while
    the table has rows that were written without it.
    """
    if not any(prefix in metadata.schema_string for prefix in _stray_prefixes(protocol)):
        return metadata
    declared = TableMetadata.of(metadata).declared_schema
    kept = schema_that_counts(declared, protocol)
    return metadata if kept is declared else replace(metadata, schema_string=schema_to_json(kept))


def _stray_prefixes(protocol: Protocol) -> tuple[str, ...]:
    return tuple(prefix for feature, prefix in _KEYS_BY_FEATURE if not supports(protocol, feature))
