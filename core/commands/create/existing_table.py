"""Whether the table at a place is the one that a CREATE TABLE defines (spec 10.6).

A catalog may give a new name to a place that has a table. The table must then have what the
statement says; what the statement leaves out is taken from the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import implied_features, requested_protocol
from optimist.core.protocol.properties import (
    PROPERTIES,
    UNKEPT_PROPERTIES,
    canonical_name,
    normalize_configuration,
)
from optimist.core.requests.table_definition import TableDefinition
from optimist.core.schema.types import StructField, StructType
from optimist.core.snapshot import Snapshot

__all__ = ["ensure_table_fits"]

_KEPT_BY_THE_ENGINE = ("delta.columnMapping.", "delta.identity.highWaterMark", "delta.typeChanges")
_MAPPING_MODE = "delta.columnMapping.mode"


def ensure_table_fits(
    snapshot: Snapshot, definition: TableDefinition, *, allow_arbitrary: bool
) -> None:
    """Refuse a definition that is not that of the table.

    Without columns, the table's schema and partitioning are taken; without properties, the table's
    properties are. What the engine keeps for itself, such as ids of columns, is not compared.

    Args:
        snapshot: The table.
        definition: What a statement says of it.
        allow_arbitrary: Let unknown `delta.*` properties pass.

    Raises:
        SchemaError: They differ: `DELTA_CREATE_TABLE_SCHEME_MISMATCH` (field `differences`),
            `DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING`,
            `DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING` or
            `DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY`.
        ConfigError: A property is not valid.
    """
    if definition.columns:
        _ensure_same_columns(snapshot, definition)
    if definition.properties:
        given = normalize_configuration(
            definition.properties,
            allow_arbitrary=allow_arbitrary,
            allow_constraints=True,
            enforce_retention=False,
        )
        _ensure_same_properties(snapshot, given)


def _ensure_same_columns(snapshot: Snapshot, definition: TableDefinition) -> None:
    wanted = definition.schema()
    differences = tuple(_differences(snapshot.schema, wanted))
    if differences:
        raise _differs(
            snapshot,
            "schema",
            listed(differences),
            "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
            differences,
        )
    partitions = definition.partition_columns(snapshot.schema)
    if partitions != snapshot.partition_columns:
        found = f"{shown(list(snapshot.partition_columns))}, not {shown(list(partitions))}"
        raise _differs(
            snapshot, "partitioning", found, "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING"
        )
    known = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    clustering = definition.clustering_paths
    if _folded(known) != _folded(clustering):
        names = [".".join(path) for path in known], [".".join(path) for path in clustering]
        found = f"{shown(names[0])}, not {shown(names[1])}"
        raise _differs(
            snapshot, "clustering", found, "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING"
        )


def _ensure_same_properties(snapshot: Snapshot, given: Mapping[str, str]) -> None:
    missing = implied_features(requested_protocol(given)) - implied_features(snapshot.protocol)
    wanted, known = _compared(given), _compared(snapshot.metadata.configuration)
    if _MAPPING_MODE not in wanted:
        known.pop(_MAPPING_MODE, None)  # as in Delta, it may be left out
    names = {key for key in wanted.keys() | known.keys() if wanted.get(key) != known.get(key)}
    differences = (
        *(f"{key} is {_value(known, key)}, not {_value(wanted, key)}" for key in sorted(names)),
        *(f"it lacks the feature {name}" for name in sorted(missing)),
    )
    if differences:
        raise _differs(
            snapshot,
            "properties",
            listed(differences),
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
            differences,
        )


def _differences(
    table: StructType, wanted: StructType, path: tuple[str, ...] = ()
) -> Iterator[str]:
    """What differs between two schemas, whatever the order of their columns."""
    for item in wanted:
        if table.find(item.name) is None:
            yield f"the table has no column {'.'.join((*path, item.name))}"
    for item in table:
        name = ".".join((*path, item.name))
        other = wanted.find(item.name)
        if other is None:
            yield f"the table has a column {name} as well"
            continue
        yield from _field_differences(name, item, other)


def _field_differences(name: str, item: StructField, other: StructField) -> Iterator[str]:
    if item.nullable != other.nullable:
        yield f"{name} may {'' if item.nullable else 'not '}be null"
    if isinstance(item.data_type, StructType) and isinstance(other.data_type, StructType):
        yield from _differences(item.data_type, other.data_type, (name,))
    elif str(item.data_type) != str(other.data_type):
        yield f"{name} is of type {item.data_type}, not {other.data_type}"
    kept, asked = _own(item.metadata), _own(other.metadata)
    if kept != asked:
        yield f"{name} has the metadata {quoted(kept)}, not {quoted(asked)}"


def _own(metadata: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in metadata.items() if not k.startswith(_KEPT_BY_THE_ENGINE)}


def _compared(configuration: Mapping[str, str]) -> dict[str, str]:
    """The properties that a user sets and that stay in the log."""
    return {
        key: value
        for key, value in configuration.items()
        if not key.startswith("delta.feature.") and _is_compared(canonical_name(key))
    }


def _is_compared(name: str) -> bool:
    row = PROPERTIES.get(name)
    return row is None or (row.user_settable and name not in UNKEPT_PROPERTIES)


def _value(configuration: Mapping[str, str], key: str) -> str:
    return quoted(configuration[key]) if key in configuration else "unset"


def _folded(paths: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
    return [tuple(part.lower() for part in path) for path in paths]


def _differs(
    snapshot: Snapshot, what: str, found: str, kind: str, differences: tuple[str, ...] = ()
) -> SchemaError:
    return SchemaError(
        f"The table at {snapshot.table_path} has another {what} than the one given: {found}. "
        f"Nothing was written. Leave the {what} out to take the table as it is, or choose another "
        "location.",
        kind=kind,
        path=snapshot.table_path,
        differences=differences,
    )
