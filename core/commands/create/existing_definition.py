"""The definition of an existing table, for a new table like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import implied_features
from optimist.core.protocol.properties import PROPERTIES
from optimist.core.protocol.schema_merge import without_internal_metadata
from optimist.core.requests.table_definition import Column, Identity, TableDefinition
from optimist.core.schema.identity_columns import identity_columns
from optimist.core.schema.types import GENERATION_EXPRESSION, StructField
from optimist.core.snapshot import Snapshot

__all__ = ["definition_of"]

_COMMENT, _DEFAULT = "comment", "CURRENT_DEFAULT"
_DEFAULTS = (_COMMENT, _DEFAULT, "EXISTS_DEFAULT")
_NOT_BY_PROPERTY = frozenset({"clustering", "domainMetadata"})
"""Features that follow from the table's layout in the statement."""


def definition_of(snapshot: Snapshot) -> TableDefinition:
    """Return the table's definition: columns with their rules, layout, properties and comment.

    CHECK constraints and features are among the properties, as in the log. Internal values, such as
    the ids and physical names of columns, are left out.
    """
    rules = {item.name: item for item in identity_columns(snapshot.schema)}
    identities = {
        name: Identity(item.start, item.step, always=not item.may_be_inserted)
        for name, item in rules.items()
    }
    # Nested fields keep nothing but what `without_internal_metadata` keeps.
    types = {item.name: item.data_type for item in without_internal_metadata(snapshot.schema)}
    columns = (replace(item, data_type=types[item.name]) for item in snapshot.schema)
    return TableDefinition(
        columns=tuple(_column_of(item, identities) for item in columns),
        partition_by=snapshot.partition_columns,
        cluster_by=tuple(clustering_columns(snapshot.domain_metadata, snapshot.schema)),
        properties=_settable_properties(snapshot),
        comment=snapshot.metadata.description,
    )


def _column_of(item: StructField, identities: Mapping[str, Identity]) -> Column:
    known = {key: value for key, value in item.metadata.items() if _is_kept(key)}
    texts = {
        key: None if item.metadata.get(key) is None else str(item.metadata[key])
        for key in (_COMMENT, _DEFAULT, GENERATION_EXPRESSION)
    }
    return Column(
        item.name,
        item.data_type,
        item.nullable,
        comment=texts[_COMMENT],
        generated_as=texts[GENERATION_EXPRESSION],
        identity=identities.get(item.name),
        default=texts[_DEFAULT],
        metadata=known,
    )


def _is_kept(key: str) -> bool:
    return not key.startswith("delta.") and key not in _DEFAULTS


def _settable_properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the properties that a user may set, the CHECK constraints, and the features."""
    given = {
        key: text
        for key, text in snapshot.metadata.configuration.items()
        if key not in PROPERTIES or PROPERTIES[key].user_settable
    }
    if snapshot.protocol.min_writer_version >= 7:
        for feature in sorted(implied_features(snapshot.protocol) - _NOT_BY_PROPERTY):
            given[f"delta.feature.{feature}"] = "supported"
    return given
